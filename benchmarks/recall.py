"""Whether a search stays quick in a large scope of a large database, and what its index takes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import psutil
import psycopg

from benchmarks.ground import Ground, memory_on
from benchmarks.measure import Times
from benchmarks.report import Bar, Figure, Findings
from hitherto import Memory, Message, Scope, user

_LARGE = Scope(tenant="tenant", user="large", agent="bench")
_SMALL = Scope(tenant="tenant", user="small", agent="bench")
_CONVERSATIONS = 10
_BATCH = 500
_OTHERS = 9
"""So many other users' scopes are copies of the large one."""

_SHARED = Path(__file__).parent.parent.parent / "shared" / "data" / "locomo" / "locomo10.json"
_TABLES = (
    "search_entry",
    "search_segment",
    "search_posting",
    "search_vector",
    "search_codes",
    "search_scope",
    "search_filling",
)


async def run(ground: Ground) -> Findings:
    """Searches in a scope of 100,000 messages among 1,000,000 in the database, and in one of 1,000."""
    large, small = ground.size(100_000, quick=300), ground.size(1_000, quick=100)
    questions = ground.size(200, quick=5)
    findings = Findings()
    async with ground.database() as url, memory_on(url, worker=False) as memory:
        words = _vocabulary(Random(5))
        asked: dict[str, list[str]] = {}
        loading = time.perf_counter()
        for scope, messages in ((_SMALL, small), (_LARGE, large)):
            asked[scope.user] = await _filled(memory, scope, messages, words, questions)
        appended = time.perf_counter() - loading
        begun = time.perf_counter()
        await memory.wait_for_index()
        seconds = time.perf_counter() - begun
        await ground.settle(url)
        async with ground.admin(url) as connection:
            size = await _size(connection) / (large + small)
            await _copied(connection, ground.size(_OTHERS, quick=1))
        await ground.settle(url)
        for scope, messages, bar in ((_LARGE, large, 30.0), (_SMALL, small, 5.0)):
            times = await _searched(memory, scope, asked[scope.user])
            total = large * (1 + ground.size(_OTHERS, quick=1)) + small
            what = f"recall in a scope of {messages:,} messages among {total:,}"
            findings.figures.extend(
                [
                    Figure(what=f"{what}, median", value=times.median * 1_000, unit="ms"),
                    Figure(what=f"{what}, p95", value=times.p95 * 1_000, unit="ms", bar=Bar(limit=bar)),
                ]
            )
        findings.figures.extend(
            [
                Figure(what="index a message, vectors included", value=size, unit="bytes"),
                Figure(what="messages indexed and embedded a second", value=(large + small) / seconds, unit="/s"),
                await _memory(memory, ground, asked[_LARGE.user]),
            ]
        )
        findings.notes.append(
            f"{questions} questions of five words a scope, each from one message; made-up words, as frequent as words."
            f" Appended in {appended:.0f} s, indexed in {seconds:.0f} s; the other scopes are copies of the large one."
        )
    return findings


def _vocabulary(random: Random) -> list[str]:
    syllables = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "ai", "ou", "er")]
    return sorted({"".join(random.choices(syllables, k=random.randint(2, 4))) for _ in range(40_000)})


