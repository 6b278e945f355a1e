"""Reading a whole history, beside the OpenAI Agents SDK's own session on the same server."""

from __future__ import annotations

from random import Random
from typing import Any, cast

import asyncpg
from agents import TResponseInputItem
from agents.extensions.memory import SQLAlchemySession
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy.ext.asyncio import create_async_engine

from benchmarks.ground import BUDGET, Ground, carried, memory_on, text
from benchmarks.measure import Measured, Side, in_turns
from benchmarks.report import Bar, Figure, Findings, ratio
from hitherto import Scope, user
from hitherto.integrations.openai_agents import HithertoSession

_SLOWER = Bar(limit=1.2)
_SPREAD = Bar(limit=3)
_SCOPE = Scope(tenant="tenant", user="user", agent="bench")
_TEXT = 36


async def run(ground: Ground) -> Findings:
    """`messages()`, `items()` and a session's `get_items()` ÷ `SQLAlchemySession.get_items()`, of the same items."""
    count = ground.size(1_400, quick=140)
    items, incoming = list(_items(count)), user(text(Random(5), 30))
    async with ground.database() as url, memory_on(url) as memory:
        session = HithertoSession("history", memory, scope=_SCOPE)
        chat = memory.conversation("history", scope=_SCOPE)
        where = conninfo_to_dict(url)

        async def connected() -> Any:
            return await cast(Any, asyncpg).connect(
                host=where["host"], port=where.get("port"), user=where["user"], database=where["dbname"]
            )

        engine = create_async_engine("postgresql+asyncpg://", async_creator=connected)
        theirs = SQLAlchemySession("history", engine=engine, create_tables=True)
        for start in range(0, count, 20):
            await session.add_items(items[start : start + 20])
            await theirs.add_items(items[start : start + 20])
        assert await session.get_items() == await theirs.get_items() == items
        await ground.settle(url)
        sides = [
            Side(f"messages(), all {count:,}", lambda _: chat.messages()),
            Side("items()", lambda _: chat.items()),
            Side("HithertoSession.get_items()", lambda _: session.get_items()),
            Side("SQLAlchemySession.get_items()", lambda _: theirs.get_items()),
            Side("context, policy none", lambda _: chat.context(incoming, budget=BUDGET, policy="none")),
        ]
        repetitions, warm_up = ground.size(200, quick=5), ground.size(20, quick=2)
        *ours, sqlalchemy, context = await in_turns(sides, repetitions=repetitions, warm_up=warm_up)
        await engine.dispose()
        last = await chat.context(incoming, budget=BUDGET, policy="none")
        note = f"the context, budget {BUDGET:,}, carried {carried(last)}."
    figures = [
        *(ratio(one, sqlalchemy, bar=_SLOWER) for one in ours),
        *(_spread(one, bar=_SPREAD) for one in ours),
        _spread(sqlalchemy),
        ratio(ours[0], context),
    ]
    return Findings(figures, [note])


def _items(count: int) -> list[TResponseInputItem]:
    """Rounds as the Agents SDK writes them: the user's message, and the answer as the API gave it."""
    random = Random(4)
    found: list[dict[str, Any]] = []
    for number in range(count // 2):
        answer: dict[str, Any] = {"type": "output_text", "text": text(random, _TEXT), "annotations": [], "logprobs": []}
        found.append({"role": "user", "content": text(random, _TEXT)})
        found.append(
            {
                "id": f"msg_{number}",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [answer],
            }
        )
    return cast("list[TResponseInputItem]", found)


def _spread(one: Measured, *, bar: Bar | None = None) -> Figure:
    return Figure(what=f"{one.label}, p95 ÷ median", value=one.times.p95 / one.times.median, bar=bar)
