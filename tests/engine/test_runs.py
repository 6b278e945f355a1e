"""`memory.runs`: an audit trail beside the log."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from itertools import count
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hitherto
from hitherto import EventKind, Memory, RunStatus, Scope, assistant, user
from hitherto.errors import InvalidInput, InvalidMessage, InvalidScope, NotFound
from hitherto.store.store import Store
from tests.acceptance.dialogue import ONE_TRY
from tests.conftest import SCOPE
from tests.lengths import examples, lasting
from tests.memories import open_on
from tests.times import time_of

_numbers = count(1)


@pytest.fixture
async def memory(store: Store) -> Any:
    async with open_on(store, **ONE_TRY) as opened:
        yield opened


async def test_a_run_beside_the_log(memory: Memory) -> None:
    runs, chat = memory.runs(SCOPE), memory.conversation("c", scope=SCOPE)
    await chat.append(user("Is it sunny?"))
    run = await runs.begin("c", strategy="trim", start=0)
    await runs.add(
        run.id,
        {"kind": "tool_call", "name": "weather", "call_id": "c1", "payload": {"city": "Lisbon"}},
        {"kind": EventKind.TOOL_RESULT, "name": "weather", "call_id": "c1", "payload": "sunny"},
    )
    await chat.append(assistant("It is."))
    assert (await runs.get(run.id)) == (await runs.list("c"))[0]
    ended = await runs.end(str(run.id), freed=7)
    assert (ended.start, ended.end, ended.events, ended.freed) == (0, 1, 2, 7)
    assert ended.status is RunStatus.COMPLETED
    events = await runs.events(run.id)
    assert [(one.no, one.kind, one.name, one.payload) for one in events] == [
        (0, "tool_call", "weather", {"city": "Lisbon"}),
        (1, "tool_result", "weather", "sunny"),
    ]
    assert (await runs.events(run.id, after=0, limit=5)) == events[1:]
    head = await chat.head()
    assert head is not None
    assert head.rev == 2, "no context shows it, and no digest is set off"


async def test_what_has_ended_takes_nothing(memory: Memory) -> None:
    runs = memory.runs(SCOPE)
    run = await runs.begin("c")
    assert (await runs.end(run.id, failed=True)).status is RunStatus.FAILED
    for gone in (run.id, uuid4()):
        with pytest.raises(NotFound, match="has ended, or was deleted"):
            await runs.add(gone, {"kind": "error", "payload": "x"})
        with pytest.raises(NotFound, match="has ended, or was deleted"):
            await runs.end(gone)
    with pytest.raises(NotFound, match="there is no run"):
        await runs.events(uuid4())
    assert await runs.get(uuid4()) is None
    assert await memory.runs(Scope(tenant="other", user="u", agent="a")).get(run.id) is None


async def test_what_expires_takes_along_what_runs_quote(memory: Memory, store: Store) -> None:
    runs, chat = memory.runs(SCOPE), memory.conversation("c", scope=SCOPE)
    await chat.configure(ttl=timedelta(days=1), create=True)
    run = await runs.begin("c")
    await chat.append(user("Is it sunny?"))
    await runs.add(run.id, {"kind": "tool_result", "payload": "sunny"}, {"kind": "model_call", "payload": {"n": 1}})
    assert [one.payload for one in await runs.events(run.id)] == ["sunny", {"n": 1}]
    await time_of(store).pass_days(2)
    assert [one.payload for one in await runs.events(run.id)] == [None, {"n": 1}], "nothing is erased yet"
    await chat.head()
    assert [one.payload for one in await runs.events(run.id)] == [None, {"n": 1}]


async def test_wrong_events(store: Store) -> None:
    cases: list[Any] = [
        {},
        "text",
        {"payload": 1},
        {"kind": "laugh"},
        {"kind": ["error"]},
        {"kind": "error", "payload": 1, "more": 2},
        {"kind": "error", "name": 7},
        {"kind": "error", "call_id": b"x"},
        {"kind": "error", "payload": b"bytes"},
        {"kind": "error", "payload": float("nan")},
        {"kind": "error", "payload": json.loads("[" * 101 + "]" * 101)},
    ]
    async with open_on(store) as memory:
        for event in cases:
            run = await memory.runs(SCOPE).begin("c")
            with pytest.raises((InvalidInput, InvalidMessage)):
                await memory.runs(SCOPE).add(run.id, {"kind": "error"}, event)
            assert await memory.runs(SCOPE).events(run.id) == []


async def test_wrong_arguments(store: Store) -> None:
    async with open_on(store) as memory:
        runs = memory.runs(SCOPE)
        wrong: list[Any] = [
            runs.begin("c", start=-1),
            runs.end(uuid4(), freed=-1),
            runs.get("x"),
            runs.get(7),  # pyright: ignore[reportArgumentType]
            runs.list("c", limit=0),
            runs.list("c", before="x"),
            runs.events(uuid4(), after=-2),
        ]
        for one in wrong:
            with pytest.raises(InvalidInput):
                await one
        with pytest.raises(InvalidScope):
            await runs.begin("")
        with pytest.raises(InvalidScope):
            memory.runs("acme")  # pyright: ignore[reportArgumentType]


def test_without_an_event_loop() -> None:
    with hitherto.open_sync("memory:") as memory:
        runs = memory.runs(SCOPE)
        run = runs.begin("c")
        runs.add(run.id, {"kind": "error", "payload": "\x00 \ud800"})
        runs.end(run.id)
        assert [one.payload for one in runs.events(run.id)] == ["\x00 \ud800"]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 3)),
        st.tuples(st.just("begin"), st.integers(0, 2)),
        st.tuples(st.sampled_from(["add", "end"]), st.integers(0, 3)),
        st.tuples(st.just("erase"), st.integers(0, 12)),
        st.tuples(st.sampled_from(["clear", "delete", "move"]), st.just(0)),
    ),
    max_size=16,
)


@lasting
@settings(max_examples=examples(5), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
async def test_any_history(memory: Memory, steps: list[tuple[str, int]]) -> None:
    """Against a list: a run has the messages that were appended between its beginning and its end, and what it quotes
    is there exactly as long as none of them was erased since. Exporting, deleting and importing changes nothing."""
    scope = Scope(tenant=f"t{next(_numbers)}", user="u", agent="a")
    chat, runs = memory.conversation("c", scope=scope), memory.runs(scope)
    size, model = 0, list[dict[str, Any]]()
    for verb, number in steps:
        going = [one for one in model if one["goes on"]]
        match verb:
            case "append":
                await chat.append(*(user(f"{size + at}") for at in range(number)))
                size += number
            case "begin":
                start = min(number, size) if number else None
                run = await runs.begin("c", start=start)
                first = size if start is None else start
                found = {"start": first, "end": None, "goes on": True, "erased": False, "quotes": list[bool]()}
                model.append({"id": run.id, **found})
            case "add" if going:
                one = going[number % len(going)]
                await runs.add(one["id"], {"kind": "message", "payload": "x"})
                one["quotes"].append(not one["erased"])
            case "end" if going:
                one = going[number % len(going)]
                await runs.end(one["id"])
                one |= {"goes on": False, "end": size - 1 if size > one["start"] else None}
            case "erase" if number < size:
                if await chat.erase([number]):
                    for one in model:
                        last = size if one["goes on"] else -1 if one["end"] is None else one["end"]
                        if one["start"] <= number <= last:
                            one |= {"erased": True, "quotes": [False] * len(one["quotes"])}
            case "clear":
                await chat.clear()
            case "delete":
                await chat.delete()
                size, model = 0, []
            case "move" if size:
                file = io.BytesIO()
                await memory.export_to(file, tenant=scope.tenant)
                await chat.delete()
                file.seek(0)
                assert (await memory.import_from(file)).runs == len(model)
                for one in model:
                    one["erased"] = True
            case _:
                pass
        found = await runs.list("c", limit=100)
        assert [one.id for one in found] == [one["id"] for one in model][::-1]
        for run, one in zip(found, model[::-1], strict=True):
            assert (run.start, run.end, run.events) == (one["start"], one["end"], len(one["quotes"]))
            assert [event.raw is not None for event in await runs.events(run.id)] == one["quotes"]
