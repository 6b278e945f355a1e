"""Sessions keep what the model was shown, as contexts of the conversation."""

from __future__ import annotations

from typing import Any

import pytest

import hitherto
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
        shown: list[Any] = await session.get_items()
        newest: list[Any] = await session.get_items(2)
        chat = memory.conversation("trip", scope=SCOPE)
        kept = await chat.contexts(limit=50)
        assert len(kept) == 6 + 2
        assert (await chat.rebuild(kept[0].manifest)).request == {"input": newest}
        rebuilt = await chat.rebuild(kept[1].manifest)
        assert rebuilt.request == {"input": shown}
        assert rebuilt.manifest.fates[-1].end == rebuilt.manifest.next_seq - 1
        for one in kept[2:]:
            assert (await chat.rebuild(one.manifest)).messages is not None
        assert {one.manifest.budget >= one.manifest.total for one in kept} == {True}
