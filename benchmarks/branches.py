"""What a fork costs beside one of a short conversation, what it adds to an append and a context, and a transcript."""

from __future__ import annotations

from random import Random

from psycopg import AsyncConnection

from benchmarks.ground import BUDGET, Ground, memory_on, turn
from benchmarks.measure import Side, in_turns
from benchmarks.report import Bar, Findings, ratio
from hitherto import Conversation, Scope, user

_FORK = Bar(limit=1.5)
_ALIKE = Bar(limit=1.1)
_TRANSCRIPT = Bar(limit=3)
_TEXT = 36
_SHORT = 10
_PAGE = 50


async def run(ground: Ground) -> Findings:
    """A fork of a long conversation ÷ one of a short one; an append and a context in the fork ÷ the same where it was
    forked; and a transcript ÷ a round trip of bare psycopg."""
    random, length = Random(1), ground.size(100_000, quick=200)
    warm_up, repetitions = ground.size(20, quick=2), ground.size(200, quick=4)
    async with ground.database() as url, memory_on(url, worker=False) as memory:

        async def filled(name: str, messages: int) -> Conversation:
            chat = memory.conversation(name, scope=Scope(tenant="bench", user=name, agent="bench"))
            for start in range(0, messages, 1_000):
                pairs = [turn(random, _TEXT) for _ in range(min(messages - start, 1_000) // 2)]
                await chat.append(*(message for pair in pairs for message in pair))
            return chat

        long, short = await filled("long", length), await filled("short", _SHORT)
        fork = await long.fork()
        await ground.settle(url)
        forks = await in_turns(
            [Side(f"fork of {length:,}", lambda _: long.fork()), Side(f"fork of {_SHORT}", lambda _: short.fork())],
            repetitions=ground.size(5, quick=2),
            warm_up=1,
        )
        appends = await in_turns(
            [
                Side("append to a fork", lambda n: fork.append(user(f"And {n}?"))),
                Side("append to its source", lambda n: long.append(user(f"And {n}?"))),
            ],
            repetitions=repetitions,
            warm_up=warm_up,
        )
        contexts = await in_turns(
            [
                Side("context of a fork", lambda _: fork.context(budget=BUDGET, recall=False)),
                Side("context of its source", lambda _: long.context(budget=BUDGET, recall=False)),
            ],
            repetitions=repetitions,
            warm_up=warm_up,
        )
        async with await AsyncConnection.connect(url, autocommit=True) as connection:

            async def bare(_: int) -> None:
                await (await connection.execute("select 1", prepare=True)).fetchall()

            transcripts = await in_turns(
                [
                    Side(f"transcript of {_PAGE} among {length:,}", lambda _: long.transcript(limit=_PAGE)),
                    Side("a bare round trip", bare),
                ],
                repetitions=repetitions,
                warm_up=warm_up,
            )
    return Findings(
        [
            ratio(*forks, bar=_FORK),
            ratio(*appends, bar=_ALIKE),
            ratio(*contexts, bar=_ALIKE),
            ratio(*transcripts, bar=_TRANSCRIPT),
        ],
        [f"Messages of {_TEXT} tokens, contexts of {BUDGET:,}. A fork's messages are copies."],
    )
