"""`replace`: items in the place of messages, without the log growing."""

from __future__ import annotations

from typing import Any

import pytest

from hitherto import Conversation, summarize
from hitherto.core.digests.digest import Status
from hitherto.core.log.frontier import DigestAction
from hitherto.core.policy.span import Fate, Reason
from hitherto.errors import InvalidInput, InvalidMessage
from hitherto.providers.scripted import Scripted
from hitherto.store.store import Store
from tests.acceptance.dialogue import (
    PLENTY,
    Opened,
    answers,
    asks,
    bodies,
    each,
    fates,
    new_to,
    opener,
    rounds,
    said,
    says_each,
)
from tests.other_systems.session_strategies.compacting import ScriptedCompactor, opaque


@pytest.fixture
def opened(store: Store) -> Opened:
    return opener(store)


def message(role: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": text}


async def rev(chat: Conversation) -> int:
    head = await chat.head()
    assert head is not None
    return head.rev


NOTES = [message("user", "where were we?"), message("assistant", "at the notes")]


async def test_replace_shows_items_in_the_place_of_everything(opened: Opened) -> None:
    async with opened(Scripted()) as (memory, chat):
        await rounds(memory, chat, range(1, 4))
        before = await rev(chat)
        await chat.replace(NOTES)
        assert await chat.items() == NOTES
        assert len(await chat.messages()) == 6, "the log does not grow"
        assert await rev(chat) == before + 1
        (row,) = await chat.digests()
        assert (row.action, row.status, row.start, row.end) == (DigestAction.COMPACT, Status.COMPLETED, 0, 5)
        context = await chat.context(asks(4), budget=PLENTY, wire="openai.responses", recall=False)
        assert context.messages[:2] == NOTES
        assert len(context.messages) == 3
        assert fates(context) == [(0, 5, Fate.DIGESTED, Reason.COMPACTED)]
        past = await chat.context(budget=PLENTY, at=before)
        assert bodies(past) == said(1, 3)

        # New messages come behind them; another replacement stands for all of it.
        await rounds(memory, chat, [4])
        items = await chat.items()
        assert items[:2] == NOTES
        assert len(items) == 4
        await chat.replace([message("user", "all of that")])
        assert await chat.items() == [message("user", "all of that")]
        assert len(await chat.messages()) == 8


async def test_who_cannot_be_sent_the_items_sees_the_messages(opened: Opened) -> None:
    async with opened(Scripted()) as (memory, chat):
        await rounds(memory, chat, range(1, 4))
        await chat.replace([*NOTES, opaque(1)], model="gpt-5.2-2025-12-11")
        assert await chat.items(model="gpt-5.2") == [*NOTES, opaque(1)]
        assert len(await chat.items(model="gpt-4.1")) == 6
        assert bodies(await chat.context(budget=PLENTY, model="gpt-4.1")) == said(1, 3)
        assert bodies(await chat.context(budget=PLENTY)) == said(1, 3), "nor can another API"


async def test_clear_then_replace_by_nothing_brings_nothing_back(opened: Opened) -> None:
    async with opened(Scripted()) as (memory, chat):
        await rounds(memory, chat, range(1, 4))
        await chat.clear()
        await chat.replace([])
        assert await chat.items() == []


async def test_right_after_a_clear_it_takes_the_clear_back(opened: Opened) -> None:
    """What a wrapper does that clears and adds again: the log is not doubled, and one revision shows both."""
    async with opened(Scripted()) as (memory, chat):
        await rounds(memory, chat, range(1, 4))
        shown = await chat.items()
        await chat.clear()
        assert await chat.items() == []
        await chat.replace(shown)
        assert await chat.items() == shown
        rows = await chat.digests()
        assert [(row.action, row.status) for row in rows] == [(DigestAction.CLEAR, Status.SUPERSEDED)], (
            "that is all it does"
        )
        assert bodies(await chat.context(budget=PLENTY)) == said(1, 3), "the messages are shown in every format"
        assert await chat.pop() == answers(3).payload

        await chat.clear()
        await chat.replace(NOTES)
        assert await chat.items() == NOTES
        assert bodies(await chat.context(budget=PLENTY))[:4] == said(1, 2)
        assert len(await chat.messages()) == 6


async def test_a_clear_of_long_ago_is_not_taken_back(opened: Opened) -> None:
    async with opened(Scripted()) as (memory, chat):
        await rounds(memory, chat, range(1, 3))
        await chat.clear()
        await rounds(memory, chat, [3])
        await chat.replace(NOTES)
        assert await chat.items() == NOTES
        assert bodies(await chat.context(budget=PLENTY)) == said(3, 3)
        (span, *_) = (await chat.context(asks(4), wire="openai.responses")).manifest.fates
        assert (span.start, span.end, span.reason) == (0, 3, Reason.CLEARED)


async def test_two_clears_and_only_the_last_is_taken_back(opened: Opened) -> None:
    async with opened(Scripted()) as (memory, chat):
        await rounds(memory, chat, [1])
        await chat.clear()
        await rounds(memory, chat, [2])
        shown = await chat.items()
        await chat.clear()
        await chat.replace(shown)
        assert await chat.items() == shown
        assert bodies(await chat.context(budget=PLENTY)) == said(2, 2)


async def test_pop_takes_the_last_of_the_items(opened: Opened) -> None:
    async with opened(Scripted()) as (memory, chat):
        await rounds(memory, chat, range(1, 3))
        await chat.replace(NOTES)
        await chat.append(asks(3))
        assert await chat.pop() == asks(3).payload, "first what came since"
        assert await chat.pop() == NOTES[1]
        assert await chat.items() == NOTES[:1]
        assert await chat.pop() == NOTES[0]
        assert await chat.pop() is None or await chat.items() != NOTES
        assert len(await chat.messages()) == 5


async def test_stages_go_on_behind_the_items(opened: Opened) -> None:
    model = Scripted(then=says_each)
    async with opened(model, of=summarize(4, 2)) as (memory, chat):
        await rounds(memory, chat, range(1, 4))
        await chat.replace(NOTES)
        await rounds(memory, chat, range(4, 7))
        assert [row.action for row in await chat.digests()] == [DigestAction.COMPACT], "three turns are in view"
        await rounds(memory, chat, [7])
        assert [(row.action, row.start, row.end) for row in await chat.digests()][1:] == [
            (DigestAction.SUMMARIZE, 0, 9)
        ]
        items = await chat.items()
        assert [item["content"] for item in items if item["role"] == "user"][-2:] == ["question 6", "question 7"]
        assert each(0, 9) in str([item["content"] for item in items]).replace("\\n", "\n")
        for number in range(1, 6):
            assert f"'question {number}'" not in str(items), "what is digested is not shown beside its digest"
    shown = new_to(model)
    assert len(set(shown)) == len(shown)


async def test_items_that_cannot_stand_in(opened: Opened) -> None:
    async with opened(Scripted()) as (memory, chat):
        with pytest.raises(InvalidInput, match="nothing"):
            await chat.replace(NOTES)
        assert await chat.head() is None
        await rounds(memory, chat, range(1, 3))
        at = await rev(chat)
        bad: list[dict[str, Any]] = [{"role": "nobody", "content": "x"}, {"type": "message"}, {}]
        for item in bad:
            with pytest.raises(InvalidMessage):
                await chat.replace([*NOTES, item])
        with pytest.raises(InvalidInput, match=r"openai\.responses"):
            await chat.replace(NOTES, wire="openai.chat")
        assert await rev(chat) == at, "nothing was written"
        assert bodies(await chat.context(budget=PLENTY)) == said(1, 2)


async def test_native_compaction_and_pop(store: Store) -> None:
    """Pops what came since, then the last of the opaque items; the messages stay in the log."""
    async with opener(store)(Scripted(), compactor=ScriptedCompactor(keeps_users=True), context_window=100) as (
        memory,
        chat,
    ):
        await chat.configure(policy="native:fraction=0.5,keep_messages=1", create=True)
        number = 0
        while not await chat.digests():
            number += 1
            await rounds(memory, chat, [number])
        assert await chat.pop() == answers(number).payload
        assert await chat.pop() == asks(number).payload
        shown = await chat.items()
        assert shown[-1] == opaque(1)
        assert await chat.pop() == opaque(1)
        assert await chat.items() == shown[:-1]
        assert len(await chat.messages()) == 2 * number
