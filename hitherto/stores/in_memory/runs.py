"""Runs in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID, uuid4

from hitherto.core.log.ranges import Ranges
from hitherto.core.run import NewEvent, Run, RunEvent, RunStatus
from hitherto.core.scope import Scope
from hitherto.stores.in_memory.claims import Name
from hitherto.stores.in_memory.conversation import StoredConversation


@dataclass
class _KeptRun:
    scope: Scope
    run: Run
    events: list[RunEvent] = field(default_factory=list[RunEvent])
    erased: bool = False


class InMemoryRuns:
    """`RunStore` in this process's memory."""

    def __init__(self, conversations: Mapping[Name, StoredConversation], clock: Callable[[], datetime]) -> None:
        self._conversations = conversations
        self._clock = clock
        self._kept: dict[UUID, _KeptRun] = {}

    async def begin(
        self, scope: Scope, conversation: str, *, strategy: str | None, injection: bool, start: int | None = None
    ) -> Run:
        run = Run(
            id=uuid4(),
            conversation=conversation,
            strategy=strategy,
            injection=injection,
            start=self._next_seq(scope, conversation) if start is None else start,
            end=None,
            status=RunStatus.RUNNING,
            freed=0,
            events=0,
            started_at=self._clock(),
            ended_at=None,
        )
        self._kept[run.id] = _KeptRun(scope, run)
        return run

    async def add(self, scope: Scope, run: UUID, events: Sequence[NewEvent]) -> bool:
        kept = self._of(scope, run)
        if kept is None or kept.run.status is not RunStatus.RUNNING:
            return False
        now = self._clock()
        for event in events:
            kept.events.append(
                RunEvent(
                    no=len(kept.events),
                    kind=event.kind,
                    name=event.name,
                    call_id=event.call_id,
                    raw=None if kept.erased and event.kind.quotes else event.raw,
                    created_at=now,
                )
            )
        kept.run = replace(kept.run, events=len(kept.events))
        return True

    async def end(self, scope: Scope, run: UUID, *, status: RunStatus, freed: int) -> Run | None:
        kept = self._of(scope, run)
        if kept is None or kept.run.status is not RunStatus.RUNNING:
            return None
        last = self._next_seq(scope, kept.run.conversation) - 1
        end = last if last >= kept.run.start else None
        kept.run = replace(kept.run, end=end, status=status, freed=freed, ended_at=self._clock())
        return kept.run

    async def run(self, scope: Scope, run: UUID) -> Run | None:
        kept = self._of(scope, run)
        return None if kept is None else kept.run

    async def runs(self, scope: Scope, conversation: str, *, before: UUID | None = None, limit: int) -> list[Run]:
        found = [one.run for one in self._kept.values() if self._is_of(one, (scope, conversation))]
        found.sort(key=lambda one: (one.started_at, one.id), reverse=True)
        if before is not None:
            ids = [one.id for one in found]
            found = found[ids.index(before) + 1 :] if before in ids else []
        return found[: max(limit, 0)]

    async def events(self, scope: Scope, run: UUID, *, after: int = -1, limit: int) -> list[RunEvent]:
        kept = self._of(scope, run)
        if kept is None:
            return []
        found = kept.events[after + 1 :][: max(limit, 0)]
        conversation = self._conversations.get((scope, kept.run.conversation))
        expiring = conversation is not None and conversation.expiring(self._clock())
        return [replace(one, raw=None) if expiring and one.kind.quotes else one for one in found]

    def all(self) -> list[tuple[Scope, Run, list[RunEvent]]]:
        """Every run with its events."""
        return [(one.scope, one.run, list(one.events)) for one in self._kept.values()]

    def restore(self, scope: Scope, run: Run, events: Sequence[RunEvent]) -> bool:
        """Write a run as it was; False if it is there."""
        if run.id in self._kept:
            return False
        self._kept[run.id] = _KeptRun(scope, replace(run, events=len(events)), list(events), erased=True)
        return True

    def forget_within(self, name: Name, erased: Ranges) -> None:
        """Erase the payloads of the runs that have any of these messages."""
        for kept in self._kept.values():
            if self._is_of(kept, name) and kept.run.has(erased):
                kept.erased = True
                kept.events = [replace(one, raw=None) if one.kind.quotes else one for one in kept.events]

    def forget_all(self, name: Name) -> None:
        """Delete the runs of a conversation."""
        self._kept = {number: one for number, one in self._kept.items() if not self._is_of(one, name)}

    def forget_owner(self, tenant: str, user: str | None, before: datetime) -> None:
        """Delete the runs of a tenant, or of a user of it, that had begun by then."""
        self._kept = {
            number: one
            for number, one in self._kept.items()
            if one.scope.tenant != tenant or user not in (None, one.scope.user) or one.run.started_at > before
        }

    def _of(self, scope: Scope, run: UUID) -> _KeptRun | None:
        kept = self._kept.get(run)
        return kept if kept is not None and kept.scope == scope else None

    def _is_of(self, kept: _KeptRun, name: Name) -> bool:
        return (kept.scope, kept.run.conversation) == name

    def _next_seq(self, scope: Scope, conversation: str) -> int:
        kept = self._conversations.get((scope, conversation))
        return 0 if kept is None else kept.head.next_seq
