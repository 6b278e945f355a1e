"""`chat.turn` with a key: a retry has the answer that is there, or goes on from what is left."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from hitherto import Conversation, Turn, assistant, tool_result, user
from hitherto.engine.turn_retry import key_mark
from hitherto.errors import IdempotencyKeyReused, InvalidInput, NotFound
from tests.engine.turn.asking import (
    Api,
    broken_off,
    call,
    events,
    failed,
    looked,
    piece,
    said_by,
    shown,
    streamed,
    texts,
)
from tests.providers.models.endpoint import Endpoint


async def test_a_retry_of_an_answered_key_asks_no_model(chat: Conversation, api: Api) -> None:
    with Endpoint(api.streamed("Sunny."), path=api.path) as endpoint:
        for attempt in range(3):
            async with chat.turn("What is the weather?", key="k", wire=api.wire) as turn:
                while not turn.done:
                    await streamed(api, turn, endpoint.root)
            assert (turn.text, turn.replayed) == ("Sunny.", attempt > 0)
            assert turn.result is not None
            assert (turn.result.start, turn.result.end) == (0, 1)
        assert len(endpoint.asked) == 1
    assert len(await chat.messages()) == 2
    with pytest.raises(IdempotencyKeyReused, match="another question"):
        async with chat.turn("And tomorrow?", key="k", wire=api.wire):
            pass


async def test_two_turns_with_one_key_at_once(chat: Conversation) -> None:
    """The first that is answered is kept, and the other one has that answer then."""
    async with chat.turn("Is it?", key="k") as one, chat.turn("Is it?", key="k") as two:
        await one.add("Yes.")
        await two.add("No.")
    assert texts(await chat.messages()) == ["Is it?", "No."]
    assert (one.text, one.replayed, two.replayed) == ("No.", True, False)


async def test_an_answer_that_was_erased_is_not_told_again(chat: Conversation) -> None:
    async with chat.turn("Is it?", key="k") as turn:
        await turn.add("Yes.")
    await chat.delete()
    with pytest.raises(NotFound, match="was erased since"):
        async with chat.turn("Is it?", key="k"):
            pass


async def test_a_retry_takes_back_what_broke_off(chat: Conversation) -> None:
    await chat.append(user("Hello."), assistant("Hello."))
    for text in ("Ye", "Yes, it"):
        await broken_off(chat, text, key="k")
        assert await shown(chat) == ["Hello.", "Hello.", "Is it?", text]
    async with chat.turn("Is it?", key="k") as turn:
        assert "Yes, it" not in json.dumps(turn.request)
        await turn.add("Yes, it is.")
    assert await shown(chat) == ["Hello.", "Hello.", "Is it?", "Yes, it is."]
    assert len(await chat.messages()) == 6, "the log keeps everything, and the question once"
    *_, asked, answered = (await chat.transcript()).entries
    assert (asked.branches, answered.branches) == (1, 3)


async def test_what_broke_off_is_answered_anew_by_its_place(chat: Conversation) -> None:
    await chat.append(user("Hello."), assistant("Hello."))
    await broken_off(chat, "Ye")
    with pytest.raises(InvalidInput, match="broke off: at=2 answers anew"):
        async with chat.turn():
            pass
    async with chat.turn(at=2) as turn:
        await turn.add("Yes, it is.")
    assert await shown(chat) == ["Hello.", "Hello.", "Is it?", "Yes, it is."]


async def test_a_rest_that_others_have_answered_stays(chat: Conversation) -> None:
    await broken_off(chat, "Ye", key="k")
    await chat.append(user("Go on."))
    async with chat.turn("Is it?", key="k") as turn:
        await turn.add("Yes.")
    assert await shown(chat) == ["Is it?", "Ye", "Go on.", "Is it?", "Yes."]


async def cut_off(turn: Turn, *numbers: int) -> None:
    """These steps, and then a stream that breaks."""

    async def use() -> None:
        async with turn:
            await looked(turn, *numbers)
            async for _ in turn.stream(events(piece("It"))):
                pass

    with pytest.raises(ConnectionResetError):
        await use()


@pytest.mark.parametrize("end", ["left", "failed", "killed", "cut off"])
async def test_a_retry_goes_on_from_the_steps(chat: Conversation, end: str) -> None:
    turn = chat.turn("Is it?", key="k")
    match end:
        case "left":
            async with turn:
                await looked(turn, 0, 1)
        case "failed":
            await failed(turn, call(0), tool_result("0", "found 0"), call(1), tool_result("1", "found 1"))
        case "killed":
            await turn.__aenter__()
            await looked(turn, 0, 1)
        case _:
            await cut_off(turn, 0, 1)
    rest = ["It"] if end == "cut off" else []
    assert await said_by(chat) == ["Is it?", "call 0", "found 0", "call 1", "found 1", *rest]
    async with chat.turn("Is it?", key="k") as again:
        assert (again.done, again.replayed, again.calls, len(again.messages)) == (False, False, (), 4)
        sent = [one["content"] for one in again.request["messages"][-5:]]
        assert sent == ["Is it?", "I look 0.", "found 0", "I look 1.", "found 1"]
        await looked(again, 2)
        await again.add("It is.")
    async with chat.turn("Is it?", key="k") as answered:
        assert (answered.done, answered.replayed) == (True, True)
        assert [one.raw for one in answered.messages] == [one.raw for one in again.messages]
    assert (await said_by(chat))[-2:] == ["found 2", "It is."]
    assert len(await shown(chat)) == 8
    with pytest.raises(IdempotencyKeyReused):
        async with chat.turn("Or not?", key="k"):
            pass


async def test_a_retry_asks_again_where_something_was_said_since(chat: Conversation) -> None:
    await failed(chat.turn("Is it?", key="k"), call(0), tool_result("0", "found 0"))
    await chat.append(user("Hello."), assistant("Hello."))
    async with chat.turn("Is it?", key="k") as again:
        assert [one["content"] for one in again.request["messages"]][-2:] == ["Hello.", "Is it?"]
        await looked(again, 1)
    await chat.append(user("Go on."))
    async with chat.turn("Is it?", key="k") as last:
        assert last.messages == ()
        await last.add("It is.")
    once = ["Is it?", "call 0", "found 0", "Hello.", "Hello.", "Is it?", "call 1", "found 1", "Go on."]
    assert await said_by(chat) == [*once, "Is it?", "It is."]
    async with chat.turn("Is it?", key="k") as answered:
        assert [one.text for one in answered.messages] == ["It is."]


async def test_steps_that_were_taken_back_are_not_gone_on_from(chat: Conversation) -> None:
    await failed(chat.turn("Is it?", key="k"), call(0), tool_result("0", "found 0"))
    await chat.rewind(to=-1)
    async with chat.turn("Is it?", key="k") as again:
        assert "found 0" not in json.dumps(again.request)
        await again.add("It is.")
    assert await shown(chat) == ["Is it?", "It is."]


async def test_two_turns_with_one_key_keep_the_steps_of_the_first(chat: Conversation) -> None:
    """The other one is told at once, so that it calls no more tools."""
    async with chat.turn("Is it?", key="k") as one:
        two = chat.turn("Is it?", key="k")
        await two.__aenter__()
        await looked(one, 0)
        await two.add(call(1))
        with pytest.raises(IdempotencyKeyReused, match="in progress"):
            await two.add(tool_result("1", "found 1"))
        await two.__aexit__(None, None, None)
        assert two.result is None
        await looked(one, 1)
        await one.add("It is.")
    assert await said_by(chat) == ["Is it?", "call 0", "found 0", "call 1", "found 1", "It is."]
    async with chat.turn("Is it?", key="k") as again:
        assert (again.text, again.replayed) == ("It is.", True)


async def test_a_key_without_an_answer_is_another_ones(chat: Conversation) -> None:
    await chat.append(user("Is it?"), key="asked")
    async with chat.turn([user("Is it?"), user("Or not?")], key="two") as turn:
        await turn.add("It is.")
    for key in ("asked", "two"):
        with pytest.raises(IdempotencyKeyReused, match="without an answer"):
            async with chat.turn("Is it?", key=key):
                pass


@pytest.mark.parametrize(
    "mark",
    [
        {"partial": True, "key": "k"},
        {"partial": True, "key": "k", "messages": 2},
        {"hitherto_turn": {"key": key_mark("k")}},
        {"hitherto_turn": {"key": key_mark("k"), "messages": "x"}},
        {"hitherto_turn": {"key": key_mark("k"), "messages": 3}},
        {"hitherto_turn": {"key": key_mark("k"), "messages": 10**9}},
        {"hitherto_turn": [key_mark("k"), 2]},
    ],
)
async def test_metadata_of_ones_own_takes_nothing_back(chat: Conversation, mark: Any) -> None:
    await chat.append(user("Old."), assistant("Yes."), user("Is it?").with_metadata(mark))
    async with chat.turn("Is it?", key="k") as turn:
        await turn.add("It is.")
    assert await shown(chat) == ["Old.", "Yes.", "Is it?", "Is it?", "It is."]


async def test_what_is_said_while_a_retry_begins_stays(chat: Conversation) -> None:
    for number in range(15):
        await broken_off(chat, "Ye", key=f"{number}")

        async def again(key: str) -> None:
            async with chat.turn("Is it?", key=key) as turn:
                if not turn.done:
                    await turn.add("It is.")

        said = f"Important {number}."
        await asyncio.gather(again(f"{number}"), chat.append(user(said)), again(f"{number}"))
        now = await shown(chat)
        assert said in now
        assert "It is." in now[-2:]
