"""The fourth seed's trimming: "When total user turns ≥ max_turns, drops the oldest user-anchored turns, keeping only
the last keep_last_n_turns user turns and their associated assistant/tool messages"."""

from __future__ import annotations

import pytest

import hitherto
from hitherto import Call, assistant, tool_result, user
from hitherto.core.digests.digest import Status
from hitherto.core.log.frontier import DigestAction
from hitherto.core.policy.span import Fate, Reason
from hitherto.other_systems.session_strategies.policies import trimming
from hitherto.providers.scripted.model import Scripted
from hitherto.store.store import Store
from tests.acceptance.dialogue import (
    PLENTY,
    Opened,
    answers,
    asks,
    bodies,
    check_begins_with,
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


async def test_between_two_trims_the_start_does_not_change(opened: Opened) -> None:
    async with opened(Scripted()) as (_, chat):
        before: hitherto.Context | None = None
        compared = 0
        for number in range(1, 25):
            fired = len(await chat.digests())
            context = await chat.context(asks(number), budget=PLENTY)
            if before is not None:
                check_begins_with(context, before)
                compared += 1
            await chat.append(*looked_up(number))
            before = context if len(await chat.digests()) == fired else None
        assert compared == 17


async def test_the_log_stays_whole_and_the_past_can_be_seen(opened: Opened) -> None:
    """ "We always keep the full raw history in our own database"."""
    async with opened(Scripted()) as (_, chat):
        revs = [(await chat.append(asks(number), answers(number))).rev for number in range(1, 10)]
        log = await chat.messages()
        assert [logged.seq for logged in log] == list(range(18))
        assert not any(logged.erased for logged in log)
        past = await chat.context(budget=PLENTY, at=revs[4])
        assert len(past.messages) == 10, "before the first trim"
        assert (await chat.rebuild(past.manifest)).request == past.request


async def test_a_policy_without_trimming_shows_them_again(opened: Opened) -> None:
    async with opened(Scripted()) as (_, chat):
        for number in range(1, 10):
            await chat.append(asks(number), answers(number))
        context = await chat.context(budget=PLENTY, policy="none")
        assert fates(context) == [(0, 17, Fate.IN, Reason.VERBATIM)]


async def test_a_batch_of_many_turns_is_trimmed_at_once(opened: Opened) -> None:
    async with opened(Scripted()) as (_, chat):
        await chat.append(*(message for number in range(1, 31) for message in looked_up(number)))
        assert ranges(await chat.digests()) == [(0, 107)]
        assert bodies(await chat.context(budget=PLENTY))[0] == "question 28"


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


async def test_a_user_who_speaks_alone(opened: Opened) -> None:
    """Turns are counted by user messages, whoever answers."""
    async with opened(Scripted()) as (_, chat):
        for number in range(1, 7):
            await chat.append(asks(number))
        assert ranges(await chat.digests()) == [(0, 2)]
        assert bodies(await chat.context(budget=PLENTY)) == ["question 4", "question 5", "question 6"]
