"""Whether a context gets dearer as the database fills with other conversations."""

from __future__ import annotations

import time
from dataclasses import dataclass
from random import Random
from typing import Any

import psycopg
from psycopg import sql

from benchmarks.ground import BUDGET, Ground, carried, memory_on, text, turn
from benchmarks.measure import Side, in_turns
from benchmarks.report import Bar, Findings, ratio
from hitherto import Context, Memory, Scope, user

_BAR = Bar(limit=1.3)
_TEXT = 36
_LENGTH = 100
_STRIDE = 1_000
"""What the refs of a conversation's copies are apart; the originals' are smaller."""

_COLUMNS = (
    "select column_name from information_schema.columns"
    " where table_schema = 'hitherto' and table_name = %s and is_generated = 'NEVER'"
)
_COPY = sql.SQL(
    "insert into hitherto.{table} ({names}) select {values} from hitherto.{table}, generate_series(1, {copies}) n "
    "where {reference} < {stride} and {which} order by n"
)


@dataclass(frozen=True, slots=True)
class ConversationCopy:
    """A conversation: the original `number`, or its copy `copy` (0: the original itself) in a scope of its own."""

    number: int
    copy: int = 0

    @property
    def id(self) -> str:
        return f"conversation {self.number}"

    @property
    def scope(self) -> Scope:
        return Scope(tenant=f"tenant {self.copy % 100}", user=f"user {self.copy}", agent="bench")


async def run(ground: Ground) -> Findings:
    """The context of any conversation of a large database ÷ the same in a small one."""
    small, copies = ground.size(10, quick=2), ground.size(999, quick=9)
    large = small * (copies + 1)
    random, incoming = Random(6), user(text(Random(7), 30))
    async with (
        ground.database() as small_url,
        ground.database() as large_url,
        memory_on(small_url) as few,
        memory_on(large_url) as many,
    ):
        for memory in (few, many):
            await _originals(memory, small)
        begun = time.monotonic()
        async with ground.admin(large_url) as admin:
            await _copy(admin, copies)
            filled = time.monotonic() - begun
            size = await (await admin.execute("select pg_database_size(current_database())")).fetchone()
        assert size is not None
        for url in (small_url, large_url):
            await ground.settle(url)

        async def asked(memory: Memory, place: ConversationCopy) -> Context:
            return await memory.conversation(place.id, scope=place.scope).context(
                incoming, budget=BUDGET, policy="none"
            )

        for place in [ConversationCopy(random.randrange(small), random.randint(1, copies)) for _ in range(20)]:
            _check(await asked(many, place), await asked(few, ConversationCopy(place.number)))
        shown = carried(await asked(few, ConversationCopy(0)))

        repetitions, warm_up = ground.size(1_000, quick=10), ground.size(100, quick=3)
        places = [
            ConversationCopy(random.randrange(small), random.randint(0, copies)) for _ in range(warm_up + repetitions)
        ]
        over, under = await in_turns(
            [
                Side(_label(large), lambda n: asked(many, places[n])),
                Side(_label(small), lambda n: asked(few, ConversationCopy(places[n].number))),
            ],
            repetitions=repetitions,
            warm_up=warm_up,
        )
    return Findings(
        [ratio(over, under, bar=_BAR)],
        [
            f"in {large:,} conversations ÷ in {small:,}. The large database was filled by SQL in {filled:.0f} s, to "
            f"{size[0] / 1e6:,.0f} MB, as if all conversations had been held side by side; 20 copies gave the contexts "
            "of their originals, which were appended. A random conversation each time, on both sides with the same "
            f"content, e.g. {shown}.",
        ],
    )


def _label(conversations: int) -> str:
    return f"context among {conversations * _LENGTH:,} messages"


async def _originals(memory: Memory, conversations: int) -> None:
    """Held side by side too: the first turn of all, the second of all …"""
    random = Random(8)
    for _ in range(_LENGTH // 2):
        for number in range(conversations):
            place = ConversationCopy(number)
            await memory.conversation(place.id, scope=place.scope).append(*turn(random, _TEXT))


async def _copy(admin: psycopg.AsyncConnection[Any], copies: int) -> None:
    """Fill the database with copies of its conversations in other scopes: the rows that appends would write."""
    # Copies refer to copies, so there is nothing for the foreign key to find out.
    await admin.execute("set session_replication_role = replica")
    await _copy_rows(admin, "conversation", "ref", sql.SQL("true"), copies)
    for seq in range(0, _LENGTH, 2):
        await _copy_rows(admin, "message", "conversation", sql.SQL("seq in ({}, {})").format(seq, seq + 1), copies)
    await admin.execute(
        "select setval(pg_get_serial_sequence('hitherto.conversation', 'ref'), max(ref)) from hitherto.conversation"
    )


async def _copy_rows(
    admin: psycopg.AsyncConnection[Any], table: str, reference: str, which: sql.Composable, copies: int
) -> None:
    found = await admin.execute(_COLUMNS, [table])
    names: list[str] = [row[0] for row in await found.fetchall()]
    changed = {
        "tenant": sql.SQL("'tenant ' || n % 100"),
        "user_id": sql.SQL("'user ' || n"),
        reference: sql.SQL("{} + n * {}").format(sql.Identifier(reference), _STRIDE),
    }
    await admin.execute(
        _COPY.format(
            table=sql.Identifier(table),
            names=sql.SQL(", ").join(map(sql.Identifier, names)),
            values=sql.SQL(", ").join([changed.get(name) or sql.Identifier(name) for name in names]),
            reference=sql.Identifier(reference),
            stride=_STRIDE,
            which=which,
            copies=copies,
        )
    )


def _check(copy: Context, original: Context) -> None:
    """Raises RuntimeError where the fill is not what appends write."""
    for part in ("rev", "sections", "fates", "sha256"):
        if getattr(copy.manifest, part) != getattr(original.manifest, part):
            raise RuntimeError(f"a conversation filled by SQL differs from the appended one in its manifest's {part}")
