"""What a page of the inspector adds to the verbs under it, in a long conversation and a large scope."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from random import Random

import httpx

import hitherto
from benchmarks.ground import Ground, turn
from benchmarks.measure import Side, in_turns
from benchmarks.report import Bar, Figure, Findings, ratio
from hitherto import Conversation, Memory, Scope, trim, user
from hitherto.http.server.callers import Limits
from hitherto.tokens import CANONICAL
from hitherto.web.app import create_inspector
from hitherto.web.templating import ROOT

_SLOWEST, _ADDED = Bar(limit=150), Bar(limit=2)
_SCOPE = Scope(tenant="tenant", user="user", agent="bench")
_BUDGET, _TEXT, _BATCH = 8_000, 30, 500
_QUESTION = "What did we say about the winter market?"

Verbs = Callable[[], Awaitable[object]]


async def run(ground: Ground) -> Findings:
    """The time of each page in the server, and that ÷ the time of the verbs whose answers it shows."""
    messages, others = ground.size(100_000, quick=200), ground.size(10_000, quick=20)
    known = ground.size(1_000, quick=20)
    repetitions, warm_up = ground.size(100, quick=3), ground.size(10, quick=1)
    async with (
        ground.database() as url,
        hitherto.open(url, model="extractive", encoding=CANONICAL, keep_contexts=5) as memory,
    ):
        chat = await _filled(memory, messages, others, known)
        await ground.settle(url)
        gc.collect()
        gc.freeze()  # as the service does
        limits = Limits(requests=None, size=2**24, seconds=60)
        transport = httpx.ASGITransport(create_inspector(memory, False, limits))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as browser:

            async def page(path: str) -> None:
                answer = await browser.get(f"{ROOT}/{_SCOPE.tenant}/{path}")
                answer.raise_for_status()

            figures = list[Figure]()
            for name, path, verbs in await _pages(memory, chat):
                shown, under = await in_turns(
                    [
                        Side(f"page: {name}", lambda _, path=path: page(path)),
                        Side("its verbs", lambda _, verbs=verbs: verbs()),
                    ],
                    repetitions=repetitions,
                    warm_up=warm_up,
                )
                slowest = Figure(what=f"{name}, p95", value=shown.times.p95 * 1e3, unit="ms", bar=_SLOWEST)
                figures += [slowest, ratio(shown, under, bar=_ADDED)]
        gc.unfreeze()
    return Findings(
        figures,
        [
            f"A conversation of {messages:,} messages, {others:,} conversations and {known:,} facts in its scope; "
            f"{repetitions} of each page. The whole request in the server's process, without a socket."
        ],
    )


async def _filled(memory: Memory, messages: int, others: int, known: int) -> Conversation:
    random = Random(7)
    chat = memory.conversation("long", scope=_SCOPE)
    for start in range(0, messages, _BATCH):
        turns = [turn(random, _TEXT) for _ in range(min(_BATCH, messages - start) // 2)]
        await chat.append(*(one for pair in turns for one in pair))
    await memory.wait_for_digests()
    await chat.context(_QUESTION, budget=_BUDGET)
    await chat.append(user(_QUESTION))
    await chat.context(_QUESTION, budget=_BUDGET)
    facts = memory.facts(_SCOPE)
    turns = [turn(random, _TEXT) for _ in range(others)]
    for start in range(0, others, 20):
        numbers = range(start, min(start + 20, others))
        await asyncio.gather(
            *(memory.conversation(f"c{at}", scope=_SCOPE).append(*turns[at]) for at in numbers),
            *(facts.add(f"{turns[at][0].text} {at}", category="fact") for at in numbers if at < known),
        )
    await memory.wait_for_index()
    return chat


async def _pages(memory: Memory, chat: Conversation) -> list[tuple[str, str, Verbs]]:
    """Each page's name, its path, and the verbs whose answers it shows."""
    last = (await chat.contexts(limit=1))[0]
    head, facts = await chat.head(), memory.facts(_SCOPE)
    assert head is not None
    rev, today = head.rev, datetime.now(UTC).date()
    since = today - timedelta(days=29)
    at, person = f"conversations/{_SCOPE.user}/{_SCOPE.agent}/long", f"people/{_SCOPE.user}/{_SCOPE.agent}"
    wide = trim(max_turns=50, keep_turns=20)

    async def log() -> None:
        await chat.head()
        await chat.info()
        await chat.contexts(limit=1)
        await chat.digests(limit=1)
        await chat.messages(start=head.next_seq - 50)

    async def context() -> None:
        listed = await chat.contexts(limit=7)
        await chat.rebuild(listed[0].manifest)
        await chat.context(_QUESTION, budget=_BUDGET, at=rev)

    async def policies() -> None:
        await context()
        await chat.context(_QUESTION, budget=_BUDGET, at=rev, policy=wide)

    async def kept() -> None:
        listed = await chat.contexts(limit=7)
        for one in listed[:2]:
            await chat.rebuild(one.manifest)

    async def costs() -> None:
        await memory.costs("day", tenant=_SCOPE.tenant, since=since, until=today)
        await memory.costs("model", tenant=_SCOPE.tenant, since=since, until=today)

    asked = f"question={_QUESTION}&budget={_BUDGET}"
    return [
        ("conversations", "conversations", lambda: memory.conversations(tenant=_SCOPE.tenant, limit=50)),
        ("log", at, log),
        ("context", f"{at}/context?{asked}", context),
        ("two policies", f"{at}/context?{asked}&other=trim:max_turns=50,keep_turns=20", policies),
        ("kept context", f"{at}/context?kept={last.id}", kept),
        ("digests", f"{at}/digests", lambda: chat.digests(limit=100)),
        (
            "recall",
            f"recall?user={_SCOPE.user}&agent={_SCOPE.agent}&question={_QUESTION}",
            lambda: memory.recall(_QUESTION, scope=_SCOPE, limit=15),
        ),
        ("facts", person, lambda: facts.list(limit=50)),
        ("costs", "costs", costs),
    ]
