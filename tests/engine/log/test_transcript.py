"""`transcript`: what users see of a conversation, page by page."""

from __future__ import annotations

from typing import Any

import pytest

from hitherto import Call, Conversation, assistant, tool_result, user
from hitherto.core.log.message import Role
from hitherto.errors import InvalidInput
from tests.engine.turn.asking import broken_off

PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


async def texts(chat: Conversation, **asked: Any) -> list[str]:
    return [one.text for one in (await chat.transcript(**asked)).entries]


async def test_words_of_users_and_answers(chat: Conversation) -> None:
    assert (await chat.transcript()).entries == ()
    call = assistant("I look.", calls=[Call(id="1", name="look")])
    await chat.append({"role": "system", "content": "Be brief."}, user("What is it?"), call, tool_result("1", "A cat."))
    await chat.append(
        {"role": "user", "content": [{"type": "text", "text": "And this?"}, PICTURE]}, assistant("A dog.")
    )
    await broken_off(chat, "It i")
    shown = (await chat.transcript()).entries
    assert [(one.seq, one.role.value, one.text) for one in shown] == [
        (1, "user", "What is it?"),
        (4, "user", "And this?"),
        (5, "assistant", "A dog."),
        (6, "user", "Is it?"),
        (7, "assistant", "It i"),
    ]
    assert [one.partial for one in shown] == [False, False, False, False, True]
    assert [list(one.attachments) for one in shown] == [[], [PICTURE], [], [], []]


async def test_pages(chat: Conversation) -> None:
    for number in range(7):
        await chat.append(user(f"q{number}"), assistant(f"a{number}"))
    await chat.pop()
    await chat.erase([0])
    pages, before = list[list[str]](), None
    while True:
        page = await chat.transcript(before=before, limit=5)
        pages.append([one.text for one in page.entries])
        if (before := page.before) is None:
            break
    assert pages == [["q4", "a4", "q5", "a5", "q6"], ["a1", "q2", "a2", "q3", "a3"], ["a0", "q1"]]
    await chat.clear()
    assert await texts(chat) == []
    await chat.append(user("new"))
    assert await texts(chat) == ["new"]
    for given in ({"limit": 0}, {"limit": 1_001}, {"before": -1}, {"before": "x"}):
        with pytest.raises(InvalidInput):
            await chat.transcript(**given)  # pyright: ignore[reportArgumentType]


async def test_branches(chat: Conversation) -> None:
    """An answer that begins with the calls of tools is one branch, whichever of its messages is shown."""
    await chat.append(user("Which day?"), assistant("Monday."))
    async with chat.turn(at=0) as turn:
        await turn.add(assistant(calls=[Call(id="1", name="look")]))
        await turn.add(tool_result("1", "It is so."))
        await turn.add("Tuesday.")
    page = await chat.transcript()
    assert [(one.text, one.at, one.branch, one.branches, one.branch_seq) for one in page.entries] == [
        ("Which day?", -1, 1, 1, None),
        ("Tuesday.", 0, 2, 2, 2),
    ]
    assert page.entries[1].earlier is not None
    await chat.switch(page.entries[1].earlier, expect=page.rev)
    assert [(one.text, one.branch, one.branches) for one in (await chat.transcript()).entries] == [
        ("Which day?", 1, 1),
        ("Monday.", 1, 2),
    ]
    await chat.append(user("Which year?"), at=-1)  # 5
    await chat.append(user("Which month?"), at=-1)  # 6
    for seq, place, earlier, later in ((6, 3, 5, None), (5, 2, 0, 6), (0, 1, None, 5)):
        await chat.switch(seq)
        first = (await chat.transcript()).entries[0]
        assert (first.seq, first.branch, first.branches, first.earlier, first.later) == (seq, place, 3, earlier, later)


async def test_a_way_that_begins_with_what_was_erased_is_no_way(chat: Conversation) -> None:
    """No arrow leads where nothing could be shown that leads back."""
    await chat.append(user("Which day?"), assistant("Monday."))
    for text in ("Tuesday.", "Wednesday."):
        await chat.append(assistant(text), at=0)
    for erased, place, ways, earlier in ((1, 2, 2, 2), (2, 1, 1, None)):
        await chat.erase(erased)
        last = (await chat.transcript()).entries[-1]
        assert (last.branch, last.branches, last.earlier, last.later) == (place, ways, earlier, None)


async def test_what_goes_in_the_place_of_an_entry(chat: Conversation) -> None:
    """With an entry's `at`: the first of a page too, and where messages that are not shown stand before it."""
    await chat.append({"role": "system", "content": "Be brief."}, assistant("Hello."), user("a?"), assistant("a"))
    await chat.append(user("b?"), assistant("b"), user("c?"), assistant("c"), at=3)
    assert [one.at for one in (await chat.transcript()).entries] == [None, 1, 2, 3, 4, 5, 6]
    assert [one.at for one in (await chat.transcript(limit=3)).entries] == [4, 5, 6]
    assert [one.at for one in (await chat.transcript(before=4, limit=1)).entries] == [2]
    fork = await chat.fork(at=1)
    await fork.append(user("a?"), assistant("a"))
    await fork.append(user("b?"), at=1)
    assert [one.at for one in (await fork.transcript()).entries] == [None, 1], (
        "it does not stand behind what it replaced"
    )
    for seq in (5, 4, 2):
        entry = next(one for one in (await chat.transcript()).entries if one.seq == seq)
        before = await texts(chat, before=seq)
        question = None if entry.role is Role.ASSISTANT else "other?"
        async with chat.turn(question, at=entry.at) as turn:
            await turn.add("other")
        assert await texts(chat) == [*before, *([question] if question else []), "other"]
    assert [one.message.text for one in await chat.messages(stop=1) if one.retracted_rev is None] == ["Be brief."]
