"""The SQL views with the names and the columns that other systems' tables have, on what real conversations leave."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

import hitherto
from hitherto import Call, Memory, assistant, chunks, rolling, tool_result, trim, user
from hitherto.core.digests.prompts import DigestTask
from hitherto.other_systems.views import create_views
from hitherto.ports.models import Prompt
from hitherto.providers.scripted import Scripted, items
from tests.acceptance.cli.commands import bare
from tests.acceptance.dialogue import ONE_TRY, rounds
from tests.conftest import SCOPE

COLUMNS = {
    "memory_entries": (
        "id user_id session_id agent_id content entry_metadata created_at updated_at expires_at is_active"
    ),
    "memory_session_summaries": "id user_id session_id agent_id summary created_at updated_at",
    "conversation_chunks": (
        "id conversation_id user_id legacy_id content message_range_start message_range_end created_at"
    ),
    "chat_sessions": "id summary summarized_count created_at",
    "chat_messages": "id session_id role content created_at",
    "agent_conversations": "id conversation_id memory_strategy memory_injection",
    "agent_messages": "id conversation_id role content created_at",
    "agent_run_events": "id run_id conversation_id event_type payload created_at",
    "conversation_summaries": "id conversation_id summary created_at",
    "memory": "memory_id conversation_id memory_text start_sequence end_sequence base_memory_id status created_at",
    "legacy_facts": "id legacy_id user_id category content visibility source_conversation_id extracted_at updated_at",
}
"""What the other systems' schemas have, where they say it."""


def quotes(prompt: Prompt) -> str:
    """A digest that says again what was said."""
    return (
        items(*((line.text, [line.seq]) for line in prompt.task.lines)) if isinstance(prompt.task, DigestTask) else ""
    )


class Views:
    """Queries on the views of a database, as a program that knows the other system's tables sends them."""

    def __init__(self, database: str) -> None:
        self._database = database

    async def __call__(self, query: str) -> list[dict[str, Any]]:
        async with await psycopg.AsyncConnection[Any].connect(
            self._database, autocommit=True, options="-c search_path=other_systems"
        ) as connection:
            return await (await connection.cursor(row_factory=dict_row).execute(query.encode())).fetchall()


@pytest.fixture
def select(database: str) -> Views:
    return Views(database)


@pytest.fixture
async def memory(database: str) -> AsyncIterator[Memory]:
    async with hitherto.open(database, model=Scripted(then=quotes), **ONE_TRY) as opened:
        await create_views(database)
        yield opened


async def test_the_columns_are_there_and_nothing_can_be_written(select: Views, memory: Memory) -> None:
    for view in COLUMNS:
        found = await select(
            "select table_name, column_name, is_updatable from information_schema.columns "
            "where table_schema = 'other_systems'"
        )
        mine = {row["column_name"]: row["is_updatable"] for row in found if row["table_name"] == view}
        assert {*COLUMNS[view].split(), "tenant"} <= set(mine)
        assert set(mine.values()) == {"NO"}
        assert "embedding" not in mine


async def test_imported_messages_have_their_dates(select: Views, memory: Memory) -> None:
    then, last = datetime(2025, 5, 1, tzinfo=UTC), datetime(2025, 5, 2, tzinfo=UTC)
    await memory.conversation("c", scope=SCOPE).append(user("Hello.", at=then), assistant("Hi.", at=last))
    for view in ("memory_entries", "agent_messages", "chat_messages"):
        assert [row["created_at"] for row in await select(f"select * from {view} order by id")] == [then, last], view
    for view in ("agent_conversations", "chat_sessions"):
        assert [row["updated_at"] for row in await select(f"select * from {view}")] == [last], view


