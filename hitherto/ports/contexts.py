"""The port for kept contexts: what models were sent, as receipts that refer to the log."""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol

from hitherto.core.context.kept import ContextRecord, KeptContext
from hitherto.core.scope import Scope


class ContextStore(Protocol):
    """Kept contexts. All methods raise what `Store` says.

    A context is deleted with the conversation, when a message that it showed is erased, and when anything of another
    conversation that it took something from is erased. Instructions and tools are kept once for all contexts of a
    tenant that have them.
    """

    async def keep(self, scope: Scope, conversation: str, record: ContextRecord, *, newest: int | None = None) -> None:
        """Keep a context; the conversation need not be there. With `newest`, only that many of the conversation's stay:
        the oldest go."""
        ...

    async def kept(
        self, scope: Scope, conversation: str, *, before: int | None = None, limit: int
    ) -> list[KeptContext]:
        """At most `limit` contexts of the conversation, the newest first; those before the id `before`."""
        ...

    async def forget(self, *, older_than: timedelta | None = None) -> int:
        """Delete contexts that are older, and instructions and tools that no context has any more. Returns how many
        contexts were deleted."""
        ...
