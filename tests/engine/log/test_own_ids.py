"""Messages with ids of the application's own: each is in the log once, is found and erased by its id, and does not come
back."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from itertools import count
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hitherto import Conversation, Memory, assistant, user
from hitherto.core.log.message import LONGEST_ID
from hitherto.errors import Conflict, InvalidBatch, InvalidInput, InvalidMessage
from hitherto.store.sql import SQL
from hitherto.store.store import Store
from hitherto.wire import read
from tests.conftest import SCOPE
from tests.engine.turn.asking import texts
from tests.memories import open_on

AWKWARD = ("7", "a/b?c#d&e=%2F", "ž \u2028 'quoted' \\ {}", '"', "x" * LONGEST_ID, "\U0001f600" * LONGEST_ID)
FAKE = "__fake_id__"
NUMBERS = count(1)


def item(id: Any, text: str = "hi") -> dict[str, Any]:
    return {"role": "user", "content": text, "id": id}


@pytest.fixture
def chat(memory: Memory) -> Conversation:
    return memory.conversation("c", scope=SCOPE, policy="none")


async def ids(chat: Conversation) -> list[str | None]:
    return [one.message.id for one in await chat.messages()]


async def test_any_id_names_its_message(chat: Conversation) -> None:
    await chat.append(*map(item, AWKWARD), user("Without."))
    assert await ids(chat) == [*AWKWARD, None]
    for seq, one in enumerate(AWKWARD):
        found = await chat.get(one)
        assert found is not None
        assert (found.seq, found.message.id, found.message.payload) == (seq, one, item(one))
        assert found == await chat.get(seq)
    assert await chat.get("m") is await chat.get(len(AWKWARD) + 1) is None
    assert await chat.erase([*AWKWARD[1:], 0]) == len(AWKWARD)
    assert [one.erased for one in await chat.messages()] == [True] * len(AWKWARD) + [False]


async def test_another_conversation_may_have_the_same_id(memory: Memory, chat: Conversation) -> None:
    other = memory.conversation("other", scope=SCOPE)
    await chat.append(user("Here."), item("m", "One."))
    await other.append(item("m", "Other."))
    found = [await one.get("m") for one in (chat, other)]
    assert [one and (one.seq, one.message.text) for one in found] == [(1, "One."), (0, "Other.")]
    assert await memory.conversation("new", scope=SCOPE).get("m") is None


async def test_transcripts_have_it(chat: Conversation) -> None:
    await chat.append(item("m"), assistant("Hello."))
    assert [one.id for one in (await chat.transcript()).entries] == ["m", None]


@pytest.mark.parametrize("id", ["", 7, "\0", "\ud800", "x" * (LONGEST_ID + 1)])
async def test_what_is_no_id(chat: Conversation, id: Any) -> None:
    for append in (lambda: chat.append(item(id)), lambda: chat.append(user("hi").with_id(id))):
        with pytest.raises(InvalidMessage, match="id"):
            await append()
    if isinstance(id, str):
        with pytest.raises(InvalidMessage, match="id"):
            await chat.get(id)
        with pytest.raises(InvalidMessage, match="id"):
            await chat.erase([id])
    assert await chat.head() is None


async def test_an_id_twice(chat: Conversation) -> None:
    await chat.append(item("m-1", "One."))
    with pytest.raises(Conflict, match=r"'m-1'.*message 0.*skip_known=True"):
        await chat.append(item("m-2"), item("m-1"))
    with pytest.raises(InvalidBatch, match=r"'m-2'.*skip_known=True"):
        await chat.append(item("m-2"), item("m-2"))
    assert await ids(chat) == ["m-1"]
    with pytest.raises(InvalidBatch, match=r"'x{60}'\.\.\. *;"):
        await chat.append(item("x" * 999), item("x" * 999))
    done = await chat.append(item("m-2", "Two."), item("m-1", "Other."), item("m-2", "Again."), skip_known=True)
    assert (done.start, done.end) == (1, 1)
    assert texts(await chat.messages()) == ["One.", "Two."]


async def test_nothing_new_writes_nothing(memory: Memory, chat: Conversation) -> None:
    await chat.append(item("m"), key="k")
    before = await chat.head()
    again = memory.conversation("c", scope=SCOPE, policy="trim:max_turns=3,keep_turns=1")
    done = await again.append(item("m"), key="other", skip_known=True)
    assert before is not None
    assert (done.start, done.end, done.rev, done.replayed) == (1, 0, before.rev, False)
    after = await chat.head()
    assert after is not None
    assert (after.rev, after.policy) == (before.rev, before.policy)
    await again.append(user("New."))  # the policy of the object is stored with what it appends first
    after = await chat.head()
    assert after is not None
    assert "trim" in str(after.policy)


async def test_a_key_is_looked_at_first(chat: Conversation) -> None:
    await chat.append(item("m"), key="k")
    assert (await chat.append(item("m"), key="k")).replayed


async def test_what_was_taken_back_is_known(chat: Conversation) -> None:
    await chat.append(user("Which day?"), item("m", "Monday?"))
    await chat.rewind(to=0)
    with pytest.raises(Conflict, match="message 1"):
        await chat.append(item("m"))
    with pytest.raises(Conflict, match="message 1"):
        await chat.append(item("m"), at=-1)
    with pytest.raises(InvalidInput, match="skip_known"):
        await chat.append(item("m"), at=-1, skip_known=True)
    assert len(await chat.messages()) == 2


async def test_what_was_erased_does_not_come_back(chat: Conversation) -> None:
    given = [item("m-1", "One."), item("m-2", "Two.")]
    await chat.append(*given)
    assert await chat.erase("m-1") == 1
    assert await chat.erase("m-1") == 0
    assert (await chat.append(*given, skip_known=True)).end == 1
    assert [one.erased for one in await chat.messages()] == [True, False]
    found = await chat.get("m-1")
    assert found is not None
    assert (found.seq, found.erased, found.message.id) == (0, True, None)


async def test_one_that_is_not_there_erases_nothing(chat: Conversation) -> None:
    await chat.append(item("m-1"), item("m-2"))
    with pytest.raises(InvalidInput, match="'m-3'"):
        await chat.erase(["m-1", 1, "m-3"])
    assert await ids(chat) == ["m-1", "m-2"]


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
async def test_in_any_parts_and_any_number_of_times_is_once(memory: Memory, data: st.DataObject) -> None:
    """An import that is cut off and repeated, of a file that has some messages twice."""
    chat = memory.conversation(f"import {next(NUMBERS)}", scope=SCOPE, policy="none")
    name = st.sampled_from("abcdefgh")
    file = data.draw(st.lists(name, min_size=1, max_size=12))
    for _ in range(data.draw(st.integers(1, 3))):
        cuts = sorted(data.draw(st.sets(st.integers(1, len(file)), max_size=3)) | {len(file)})
        for first, last in zip([0, *cuts], cuts, strict=False):
            part = [item(one, f"{one} at {at}") for at, one in enumerate(file)][first:last]
            done = await chat.append(*part, skip_known=True) if part else None
            assert done is None or done.end - done.start + 1 <= len({one["id"] for one in part})
    there = await chat.messages()
    assert [one.message.id for one in there] == list(dict.fromkeys(file)), "in the order of the file"
    assert texts(there) == [f"{one} at {file.index(one)}" for one in dict.fromkeys(file)], "the first of each"


async def test_one_statement_more_and_none_without_ids(chat: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    sent, execute = list[object](), psycopg.AsyncCursor[Any].execute

    async def told(self: psycopg.AsyncCursor[Any], query: Any, *given: Any, **named: Any) -> psycopg.AsyncCursor[Any]:
        sent.append(query)
        return await execute(self, query, *given, **named)

    monkeypatch.setattr(psycopg.AsyncCursor, "execute", told)
    await chat.append(user("The first of a conversation sends more."))
    counts = list[Counter[object]]()
    for message in (user("hi"), item("m-1")):
        sent.clear()
        await chat.append(message)
        counts.append(Counter(sent))
    assert SQL["lock"] in counts[0]
    assert SQL["messages_by_id"] not in counts[0]
    assert counts[1] == counts[0] + Counter([SQL["messages_by_id"]])


async def test_two_at_once(store: Store, database: str) -> None:
    """Of two processes that append the same, one wins; the other is told, or skips it."""
    beside = Store(database)
    await beside.open()
    also = Store(database)
    await also.open()
    async with open_on(beside, worker=False) as one, open_on(also, worker=False) as other:
        chats = [memory.conversation("c", scope=SCOPE) for memory in (one, other)]
        for number in range(10):
            batch = [item(f"{number} {at}") for at in range(3)]
            done = await asyncio.gather(*[chat.append(*batch) for chat in chats], return_exceptions=True)
            assert Counter(type(one).__name__ for one in done) == {"AppendResult": 1, "Conflict": 1}
            batch = [item(f"skipped {number} {at}") for at in range(3)]
            await asyncio.gather(*[chat.append(*batch, skip_known=True) for chat in chats])
        found = await ids(chats[0])
        assert len(found) == len({*found}) == 60
    await beside.aclose()
    await also.aclose()


async def test_a_turn_takes_the_id_of_its_question_alone(chat: Conversation) -> None:
    """Servers give one id to several answers."""
    for number in range(2):
        async with chat.turn(item(f"q-{number}"), wire="openai.responses") as turn:
            said = {"type": "output_text", "text": "Hello.", "annotations": []}
            answer = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [said]}
            alone = {"role": "assistant", "content": "Hello.", "id": "msg_1"}
            await turn.add({"object": "response", "status": "completed", "output": [answer]} if number else alone)
    assert await ids(chat) == ["q-0", None, "q-1", None]
    assert [one.message.payload.get("id") for one in await chat.messages()] == ["q-0", "msg_1", "q-1", "msg_1"]
    with pytest.raises(Conflict, match="'q-1'"):
        async with chat.turn(item("q-1")):
            pytest.fail("the model would be asked for nothing")


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"role": "user", "content": "hi", "id": "a"}, "a"),
        ({"role": "user", "content": "hi", "id": None}, None),
        ({"role": "user", "content": "hi", "id": FAKE}, None),
        ({"type": "message", "role": "user", "content": "hi", "id": "a"}, "a"),
        ({"type": "message", "role": "user", "content": "hi", "id": FAKE}, None),
        ({"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": "{}"}, "fc"),
        ({"type": "item_reference", "id": "msg"}, None),
        ({"type": "local_shell_call_output", "id": "call", "output": "x"}, None),
        ({"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}], "id": "a"}, "a"),
        ({"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]}, None),
    ],
)
def test_the_id_of_an_item(item: dict[str, Any], expected: str | None) -> None:
    message = read(item)
    assert message.id == expected
    assert message.raw == json.dumps(item), "as it was given"
    assert read(item, take_id=False).id is None


async def test_no_chat_api_is_sent_it(chat: Conversation) -> None:
    await chat.append(item("m-1"), assistant("Hello.").with_id("m-2"))
    request = (await chat.context("And?")).request
    assert [one.keys() for one in request["messages"]] == [{"role", "content"}] * 3
    plain = await chat.get(0)
    assert plain is not None
    await chat.append(user("hi"))
    assert plain.tokens == (await chat.messages())[-1].tokens, "what is not sent costs nothing"
