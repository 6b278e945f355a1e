"""What a store in memory may show: nothing that rests on an expired message, whether that is erased yet or not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from hitherto.stores.in_memory.claims import Name
from hitherto.stores.in_memory.conversation import StoredConversation
from hitherto.stores.in_memory.fact_rows import FactRow


class Unexpired:
    """Decides what may be shown, over `conversations` by name. `clock` gives the time, with a zone."""

    def __init__(self, conversations: Mapping[Name, StoredConversation], clock: Callable[[], datetime]) -> None:
        self._conversations = conversations
        self._clock = clock

    def due(self, tenant: str) -> bool:
        """Whether the tenant has expired messages that are not erased yet."""
        now = self._clock()
        return any(scope.tenant == tenant and kept.expiring(now) for (scope, _), kept in self._conversations.items())

    def shows(self, name: Name) -> bool:
        """Whether digests of the conversation, and documents archived from it, may be shown: not while it has expired
        messages that are not erased yet. Which of them rest on such a message is known only once it is erased."""
        kept = self._conversations.get(name)
        return kept is None or not kept.expiring(self._clock())

    def facts(self) -> Callable[[FactRow], bool]:
        """A function that says whether a fact may be shown now: a person confirmed it, or a message that has not
        expired says it, or no live message says it at all (as when its conversation was deleted)."""
        now = self._clock()
        waiting = {kept.head.ref: kept for kept in self._conversations.values() if kept.expiring(now)}

        def shown(row: FactRow) -> bool:
            if not waiting or row.fact.confirmed or not row.live:
                return True
            says = ((waiting.get(one.ref), one.evidence.seq) for one in row.said if one.live)
            return any(kept is None or not kept.log[seq].expired(now) for kept, seq in says)

        return shown
