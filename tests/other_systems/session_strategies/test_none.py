"""The fourth seed's strategy None: "Keeps every message and tool call/result as-is"."""

from __future__ import annotations

import pytest

import hitherto
from hitherto import none
from hitherto.core.policy.span import Fate, Reason
from hitherto.providers.scripted import Scripted
from hitherto.store.store import Store
from tests.acceptance.dialogue import PLENTY, Opened, asks, check_begins_with, fates, looked_up, opener


@pytest.fixture
def opened(store: Store) -> Opened:
    return opener(store, none())


async def test_the_full_raw_history_growing_without_bound(opened: Opened) -> None:
    model = Scripted()
    async with opened(model) as (memory, chat):
        before: hitherto.Context | None = None
        for number in range(1, 41):
            await chat.append(*looked_up(number))
            context = await chat.context(budget=PLENTY)
            if before is not None:
                check_begins_with(context, before)
            before = context
        await memory.wait_for_digests()
        assert before is not None
        assert before.messages == [logged.message.payload for logged in await chat.messages()]
        assert fates(before) == [(0, 159, Fate.IN, Reason.VERBATIM)]
        assert await chat.items(wire="openai.chat") == before.messages
        assert await chat.digests() == []
    assert model.calls == []


async def test_only_the_budget_cuts(opened: Opened) -> None:
    async with opened(Scripted()) as (_, chat):
        for number in range(1, 41):
            await chat.append(*looked_up(number))
        context = await chat.context(asks(41), budget=1_000)
        assert context.tokens <= 1_000
        first, *gone, kept = fates(context)
        assert first == (0, 0, Fate.IN, Reason.BEGINNING)
        assert gone[0][2:] == (Fate.DROPPED, Reason.BUDGET)
        assert {fate for _, _, fate, _ in gone} == {Fate.DROPPED}
        assert kept[1:] == (159, Fate.IN, Reason.VERBATIM)
        assert context.messages[0]["role"] == "user"
        assert len(await chat.messages()) == 160, "the log keeps them"


async def test_a_memory_may_be_opened_with_it(store: Store) -> None:
    async with opener(store)(Scripted(), of=None, policy="none") as (_, chat):
        for number in range(1, 41):
            await chat.append(*looked_up(number))
        assert await chat.policy() == none()
        context = await chat.context(budget=PLENTY)
        assert len(context.messages) == 160
        assert context.manifest.policy == none().to_json()
        assert context.manifest.policy_from == "memory"
