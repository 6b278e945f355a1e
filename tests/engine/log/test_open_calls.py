"""Tool calls without a result: a result that comes finds its call however many wait, and the head has none of them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hitherto
from hitherto import Conversation, none, rolling, sliding_window, user
from hitherto.core.log.head import PATIENCE, Head
from hitherto.core.log.message import CHAT, Payload
from hitherto.errors import BudgetExceeded, InvalidBatch
from hitherto.store.store import Store
from tests.conftest import SCOPE
from tests.engine.validity import assert_whole
from tests.lengths import examples, lasting
from tests.memories import open_on
from tests.postgres.asking import rows
from tests.store.samples import open_calls

BYTES = 700
"""More than a head's row has, without its policy and its frontiers, whatever is in the log."""

_names = count()


def calls(*ids: str) -> Payload:
    made = [{"id": one, "type": "function", "function": {"name": "look_up", "arguments": "{}"}} for one in ids]
    return {"role": "assistant", "content": None, "tool_calls": made}


def result(id: str) -> Payload:
    return {"role": "tool", "tool_call_id": id, "content": "found"}


class PlainModel:
    """Which calls wait, worked out from all that was ever said. `open` has each call's seq and turn."""

    def __init__(self) -> None:
        self.log: list[tuple[Payload, int]] = []
        self.live: list[int] = []
        self.erased = set[int]()
        self.open = dict[str, tuple[int, int]]()
        self.turns = 0

    def append(self, item: Payload) -> None:
        seq = len(self.log)
        self.turns += item["role"] == "user"
        self.log.append((item, self.turns))
        self.live.append(seq)
        if item["role"] == "tool":
            del self.open[item["tool_call_id"]]
        self.open |= self._made(seq)

    def rewind(self, to: int) -> None:
        gone = [seq for seq in self.live if seq > to]
        self.live = [seq for seq in self.live if seq <= to]
        self.turns = self.log[self.live[-1]][1] if self.live else 0
        self.open = {call: one for call, one in self.open.items() if one[0] <= to}
        made: dict[str, tuple[int, int]] = {}
        for seq in self.live:
            made |= self._made(seq)
        answered = [self.log[seq][0].get("tool_call_id") for seq in gone if seq not in self.erased]
        self.open |= {call: made[call] for call in answered if call in made}

    def erase(self, seq: int) -> None:
        self.erased.add(seq)  # what its calls give is still taken

    def awaited(self) -> tuple[tuple[int, int], ...]:
        turns = [turn for _, turn in self.open.values() if self.turns - turn < PATIENCE]
        return tuple((turn, turns.count(turn)) for turn in sorted(set(turns)))

    def _made(self, seq: int) -> dict[str, tuple[int, int]]:
        item, turn = self.log[seq]
        return {} if seq in self.erased else {call["id"]: (seq, turn) for call in item.get("tool_calls", [])}


def seqs_and_turns(found: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    return {call: (one.seq, one.turn) for call, one in found.items()}


async def head_of(chat: Conversation) -> Head:
    head = await chat.head()
    assert head is not None
    return head


steps = st.one_of(
    st.tuples(st.just("user"), st.just(0)),
    st.tuples(st.just("calls"), st.integers(1, 400)),
    st.tuples(st.just("reused"), st.integers(0, 3)),
    st.tuples(st.just("result"), st.integers(0, 1_000)),
    st.tuples(st.just("rewind"), st.integers(1, 6)),
    st.tuples(st.just("erase"), st.integers(0, 1_000)),
)


@lasting
@settings(max_examples=examples(8), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    taken=st.lists(steps, min_size=5, max_size=25),
    policy=st.sampled_from([none(), sliding_window(), rolling(threshold=6, keep_last=2)]),
)
async def test_calls_wait_as_in_a_plain_model(store: Store, taken: list[tuple[str, int]], policy: Any) -> None:
    name, fresh, model = f"c{next(_names)}", count(), PlainModel()
    async with open_on(store, worker=False, policy=policy) as memory:
        chat = memory.conversation(name, scope=SCOPE)
        for step, number in [("user", 0), *taken]:
            item: Payload | None = None
            match step:
                case "calls":
                    item = calls(*(f"call_{next(fresh)}" for _ in range(number)))
                case "reused":
                    item = calls(f"again_{number}")
                case "result" if model.open:
                    item = result(sorted(model.open)[number % len(model.open)])
                case "rewind" if len(model.live) > number:
                    model.rewind(model.live[-number - 1])
                    await chat.rewind(to=model.live[-1])
                case "erase":
                    model.erase(number % len(model.log))
                    await chat.erase([number % len(model.log)])
                case _:
                    item = {"role": "user", "content": "And then?"}
            if item is not None:
                model.append(item)
                await chat.append(item)
            assert seqs_and_turns(await open_calls(store, name)) == model.open
            assert (await head_of(chat)).awaited == model.awaited()
        with pytest.raises(InvalidBatch, match="no such call is waiting"):
            await chat.append(result("never made"))
        if any(step == "reused" for step, _ in taken):
            return  # what a request shows of an id that waits twice is not told here
        for incoming in [user("?"), *(result(call) for call in sorted(model.open)[:1])]:
            with suppress(BudgetExceeded):
                assert_whole(CHAT, (await chat.context(incoming, budget=100_000, wire=CHAT)).messages)


async def test_the_result_of_a_call_that_was_erased_is_taken_and_not_shown(store: Store) -> None:
    async with open_on(store, worker=False, policy="none") as memory:
        chat = memory.conversation("erased", scope=SCOPE)
        await chat.append(user("Look it up."), calls("a"))
        await chat.erase(1)
        coming = await chat.context(result("a"), wire=CHAT)
        assert (await chat.rebuild(coming.manifest)).messages == coming.messages
        await chat.append(result("a"))
        for context in (coming, await chat.context(wire=CHAT)):
            assert [one["role"] for one in context.messages] == ["user"]
        with pytest.raises(InvalidBatch, match="no such call is waiting"):
            await chat.append(result("a"))


async def test_a_head_does_not_grow_with_calls_that_are_never_answered(database: str) -> None:
    """3,000 of them, in one message, in many and in many turns, with long ids: the row, and what `head()` returns, have
    the size of a head with none. What is returned has no field for them, which could only be empty."""

    async with hitherto.open(database, worker=False, policy="none") as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user("Look it all up."))
        before = len(str(await head_of(chat)))
        await chat.append(calls(*(f"call_{n}_{'x' * 100}" for n in range(1_000))))
        await chat.append(*(calls(f"one_{n}") for n in range(1_000)))
        for turn in range(10):
            await chat.append(user("And?"), *(calls(f"{turn}_{n}") for n in range(100)))
        ((size,),) = [one.values() for one in await rows(database, "select pg_column_size(c) from conversation c")]
        assert size < BYTES
        head = await head_of(chat)
        assert len(str(head)) < before + 100
        assert not hasattr(head, "open_calls")
        await chat.append(result("one_500"), result(f"call_0_{'x' * 100}"))
        with pytest.raises(InvalidBatch, match="one_500"):
            await chat.append(result("one_500"))
        context = await chat.context(result("one_501"), budget=1_000_000, wire=CHAT)
        assert_whole(CHAT, context.messages)


async def test_a_result_that_takes_the_place_of_what_followed_its_call(store: Store) -> None:
    async with open_on(store, worker=False) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user("Which?"), calls("c1", "c2"), user("Never mind."))
        await chat.append(result("c1"), at=1)
        await chat.append(result("c2"))
        assert [one.seq for one in await chat.messages() if one.retracted_rev is None] == [0, 1, 3, 4]
