"""Four writers and two workers on the same conversations: what came of it, from the tables, and how fast it was."""

from __future__ import annotations

import asyncio
import time
from typing import LiteralString

import hitherto
from benchmarks.fleet import Hand, hands, load_average, value
from benchmarks.ground import Ground
from benchmarks.hands import TEXT, AtOnce
from benchmarks.measure import Times
from benchmarks.report import Bar, Figure, Findings
from hitherto.tokens import CANONICAL

_NONE = Bar(limit=0)
_ROUNDS = 10
_WRITERS, _WORKERS = 4, 2
_PATIENCE = 600.0
"""Seconds after the last append in which the last digest is to be made."""

_CHECKS: dict[str, LiteralString] = {
    "conversations whose log has a gap, a duplicate, or another length": """
        select count(*) from hitherto.conversation c
        left join (select tenant, conversation, count(*) as n, min(seq) as first, max(seq) as last
                   from hitherto.message group by tenant, conversation) m
          on m.tenant = c.tenant and m.conversation = c.ref
        where (m.n, m.first, m.last, c.next_seq) is distinct from (%(messages)s, 0, %(messages)s - 1, %(messages)s)
    """,
    "messages whose running sum is not that of those before": """
        select count(*) from (
            select sum_tokens, sum(tokens) over (partition by tenant, conversation order by seq) as sum
            from hitherto.message) m
        where m.sum_tokens <> m.sum
    """,
    "conversations missing, or with a revision more or less than appends and digests": """
        select abs(%(conversations)s - count(*)) + count(*) filter (where c.rev <> %(rounds)s + d.n)
        from hitherto.conversation c
        cross join lateral (select count(*) as n from hitherto.digest d
                            where d.tenant = c.tenant and d.conversation = c.ref and d.status = 'completed') d
    """,
    "digests not on the one before, or with a gap or an overlap to it": """
        select count(*) from (
            select base_id, start_seq, end_seq, lag(id) over w as before,
                   coalesce(lag(end_seq) over w, -1) as end_before
            from hitherto.digest window w as (partition by tenant, conversation order by id)) d
        where d.base_id is distinct from d.before or d.start_seq > d.end_before + 1 or d.end_seq <= d.end_before
    """,
    "digests twice for one range": """
        select count(*) - count(distinct (tenant, conversation, stage, start_seq, end_seq)) from hitherto.digest
    """,
    "digests not completed, or not at the first try": """
        select count(*) from hitherto.digest where status <> 'completed' or attempt <> 1 or tries <> 1
    """,
    "digests not in the ledger once": """
        select count(*) from hitherto.digest d
        where 1 <> (select count(*) from hitherto.model_call c where c.tenant = d.tenant and c.digest = d.id)
    """,
}


async def run(ground: Ground) -> Findings:
    """Ten rounds of each conversation, `sliding_window`, a model that answers at once."""
    conversations = ground.size(10_000 if ground.full else 1_000, quick=40)
    share = conversations // _WRITERS
    busy = load_average()
    async with ground.database() as url, ground.admin(url) as admin:
        roles: list[tuple[object, ...]] = [("work", url)] * _WORKERS
        roles += [("write", url, number * share, (number + 1) * share, _ROUNDS) for number in range(_WRITERS)]
        async with (
            hands(*roles) as every,
            hitherto.open(url, model=AtOnce(), encoding=CANONICAL, worker=False) as memory,
        ):
            writers = every[_WORKERS:]
            begun = time.perf_counter()
            for hand in writers:
                hand.go()
            said = await asyncio.gather(*map(Hand.said, writers))
            writing = time.perf_counter() - begun
            made = await value(admin, "select count(*) from hitherto.digest where status = 'completed'")
            lag = load = await memory.backlog()
            begun = time.perf_counter()
            while load.due + load.claimed + load.put_off:
                if time.perf_counter() - begun > _PATIENCE:
                    raise RuntimeError(f"{load} digests are left {_PATIENCE:.0f} s after the last append")
                await asyncio.sleep(0.1)
                load = await memory.backlog()
            draining = time.perf_counter() - begun
        asked = {"conversations": conversations, "rounds": _ROUNDS, "messages": 2 * _ROUNDS}
        checked = {what: await value(admin, query, asked) for what, query in _CHECKS.items()}
        digests = await value(admin, "select count(*) from hitherto.digest")
        size = await value(admin, "select pg_database_size(current_database())")
    times = Times(tuple(seconds for one in said for seconds in one["seconds"]))
    appends = len(times.seconds)
    return Findings(
        [
            *(Figure(what=what, value=found, bar=_NONE) for what, found in checked.items()),
            Figure(what="appends", value=appends / writing, unit="/s"),
            Figure(what="append, median", value=times.median * 1_000, unit="ms"),
            Figure(what="append, p95", value=times.p95 * 1_000, unit="ms"),
            Figure(what="digests while appends went on", value=made / writing, unit="/s"),
            Figure(what="digests in all", value=digests / (writing + draining), unit="/s"),
            Figure(what="digests due at the end of the appends", value=lag.due + lag.claimed),
            Figure(what="age of the oldest of them", value=lag.lag_seconds, unit="s"),
            Figure(what="from there to none due", value=draining, unit="s"),
            Figure(what="database", value=size / 1e6, unit="MB"),
        ],
        [
            f"{conversations:,} conversations of {_ROUNDS} rounds, messages of {TEXT} tokens, {appends:,} appends by "
            f"{_WRITERS} processes, one at a time in each, in {writing:.0f} s; {digests:,} digests by {_WORKERS} "
            f"others, with PostgreSQL on the same cores. {busy}. The checks are made by SQL from the tables"
            + ("." if ground.full or ground.quick else "; all 10,000 conversations with --full."),
        ],
    )