async def test_entries_and_the_summary_of_a_session(select: Views, memory: Memory) -> None:
    chat = memory.conversation("session_123", scope=SCOPE, policy=rolling(threshold=6, keep_last=2))
    await chat.append(user("Hello. \ud800").with_metadata({"channel": "web"}), assistant("Hi."))
    await chat.append(assistant(calls=[Call(id="x", name="look")]), tool_result("x", "42"), assistant("It is 42."))
    for number in range(2, 5):
        await chat.append(user(f"question {number}"), assistant(f"answer {number}"))
        await memory.wait_for_digests()
    entries = await select("select * from memory_entries order by created_at, id")
    assert [json.loads(row["content"])["role"] for row in entries[:3]] == ["user", "assistant", "assistant"]
    assert json.loads(entries[2]["content"]) == {"role": "assistant", "content": "It is 42."}
    assert json.loads(entries[0]["entry_metadata"]) == {"channel": "web"}
    assert len({row["id"] for row in entries}) == len(entries) == 9
    (digest, *_) = await chat.digests()
    active = [row["is_active"] for row in entries]
    assert active == sorted(active)
    assert active.count(True) == len([m for m in await chat.messages() if m.seq > digest.end])
    whose = {"user_id": "u-17", "session_id": "session_123", "agent_id": "planner", "tenant": "acme"}
    (summary,) = await select("select * from memory_session_summaries")
    assert whose.items() <= summary.items()
    assert summary["summary"] == digest.text
    (same,) = await select("select * from conversation_summaries")
    assert (same["conversation_id"], same["summary"]) == ("session_123", digest.text)
    await chat.clear()
    assert await select("select * from memory_session_summaries") == []
    assert {row["is_active"] for row in await select("select is_active from memory_entries")} == {False}


async def test_sessions_and_their_messages(select: Views, memory: Memory) -> None:
    """The prompts and the final answers alone; and what a list of conversations says of the summary."""
    chat = memory.conversation("s", scope=SCOPE, policy=rolling(threshold=4, keep_last=2))
    await chat.append(user("Where is it?"), assistant(calls=[Call(id="x", name="look")]), tool_result("x", "42"))
    await chat.append(assistant("There."))
    for number in range(2, 4):
        await chat.append(user(f"question {number}"), assistant(f"answer {number}"))
    await memory.wait_for_digests()
    (session,) = await select("select * from chat_sessions")
    (listed,) = (await memory.conversations(scope=SCOPE)).conversations
    assert (session["id"], session["name"]) == ("s", "Where is it?")
    assert (session["summary"], session["summarized_count"]) == (listed.summary, listed.summarized_count)
    assert (listed.summary != "", listed.summarized_count) == (True, 4)
    messages = await select("select * from chat_messages order by seq")
    assert [row["content"] for row in messages] == [
        "Where is it?", "There.", "question 2", "answer 2", "question 3", "answer 3",
    ]  # fmt: skip
    await chat.rewind(to=3)
    assert [row["seq"] for row in await select("select seq from chat_messages order by seq")] == [0, 3]
    audit = await select("select * from agent_messages order by seq")
    assert [row["hidden"] for row in audit] == [False] * 4 + [True] * 4
    assert audit[1]["item"] == (await chat.messages())[1].message.payload


async def test_chunks_end_before_their_end(select: Views, database: str) -> None:
    """0 to 20, where our range is 0 to 19."""
    async with hitherto.open(database, model=Scripted(then=quotes), **ONE_TRY) as memory:
        await create_views(database)
        chat = memory.conversation("c", scope=SCOPE, policy=chunks())
        await chat.configure(subject="mum", create=True)
        await rounds(memory, chat, range(1, 17))
        (chunk,) = await select("select * from conversation_chunks")
        assert (chunk["message_range_start"], chunk["message_range_end"]) == (0, 20)
        (digest,) = await chat.digests()
        assert (chunk["id"], chunk["content"]) == (digest.id, digest.text)
        assert (chunk["conversation_id"], chunk["user_id"], chunk["legacy_id"]) == ("c", "u-17", "mum")


