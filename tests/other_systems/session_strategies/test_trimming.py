"""The fourth seed's trimming: "When total user turns ≥ max_turns, drops the oldest user-anchored turns, keeping only
the last keep_last_n_turns user turns and their associated assistant/tool messages"."""

from __future__ import annotations

import pytest

from hitherto import Call, assistant, tool_result, user
from hitherto.core.digests.digest import Status
from hitherto.core.log.frontier import DigestAction
from hitherto.core.policy.span import Fate, Reason
from hitherto.other_systems.session_strategies.policies import trimming
from hitherto.providers.scripted import Scripted
from hitherto.store.store import Store
from tests.acceptance.dialogue import (
    PLENTY,
    Opened,
    answers,
    asks,
    bodies,
    fates,
    looked_up,
    opener,
    ranges,
)

POLICY = trimming(max_turns=6, keep_last_n_turns=3)


@pytest.fixture
def opened(store: Store) -> Opened:
    return opener(store, POLICY)


async def test_at_max_turns_the_last_k_turns_stay_with_their_tool_messages(opened: Opened) -> None:
    model = Scripted()
    async with opened(model) as (_, chat):
        for number in range(1, 6):
            await chat.append(*looked_up(number))
        assert await chat.digests() == []
        assert len((await chat.context(budget=PLENTY)).messages) == 20

        # The sixth user turn begins: turns 4 to 6 stay, and all that follows their user messages.
        appended = await chat.append(asks(6))
        (row,) = await chat.digests()
        assert appended.fired == (row.id,)
        assert (row.start, row.end, row.base) == (0, 11, None)
        assert (row.action, row.status) == (DigestAction.DROP, Status.COMPLETED)
        assert row.fired_rev == row.visible_rev == appended.rev, "it takes effect with the append that fires it"
        assert row.tokens == sum(logged.tokens for logged in await chat.messages(stop=12))

        context = await chat.context(budget=PLENTY)
        expected = [*looked_up(4), *looked_up(5), asks(6)]
        assert context.messages == [message.payload for message in expected]
        assert fates(context) == [(0, 11, Fate.DROPPED, Reason.TRIMMED), (12, 20, Fate.IN, Reason.VERBATIM)]
        assert await chat.items(wire="openai.chat") == context.messages
        await chat.append(answers(6))
        assert len(await chat.digests()) == 1
    assert model.calls == [], "no model is asked"


async def test_the_next_time_counts_from_what_was_kept(opened: Opened) -> None:
    async with opened(Scripted()) as (_, chat):
        for number in range(1, 13):
            await chat.append(asks(number), answers(number))
        # Turns 4 to 6 were kept; with turn 9 there are 6 again, with turn 12 once more.
        assert ranges(await chat.digests()) == [(0, 5), (6, 11), (12, 17)]
        context = await chat.context(asks(13), budget=PLENTY)
        assert bodies(context)[0] == "question 10"
        assert fates(context)[0] == (0, 17, Fate.DROPPED, Reason.TRIMMED)


async def test_no_group_is_parted(opened: Opened) -> None:
    """A result that arrives turns later keeps its call in view, and a call that waits is not dropped."""
    async with opened(Scripted()) as (_, chat):
        for number in range(1, 5):
            await chat.append(asks(number), answers(number))
        await chat.append(
            user("book it"), assistant(calls=[Call(id="slow", name="book"), Call(id="fast", name="look")])
        )
        await chat.append(tool_result("fast", "two rooms"))
        await chat.append(asks(6))
        (row,) = await chat.digests()
        assert row.end == 5, "turns 4 to 6 stay, turn 5 among them with its calls"
        await chat.append(answers(6), asks(7), tool_result("slow", "booked"), answers(7))
        for number in range(8, 10):
            await chat.append(asks(number), answers(number))
        context = await chat.context(budget=PLENTY)
        shown = [call["id"] for item in context.messages for call in item.get("tool_calls", ())]
        results = [item["tool_call_id"] for item in context.messages if item["role"] == "tool"]
        assert sorted(shown) == sorted(results)
        # Turns 7 to 9 would stay; the result in turn 7 belongs to a call in turn 5.
        assert ranges(await chat.digests())[-1] == (6, 7)
        assert shown == ["slow", "fast"]
