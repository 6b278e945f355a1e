"""The third seed's facts: the tests that its "Testing Strategy" names, by their names and with its words.

Others show those that are not here: `tests/engine/facts` reviews and who sees what, `tests/core/facts/test_extract.py`
how an answer is read, `tests/core/facts/test_merge.py` what the same messages teach again.

Its ranges are exclusive (0 to 20), ours inclusive (0 to 19); its legacy is our subject.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, LiteralString, cast

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

import hitherto
from hitherto import Conversation, Memory, Scope, assistant, chunks, rolling, user
from hitherto.core.changes import Changes
from hitherto.core.digests.digest import Digest, Status
from hitherto.core.facts.fact import FactState
from hitherto.core.log.frontier import DigestAction
from hitherto.core.log.message import Wire
from hitherto.core.plain_text import END
from hitherto.errors import ModelUnavailable, StoreError
from hitherto.providers.scripted import Scripted, ScriptedEmbedder
from hitherto.store.store import Store
from hitherto.store.unit import Unit
from tests.acceptance.dialogue import PLENTY, ranges
from tests.acceptance.family import (
    ANA,
    BEN,
    CAT,
    HEADING,
    ROSA,
    Says,
    contents,
    dialogue,
    fact,
    known_to,
    listener,
    material,
    opened,
    redigested,
    sources,
    system_of,
)
from tests.acceptance.receipts import check
from tests.databases import Server
from tests.faults.waiting import until

CELLO = Says("Mum played the cello in the town orchestra.", "hobby", "Played the cello in the town orchestra.")
NURSE = Says("She was a nurse at St Mary's for thirty years.", "occupation", "Was a nurse at St Mary's.")
CRATER = Says("My mother climbed Etna when she was sixty!", "milestone", "Climbed Etna at the age of sixty.")

CELLO_AGAIN = Says("The orchestra had her on the cello.", "other", "Was the orchestra's cellist.", again=CELLO.content)
"""The cello in other words, and taken for something else."""

TURIN = Says("These days Mum lives in Turin.", "other", "Lives in Turin.")
GENOA = Says("Mum has moved to Genoa.", "other", "Lives in Genoa.", instead=TURIN.content)


async def finished(chat_rows: list[Digest]) -> list[tuple[int, int]]:
    """The ranges of the chunks that are there."""
    return ranges(row for row in chat_rows if row.action is DigestAction.CHUNK and row.status is Status.COMPLETED)


async def nothing_is_written(memory: Memory) -> None:
    """Neither a chunk nor a fact, nor anything of one."""
    assert await finished(await memory.conversation("c", scope=ANA).digests()) == []
    assert await memory.facts(ANA).list(state=None) == []
    assert (await memory.recall("cello", scope=ANA, kinds=["digest", "fact"])).hits == ()


async def caught_up(memory: Memory, chat: Conversation) -> None:
    """The range is digested once what held it up is over, and its facts are there, once each."""

    async def done() -> bool:
        await chat.append(user("And now?"), assistant("Now."))
        await memory.wait_for_digests()
        return bool(await finished(await chat.digests()))

    await until(done, "the range is digested")
    assert (await finished(await chat.digests()))[0] == (0, 1)
    (one,) = await memory.facts(ANA).list(state=None)
    assert (one.content, sources(one), one.repeated) == (CELLO.content, [("c", 0)], 0)


async def execute(server: Server, database: str, statement: LiteralString) -> None:
    """Do something to the database that no role of ours could."""
    admin = make_conninfo(server.admin_url, dbname=str(conninfo_to_dict(database)["dbname"]))
    async with await psycopg.AsyncConnection[Any].connect(admin, autocommit=True) as connection:
        await connection.execute(statement)


class TestUnitTests:
    """ "Unit Tests", over the whole of the pipeline."""

    async def test_summarization_trigger_logic(self, store: Store) -> None:
        """ "Verify `maybe_summarize` only fires when unsummarized count exceeds threshold. Verify correct message range
        calculation." With its own numbers; facts come of the messages of each batch, and of no others."""
        told = [Says(f"Fact {seq} of Mum.", "other", f"Is told of by message {seq}.") for seq in range(0, 52, 2)]
        model = Scripted(then=listener(*told))
        async with opened(store, model=model, policy=chunks()) as memory:
            chat = memory.conversation("c", scope=ANA, subject=ROSA)
            for seq in range(52):
                await chat.append(user(f"Fact {seq} of Mum.") if seq % 2 == 0 else assistant("Go on."))
                await memory.wait_for_digests()
                batches = max((seq + 1 - 11) // 20, 0)  # 31 messages make one, 51 another
                assert ranges(await chat.digests()) == [(20 * n, 20 * n + 19) for n in range(batches)]
                assert len(model.calls) == batches, "a single call for both, and none before its time"
                found = await memory.facts(ANA).list()
                assert [sources(one) for one in found] == [[("c", at)] for at in range(0, 20 * batches, 2)]
        assert [one["seq"] for call in model.calls for one in material(call) if "seq" in one] == list(range(40))


class TestIntegrationTests:
    """ "Integration Tests"."""

    async def test_full_turn_flow(self, store: Store) -> None:
        """ "Send messages, trigger summarization, verify conversation chunks land in database with correct embeddings
        and message ranges." And facts with their sources, from the same call."""
        model, embedder = Scripted(then=listener(CELLO, NURSE)), ScriptedEmbedder()
        async with opened(store, model=model, embedder=embedder, policy=chunks()) as memory:
            chat = memory.conversation("c", scope=ANA, subject=ROSA)
            said = {4: CELLO.text, 18: NURSE.text, 22: CRATER.text}
            for seq in range(31):
                question = user(said.get(seq, f"And {seq}?"))
                if seq % 2 == 0:
                    await chat.context(question, budget=PLENTY)
                await chat.append(question if seq % 2 == 0 else assistant("Go on."))
            await memory.wait_for_digests()
            assert await memory.wait_for_index(), "everything has its embedding"

            (chunk,) = await chat.digests()
            assert (chunk.start, chunk.end, chunk.action, chunk.status) == (0, 19, DigestAction.CHUNK, Status.COMPLETED)
            assert CELLO.text in chunk.text
            assert chunk.text in embedder.texts
            (hit,) = (await memory.recall(chunk.text, scope=ANA, kinds=["digest"], subject=ROSA)).hits
            assert (hit.conversation, hit.digest, hit.start, hit.end) == ("c", chunk.id, 0, 19)
            assert hit.scores.semantic is not None

            facts = await memory.facts(ANA).list()
            assert [(one.category, one.content, sources(one)) for one in facts] == [
                ("hobby", CELLO.content, [("c", 4)]),
                ("occupation", NURSE.content, [("c", 18)]),
            ]
            (said_by,) = await memory.facts(ANA).sources(facts[0].id)
            assert (said_by[0], said_by[1].seq, said_by[1].message.text) == ("c", 4, CELLO.text)
            for one in facts:
                assert one.content in embedder.texts
                (found, *_) = (await memory.recall(one.content, scope=ANA, kinds=["fact"])).hits
                assert (found.fact, found.subject) == (one.id, ROSA)
                assert found.scores.semantic is not None
        assert len(model.calls) == 1, "a single call for summary and facts"

    async def test_rag_retrieval(self, store: Store) -> None:
        """ "Verify conversation chunks are returned by similarity search scoped to correct user + legacy." The question
        has no word in common with the chunk that means it."""
        north, east = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]
        question, music = "Which instrument was it?", "She loved her cello."
        embedder = ScriptedEmbedder(vectors={question: north, music: north, "She knitted.": east}, dimensions=3)
        async with opened(store, embedder=embedder) as memory:
            await dialogue(memory, "mine", music, "She knitted.")
            await dialogue(memory, "theirs", music, scope=BEN)
            await dialogue(memory, "of another", music, subject="legacy-8")
            await dialogue(memory, "of myself", music, subject=None)
            assert await memory.wait_for_index()

            hits = (await memory.recall(question, scope=ANA, kinds=["digest"], subject=ROSA)).hits
            assert {hit.conversation for hit in hits} == {"mine"}
            assert (hits[0].text, hits[0].start, hits[0].end) == (music, 0, 1)
            assert hits[0].scores.lexical == 0
            assert (hits[0].scores.semantic or 0) > max([hit.scores.semantic or 0 for hit in hits[1:]], default=0)

            # "retrieve_context(db, query, user_id, legacy_id, top_k=3)", as a turn is prepared.
            for scope, subject, only in (
                (ANA, ROSA, "mine"),
                (BEN, ROSA, "theirs"),
                (ANA, "legacy-8", "of another"),
                (BEN, "legacy-8", None),
                (CAT, ROSA, None),
            ):
                chat = memory.conversation("new", scope=scope, subject=subject)
                context = await chat.context(user(question), budget=PLENTY)
                assert {one.conversation for one in context.manifest.recalled} == ({only} if only else set())

    @pytest.mark.parametrize("wire", ["openai.chat", "openai.responses", "anthropic"])
    async def test_system_prompt_injection(self, store: Store, wire: Wire) -> None:
        """ "Verify facts appear in the system prompt sent to the LLM.\"

        prompt += f"\\n\\nKnown facts about {legacy_name} from conversations:\\n"
        prompt += f"- [{fact.category}] {fact.content} {source}\\n"
        """
        async with opened(store, CELLO, NURSE) as memory:
            chat = await dialogue(memory, "c", CELLO.text, NURSE.text)
            await memory.facts(ANA).share((await fact(memory, NURSE.content)).id)
            context = await chat.context(
                user("Tell me of her."), instructions="You speak as Rosa.", wire=wire, budget=PLENTY, recall=False
            )
            assert system_of(context) == (
                "You speak as Rosa.\n"
                "\n"
                "Known facts about Rosa from conversations:\n"
                "- [hobby] Played the cello in the town orchestra. (personal)\n"
                "- [occupation] Was a nurse at St Mary's. (shared)\n" + END
            )
            assert len(known_to(context)) == 2
            assert context.manifest.facts is not None
            assert (context.manifest.facts.subject, context.manifest.facts.name) == (ROSA, "Rosa")
            await check(chat, context)
            bare = await chat.context(user("Tell me of her."), wire=wire, budget=PLENTY)
            assert system_of(bare).startswith(HEADING), "without instructions they are what there is"