async def test_what_a_conversation_says_of_its_strategy(select: Views, memory: Memory) -> None:
    await memory.conversation("plain", scope=SCOPE).append(user("Hello."))
    chat = memory.conversation("own", scope=SCOPE, policy=trim())
    await chat.append(user("Hello."))
    await chat.configure(cross_session="latest", create=True)
    rows = await select(
        "select conversation_id, memory_strategy, memory_injection from agent_conversations order by id"
    )
    assert [tuple(row.values()) for row in rows] == [("plain", None, None), ("own", "trim", True)]


async def test_what_expired_or_was_erased_is_in_no_view(select: Views, memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE, policy=rolling(threshold=4, keep_last=2))
    soon = datetime.now(UTC) + timedelta(seconds=1)
    await chat.append(user("the secret of Ann").expiring(soon), assistant("the secret of Bob"))
    for number in range(3):
        await chat.append(user(f"question {number}"), assistant(f"answer {number}"))
    await memory.wait_for_digests()
    await chat.erase([1])

    async def views_with(word: str) -> list[str]:
        found: list[str] = []
        for view in COLUMNS:
            rows = await select(f"select v::text as row from {view} v")
            found += [view for row in rows if word in row["row"]]
        return found

    assert "chat_messages" in await views_with("question 2")
    await asyncio.sleep((soon - datetime.now(UTC)).total_seconds() + 0.1)
    assert await views_with("secret") == [], "even before the message is erased"


async def test_ids_sort_as_messages_do(select: Views, memory: Memory) -> None:
    """Of messages that were appended together, and of the events of a run."""
    chat = memory.conversation("c", scope=SCOPE)
    await chat.append(*(one for n in range(60) for one in (user(f"{2 * n}"), assistant(f"{2 * n + 1}"))))
    run = await memory.runs(SCOPE).begin("c")
    await memory.runs(SCOPE).add(run.id, *({"kind": "message", "payload": str(n)} for n in range(12)))
    for view, column, count in (
        ("memory_entries", "content::json ->> 'content'", 120),
        ("agent_messages", "content", 120),
        ("chat_messages", "content", 120),
        ("agent_run_events", "payload #>> '{}'", 12),
    ):
        found = await select(f"select {column} as said from {view} order by created_at, id")
        assert [row["said"] for row in found] == [str(n) for n in range(count)], view
    ids = [row["id"] for row in await select("select id from memory_entries")]
    assert max(map(len, ids)) <= 36, "the column is VARCHAR(36) there"


async def test_a_plain_migrate_renews_the_views_where_they_are(select: Views, database: str) -> None:
    async def execute(statement: str) -> None:
        async with await psycopg.AsyncConnection[Any].connect(database, autocommit=True) as connection:
            await connection.execute(statement.encode())

    assert bare("migrate", HITHERTO_DATABASE=database).code == 0
    there = "select table_name from information_schema.views where table_schema = 'other_systems'"
    assert await select(there) == [], "nobody asked for them"
    await create_views(database)
    (latest,) = await select("select pg_get_viewdef('other_systems.memory'::regclass) as said")
    older = latest["said"].rstrip(";").replace("'summarize'", "'older'")
    await execute(f"create or replace view other_systems.memory as {older}")
    assert bare("migrate", HITHERTO_DATABASE=database).code == 0
    assert await select("select pg_get_viewdef('other_systems.memory'::regclass) as said") == [latest]


async def test_an_applications_own_tables_may_have_these_names(database: str, memory: Memory) -> None:
    """Whatever its role is called: the schema of Hitherto has none of the names."""
    async with await psycopg.AsyncConnection[Any].connect(database, autocommit=True) as connection:
        assert connection.info.user == "hitherto"
        await connection.execute("""set search_path to "$user", public""")
        for name in COLUMNS:
            found = await (await connection.execute("select to_regclass(%s)", [name])).fetchone()
            assert found == (None,), name
