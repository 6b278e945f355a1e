"""What the facts about a subject cost a context, where they are many and not all of them fit."""

from __future__ import annotations

from random import Random
from statistics import quantiles
from typing import Any

import psycopg

from benchmarks.ground import Ground, memory_on, turn
from benchmarks.measure import Side, in_turns
from benchmarks.report import Bar, Figure, Findings, ratio
from hitherto import Memory, Scope, none, user

_MINE = Scope(tenant="tenant", user="ana", agent="bench")
_THEIRS = Scope(tenant="tenant", user="ben", agent="bench")
_SUBJECT = "rosa"
_BUDGET = 16_000
"""Tokens: what a context has that does not say."""
_OTHERS = 50
"""So many other users of the tenant have as many facts of their own."""

_VERBS = ("likes", "dislikes", "plays", "collects", "remembers", "teaches", "visits", "repairs", "owns", "paints")
_WHEN = ("on Sundays", "since 1987", "with her sister", "in the garden", "before breakfast", "every winter")


async def run(ground: Ground) -> Findings:
    """A context with and without the 2,000 facts of its subject, a quarter of them shared by another member."""
    facts, repetitions = ground.size(2_000, quick=100), ground.size(300, quick=5)
    random = Random(6)
    async with ground.database() as url, memory_on(url, worker=False) as memory:
        await memory.configure_subject(tenant="tenant", subject=_SUBJECT, name="Rosa", members=["ana", "ben"])
        words = _words(random)
        await _fill(memory, _MINE, facts * 3 // 4, words, random, share=False)
        await _fill(memory, _THEIRS, facts // 4, words, random, share=True)
        await memory.wait_for_index()
        async with ground.admin(url) as connection:
            await _copied(connection, ground.size(_OTHERS, quick=2))
        await ground.settle(url)
        chat = memory.conversation("chat", scope=_MINE, policy=none(), subject=_SUBJECT)
        await chat.append(*(one for _ in range(10) for one in turn(random, 36)))
        asked = [user(f"What did she say about {' and '.join(random.sample(words, 2))}?") for _ in range(50)]
        sides = [
            Side("context with facts", lambda n: chat.context(asked[n % 50], budget=_BUDGET)),
            Side("context without", lambda n: chat.context(asked[n % 50], budget=_BUDGET, facts=False)),
        ]
        with_facts, without = await in_turns(sides, repetitions=repetitions, warm_up=10)
        shown = (await chat.context(asked[0], budget=_BUDGET)).manifest.facts
    apart = [1_000 * (one - other) for one, other in zip(with_facts.times.seconds, without.times.seconds, strict=True)]
    cut = quantiles(apart, n=20, method="inclusive")
    what = f"what {facts:,} facts add to a context"
    figures = [
        Figure(what=f"{what}, median", value=cut[9], unit="ms"),
        Figure(what=f"{what}, p95", value=cut[18], unit="ms", bar=Bar(limit=3.0)),
        ratio(with_facts, without),
    ]
    chosen = 0 if shown is None else len(shown.shown)
    note = (
        f"pairs of contexts one after the other; {chosen} of the facts fit into the share of a budget of {_BUDGET:,} "
        f"tokens, chosen by words and likeness; {ground.size(_OTHERS, quick=2)} other users have as many."
    )
    return Findings(figures, [note])


def _words(random: Random) -> list[str]:
    syllables = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "ai", "ou", "er")]
    return sorted({"".join(random.choices(syllables, k=random.randint(2, 4))) for _ in range(4_000)})


async def _fill(memory: Memory, scope: Scope, count: int, words: list[str], random: Random, *, share: bool) -> None:
    facts = memory.facts(scope, subject=_SUBJECT)
    for _ in range(count):
        things = " and the ".join(random.sample(words, random.randint(2, 5)))
        said = f"{random.choice(_VERBS).capitalize()} the {things} {random.choice(_WHEN)}"
        added = await facts.add(said, category=random.choice(("hobby", "habit", "preference", "milestone")))
        if share:
            await facts.share(added.id)


async def _copied(connection: psycopg.AsyncConnection[Any], times: int) -> None:
    """Ana's facts once more for other users, who are no members."""
    for number in range(times):
        await connection.execute(_COPY, {"user": f"other-{number}"})


_COPY = """
insert into hitherto.fact (tenant, user_id, agent, subject, category, content, fingerprint, visibility, confidence,
    confirmed, tokens, length, hashes, counts, space, code, indexed)
select tenant, %(user)s, agent, subject, category, content, fingerprint, 'shared', confidence, confirmed, tokens,
    length, hashes, counts, space, code, true
from hitherto.fact where user_id = 'ana' order by id
"""