async def _filled(memory: Memory, scope: Scope, messages: int, words: Sequence[str], questions: int) -> list[str]:
    """Fill a scope, and return questions that one of its messages answers."""
    random = Random(f"{scope.user}")
    weights = [1 / (rank + 3) for rank in range(len(words))]
    asked: list[str] = []
    for number in range(_CONVERSATIONS):
        chat = memory.conversation(f"c-{number}", scope=scope)
        left = messages // _CONVERSATIONS
        while left:
            batch: list[Message] = []
            for _ in range(min(_BATCH, left)):
                said = random.choices(words, weights, k=random.randint(5, 35))
                batch.append(user(" ".join(said)))
            await chat.append(*batch)
            left -= len(batch)
            asked += [" ".join(random.sample(one.text.split(), 5)) for one in batch[: 2 + questions // 20]]
    random.shuffle(asked)
    return asked[:questions]


async def _searched(memory: Memory, scope: Scope, questions: Sequence[str]) -> Times:
    for question in questions[:10]:
        await memory.recall(question, scope=scope)
    taken: list[float] = []
    for question in questions:
        begun = time.perf_counter()
        await memory.recall(question, scope=scope)
        taken.append(time.perf_counter() - begun)
    return Times(tuple(taken))


async def _memory(memory: Memory, ground: Ground, questions: Sequence[str]) -> Figure:
    """What the process has grown by when it has searched every scope once more."""
    process = psutil.Process()
    before = process.memory_info().rss
    for number in range(ground.size(_OTHERS, quick=1)):
        scope = Scope(tenant="tenant", user=f"large-{number}", agent="bench")
        for question in questions[:3]:
            await memory.recall(question, scope=scope)
    grown = process.memory_info().rss - before
    return Figure(what="memory after searching the other scopes as well", value=grown / 2**20, unit="MiB")


async def _size(connection: psycopg.AsyncConnection[Any]) -> float:
    row = await (
        await connection.execute(
            "select sum(pg_total_relation_size(('hitherto.' || name)::regclass)) from unnest(%s::text[]) as t (name)",
            [list(_TABLES)],
        )
    ).fetchone()
    assert row is not None
    return float(row[0])


async def _copied(connection: psycopg.AsyncConnection[Any], times: int) -> None:
    """The large scope once more for other users: conversations, messages and the index, row by row."""
    statements = _COPY.split(";\n")
    for number in range(times):
        for statement in filter(str.strip, statements):
            await connection.execute(statement.replace("NUMBER", str(number + 1)).encode())


_COPY = """
insert into hitherto.conversation (tenant, ref, user_id, agent, id, rev, next_seq, tokens, turns, dialogue, indexed_seq)
overriding system value
select tenant, ref + 1000000 * NUMBER, 'large-' || (NUMBER - 1), agent, id, rev, next_seq, tokens, turns, dialogue,
    indexed_seq
from hitherto.conversation where user_id = 'large';
insert into hitherto.message (tenant, conversation, seq, wire, role, kind, text, payload, call_ids, result_ids,
    tool_names,
    metadata, tokens, sum_tokens, sum_turns, sum_dialogue, sum_results, rev, created_at)
select m.tenant, m.conversation + 1000000 * NUMBER, seq, wire, role, kind, text, payload, call_ids, result_ids,
    tool_names,
    m.metadata, m.tokens, m.sum_tokens, m.sum_turns, m.sum_dialogue, m.sum_results, m.rev, m.created_at
from hitherto.message m join hitherto.conversation c on c.tenant = m.tenant and c.ref = m.conversation and c.user_id
    = 'large';
insert into hitherto.search_scope (tenant, ref, user_id, agent, next_no, packed)
overriding system value
select tenant, ref + 1000000 * NUMBER, 'large-' || (NUMBER - 1), agent, next_no, packed
from hitherto.search_scope where user_id = 'large';
insert into hitherto.search_filling (tenant, scope, space, embedded, coded, behind)
select f.tenant, f.scope + 1000000 * NUMBER, space, embedded, coded, behind
from hitherto.search_filling f join hitherto.search_scope s on s.ref = f.scope and s.user_id = 'large';
insert into hitherto.search_entry (tenant, scope, no, kind, origin, place, start_char, end_char, length, said_at,
    author, hashes, counts)
select e.tenant, e.scope + 1000000 * NUMBER, no, kind, origin + 1000000 * NUMBER, place, start_char, end_char, length,
    said_at, author, hashes, counts
from hitherto.search_entry e join hitherto.search_scope s on s.ref = e.scope and s.user_id = 'large';
insert into hitherto.search_segment (tenant, scope, segment, stale, lengths, kinds, origins, places, times)
select e.tenant, e.scope + 1000000 * NUMBER, segment, e.stale, lengths, kinds, origins, places, times
from hitherto.search_segment e join hitherto.search_scope s on s.ref = e.scope and s.user_id = 'large';
insert into hitherto.search_posting (tenant, scope, term, segment, offsets, counts)
select e.tenant, e.scope + 1000000 * NUMBER, term, segment, offsets, counts
from hitherto.search_posting e join hitherto.search_scope s on s.ref = e.scope and s.user_id = 'large';
insert into hitherto.search_vector (tenant, scope, space, no, code, vector)
select e.tenant, e.scope + 1000000 * NUMBER, space, no, code, vector
from hitherto.search_vector e join hitherto.search_scope s on s.ref = e.scope and s.user_id = 'large';
insert into hitherto.search_codes (tenant, scope, space, segment, codes)
select e.tenant, e.scope + 1000000 * NUMBER, space, segment, codes
from hitherto.search_codes e join hitherto.search_scope s on s.ref = e.scope and s.user_id = 'large';
"""
