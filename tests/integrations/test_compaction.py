"""The SDK's own compaction on top of our session: it replaces what is shown, and the log does not grow."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock

import pytest
from agents import Runner
from agents.memory import OpenAIResponsesCompactionSession

from hitherto import Memory
from hitherto.integrations.openai_agents import HithertoSession
from tests.conftest import SCOPE
from tests.integrations.planner import QUIET, dialogue, payloads, planner, questions, says

COMPACTED: list[Any] = [
    {"type": "message", "role": "user", "content": "Question 0"},
    {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAABo"},
]


def endpoint(*outputs: Any) -> Any:
    """An OpenAI client whose `responses.compact` answers with these outputs, or raises them."""
    answers = [one if isinstance(one, Exception) else SimpleNamespace(output=one, usage=None) for one in outputs]
    return SimpleNamespace(responses=SimpleNamespace(compact=AsyncMock(side_effect=answers)))


def compacting(session: HithertoSession, client: Any, **options: Any) -> OpenAIResponsesCompactionSession:
    return OpenAIResponsesCompactionSession(session.session_id, cast(Any, session), client=client, **options)


class Plain(HithertoSession):
    """One whose verbs the SDK sees as changed, so that it clears and adds instead of replacing at once."""

    async def clear_session(self, *, wrapper: Any = None) -> None:
        await super().clear_session(wrapper=wrapper)


@pytest.fixture(params=[HithertoSession, Plain])
async def session(request: pytest.FixtureRequest, memory: Memory) -> HithertoSession:
    return request.param("trip", memory, scope=SCOPE)


async def test_compaction_shows_its_items_and_the_log_does_not_grow(session: HithertoSession) -> None:
    await dialogue(session, 3, tools=True)
    log = payloads(await session.messages())

    await compacting(session, endpoint(COMPACTED)).run_compaction({"force": True, "compaction_mode": "input"})

    assert await session.get_items() == COMPACTED
    assert payloads(await session.messages()) == log
    sent = await dialogue(session, 1, start=3)
    assert sent == [*COMPACTED, {"role": "user", "content": "Question 3"}]
    assert len(await session.messages()) == len(log) + 2


async def test_an_endpoint_that_fails_changes_nothing(session: HithertoSession) -> None:
    await dialogue(session, 2)
    before = await session.get_items()
    with pytest.raises(RuntimeError):
        await compacting(session, endpoint(RuntimeError("down"))).run_compaction({"force": True})
    assert await session.get_items() == before
    assert len(await session.messages()) == 4


async def test_a_replacement_that_cannot_be_written_is_rolled_back(session: HithertoSession) -> None:
    await dialogue(session, 2, tools=True)
    before = await session.get_items()
    unusable = [{"type": "message", "role": "wizard", "content": "?"}]

    with pytest.raises(ValueError, match="wizard"):
        await compacting(session, endpoint(unusable)).run_compaction({"force": True, "compaction_mode": "input"})

    assert await session.get_items() == before
    assert payloads(await session.messages()) == before


async def test_a_rollback_behind_the_replacement_does_not_double_the_log(memory: Memory) -> None:
    """The SDK clears again and adds what was there before: once more no new messages."""
    session = Plain("trip", memory, scope=SCOPE)
    await dialogue(session, 2, tools=True)
    before = await session.get_items()
    await session.clear_session()
    await session.add_items(COMPACTED)
    await session.clear_session()
    await session.add_items(before)
    assert await session.get_items() == before
    assert payloads(await session.messages()) == before
    await dialogue(session, 1, start=2)
    assert len(await session.messages()) == len(before) + 2


async def test_automatic_compaction_at_the_end_of_a_run(session: HithertoSession) -> None:
    wrapped = compacting(session, endpoint(COMPACTED), should_trigger_compaction=lambda _: True)
    agent, _ = planner([[says("Lisbon.")]])
    await Runner.run(agent, "Where to?", session=wrapped, run_config=QUIET)
    assert await session.get_items() == COMPACTED
    assert questions(payloads(await session.messages())) == ["Where to?"]


async def test_automatic_compaction_of_a_part(memory: Memory) -> None:
    """With a limit the model saw only the newest items: only these are replaced, and older ones stay."""
    session = HithertoSession("trip", memory, scope=SCOPE, session_settings={"limit": 2})
    await dialogue(session, 3)
    wrapped = compacting(session, endpoint([COMPACTED[1]]), should_trigger_compaction=lambda _: True)
    agent, _ = planner([[says("Lisbon.")]])
    await Runner.run(agent, "Where to?", session=wrapped, run_config=QUIET)
    shown = await session.get_items(100)
    assert shown[-1] == COMPACTED[1]
    assert questions(shown) == ["Question 0", "Question 1"]
    assert len(await session.messages()) == 8


async def test_a_fresh_start_after_a_clear_is_logged(session: HithertoSession) -> None:
    await dialogue(session, 1)
    await session.clear_session()
    await session.add_items([{"role": "user", "content": "Question 0"}])
    assert questions(payloads(await session.messages())) == ["Question 0", "Question 0"]


async def test_a_write_of_others_after_the_clear_is_not_hidden(memory: Memory) -> None:
    session, other = Plain("trip", memory, scope=SCOPE), HithertoSession("trip", memory, scope=SCOPE)
    await dialogue(session, 2)
    before = await session.get_items()
    await session.clear_session()
    await other.add_items([{"role": "user", "content": "Meanwhile."}])
    await session.add_items(before)
    assert questions(await session.get_items()) == ["Meanwhile.", "Question 0", "Question 1"]
