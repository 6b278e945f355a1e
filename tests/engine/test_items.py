"""`items`: what the policy leaves, as an API's items."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hitherto
from hitherto import Memory, Policy, assistant
from hitherto.core.log.message import Wire
from hitherto.errors import InvalidInput, InvalidMessage, NotFound
from hitherto.providers.scripted import Scripted
from hitherto.store.store import Store
from tests.acceptance.dialogue import Opened, asks, each, opener, rounds, said, says_each, summary_of
from tests.conftest import SCOPE
from tests.core.policy.policies import policies
from tests.engine.logs import logs
from tests.lengths import examples, lasting
from tests.memories import open_on

_names = count(1)
WIRES: list[Wire] = ["openai.chat", "openai.responses", "anthropic"]


@pytest.fixture
def opened(store: Store) -> Opened:
    return opener(store)


@pytest.fixture
async def memory(store: Store) -> AsyncIterator[Memory]:
    async with open_on(store, model=Scripted(then=says_each)) as opened:
        yield opened


def texts(items: list[dict[str, Any]]) -> list[str]:
    found: list[str] = []
    for item in items:
        content = item["content"]
        found.append(content if isinstance(content, str) else "".join(part["text"] for part in content))
    return found


async def test_an_item_has_no_time(memory: Memory) -> None:
    """No API takes it, and the message would not be of that time."""
    chat, item = memory.conversation("c", scope=SCOPE), {"role": "user", "content": "a", "at": "2026-05-08T13:30:00Z"}
    for refused in (chat.append(item), chat.context(item, budget=4_000)):
        with pytest.raises(InvalidMessage, match=r"`at`.*dated"):
            await refused
    with pytest.raises(InvalidMessage, match=r"`at`.*dated"):
        chat.turn(item)


async def test_the_messages_are_the_callers_own(opened: Opened) -> None:
    """Items of the format that is asked for come back as they were given, whatever else is in them."""
    given_: list[dict[str, Any]] = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello", "extra": 1.0}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": '{ "q":1 }'},
        {"type": "function_call_output", "call_id": "c1", "output": "found"},
        {"role": "assistant", "type": "message", "id": "msg_1", "content": "yes", "zzz": 1, "status": "completed"},
    ]
    async with opened(Scripted()) as (_, chat):
        await chat.append(*given_)
        items = await chat.items()
        assert [list(item.items()) for item in items] == [list(item.items()) for item in given_]
        items[0]["role"] = "changed"
        assert (await chat.items())[0]["role"] == "user", "a copy of one's own"


async def test_no_conversation_has_no_items(opened: Opened) -> None:
    async with opened(Scripted()) as (_, chat):
        assert await chat.items() == []
        assert await chat.items(limit=3) == []
        assert await chat.head() is None


@pytest.mark.parametrize(
    ("policy", "front"),
    [
        ("rolling:threshold=6,keep_last=2", [summary_of(0, 5)]),
        ("summarize:context_limit=4,keep_turns=1", ["What have we talked about so far?", each(0, 5)]),
        ("token_threshold:threshold=50,keep_messages=2", [summary_of(0, 5)]),
        ("trim:max_turns=4,keep_turns=1", []),
        ("none", said(1, 3)),
    ],
)
async def test_what_stands_for_the_older_part_comes_first(store: Store, policy: str, front: list[str]) -> None:
    async with opener(store, policy)(Scripted(then=says_each)) as (memory, chat):
        await rounds(memory, chat, range(1, 5))
        for wire in WIRES[:2]:
            assert texts(await chat.items(wire=wire)) == [*front, *said(4, 4)]


async def test_a_prefix_is_on_the_first_user_message(store: Store) -> None:
    async with opener(store, "sliding_window")(Scripted(then=says_each)) as (memory, chat):
        await rounds(memory, chat, range(1, 4))
        await chat.append(asks(4))
        assert texts(await chat.items()) == [f"[Previous context: {each(0, 5)}]\n\nquestion 4"]


@pytest.mark.parametrize("limit", [-1, -(2**70)])
async def test_a_negative_limit_is_refused(opened: Opened, limit: int) -> None:
    async with opened(Scripted()) as (_, chat):
        await chat.append(asks(1))
        with pytest.raises(InvalidInput, match="limit is -"):
            await chat.items(limit=limit)


async def test_an_unknown_format_is_refused(opened: Opened) -> None:
    async with opened(Scripted()) as (_, chat):
        await chat.append(asks(1))
        with pytest.raises(InvalidInput, match="'grpc'"):
            await chat.items(wire=cast(Any, "grpc"))


async def test_a_budget_and_what_is_sent_are_for_responses_alone(opened: Opened) -> None:
    async with opened(Scripted()) as (memory, chat):
        await rounds(memory, chat, range(1, 9))
        assert 0 < len(await chat.items(budget=100)) < len(await chat.items())
        for wire in ("openai.chat", "anthropic"):
            with pytest.raises(InvalidInput, match=r"with 'openai\.responses' alone"):
                await chat.items(wire=wire, budget=100)
            with pytest.raises(InvalidInput, match=r"with 'openai\.responses' alone"):
                await chat.items(wire=wire, sent=True)


async def test_what_was_taken_back_or_cleared_is_not_among_them(opened: Opened) -> None:
    async with opened(Scripted()) as (memory, chat):
        await rounds(memory, chat, range(1, 6))
        for _ in range(3):
            await chat.pop()
        await rounds(memory, chat, [6])
        await chat.pop()
        assert texts(await chat.items()) == [*said(1, 4)[:-1], "question 6"]
        for limit in range(1, 10):
            assert texts(await chat.items(limit=limit)) == [*said(1, 4)[:-1], "question 6"][-limit:]
        await chat.clear()
        await rounds(memory, chat, [7])
        assert texts(await chat.items(limit=5)) == said(7, 7)


async def test_at_a_past_revision(store: Store) -> None:
    async with opener(store, "trim:max_turns=3,keep_turns=1")(Scripted()) as (_, chat):
        revs = [(await chat.append(asks(n), assistant(f"answer {n}"))).rev for n in range(1, 5)]
        assert texts(await chat.items(at=revs[1])) == said(1, 2)
        assert texts(await chat.items(at=revs[2])) == said(3, 3)
        assert texts(await chat.items(at=revs[1], limit=1)) == ["answer 2"]
        with pytest.raises(NotFound):
            await chat.items(at=99)


Log = tuple[Wire, list[list[dict[str, Any]]]]


async def grown(memory: Memory, log: Log, policy: Policy, pops: int) -> hitherto.Conversation:
    """A conversation with that log under that policy, its newest `pops` messages taken back."""
    wire, batches = log
    chat = memory.conversation(f"items-{next(_names)}", scope=SCOPE, policy=policy)
    for batch in batches:
        await chat.append(*batch, wire=wire)
        await memory.wait_for_digests()
    for _ in range(pops):
        await chat.pop()
    return chat


HISTORIES = {"log": logs(max_turns=6), "policy": policies(native=False), "pops": st.integers(0, 3)}
MANY = settings(max_examples=examples(5), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@lasting
@MANY
@given(**HISTORIES, limit=st.integers(1, 12), wire=st.sampled_from(WIRES))
async def test_the_newest_are_the_end_of_them_all_in_every_format(
    memory: Memory, log: Log, policy: Policy, pops: int, limit: int, wire: Wire
) -> None:
    chat = await grown(memory, log, policy, pops)
    whole = await chat.items(wire=wire)
    assert await chat.items(wire=wire, limit=limit) == whole[-limit:]
