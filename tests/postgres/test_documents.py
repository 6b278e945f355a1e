"""What goes from PostgreSQL's search index with a document, and what the statements on documents read."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib import resources
from typing import Any

import psycopg
import pytest

import hitherto
from hitherto import Conversation, assistant, token_threshold, user
from hitherto.engine.memory import Memory
from tests.conftest import SCOPE

POLICY = token_threshold(threshold=20, keep_messages=2, archive=True)


@pytest.fixture
async def memory(database: str) -> AsyncIterator[Memory]:
    async with hitherto.open(database, passage_tokens=16, passage_overlap=0) as opened:
        yield opened


@pytest.fixture
async def chat(memory: Memory) -> Conversation:
    """A conversation with one archived document, and a document of the user's own: all indexed, and packed."""
    chat = memory.conversation("c", scope=SCOPE, policy=POLICY)
    for n in range(2):
        wish = f"Please book the Hotel Aurora for night {n} and {n + 1}, with breakfast and a view of the lake."
        await chat.append(user(wish), assistant("It is booked."))
        await memory.wait_for_digests()
    await memory.documents(SCOPE).add("The alarm code is 4711. " * 20)
    assert await memory.wait_for_index()
    return chat


async def asked(database: str, query: str, *values: Any) -> Any:
    async with await psycopg.AsyncConnection[Any].connect(database, autocommit=True) as connection:
        cursor = await connection.execute(query.encode(), values)
        return None if cursor.description is None else await cursor.fetchall()


async def pack(database: str) -> None:
    """As if all entries stood in a segment, with a claim on each scope, so that it is not put in order at once."""
    await asked(
        database,
        "update hitherto.search_scope set packed = next_no, stale = false, attempt = attempt + 1, "
        "claimed_until = clock_timestamp() + interval '1 hour'",
    )
    await asked(database, "delete from hitherto.search_segment")
    await asked(
        database,
        "insert into hitherto.search_segment (tenant, scope, segment, lengths, kinds, origins, places, times) "
        "select tenant, ref, 0, '', '', '', '', '' from hitherto.search_scope",
    )


async def entries(database: str) -> dict[str, tuple[int, int]]:
    """How many entries the passages of documents have, and how many vectors, by whether a conversation was archived."""
    found = await asked(
        database,
        "select case when d.agent = '' then 'own' else 'archived' end, count(*), count(v.no) from hitherto.document d "
        "join hitherto.search_entry e on e.tenant = d.tenant and e.kind = 3 and e.origin = d.id "
        "left join hitherto.search_vector v on v.tenant = e.tenant and v.scope = e.scope and v.no = e.no group by 1",
    )
    loose = await asked(
        database,
        "select count(*) from hitherto.search_entry e where kind = 3 and not exists "
        "(select from hitherto.document d where d.tenant = e.tenant and d.id = e.origin)",
    )
    vectors = await asked(
        database,
        "select count(*) from hitherto.search_vector v where not exists (select from hitherto.search_entry e "
        "where e.tenant = v.tenant and e.scope = v.scope and e.no = v.no)",
    )
    assert (loose, vectors) == ([(0,)], [(0,)]), "entries and vectors of what is gone"
    return {kind: (count, embedded) for kind, count, embedded in found}


async def stale(database: str) -> set[str]:
    """The agents in whose index something is to be put in order."""
    found = await asked(
        database,
        "select s.agent from hitherto.search_scope s join hitherto.search_segment g on g.tenant = s.tenant "
        "and g.scope = s.ref where s.stale and g.stale",
    )
    return {agent for (agent,) in found}


Take = Callable[[Memory, Conversation, str], Awaitable[object]]


async def cleared(_: Memory, chat: Conversation, __: str) -> None:
    await chat.clear()


async def deleted(_: Memory, chat: Conversation, __: str) -> None:
    await chat.delete()


async def popped(_: Memory, chat: Conversation, __: str) -> None:
    while (await chat.digests())[-1].hidden_rev is None:
        assert await chat.pop() is not None


async def expired(memory: Memory, _: Conversation, database: str) -> None:
    past = "clock_timestamp() - interval '1 hour'"
    await asked(database, f"update hitherto.message set expires_at = {past} where seq = 0")
    await asked(database, f"update hitherto.conversation set next_expiry = {past}")
    assert await memory.purge_expired() == 1


async def discarded(memory: Memory, _: Conversation, __: str) -> None:
    (one,) = await memory.documents(SCOPE).list(doc_type="conversations")
    assert await memory.documents(SCOPE).remove(one.id)


@pytest.mark.parametrize("take", [cleared, deleted, popped, expired, discarded])
async def test_its_passages_leave_the_index(memory: Memory, chat: Conversation, database: str, take: Take) -> None:
    before = await entries(database)
    assert before["own"][0] == before["own"][1] > 3
    assert before["archived"][0] == before["archived"][1] > 1
    await pack(database)
    await take(memory, chat, database)
    assert await memory.documents(SCOPE).list(doc_type="conversations") == []
    after = await entries(database)
    assert after == {"own": before["own"]}
    assert await stale(database) == {SCOPE.agent}


async def test_a_document_of_ones_own_leaves_the_index(memory: Memory, chat: Conversation, database: str) -> None:
    before = await entries(database)
    await pack(database)
    (one,) = await memory.documents(SCOPE).list(doc_type="document")
    assert await memory.documents(SCOPE).remove(one.id)
    assert await entries(database) == {"archived": before["archived"]}
    assert await stale(database) == {""}
    assert await asked(database, "select count(*) from hitherto.passage where document = %s", one.id) == [(0,)]


def test_every_statement_on_documents_names_its_owner() -> None:
    """What reads or removes a document goes through `hitherto.within`, or names its conversation or its owner."""
    text = resources.files("hitherto.store").joinpath("documents.sql").read_text(encoding="utf-8")
    named = dict(re.findall(r"^-- name: (\w+)\n(.*?)(?=^-- name: |\Z)", text, re.MULTILINE | re.DOTALL))
    reading = {
        name: body
        for name, body in named.items()
        if re.search(r"(from|using) (hitherto\.document\b|\(\{shown_documents\}\))", body)
    }
    assert set(reading) == {
        "hold_document",
        "hold_documents",
        *(
            "keep_passages",
            "kept_document",
            "documents",
            "document",
            "passages",
            "discard_document",
            "remove_documents",
        ),
    }
    for name, body in reading.items():
        own = re.search(r"tenant = %\(tenant\)s and (d\.)?user_id = %\(user\)s", body)
        assert "hitherto.within(" in body or "conversation = %(ref)s" in body or own, name
