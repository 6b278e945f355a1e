"""`chat.turn` with `at` and `expect`: regenerate, edit, and pages that are stale; and a question that is in the log."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from hitherto import Conversation, Memory, Turn, assistant, policies, tool_result, user
from hitherto.errors import ConcurrentWrite, InvalidInput
from hitherto.store.store import Store
from tests.conftest import SCOPE
from tests.engine.turn.asking import broken_off, call, failed, looked, piece, shown
from tests.memories import open_on

BEFORE = ["Hello.", "Good morning.", "Which day?", "Monday."]


@pytest.fixture
async def said(chat: Conversation) -> Conversation:
    await chat.append(user("Hello."), assistant("Good morning."), user("Which day?"), assistant("Monday."))
    return chat


def asked(turn: Turn) -> list[Any]:
    """What the request shows of the log, and asks."""
    return [one["content"] for one in turn.request["messages"]]


async def test_a_message_is_answered_anew(said: Conversation) -> None:
    async with said.turn(at=2) as turn:
        assert asked(turn) == BEFORE[:3]
        assert await shown(said) == BEFORE, "nothing is replaced before the answer is there"
        await turn.add("Tuesday.")
        assert await shown(said) == BEFORE
    assert await shown(said) == [*BEFORE[:3], "Tuesday."]
    assert turn.result is not None
    assert (turn.result.start, turn.result.end) == (4, 4)


async def test_another_question_takes_the_place_of_one(said: Conversation) -> None:
    async with said.turn("Which month?", at=1) as turn:
        assert asked(turn) == [*BEFORE[:2], "Which month?"]
        await turn.add("May.")
    assert await shown(said) == [*BEFORE[:2], "Which month?", "May."]
    async with said.turn("Hi.", at=-1) as first:
        assert asked(first) == ["Hi."]
        await first.add("Hi!")
    assert await shown(said) == ["Hi.", "Hi!"]


@pytest.mark.parametrize("partial", ["keep", "drop"])
@pytest.mark.parametrize("end", ["fails", "fails within steps", "breaks off", "ends early"])
async def test_without_a_whole_answer_nothing_changes(said: Conversation, end: str, partial: Any) -> None:
    before, head = await said.messages(), await said.head()
    match end:
        case "fails":
            await failed(said.turn(at=2, partial=partial))
        case "fails within steps":
            await failed(said.turn("So?", at=1, partial=partial), call(0), tool_result("0", "found"), call(1))
        case "breaks off":
            turn = await broken_off(said, "Tue", at=1, partial=partial)
            assert (turn.partial, turn.text, turn.finish_reason, turn.result) == (True, "Tue", None, None)
        case _:
            async with said.turn("So?", at=1, partial=partial):
                pass
    assert await said.messages() == before
    assert (now := await said.head()) is not None
    assert head is not None
    assert now.rev == head.rev


async def test_steps_come_with_the_answer(said: Conversation) -> None:
    async with said.turn(at=2) as turn:
        await looked(turn, 0, 1)
        assert await shown(said) == BEFORE
        assert asked(turn)[2:] == ["Which day?", "I look 0.", "found 0", "I look 1.", "found 1"]
        await turn.add("Tuesday.")
    assert (await shown(said))[-2:] == ["found 1", "Tuesday."]
    assert len(await shown(said)) == 3 + 5


async def test_a_retry_has_the_answer(said: Conversation) -> None:
    for attempt in range(2):
        async with said.turn(at=2, key="k") as turn:
            assert turn.replayed == bool(attempt)
            if not turn.done:
                await turn.add("Tuesday.")
        assert turn.text == "Tuesday."
    assert await shown(said) == [*BEFORE[:3], "Tuesday."]
    assert len(await said.messages()) == 5


async def test_two_pages_answer_anew_at_once(said: Conversation) -> None:
    """Without `expect` the last one is shown; with it, the other one is told."""
    async with said.turn(at=2) as one, said.turn(at=2) as two:
        await one.add("Tuesday.")
        await two.add("Wednesday.")
    assert await shown(said) == [*BEFORE[:3], "Tuesday."], "blocks end from within"
    head = await said.head()
    assert head is not None

    async def both(rev: int) -> None:
        async with said.turn(at=2, expect=rev) as one, said.turn(at=2, expect=rev) as two:
            await one.add("Thursday.")
            await two.add("Friday.")

    with pytest.raises(ConcurrentWrite, match="changed since"):
        await both(head.rev)
    assert await shown(said) == [*BEFORE[:3], "Friday."]


@pytest.mark.parametrize("change", ["append", "rewind", "clear", "erase", "replace"])
async def test_a_stale_page_is_told(said: Conversation, change: str) -> None:
    head = await said.head()
    assert head is not None
    match change:
        case "append":
            await said.append(user("So?"))
        case "rewind":
            await said.rewind(to=1)
        case "clear":
            await said.clear()
        case "erase":
            await said.erase([0])
        case _:
            await said.replace([{"role": "user", "content": "instead"}])
    for verb in (failed(said.turn("And?", expect=head.rev)), said.rewind(to=1, expect=head.rev)):
        with pytest.raises(ConcurrentWrite, match="read them and decide again"):
            await verb
    with pytest.raises(ConcurrentWrite):
        await said.append(user("And?"), unchanged_since=head.rev)


async def test_an_answer_behind_an_edit_is_told(said: Conversation) -> None:
    """Its steps do not make a turn stale by themselves."""
    head = await said.head()
    assert head is not None
    async with said.turn("So?", expect=head.rev) as turn:
        await looked(turn, 0, 1)
        await turn.add("So it is.")
    assert (await shown(said))[-1] == "So it is."
    head = await said.head()
    assert head is not None

    async def behind(rev: int) -> None:
        async with said.turn("And?", expect=rev) as turn:
            await said.rewind(to=1)
            await turn.add("Nothing.")

    with pytest.raises(ConcurrentWrite):
        await behind(head.rev)
    assert await shown(said) == BEFORE[:2]


async def test_a_digest_makes_no_page_stale(store: Store) -> None:
    async with open_on(store, model="extractive", policy=policies.rolling(threshold=2, keep_last=1)) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        done = await chat.append(user("One."), assistant("1"), user("Two."), assistant("2"))
        await memory.wait_for_digests()
        head = await chat.head()
        assert head is not None
        assert head.rev > done.rev, "a digest was made"
        assert await chat.rewind(to=1, expect=done.rev) == 2


async def test_what_is_in_the_log_is_answered(chat: Conversation) -> None:
    await chat.append(user("Is it?"))
    async with chat.turn() as turn:
        assert asked(turn) == ["Is it?"]
        await turn.add("It is.")
    assert await shown(chat) == ["Is it?", "It is."]
    await chat.append(user("And?"), call(0), tool_result("0", "found"))
    async with chat.turn(key="k") as turn:
        await looked(turn, 1)
        await turn.add("So.")
    async with chat.turn(key="k") as again:
        assert (again.replayed, again.text) == (True, "So.")
    assert (await shown(chat))[-1] == "So."


@pytest.mark.parametrize("at", [None, 1, 4, 99, -1])
async def test_an_answer_is_not_answered(chat: Conversation, at: int | None) -> None:
    with pytest.raises(InvalidInput, match=r"to be answered|can end"):
        async with chat.turn(at=at):
            pass
    await chat.append(user("Is it?"), assistant("It is."), user("So?"), assistant("So."), user("And?"))
    await chat.rewind(to=3)
    with pytest.raises(InvalidInput, match=r"to be answered|can end"):
        async with chat.turn(at=at):
            pass


@pytest.mark.parametrize("key", [None, "k"])
async def test_a_question_is_kept_though_no_answer_comes(chat: Conversation, key: str | None) -> None:
    await failed(chat.turn("Is it?", question_first=True, key=key))
    assert await shown(chat) == ["Is it?"]
    retry = chat.turn() if key is None else chat.turn("Is it?", question_first=True, key=key)
    async with retry as turn:
        assert asked(turn) == ["Is it?"]
        await turn.add("It is.")
    assert await shown(chat) == ["Is it?", "It is."]
    for question, at in (("So?", 0), (None, None)):
        with pytest.raises(InvalidInput, match="goes with a question"):
            chat.turn(question, at=at, question_first=True)


async def test_a_kept_question_and_what_broke_off(chat: Conversation) -> None:
    for _ in range(2):
        await broken_off(chat, "Ye", key="k", question_first=True)
        assert await shown(chat) == ["Is it?", "Ye"]
    async with chat.turn("Is it?", key="k", question_first=True) as turn:
        assert asked(turn) == ["Is it?"]
        assert await shown(chat) == ["Is it?"]
        async for _ in turn.stream(_whole("Yes.")):
            pass
    assert await shown(chat) == ["Is it?", "Yes."]


async def _whole(text: str) -> AsyncIterator[dict[str, Any]]:
    yield piece(text)
    yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


async def test_it_is_answered_as_of_there(memory: Memory, said: Conversation) -> None:
    """What came after is neither shown nor recalled, and its context is rebuilt from its manifest."""
    await said.append(user("The code of the safe is 4711."), assistant("Noted."), user("What is it?"))
    async with said.turn("What is the code of the safe?", at=1) as turn:
        assert "4711" not in str(turn.request)
        manifest, request = turn.context.manifest, turn.request
    assert manifest.next_seq == 2
    await said.rewind(to=1)
    assert (await said.rebuild(manifest)).request == request