class TestFactExtractionTests:
    """ "Fact Extraction Tests"."""

    async def test_known_conversation_snippets(self, store: Store) -> None:
        """ "Feed known conversation snippets through the extract prompt, assert expected facts are captured." The model
        answers from what the prompt's text shows it: of a message that was lost there would be no fact."""
        told = (CELLO, NURSE, CRATER)
        model = Scripted(then=listener(*told))
        async with opened(store, model=model, policy=chunks(threshold=8, batch=8, context=2)) as memory:
            chat = memory.conversation("c", scope=ANA, subject=ROSA)
            await chat.append(
                user(f"Good morning. {CELLO.text}"),
                assistant(NURSE.text),
                user("It rained all day,\nI am afraid."),
                assistant("I am sorry."),
                user(NURSE.text),
                assistant("And then?"),
                user(CRATER.text),
                assistant("Really?"),
                user("Really."),
            )
            await memory.wait_for_digests()
            assert [(one.category, one.content, sources(one)) for one in await memory.facts(ANA).list()] == [
                ("hobby", CELLO.content, [("c", 0)]),
                ("occupation", NURSE.content, [("c", 4)]),
                ("milestone", CRATER.content, [("c", 6)]),
            ]
        (prompt,) = model.calls
        assert {"subject": "Rosa"} in material(prompt)
        said = [(one["seq"], one["role"], one["text"]) for one in material(prompt) if "seq" in one]
        assert [(seq, role) for seq, role, _ in said] == [(at, ("user", "assistant")[at % 2]) for at in range(8)]
        assert said[2][2] == "It rained all day,\nI am afraid."
        for words in (
            "2 to 4 sentences",
            "Only what the user has said in so many words or clearly implied",
            *("personality", "hobby", "relationship", "milestone", "occupation", "preference", "habit", "other"),
        ):
            assert words in prompt.system

    async def test_no_facts_mentioned(self, store: Store) -> None:
        """ "Edge cases: no facts mentioned": the chunk is there, and a context without a block of facts."""
        async with opened(store, CELLO) as memory:
            chat = await dialogue(memory, "c", "What a day.", "So much rain.")
            assert await finished(await chat.digests()) == [(0, 1), (2, 3)]
            assert await memory.facts(ANA).list(state=None) == []
            context = await chat.context(user("?"), budget=PLENTY, instructions="Be kind.")
            assert system_of(context) == "Be kind."
            assert context.manifest.facts is None

    async def test_duplicate_facts_across_sessions(self, store: Store) -> None:
        """ "Edge cases: duplicate facts across sessions": one fact, with the evidence of both, and more certain."""
        async with opened(store, CELLO) as memory:
            await dialogue(memory, "monday", CELLO.text)
            once = await fact(memory, CELLO.content)
            await dialogue(memory, "tuesday", "Hello.", CELLO.text)
            again = await fact(memory, CELLO.content)
            assert (again.id, again.repeated) == (once.id, 1)
            assert sources(again) == [("monday", 0), ("tuesday", 2)]
            assert (once.confidence, again.confidence) == (0.9, 0.99)
            assert [name for name, _ in await memory.facts(ANA).sources(again.id)] == ["monday", "tuesday"]

    async def test_duplicate_facts_across_sessions_in_other_words(self, store: Store) -> None:
        """By the word of the model that finds them, which is shown what is known; not by their likeness."""
        async with opened(store, CELLO, CELLO_AGAIN, embedder="wordllama") as memory:
            await dialogue(memory, "monday", CELLO.text)
            await dialogue(memory, "tuesday", CELLO_AGAIN.text)
            assert await contents(memory) == [CELLO.content]
            assert sources(await fact(memory, CELLO.content)) == [("monday", 0), ("tuesday", 0)]
        without = replace(CELLO_AGAIN, again=None)
        async with opened(store, CELLO, without, embedder="wordllama") as memory:
            await dialogue(memory, "monday", CELLO.text, scope=BEN)
            await dialogue(memory, "tuesday", without.text, scope=BEN)
            assert await contents(memory, BEN) == [CELLO.content, without.content], "a fact too many can be put right"

    @pytest.mark.parametrize("how", ["the model's word", "a category with one value at a time"])
    async def test_contradicting_facts_from_same_user(self, store: Store, how: str) -> None:
        """ "Edge cases: contradicting facts from same user": the later supersedes the earlier, which stays readable
        with the end of its validity."""
        told = [TURIN, GENOA]
        settings: dict[str, Any] = {}
        if how.startswith("a category"):
            told = [Says(one.text, "current city", one.content) for one in told]
            settings = {"fact_categories": ("hobby", "current city"), "single_fact_categories": ("current city",)}
        async with opened(store, *told, **settings) as memory:
            chat = await dialogue(memory, "c", TURIN.text)
            assert await contents(memory) == [TURIN.content]
            other = await dialogue(memory, "d", GENOA.text)
            assert await contents(memory) == [GENOA.content]
            before, now = await fact(memory, TURIN.content), await fact(memory, GENOA.content)
            assert (before.state, before.superseded_by) == (FactState.SUPERSEDED, now.id)
            assert before.ended_at is not None
            assert before.extracted_at <= before.ended_at
            assert sources(before) == [("c", 0)]
            assert [event.action for event in await memory.facts(ANA).history(before.id)] == ["extracted", "superseded"]
            for one in (chat, other):
                (line,) = known_to(await one.context(user("Where does she live?"), budget=PLENTY))
                assert GENOA.content in line


