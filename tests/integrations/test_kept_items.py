"""Sessions keep what the model was shown, as contexts of the conversation."""

from __future__ import annotations

from typing import Any

import pytest
from agents import RunContextWrapper

import hitherto
from hitherto.core.policy.span import Fate
from tests.conftest import SCOPE
from tests.integrations.planner import dialogue
from tests.integrations.test_budget import SESSIONS


@pytest.mark.parametrize("budget", [None, 400])
@pytest.mark.parametrize("name", [name for name in SESSIONS if name != "tracking"])
async def test_what_a_run_was_shown_is_kept(database: str, name: str, budget: int | None) -> None:
    async with hitherto.open(database, keep_contexts=50) as memory:
        session = SESSIONS[name](memory, budget=budget)
        await dialogue(session, 6, tools=True)
        await memory.wait_for_digests()
        await session.get_items()  # nobody's run
        wrapper = RunContextWrapper(None)
        shown: list[Any] = await session.get_items(wrapper=wrapper)
        newest: list[Any] = await session.get_items(2, wrapper=wrapper)
        chat = memory.conversation("trip", scope=SCOPE)
        kept = await chat.contexts(limit=50)
        assert len(kept) == 6 + 2
        assert (await chat.rebuild(kept[0].manifest)).request == {"input": newest}
        visible = [span for span in kept[0].manifest.fates if span.fate in (Fate.IN, Fate.REDACTED)]
        assert 1 <= sum(span.end - span.start + 1 for span in visible) <= 2, "a digest may be one"
        assert kept[0].manifest.total == sum(kept[0].manifest.sections.values()) < kept[1].manifest.total
        rebuilt = await chat.rebuild(kept[1].manifest)
        assert rebuilt.request == {"input": shown}
        assert rebuilt.manifest.fates[-1].end == rebuilt.manifest.next_seq - 1
        for one in kept[2:]:
            assert (await chat.rebuild(one.manifest)).messages is not None
        assert {one.manifest.budget >= one.manifest.total for one in kept} == {True}
