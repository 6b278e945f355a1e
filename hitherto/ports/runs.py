"""The port for runs: what agents did, event by event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from hitherto.core.run import NewEvent, Run, RunEvent, RunStatus
from hitherto.core.scope import Scope


class RunStore(Protocol):
    """Runs. All methods raise what `Store` says. Nothing is written twice: where the connection is lost while `begin`,
    `add` or `end` write, they raise DatabaseUnavailable, and it is open whether it was written, as with `Unit.commit`.

    A run is deleted with its conversation. Where a message from its `start` to its `end` is erased (while it runs: any
    from its `start` on), the payloads of its events are too, and later ones have none, but for those that quote
    nothing.
    """

    async def begin(
        self, scope: Scope, conversation: str, *, strategy: str | None, injection: bool, start: int | None = None
    ) -> Run:
        """Begin a run, whose messages are those from `start` on (None: those that come next). The conversation need not
        be there."""
        ...

    async def add(self, scope: Scope, run: UUID, events: Sequence[NewEvent]) -> bool:
        """Record events in their order, all or none. Returns whether the run is there and has not ended; if not,
        nothing is written."""
        ...

    async def end(self, scope: Scope, run: UUID, *, status: RunStatus, freed: int) -> Run | None:
        """End a run: the newest message is its last. Returns it, or None if it is not there or has ended before."""
        ...

    async def run(self, scope: Scope, run: UUID) -> Run | None:
        """A run; None if it is not there."""
        ...

    async def runs(self, scope: Scope, conversation: str, *, before: UUID | None = None, limit: int) -> list[Run]:
        """At most `limit` runs of the conversation, the last begun first; those that were begun before `before`."""
        ...

    async def events(self, scope: Scope, run: UUID, *, after: int = -1, limit: int) -> list[RunEvent]:
        """At most `limit` events of a run in their order, those after number `after`. As long as its conversation has
        expired messages that are not erased, they have no payloads that could quote one."""
        ...
