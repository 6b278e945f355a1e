"""What is saved by not reading the whole history."""

from __future__ import annotations

from random import Random

from benchmarks.ground import BUDGET, Ground, carried, memory_on, text, turn
from benchmarks.measure import Side, in_turns
from benchmarks.report import Bar, Findings, ratio
from hitherto import Scope, user

_BAR = Bar(limit=5, least=True)
_SCOPE = Scope(tenant="tenant", user="user", agent="bench")
_TEXT = 36


async def run(ground: Ground) -> Findings:
    """Reading all messages ÷ the context of the same conversation."""
    messages = ground.size(1_000, quick=100)
    random, incoming = Random(4), user(text(Random(5), 30))
    async with ground.database() as url, memory_on(url) as memory:
        chat = memory.conversation("history", scope=_SCOPE)
        for _ in range(messages // 2):
            await chat.append(*turn(random, _TEXT))
        await ground.settle(url)
        whole, context = await in_turns(
            [
                Side(f"messages(), all {messages:,}", lambda _: chat.messages()),
                Side("context, policy none", lambda _: chat.context(incoming, budget=BUDGET)),
            ],
            repetitions=ground.size(200, quick=5),
            warm_up=ground.size(20, quick=2),
        )
        note = f"the context, budget {BUDGET:,}, carried {carried(await chat.context(incoming, budget=BUDGET))}."
    return Findings([ratio(whole, context, bar=_BAR)], [note])
