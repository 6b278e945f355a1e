"""Over random histories a session behaves as a list would, and the log as one that only grows."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitherto.errors import InvalidBatch
from hitherto.integrations.openai_agents import HithertoSession
from hitherto.other_systems.session_strategies.sessions import CompactingSession, SummarizingSession, TrimmingSession
from tests.conftest import SCOPE
from tests.databases import Databases
from tests.engine.logs import logs
from tests.integrations.planner import Item, assert_no_orphans, payloads
from tests.lengths import examples, lasting
from tests.memories import open_on

COMPACTED: Item = {"type": "compaction", "id": "cmp", "encrypted_content": "gAAA"}

steps = st.one_of(
    st.tuples(st.just("add"), st.integers(1, 4)),
    st.tuples(st.sampled_from(["pop", "clear", "compact", "restore"]), st.none()),
    st.tuples(st.just("get"), st.integers(0, 12)),
)


@dataclass
class ConversationInfo:
    """What the SDK expects of any session, and beside it what the log must hold."""

    shown: list[Item] = field(default_factory=list[Item])
    log: list[Item] = field(default_factory=list[Item])


@lasting
@settings(max_examples=examples(8))
@given(st.lists(steps, max_size=25))
async def test_a_session_shows_what_a_list_would(databases: Databases, history: list[tuple[str, Any]]) -> None:
    async with open_on(await databases.store()) as memory:
        session, expected = HithertoSession("trip", memory, scope=SCOPE), ConversationInfo()
        for verb, value in history:
            await one(session, expected, verb, value)
            assert await session.get_items() == expected.shown
        assert payloads(await session.messages()) == expected.log


async def one(session: HithertoSession, expected: ConversationInfo, verb: str, value: Any) -> None:
    shown = expected.shown
    match verb:
        case "add":
            new: list[Any] = [{"role": "user", "content": f"{len(expected.log) + at}"} for at in range(value)]
            await session.add_items(new)
            expected.shown = shown + new
            expected.log += new
        case "pop":
            assert await session.pop_item() == (shown[-1] if shown else None)
            expected.shown = shown[:-1]
        case "clear":
            await session.clear_session()
            expected.shown = []
        case "compact" if shown:  # what the SDK's compaction does to a session that cannot replace
            await session.clear_session()
            await session.add_items([*shown[:1], COMPACTED])  # pyright: ignore[reportArgumentType] — plain dicts
            expected.shown = [*shown[:1], COMPACTED]
        case "restore" if len(shown) > 1:  # and what it does when that fails
            await session.clear_session()
            await session.add_items(list(shown))  # pyright: ignore[reportArgumentType] — plain dicts
        case "get":
            assert await session.get_items(value) == shown[max(len(shown) - value, 0) :]
        case _:
            pass


MAKE: dict[str, Any] = {
    "trimming": lambda memory: TrimmingSession("trip", memory, scope=SCOPE, max_turns=3, keep_last_n_turns=1),
    "summarizing": lambda memory: SummarizingSession(
        "trip", memory, scope=SCOPE, context_limit=3, keep_last_n_turns=1, wait=10
    ),
    "compacting": lambda memory: CompactingSession("trip", memory, scope=SCOPE, trigger=2, keep=1, calls=True),
}


@lasting
@pytest.mark.parametrize("name", list(MAKE))
@settings(max_examples=examples(6))
@given(log=logs(wire="openai.responses"))
async def test_no_strategy_parts_a_call_from_its_result(
    databases: Databases, name: str, log: tuple[str, list[list[Item]]]
) -> None:
    """Whatever is appended and when, answered calls are shown with their results or not at all."""

    async with open_on(await databases.store()) as memory:
        session, written = MAKE[name](memory), list[Item]()
        for batch in log[1]:
            try:
                await session.add_items(batch)
            except InvalidBatch:
                continue
            written += batch
            shown: list[Any] = await session.get_items()
            answered = {item["call_id"] for item in written if item.get("type") == "function_call_output"}
            assert_no_orphans([one for one in shown if "call_id" not in one or one["call_id"] in answered])
        stored = payloads(await session.messages())
        assert [json.dumps(item) for item in stored] == [json.dumps(item) for item in written]