class TestIdempotencyAndFailure:
    """ "Idempotency and Failure"."""

    @pytest.mark.parametrize("second", ["the same words", "other words", "another fact"])
    @pytest.mark.parametrize("policy", [None, rolling(threshold=4, keep_last=2, facts=True)], ids=["same", "another"])
    async def test_rerunning_summarization_on_summarized_ranges_produces_no_duplicates(
        self, store: Store, second: str, policy: hitherto.Policy | None
    ) -> None:
        """ "Re-running summarization on already-summarized ranges produces no duplicates (enforced by unique index on
        `conversation_id, message_range_start, message_range_end`)": whichever policy digests the same messages again,
        and whatever the model finds in them, they have said what they had to say."""
        answer = {
            "the same words": listener(CELLO),
            "other words": listener(Says(CELLO.text, "other", "Made music with a big fiddle.")),
            "another fact": listener(Says(CELLO.text, "relationship", "Had many friends.")),
        }[second]
        model = Scripted([listener(CELLO)], then=answer)
        async with opened(store, model=model) as memory:
            await redigested(memory, "c", CELLO.text, policy=policy)
            (found,) = await memory.facts(ANA).list(state=None)
            assert (found.content, sources(found), found.repeated) == (CELLO.content, [("c", 0)], 0)
        first, again = ([one["text"] for one in material(call) if "seq" in one] for call in model.calls)
        assert CELLO.text in first
        assert CELLO.text in again, "the same messages, once more"

    async def test_however_many_save_at_once(self, store: Store) -> None:
        """Each of them may set a summary off, as the seed's background tasks do."""
        told = [Says(f"Fact {number}.", "other", f"Is told of in message {number}.") for number in range(12)]
        async with opened(store, *told) as memory:
            chat = memory.conversation("c", scope=ANA, subject=ROSA)
            await asyncio.gather(*(chat.append(user(one.text), assistant("I see.")) for one in told))
            await memory.wait_for_digests()
            for _ in range(12):
                await chat.append(user("And?"), assistant("Yes."))
                await memory.wait_for_digests()
            found = await memory.facts(ANA).list(state=None)
            assert sorted(one.content for one in found) == sorted(one.content for one in told)
            assert all(one.repeated == 0 and len(one.evidence) == 1 for one in found)

    async def test_llm_returns_bad_json(self, store: Store) -> None:
        """ "LLM returns bad JSON → no chunks or facts stored, messages remain for retry." As often as it takes."""
        bad = '{"summary": "Ana tells", "facts": [{"category": "hob'
        async with opened(store, model=Scripted([bad] * 6, then=listener(CELLO))) as memory:
            chat = memory.conversation("c", scope=ANA, subject=ROSA)
            await chat.append(user(CELLO.text), assistant("I see."))
            for tries in range(1, 4):
                await chat.append(user("Well?"), assistant("Yes."))
                await memory.wait_for_digests()
                rows = await chat.digests()
                assert [(row.start, row.end, row.status, row.items) for row in rows] == [
                    (0, 1, Status.FAILED, ())
                ] * tries
                assert await memory.facts(ANA).list(state=None) == []
                context = await chat.context(user("?"), budget=PLENTY)
                assert CELLO.text in json.dumps(context.request), "messages remain"
                assert (context.manifest.missing, context.manifest.facts) == (["digest"], None)
            await chat.append(user("And now?"), assistant("Now."))
            await memory.wait_for_digests()
            assert (await finished(await chat.digests()))[0] == (0, 1)
            assert sources(await fact(memory, CELLO.content)) == [("c", 0)]

    async def test_embedding_service_down(self, store: Store) -> None:
        """ "Embedding service down → summarization fails, retried on next trigger." Ours differs on purpose: the chunk
        and its facts land, are found by their words, and their vectors follow."""
        embedder = ScriptedEmbedder(then=ModelUnavailable("no route to the embedder"))
        async with opened(store, CELLO, embedder=embedder, breaker_failures=1_000) as memory:
            chat = await dialogue(memory, "c", CELLO.text)
            assert await finished(await chat.digests()) == [(0, 1)]
            assert sources(await fact(memory, CELLO.content)) == [("c", 0)]
            assert len(known_to(await chat.context(user("?"), budget=PLENTY))) == 1
            assert not await memory.wait_for_index(), "its vectors are still missing"
            for kind in ("digest", "fact"):
                (hit, *_) = (await memory.recall("cello", scope=ANA, kinds=[kind])).hits
                assert hit.scores.semantic is None
        async with opened(store, CELLO, embedder=ScriptedEmbedder()) as memory:
            assert await memory.wait_for_index()
            for kind in ("digest", "fact"):
                (hit, *_) = (await memory.recall("cello", scope=ANA, kinds=[kind])).hits
                assert hit.scores.semantic is not None

    async def test_database_write_fails(self, store: Store) -> None:
        """ "Database write fails → no partial state (transaction rollback)": the range is digested later."""
        refusing = _Refusing(store)
        async with opened(cast(Store, refusing), CELLO, lease_timeout=0.2) as memory:
            chat = memory.conversation("c", scope=ANA, subject=ROSA)
            refusing.refuses = True
            await chat.append(user(CELLO.text), assistant("I see."), user("Well."), assistant("Yes."))
            await until(lambda: refusing.refused, "a digest was to be written")
            await nothing_is_written(memory)
            refusing.refuses = False
            await caught_up(memory, chat)

    @pytest.mark.parametrize("fault", ["a privilege is gone", "a check fails", "the backend is killed"])
    async def test_database_write_fails_in_the_middle(
        self, server: Server, database: str, fault: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The same, with a real fault of PostgreSQL while facts are being written: the chunk is in the same
        transaction."""
        begin, end = FAULTS[fault]
        store = Store(database, patience=5)
        await store.open()
        try:
            async with opened(store, CELLO, lease_timeout=1.0) as memory:
                await execute(server, database, begin)
                chat = memory.conversation("c", scope=ANA, subject=ROSA)
                await chat.append(user(CELLO.text), assistant("I see."), user("Well."), assistant("Yes."))
                says = "could not be written" if "killed" in fault else "Summarization put off for c: StoreError"
                await until(lambda: says in caplog.text, "it says so")
                await nothing_is_written(memory)
                await execute(server, database, end)
                await caught_up(memory, chat)
        finally:
            await store.aclose()


FAULTS: dict[str, tuple[LiteralString, LiteralString]] = {
    "a privilege is gone": (
        "revoke insert on hitherto.fact_evidence from hitherto",
        "grant insert on hitherto.fact_evidence to hitherto",
    ),
    "a check fails": (
        "alter table hitherto.fact add constraint no_music check (content not like '%cello%')",
        "alter table hitherto.fact drop constraint no_music",
    ),
    "the backend is killed": (
        """
        create function hitherto.die() returns trigger language plpgsql as
            $$ begin perform pg_terminate_backend(pg_backend_pid()); perform pg_sleep(1); return new; end $$;
        create trigger die before insert on hitherto.fact_evidence for each row execute function hitherto.die()
        """,
        "drop trigger die on hitherto.fact_evidence",
    ),
}
"""What makes the writing of facts fail after some of it is done, and what ends that."""


class _Refusing:
    """A store that refuses what digests write, as long as it `refuses`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.refuses = False
        self.refused = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    @asynccontextmanager
    async def write(self, scope: Scope, conversation: str, **options: Any) -> AsyncGenerator[Any]:
        async with self._store.write(scope, conversation, **options) as unit:
            yield _RefusingUnit(self, unit) if options.get("digest") is not None and self.refuses else unit


class _RefusingUnit:
    def __init__(self, store: _Refusing, unit: Unit) -> None:
        self._store, self._unit = store, unit

    def __getattr__(self, name: str) -> Any:
        return getattr(self._unit, name)

    async def commit(self, _: Changes) -> Any:
        self._store.refused += 1
        raise StoreError("no space left on device")
