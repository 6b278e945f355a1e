"""Runs."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any
from uuid import uuid4

from hitherto.core.run import EventKind, NewEvent, Run, RunStatus, new_event
from hitherto.core.scope import Scope
from hitherto.store.store import Store
from tests.store.samples import SCOPE, dialogue, write

OTHER_USER = replace(SCOPE, user="another")
OTHER_TENANT = replace(SCOPE, tenant="another")


def result(payload: Any = "sunny") -> NewEvent:
    return new_event(EventKind.TOOL_RESULT, payload, name="weather", call_id="c1")


def called() -> NewEvent:
    return new_event(EventKind.MODEL_CALL, {"tokens_in": 7}, name="m")


async def begin(store: Store, name: str = "c", *, scope: Scope = SCOPE, start: int | None = None) -> Run:
    return await store.runs.begin(scope, name, strategy="trim", injection=True, start=start)


async def end(store: Store, run: Run, *, scope: Scope = SCOPE) -> Run | None:
    return await store.runs.end(scope, run.id, status=RunStatus.COMPLETED, freed=5)


async def payloads(store: Store, run: Run, *, scope: Scope = SCOPE) -> list[Any]:
    return [one.payload for one in await store.runs.events(scope, run.id, limit=99)]


class TestRun:
    async def test_a_run_and_its_events_come_back_as_they_were(self, store: Store) -> None:
        """Also with payloads and names that no column could hold as they are."""
        await write(store, "c", *dialogue(2))
        run = await begin(store)
        assert (run.conversation, run.strategy, run.injection, run.start, run.end) == ("c", "trim", True, 4, None)
        assert (run.status, run.freed, run.events, run.ended_at) == (RunStatus.RUNNING, 0, 0, None)
        assert await store.runs.add(SCOPE, run.id, [called(), result({"text": "\x00 \ud800", "n": 1.5})])
        hostile = new_event(EventKind.TOOL_CALL, None, name="\x00tool", call_id="\ud800")
        assert await store.runs.add(SCOPE, run.id, [hostile])
        assert await store.runs.add(SCOPE, run.id, [])
        found = await store.runs.events(SCOPE, run.id, limit=9)
        assert [(one.no, one.kind, one.name, one.call_id, one.payload) for one in found] == [
            (0, EventKind.MODEL_CALL, "m", None, {"tokens_in": 7}),
            (1, EventKind.TOOL_RESULT, "weather", "c1", {"text": "\x00 \ud800", "n": 1.5}),
            (2, EventKind.TOOL_CALL, "\ufffdtool", "\ufffd", None),
        ]
        assert [one.created_at for one in found] == sorted(one.created_at for one in found)
        assert await store.runs.events(SCOPE, run.id, after=0, limit=1) == found[1:2]
        assert await store.runs.events(SCOPE, run.id, limit=0) == []
        await write(store, "c", *dialogue(1))
        ended = await end(store, run)
        assert ended is not None
        assert ended == await store.runs.run(SCOPE, run.id)
        assert ended == replace(run, end=5, status=RunStatus.COMPLETED, freed=5, events=3, ended_at=ended.ended_at)
        assert ended.ended_at is not None
        assert ended.ended_at >= ended.started_at

    async def test_of_a_conversation_that_is_not_there(self, store: Store) -> None:
        run = await begin(store, "never")
        assert run.start == 0
        ended = await end(store, run)
        assert ended is not None
        assert ended.end is None
        assert await store.head(SCOPE, "never") is None
        assert await store.runs.runs(SCOPE, "never", limit=9) == [ended]

    async def test_what_has_ended_stays_as_it_is(self, store: Store) -> None:
        run = await begin(store)
        assert await end(store, run) is not None
        assert await end(store, run) is None
        assert not await store.runs.add(SCOPE, run.id, [result()])
        assert await store.runs.events(SCOPE, run.id, limit=9) == []
        assert not await store.runs.add(SCOPE, uuid4(), [result()])

    async def test_the_last_begun_come_first(self, store: Store) -> None:
        begun = [await begin(store) for _ in range(5)]
        await begin(store, "other")
        found = await store.runs.runs(SCOPE, "c", limit=9)
        assert found == begun[::-1]
        assert await store.runs.runs(SCOPE, "c", limit=2) == found[:2]
        assert await store.runs.runs(SCOPE, "c", before=found[1].id, limit=2) == found[2:4]
        other = await begin(store, scope=OTHER_USER)
        for unknown in (uuid4(), other.id, (await store.runs.runs(SCOPE, "other", limit=1))[0].id):
            assert await store.runs.runs(SCOPE, "c", before=unknown, limit=2) == []

    async def test_nobody_else_sees_or_changes_them(self, store: Store) -> None:
        run = await begin(store)
        await store.runs.add(SCOPE, run.id, [result()])
        for scope in (OTHER_USER, OTHER_TENANT, replace(SCOPE, agent="another")):
            assert await store.runs.runs(scope, "c", limit=9) == []
            assert await store.runs.run(scope, run.id) is None
            assert await store.runs.events(scope, run.id, limit=9) == []
            assert not await store.runs.add(scope, run.id, [result()])
            assert await end(store, run, scope=scope) is None
        assert await payloads(store, run) == ["sunny"]

    async def test_two_runs_of_a_conversation_at_once(self, store: Store) -> None:
        """Two runs of one conversation; each event has a number of its own."""
        runs = [await begin(store), await begin(store)]
        await asyncio.gather(*(store.runs.add(SCOPE, run.id, [result(n)] * 2) for n in range(8) for run in runs))
        for run in runs:
            found = await store.runs.events(SCOPE, run.id, limit=99)
            assert [one.no for one in found] == [*range(16)]
            assert sorted(one.payload for one in found) == sorted([*range(8)] * 2)
            assert [one.payload for one in found[::2]] == [one.payload for one in found[1::2]], "each call together"

    async def test_payloads_are_erased_with_a_message_of_the_run(self, store: Store) -> None:
        """But for those that quote nothing. A run that goes on has all messages from its first on."""
        await write(store, "c", *dialogue(2))
        before, during = await begin(store, start=0), await begin(store)
        for run in (before, during):
            await store.runs.add(SCOPE, run.id, [called(), result()])
        await end(store, before)
        await write(store, "c", *dialogue(1))
        await write(store, "c", erase=((5, 5),))
        assert await payloads(store, before) == [{"tokens_in": 7}, "sunny"]
        assert await payloads(store, during) == [{"tokens_in": 7}, None]
        await store.runs.add(SCOPE, during.id, [result("rain")])
        await end(store, during)
        await write(store, "c", *dialogue(1))
        await write(store, "c", erase=((6, 7),))
        assert await payloads(store, during) == [{"tokens_in": 7}, None, None], "what comes later may quote it too"
        await write(store, "c", erase=((3, 3),))
        assert await payloads(store, before) == [{"tokens_in": 7}, None]
        found = await store.runs.events(SCOPE, before.id, limit=9)
        assert [(one.name, one.raw is None) for one in found] == [("m", False), ("weather", True)]

    async def test_a_conversation_takes_its_runs_along(self, store: Store) -> None:
        await write(store, "c", *dialogue(1))
        run, other = await begin(store), await begin(store, "d")
        await store.runs.add(SCOPE, run.id, [result()])
        async with store.write(SCOPE, "c") as unit:
            await unit.delete()
        assert await store.runs.runs(SCOPE, "c", limit=9) == []
        assert await store.runs.events(SCOPE, run.id, limit=9) == []
        assert not await store.runs.add(SCOPE, run.id, [result()])
        assert await store.runs.run(SCOPE, other.id) == other

    async def test_an_erasure_takes_those_of_the_user_along(self, store: Store) -> None:
        runs = [(scope, await begin(store, scope=scope)) for scope in (SCOPE, OTHER_USER, OTHER_TENANT)]
        await store.end_erasure(await store.begin_erasure(tenant=SCOPE.tenant, user=SCOPE.user))
        assert [await store.runs.run(scope, run.id) for scope, run in runs] == [None, runs[1][1], runs[2][1]]
        erasing = await store.begin_erasure(tenant=SCOPE.tenant, user=None)
        later = await begin(store)
        await store.end_erasure(erasing)
        assert [await store.runs.run(scope, run.id) for scope, run in runs] == [None, None, runs[2][1]]
        assert await store.runs.run(SCOPE, later.id) == later, "it was begun since"
