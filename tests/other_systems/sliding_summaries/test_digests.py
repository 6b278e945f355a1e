"""The first seed's sliding window, with its own numbers and wording."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import psycopg
import pytest

import hitherto
from hitherto import sliding_window
from hitherto.core.digests.digest import Claim, DigestJob, Status
from hitherto.core.log.head import Head
from hitherto.core.log.message import Sums
from hitherto.core.log.probe import DialogueAt, Mark, TurnAt
from hitherto.core.policy.plan import Means, plan
from hitherto.core.policy.span import Fate, Reason
from hitherto.errors import DatabaseUnavailable
from hitherto.other_systems.views import create_views
from hitherto.providers.scripted import Gate, Scripted, items
from hitherto.store.store import Store
from tests.acceptance.dialogue import Opened, asks, bodies, each, opener, round_, says_each
from tests.conftest import SCOPE
from tests.patience import PATIENCE


@pytest.fixture
def opened(store: Store) -> Opened:
    return opener(store, sliding_window())


def head_at(last_seq: int) -> Head:
    """A plain chat whose last message is an assistant's, with seq `last_seq`."""
    sums = Sums(tokens=10 * (last_seq + 1), turns=(last_seq + 1) // 2, dialogue=last_seq + 1)
    return Head(
        ref=1,
        rev=1,
        next_seq=last_seq + 1,
        sums=sums,
        view_start=0,
        view_sums=Sums(),
        closed=True,
        now=datetime.now(UTC),
        clock=datetime.now(UTC),
    )


def planned_range(last_seq: int, window: int = 14, after_seq: int = 5) -> tuple[int, int] | None:
    planning = plan(sliding_window(window, after_seq), head_at(last_seq), Means(window=16_000, budget=16_000))
    try:
        probe = next(planning)
        while True:
            assert isinstance(probe, DialogueAt | TurnAt)
            seq = probe.n - 1 if isinstance(probe, DialogueAt) else 2 * (probe.n - 1)
            sums = Sums(tokens=10 * (seq + 1), turns=seq // 2 + 1, dialogue=seq + 1)
            probe = planning.send(Mark(seq, sums, 10, seq % 2 == 0))
    except StopIteration as end:
        firings = end.value.firings
        return (firings[0].start, firings[0].end) if firings else None


@pytest.mark.parametrize(("last_seq", "expected"), [(5, (0, 5)), (13, (0, 13)), (15, (2, 15)), (19, (6, 19))])
def test_the_seeds_examples(last_seq: int, expected: tuple[int, int]) -> None:
    assert planned_range(last_seq) == expected


@pytest.mark.parametrize("window", [4, 5, 13, 14, 15, 40])
@pytest.mark.parametrize("after_seq", [0, 5, 9])
def test_every_range_is_the_seeds_formula(window: int, after_seq: int) -> None:
    for last_seq in range(1, 80, 2):
        start = max(0, last_seq - window + 1)
        start += start % 2
        expected = (start, last_seq) if last_seq >= after_seq else None
        assert planned_range(last_seq, window, after_seq) == expected


async def test_rounds_3_to_8(opened: Opened) -> None:
    first = Gate(says_each)
    async with opened(Scripted([first], then=says_each)) as (memory, chat):
        for number in (1, 2):
            await round_(chat, number)
        assert await chat.digests() == []

        # Round 3 ends (seq 5 saved): a 'processing' row for (0, 5) without a base.
        await round_(chat, 3)
        await first.reached()
        (one,) = await chat.digests()
        assert (one.start, one.end, one.base, one.status) == (0, 5, None, Status.PROCESSING)

        # Round 4 starts: nothing completed yet, so the raw messages 0-5 and the question.
        context = await chat.context(asks(4), budget=4_000)
        expected = [f"{kind} {n}" for n in (1, 2, 3) for kind in ("question", "answer")]
        assert bodies(context) == [*expected, "question 4"]

        # Round 4 ends (seq 7): the first is still in progress, so no new task.
        await round_(chat, 4)
        assert len(await chat.digests()) == 1

        # Round 5 starts: the digest is there; the gap is seq 6 and 7, the prefix on the first user message.
        first.open()
        await memory.wait_for_digests()
        context = await chat.context(asks(5), budget=4_000)
        text = "\n".join(f"<{seq}>" for seq in range(6))
        assert bodies(context) == [f"[Previous context: {text}]\n\nquestion 4", "answer 4", "question 5"]

        # Round 5 ends (seq 9): (0, 9), incremental from the first: only seq 6 to 9 are new to the model.
        await round_(chat, 5)
        await memory.wait_for_digests()
        two = (await chat.digests())[-1]
        assert (two.start, two.end, two.base, two.status) == (0, 9, one.id, Status.COMPLETED)

        for number in (6, 7, 8):
            await round_(chat, number)
            await memory.wait_for_digests()

        # Round 8 ends (seq 15): the window slides; what rests on seq 0 and 1 is gone.
        last = (await chat.digests())[-1]
        assert (last.start, last.end) == (2, 15)
        assert last.text == "\n".join(f"<{seq}>" for seq in range(2, 16))


async def test_content_before_the_window_leaves_though_the_model_keeps_it(opened: Opened) -> None:
    """The model never drops anything; our code does."""
    async with opened(Scripted(then=says_each)) as (memory, chat):
        for number in range(1, 16):
            await round_(chat, number)
            await memory.wait_for_digests()
        last = (await chat.digests())[-1]
        assert (last.start, last.end) == (16, 29)
        assert all(item.first >= 16 for item in last.items)
        context = await chat.context(asks(16), budget=4_000)
        assert "<15>" not in bodies(context)[0]
        assert [(span.start, span.end, span.fate, span.reason) for span in context.manifest.fates] == [
            (0, 15, Fate.DROPPED, Reason.WINDOW),
            (16, 29, Fate.DIGESTED, Reason.SUMMARIZED),
        ]


async def test_log_lines(opened: Opened, caplog: pytest.LogCaptureFixture) -> None:
    gate = Gate(says_each)
    with caplog.at_level(logging.DEBUG, "hitherto"):
        async with opened(Scripted([gate], then=says_each)) as (memory, chat):
            for number in (1, 2, 3):
                await round_(chat, number)
            await gate.reached()
            await round_(chat, 4)
            gate.open()
            await memory.wait_for_digests()
            for number in (5, 6, 7, 8):
                await round_(chat, number)
                await memory.wait_for_digests()
            first = (await chat.digests())[0]
    lines = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert any(
        level == "INFO" and line.startswith("Summarized messages 0-5 for conv_123 in ") and line.endswith("ms")
        for level, line in lines
    )
    assert ("INFO", "Sliding window: dropping seq 0-1 for conv_123") in lines
    assert ("DEBUG", "Summarization already in progress for conv_123") in lines
    assert ("DEBUG", f"Memory {first.id} status updated to completed") in lines


async def test_the_seeds_queries_see_it(database: str) -> None:
    """The columns that the seed's own SQL looks at."""
    async with hitherto.open(database, model=Scripted(then=says_each)) as memory:
        chat = memory.conversation("conv_123", scope=SCOPE, policy=sliding_window())
        for number in range(1, 11):
            await round_(chat, number)
            await memory.wait_for_digests()
    await create_views(database)
    async with await psycopg.AsyncConnection[tuple[object, ...]].connect(database) as connection:
        await connection.execute("set search_path to other_systems")
        cursor = await connection.execute(
            "SELECT memory_id, start_sequence, end_sequence, base_memory_id, status FROM memory "
            "WHERE conversation_id = 'conv_123' ORDER BY memory_id"
        )
        rows = await cursor.fetchall()
    assert [(row[1], row[2], row[4]) for row in rows][-1] == (6, 19, "completed")
    assert [row[3] for row in rows] == [None, *(row[0] for row in rows[:-1])]


class CutOff:
    """A store that lets nobody renew claims or look for due digests any more: the worker behind it counts as dead,
    but does not know it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def prolong(self, claims: Sequence[Claim], *, lease: timedelta) -> frozenset[Claim]:
        raise DatabaseUnavailable("cut off")

    async def due_digests(self, **_: Any) -> list[DigestJob]:
        raise DatabaseUnavailable("cut off")


async def test_a_digest_whose_process_died_is_taken_over(store: Store) -> None:
    policy, hung = sliding_window(), Gate(lambda prompt: items("<too late>"))
    lost = opener(cast(Store, CutOff(store)), policy)(Scripted([hung]), lease_timeout="PT0.5S", grace=0)
    patient = opener(store, policy)(Scripted(then=says_each), lease_timeout=0.5, digest_max_attempts=2)
    async with lost as (late, its_chat):
        for number in (1, 2, 3):
            await round_(its_chat, number)
        await hung.reached()
        await round_(its_chat, 4)
        assert [row.status for row in await its_chat.digests()] == [Status.PROCESSING]
        async with patient as (memory, chat):
            async with asyncio.timeout(PATIENCE):
                while (await chat.digests())[0].status is Status.PROCESSING:  # noqa: ASYNC110 (another one's work)
                    await asyncio.sleep(0.02)
            (taken_over,) = await chat.digests()
            assert (taken_over.status, taken_over.attempt, taken_over.tries) == (Status.COMPLETED, 2, 2)
            assert taken_over.text == each(0, 5)
            # The first one comes back late: it cannot write, and what it found is dropped.
            hung.open()
            await late.wait_for_digests()
            assert await chat.digests() == [taken_over]
            # The next round goes on from there.
            await round_(chat, 5)
            await memory.wait_for_digests()
            _, following = await chat.digests()
            assert (following.base, following.text) == (taken_over.id, each(0, 9))
