"""The runs of a scope's agent: what it did, event by event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast
from uuid import UUID

from hitherto.aside import aside, weight
from hitherto.core.log.message import storable
from hitherto.core.run import EventKind, NewEvent, Run, RunEvent, RunStatus, new_event
from hitherto.core.scope import LONGEST_NAME, Scope, checked_name
from hitherto.engine.arguments import checked_limit, checked_text
from hitherto.engine.services import Services
from hitherto.errors import InvalidInput, NotFound

RunList = list[Run]


class Runs:
    """The runs of a scope's agent, an audit trail beside the log: no context shows them.

    A run is deleted with its conversation. What its events quote is erased with any message of the run. A run whose
    process ended before it did stays "running".
    """

    def __init__(self, services: Services, scope: Scope) -> None:
        self._services = services
        self._scope = Scope.checked(scope)

    async def begin(
        self, conversation: str, *, strategy: str | None = None, injection: bool = False, start: int | None = None
    ) -> Run:
        """Begin a run in a conversation, which need not be there. `strategy` and `injection` say how its memory is
        shown (see `Run`). `start` is the first message that belongs to it; by default the next one. Raises InvalidScope
        for an unusable name, InvalidInput for an unusable `start`."""
        name = checked_name(conversation, "conversation")
        if start is not None:
            start = checked_limit(start, minimum=0, most=2**62, name="start")
        called = None if strategy is None else storable(checked_text(strategy, "strategy", most=LONGEST_NAME))
        return await self._services.store.runs.begin(
            self._scope, name, strategy=called, injection=injection, start=start
        )

    async def add(self, run: UUID | str, *events: Mapping[str, Any]) -> None:
        """Record events of a run in their order, all or none: dicts with `kind` (see `EventKind`), `payload` (anything
        that JSON can hold, at most 100 levels deep), and if they have one `name` (of the tool, or the model) and
        `call_id`. Raises NotFound for a run that is not there or has ended, InvalidInput or InvalidMessage for an
        unusable event."""
        made = await aside(weight(events), _events, events)
        if not await self._services.store.runs.add(self._scope, _id(run), made):
            raise NotFound(f"no run {run} goes on in scope {self._scope}; it has ended, or was deleted")

    async def end(self, run: UUID | str, *, failed: bool = False, freed: int = 0) -> Run:
        """End a run: messages that are appended from now on do not belong to it. `freed` are the tokens that left what
        the model sees. Raises NotFound as `add` does."""
        status = RunStatus.FAILED if failed else RunStatus.COMPLETED
        freed = checked_limit(freed, minimum=0, most=2**62, name="freed")
        ended = await self._services.store.runs.end(self._scope, _id(run), status=status, freed=freed)
        if ended is None:
            raise NotFound(f"no run {run} goes on in scope {self._scope}; it has ended, or was deleted")
        return ended

    async def get(self, run: UUID | str) -> Run | None:
        """One run; None where there is none of that id."""
        return await self._services.store.runs.run(self._scope, _id(run))

    async def list(self, conversation: str, *, before: UUID | str | None = None, limit: int = 20) -> RunList:
        """The runs of a conversation, the last begun first, at most `limit`; those begun before the run `before`.
        Raises InvalidInput for an unusable `limit` or `before`."""
        name, limit = checked_name(conversation, "conversation"), checked_limit(limit)
        beyond = None if before is None else _id(before)
        return await self._services.store.runs.runs(self._scope, name, before=beyond, limit=limit)

    async def events(self, run: UUID | str, *, after: int = -1, limit: int = 1_000) -> Sequence[RunEvent]:
        """What happened in a run, in its order: at most `limit` events, those after number `after`. Where they are
        large, they are fewer, but at least one: the next page is that after the last one's number, until one is empty.
        Raises NotFound for a run that is not there, InvalidInput for an unusable `limit` or `after`."""
        limit = checked_limit(limit)
        after = checked_limit(after, minimum=-1, most=2**62, name="after")
        number = _id(run)
        found = await self._services.store.runs.events(self._scope, number, after=after, limit=limit)
        if not found and await self.get(number) is None:
            raise NotFound(f"there is no run {run} in scope {self._scope}")
        return found


def _events(given: Sequence[object]) -> list[NewEvent]:
    return [_event(one) for one in given]


def _event(given: object) -> NewEvent:
    known = ("kind", "payload", "name", "call_id")
    if not isinstance(given, Mapping) or not {"kind"} <= (event := cast("Mapping[str, Any]", given)).keys() <= {*known}:
        raise InvalidInput(f"an event is {given!r}; give a dict with the keys {', '.join(known)}; only kind is needed")
    for name in ("name", "call_id"):
        if not isinstance(event.get(name), str | None):
            raise InvalidInput(f"the {name} of an event is {event[name]!r}; give a text, or leave it out")
    try:
        kind = EventKind(event["kind"])
    except ValueError:
        raise InvalidInput(f"the kind of an event is {event['kind']!r}; kinds are {', '.join(EventKind)}") from None
    return new_event(kind, event.get("payload"), name=event.get("name"), call_id=event.get("call_id"))


def _id(run: object) -> UUID:
    if isinstance(run, UUID):
        return run
    try:
        return UUID(cast(str, run))
    except (ValueError, AttributeError, TypeError):
        raise InvalidInput(f"the run's id is {run!r}; give the one that `begin` and `list` do") from None
