"""The first seed's SQL for looking at the system, to the letter, on what a real conversation leaves behind."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import psycopg
import pytest

import hitherto
from hitherto import sliding_window
from hitherto.other_systems.views import create_views
from hitherto.providers.scripted import Gate, Scripted
from tests.acceptance.dialogue import round_, rounds, says_each
from tests.conftest import SCOPE, SHARED

SEED = SHARED / "seeds" / "000_149067916907d15a.txt"


@pytest.fixture
def block() -> str:
    """The block of SQL in the seed's section "Observability": four queries."""
    if not SEED.exists():
        pytest.skip("needs ../shared/seeds beside the project")
    _, _, section = SEED.read_text(encoding="utf-8").partition("\n## Observability\n")
    found = re.search(r"^```sql\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


async def answers(database: str, block: str) -> list[list[dict[str, Any]]]:
    """What each query of `block` gives, which is sent as it stands."""
    async with await psycopg.AsyncConnection[Any].connect(
        database, autocommit=True, options="-c search_path=other_systems"
    ) as connection:
        cursor = await connection.execute(block.encode())
        found: list[list[dict[str, Any]]] = []
        while True:
            names = [column.name for column in cursor.description or ()]
            found.append([dict(zip(names, row, strict=True)) for row in await cursor.fetchall()])
            if not cursor.nextset():
                return found


async def test_a_conversation_with_a_digest_that_hangs(database: str, block: str) -> None:
    hangs = Gate(says_each)
    model = Scripted([says_each] * 8 + [hangs], then=says_each)
    async with hitherto.open(database, model=model) as memory:
        chat = memory.conversation("conv_123", scope=SCOPE, policy=sliding_window())
        await rounds(memory, chat, range(1, 11))
        await round_(chat, 11)
        await hangs.reached()

        await create_views(database)
        history, stuck, progression, (average,) = await answers(database, block)

        # The chain of versions, latest first: each built on the one before, and the last one not made yet.
        ranges = [(0, 5), (0, 7), (0, 9), (0, 11), (0, 13), (2, 15), (4, 17), (6, 19)]
        assert [(row["start_sequence"], row["end_sequence"]) for row in history] == [(8, 21), *reversed(ranges)]
        ids = [row["memory_id"] for row in history]
        assert ids == sorted(ids, reverse=True)
        assert [row["base_memory_id"] for row in history] == [*ids[1:], None]
        assert [row["base_end_seq"] for row in history] == [19, 17, 15, 13, 11, 9, 7, 5, None]
        assert [row["status"] for row in history] == ["processing"] + ["completed"] * 8
        assert history[0]["memory_text"] == ""
        assert history[1]["memory_text"] == "\n".join(f"<{seq}>" for seq in range(6, 20))
        assert {row["conversation_id"] for row in history} == {"conv_123"}

        # The window slides once it is full.
        shown = [(row["start_sequence"], row["end_sequence"], row["window_size"]) for row in progression]
        assert shown == [(start, end, end - start + 1) for start, end in reversed(ranges)]
        times = [row["generation_time_ms"] for row in progression]
        assert [row["generation_time_ms"] for row in history] == [None, *times]
        assert average == {"avg_ms": pytest.approx(sum(times) / 8), "max_ms": max(times), "total_summaries": 8}

        # What hangs is stuck once it is five minutes old.
        assert stuck == []
        async with await psycopg.AsyncConnection[Any].connect(database, autocommit=True) as connection:
            await connection.execute("update hitherto.digest set created_at = created_at - interval '7 minutes'")
        (_, (row,), _, _) = await answers(database, block)
        assert (row["conversation_id"], row["memory_id"]) == ("conv_123", ids[0])
        assert timedelta(minutes=7) <= row["age"] < timedelta(minutes=8)

        hangs.open()
        await memory.wait_for_digests()
        (first, *_), stuck, _, (average,) = await answers(database, block)
        assert (first["memory_id"], first["status"], stuck) == (ids[0], "completed", [])
        assert average["total_summaries"] == 9


async def test_the_line_in_the_log(database: str, caplog: pytest.LogCaptureFixture) -> None:
    """What the log says of each digest is what the rows say."""
    caplog.set_level("INFO", "hitherto")
    async with hitherto.open(database, model=Scripted(then=says_each)) as memory:
        chat = memory.conversation("conv_123", scope=SCOPE, policy=sliding_window())
        await rounds(memory, chat, range(1, 9))
        rows = await chat.digests()
    said = [record.getMessage() for record in caplog.records]
    for row in rows:
        assert f"Summarized messages {row.start}-{row.end} for conv_123 in {row.generation_time_ms}ms" in said
    assert [line for line in said if line.startswith("Sliding window: ")] == [
        "Sliding window: dropping seq 0-1 for conv_123"
    ]
