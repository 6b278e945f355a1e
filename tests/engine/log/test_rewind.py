"""`rewind`: what comes after a message is taken back in one step, as `pop` would one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hitherto
from hitherto import Call, Conversation, Head, Message, assistant, rolling, sliding_window, tool_result, user
from hitherto.errors import InvalidInput
from hitherto.providers.scripted import Scripted
from hitherto.store.store import Store
from tests.acceptance.dialogue import ONE_TRY, says_each
from tests.acceptance.receipts import check
from tests.conftest import SCOPE
from tests.databases import Databases
from tests.lengths import examples, lasting
from tests.memories import open_on
from tests.store.samples import open_calls


def turn(number: int, kind: str) -> list[Message]:
    """A turn without tools, with two calls at once, with a call that has no result yet, or without an answer."""
    asks, answers = user(f"Question {number}?"), assistant(f"Answer {number}.")
    calls = [Call(id=f"{number}-{at}", name="look") for at in range(2)]
    match kind:
        case "plain":
            return [asks, answers]
        case "tools":
            return [asks, assistant(calls=calls), *(tool_result(call.id, "It is so.") for call in calls), answers]
        case "pending":
            return [asks, assistant(calls=calls[:1])]
        case _:
            return [asks]


def state(head: Head | None) -> Head | None:
    """What a head says of the log that is shown, however it came about."""
    if head is None:
        return None
    now = head.now
    return replace(head, ref=0, rev=0, now=now, clock=now, digest=None, running=(), latest=replace(head.latest))


async def shown(chat: Conversation) -> Any:
    context = await chat.context("And now?", budget=4_000)
    await check(chat, context)
    return context.request


@lasting
@settings(max_examples=examples(5))
@given(
    st.lists(st.sampled_from(["plain", "tools", "pending", "unanswered"]), min_size=1, max_size=12),
    st.data(),
    st.sampled_from([sliding_window(), rolling(threshold=6, keep_last=2), hitherto.redact(trigger_turns=2, keep=1)]),
)
async def test_it_leaves_what_taking_back_one_by_one_leaves(
    databases: Databases, kinds: list[str], data: st.DataObject, policy: Any
) -> None:
    store = await databases.store()
    async with open_on(store, model=Scripted(then=says_each), **ONE_TRY) as memory:
        chats = [memory.conversation(name, scope=SCOPE, policy=policy) for name in ("rewound", "popped")]
        for chat in chats:
            for number, kind in enumerate(kinds):
                await chat.append(*turn(number, kind))
                await memory.wait_for_digests()
        rewound, popped = chats
        length = len(await rewound.messages())
        to = data.draw(st.integers(-1, length - 1))
        assert await rewound.rewind(to=to) == length - 1 - to
        for _ in range(length - 1 - to):
            await popped.pop()
        one, other = await rewound.head(), await popped.head()
        assert one is not None
        assert other is not None
        for name in ("next_seq", "sums", "closed", "run_start", "awaited", "late", "retracted", "frontiers"):
            ours, theirs = getattr(one, name), getattr(other, name)
            if name == "frontiers":
                ours, theirs = ({k: replace(v, digest=None) for k, v in each.items()} for each in (ours, theirs))
            assert ours == theirs, name
        assert await open_calls(store, "rewound") == await open_calls(store, "popped")
        assert await shown(rewound) == await shown(popped)
        assert len(await rewound.messages()) == length, "the log keeps everything"
        for chat in chats:
            await chat.append(user("Again?"), assistant("Yes."))
            await memory.wait_for_digests()
        assert await shown(rewound) == await shown(popped)


async def test_edit_and_retry(store: Store) -> None:
    async with open_on(store, worker=False) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user("Hello."), assistant("Hello."))
        await chat.append(user("Book a table for two."), assistant("Booked."), user("Thanks."))
        assert await chat.rewind(to=1) == 3
        await chat.append(user("Book a table for three."))
        context = await chat.context(budget=1_000)
        assert [item["content"] for item in context.messages] == ["Hello.", "Hello.", "Book a table for three."]
        assert [one.seq for one in await chat.messages()] == [0, 1, 2, 3, 4, 5]
        assert await chat.rewind(to=5) == 0
        recalled = await memory.recall("a table for two", scope=SCOPE)
        assert all("two" not in hit.text for hit in recalled.hits)


async def test_a_thousand_messages_at_once(store: Store) -> None:
    async with open_on(store, worker=False) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user("First."), *(one for n in range(500) for one in (user(f"{n}"), assistant(f"{n}"))))
        assert await chat.rewind(to=0) == 1_000
        assert [item["content"] for item in await chat.items(wire="openai.chat")] == ["First."]
        assert await chat.rewind(to=-1) == 1
        assert await chat.items() == []
        assert await chat.rewind(to=-1) == 0


async def test_a_digest_in_progress_writes_nothing_of_it(store: Store) -> None:
    async with open_on(store, worker=False) as memory:
        chat = memory.conversation("c", scope=SCOPE, policy=rolling(threshold=4, keep_last=2))
        await chat.append(*(one for n in range(4) for one in (user(f"{n}"), assistant(f"{n}"))))
        (row,) = await chat.digests()
        assert row.status == "processing"
        await chat.rewind(to=1)
        (row,) = await chat.digests()
        assert row.status == "superseded"


@pytest.mark.parametrize("to", [-2, 1, 7, 10**30, True, "1", None, 1.0])
async def test_where_one_cannot_go(store: Store, to: Any) -> None:
    async with open_on(store, worker=False) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        with pytest.raises(InvalidInput):
            await chat.rewind(to=0)
        await chat.append(user("Hello."), assistant("Hello."), user("And?"))
        await chat.clear()
        await chat.append(user("Hello."), assistant("Hello."))
        with pytest.raises(InvalidInput, match=r"from 2 to 4|give the seq"):
            await chat.rewind(to=to)
