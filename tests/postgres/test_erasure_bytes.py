"""What is erased is in no row any more: not as text, as a JSON escape, as bytes, as a hashed word or as a vector."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from psycopg import sql

import hitherto
from hitherto import ErasureReport, Memory, Scope, assistant, token_threshold, user
from hitherto.core.recall.terms import question_terms
from hitherto.providers.scripted import Scripted, ScriptedEmbedder
from tests.acceptance.dialogue import ONE_TRY
from tests.conftest import SCOPE
from tests.engine.log.test_erase import remembers
from tests.engine.log.test_open_calls import calls, result
from tests.postgres.asking import rows

SECRET = "zorblaxžluťoučký"
VECTORS = """
select encode(v.vector, 'hex') from hitherto.search_vector v join hitherto.search_entry e using (tenant, scope, no)
where e.kind = 1
"""
"""Of messages: those of a digest that is made anew may come at any time."""

POLICY = token_threshold(60, keep_messages=2, archive=True, facts=True)

QUOTES_NOTHING = {
    *("agent", "alembic_version", "api_key", "erasure", "subject", "subject_member", "user_zone", "worker"),
    *(
        "absence",
        "branch",
        "context",
        "conversation",
        "fact_evidence",
        "fact_subject",
        "fork",
        "forgetting",
        "model_call",
        "open_call",
        "receipt",
        "run",
    ),
    *("search_codes", "search_filling", "search_posting", "search_scope", "search_segment", "search_space"),
    "search_vector",
}
"""Tables that have no words of messages, but numbers, hashes and names; those of packed segments are filled below."""

STAYS = {
    *("tenant", "conversation", "seq", "wire", "role", "kind", "rev", "created_at", "said_at", "expires_at"),
    *("said_offset", "own_key"),
    *("tokens", "sum_tokens", "sum_turns", "sum_dialogue", "sum_results", "retracted_rev"),
}
"""The columns that an erased message keeps."""


async def tables(url: str) -> dict[str, str]:
    """All rows of each table of the schema as text, bytes in hexadecimal."""
    found: dict[str, str] = {}
    async with await psycopg.AsyncConnection.connect(url) as connection:
        named = "select relname from pg_class where relnamespace = 'hitherto'::regnamespace and relkind = 'r'"
        for (table,) in await (await connection.execute(named)).fetchall():
            query = sql.SQL("select t::text from hitherto.{} t").format(sql.Identifier(table))
            text = "\n".join([row[0] for row in await (await connection.execute(query)).fetchall()])
            found[table] = text.replace("\\\\", "\\").casefold()  # a row as text has each backslash twice
    return found


async def dump(url: str) -> str:
    """All rows of the schema."""
    return "\n".join((await tables(url)).values())


def marks(*secrets: str) -> list[str]:
    """The forms in which a secret could be left: also the hashes of its words, as numbers and as bytes in a row."""
    found: list[str] = []
    for secret in secrets:
        terms = question_terms(secret)
        hashes = [*terms.words.tolist(), *terms.authors.tolist()]
        assert hashes
        found += [secret, json.dumps(secret)[1:-1], secret.encode().hex()]
        found += [text for one in hashes for text in (str(one), one.to_bytes(8, "little", signed=True).hex())]
    return [one.casefold() for one in found]


@pytest.fixture
async def memory(database: str) -> AsyncIterator[Memory]:
    model = Scripted(then=remembers)
    embedder = ScriptedEmbedder(dimensions=64)
    async with hitherto.open(database, model=model, embedder=embedder, keep_contexts=99, **ONE_TRY) as opened:
        yield opened


async def filled(memory: Memory, scope: Scope, *, name: str = "c", rounds: int = 4) -> None:
    chat = memory.conversation(name, scope=scope, policy=POLICY)
    said = user(f"{SECRET} likes tuna.").with_metadata({"note": SECRET}).with_id(SECRET)
    await chat.context(said, budget=4_000, instructions=f"{scope.user} is {SECRET}.")  # which is kept
    run = await memory.runs(scope).begin(name)
    await chat.append(said, assistant(f"{SECRET}, noted."), key="k")
    await memory.runs(scope).add(run.id, {"kind": "tool_result", "payload": {"of": SECRET}})
    await memory.runs(scope).end(run.id)
    for number in range(rounds):
        await chat.append(user(f"Ann likes {number}."), assistant(f"Noted {number}."))
    await memory.wait_for_digests()
    await memory.wait_for_index()
    await chat.context(f"What of {SECRET}?" if rounds else None, budget=4_000, recall=True)


async def vectors(url: str) -> set[str]:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        found = await (await connection.execute(VECTORS)).fetchall()
    return {row[0] for row in found}


async def test_of_erased_messages(memory: Memory, database: str) -> None:
    await filled(memory, SCOPE)
    there = await tables(database)
    quoting = {name for name, text in there.items() if any(mark in text for mark in marks(SECRET))}
    assert {*there} - quoting == QUOTES_NOTHING, "let `filled` put the secret into every other table"
    before = "\n".join(there.values())
    assert all(mark in before for mark in marks(SECRET)[:2])
    assert any(mark in before for mark in marks(SECRET)[3:]), "its words are hashed in the index"
    secret = await vectors(database)
    await memory.conversation("c", scope=SCOPE).erase([0, 1])
    await memory.wait_for_digests()
    await memory.wait_for_erasure()
    after = await dump(database)
    assert [mark for mark in marks(SECRET) if mark in after] == []
    assert await vectors(database) < secret
    assert "ann likes 3." in after


async def test_of_messages_erased_in_branches_and_forks(memory: Memory, database: str) -> None:
    """In the middle of forks of forks, on branches that are not shown, and after who said it first is deleted."""
    await filled(memory, SCOPE)
    chat = memory.conversation("c", scope=SCOPE)
    await chat.append(assistant(f"{SECRET}, I said."), at=0)
    answer = 10
    middle = await chat.fork(id="middle")
    last = await middle.fork(id="last")
    for one in (middle, last):
        likes = [user(f"Bob likes {number}.") for number in range(8)]
        await one.append(user("So?"), assistant("Yes."), *likes)
        await one.context(f"What of {SECRET}?", budget=4_000, recall=True)
    await last.switch(1)
    await chat.rewind(to=-1)
    await memory.wait_for_digests()
    await memory.wait_for_index()
    before = await dump(database)
    assert any(mark in before for mark in marks(SECRET)[3:]), "its words are hashed in the index"
    await chat.delete()
    await middle.erase([0, 1, answer])
    await memory.wait_for_digests()
    await memory.wait_for_erasure()
    after = await dump(database)
    assert [mark for mark in marks(SECRET) if mark in after] == []
    assert "bob likes 3." in after


async def test_what_stays_of_an_erased_message(memory: Memory, database: str) -> None:
    async def read() -> list[dict[str, Any]]:
        return await rows(database, "select * from message order by seq")

    chat, day = memory.conversation("c", scope=SCOPE, policy="none"), datetime(2099, 1, 1, tzinfo=UTC)
    await chat.append(
        user(SECRET, at=day).with_metadata({"note": SECRET}).with_id(SECRET).expiring(day), calls("a"), result("a")
    )
    before = await read()
    await chat.erase([0, 1, 2])
    after = await read()
    same = {name for name in before[0] if [row[name] for row in before] == [row[name] for row in after]}
    assert same == STAYS, "give a message here each other column, and erase it"


async def test_of_erased_messages_in_packed_segments(memory: Memory, database: str) -> None:
    """4,096 entries stand side by side: what is left is packed anew."""
    chat = memory.conversation("long", scope=SCOPE, policy="none")
    await chat.append(user(f"{SECRET} was said."), *(user(f"word{number % 50} and more") for number in range(4_200)))
    await memory.wait_for_index()
    async with await psycopg.AsyncConnection.connect(database) as connection:
        row = await (await connection.execute("select count(*) from hitherto.search_segment")).fetchone()
    assert row == (1,)
    await chat.erase(0)
    await memory.wait_for_erasure()
    after = await dump(database)
    assert [mark for mark in marks(SECRET) if mark in after] == []
    assert (await memory.recall("word7", scope=SCOPE)).hits != ()


@pytest.mark.parametrize("whole", [False, True], ids=["user", "tenant"])
async def test_of_an_erased_user_and_tenant(memory: Memory, database: str, whole: bool) -> None:
    tenant, person = "tenant-quzzle", "user-frobnik"
    mine, beside = Scope(tenant=tenant, user=person, agent="agent-wibble"), Scope(tenant="t", user="u", agent="a")
    await filled(memory, mine)
    await memory.documents(mine).add(f"# {SECRET}\n\nA text.")
    await memory.facts(mine).add(f"Sails with {SECRET}.")
    await memory.configure_subject(tenant=tenant, subject="boat", members=[person, "somebody"])
    await memory.configure_agent(tenant=tenant, agent="agent-wibble", policy="none")
    await memory.configure_user(tenant=tenant, user=person, time_zone="Asia/Tokyo")
    await memory.conversation("c", scope=beside).append(user("Beside."), assistant("Yes."))
    await memory.wait_for_index()
    await (memory.erase_tenant(tenant) if whole else memory.erase_user(tenant, person))
    await memory.wait_for_digests()
    await memory.wait_for_erasure()
    after = await dump(database)
    assert [mark for mark in marks(SECRET) if mark in after] == []
    assert person not in after
    left = [line for line in after.splitlines() if tenant in line]
    if whole:
        assert "agent-wibble" not in after
        assert len(left) == 1, "what an idempotency key answered, until its retention ends"
    assert "beside." in after


async def test_of_an_erased_subject(memory: Memory, database: str) -> None:
    """Of all users; another subject, and what the users said besides, stay."""
    told = list[int]()
    for person in ("ann", "ben"):
        scope = Scope(tenant="acme", user=person, agent="a")
        chat = memory.conversation("of-quzzle", scope=scope, subject="legacy-quzzle", policy=POLICY)
        await chat.append(user(f"{SECRET} sailed."), assistant(f"{SECRET} did."))
        await memory.facts(scope, subject="legacy-quzzle").add(f"Sailed with {SECRET}.")
        told.append((await memory.facts(scope, subject="boat").add("The boat is blue.")).id)
        await memory.conversation("beside", scope=scope).append(user("Beside."), assistant("Yes."))
    await memory.configure_subject(
        tenant="acme", subject="legacy-quzzle", name=f"Aunt {SECRET}", members=["ann", "ben"]
    )
    await memory.wait_for_digests()
    await memory.wait_for_index()
    ann = Scope(tenant="acme", user="ann", agent="a")
    await memory.conversation("more", scope=ann, subject="legacy-quzzle").context("What?", budget=4_000, facts=True)
    kept = await memory.kept_about("acme", "legacy-quzzle")
    report = await memory.erase_subject("acme", "legacy-quzzle")
    assert report == kept
    assert (report.conversations, report.messages, report.facts) == (2, 4, 2)
    await memory.wait_for_digests()
    await memory.wait_for_erasure()
    assert await memory.subject("legacy-quzzle", tenant="acme") is None
    after = await dump(database)
    assert [mark for mark in marks(SECRET) if mark in after] == []
    assert "legacy-quzzle" not in after
    assert [one.id for one in await memory.facts(ann, subject="boat").list()] == told[:1]
    assert "beside." in after
    assert await memory.erase_subject("acme", "legacy-quzzle") == ErasureReport()
