"""Kept contexts: what a model saw is listed, made again, and forgotten with what it showed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import psycopg
import pytest

import hitherto
from hitherto import Memory, RecallOptions, assistant, token_threshold, user
from hitherto.core.context.manifest import changes_since
from hitherto.core.recall.filter import EntryKind
from hitherto.errors import InvalidInput, NotReproducible, StoreError
from hitherto.providers.scripted import ScriptedEmbedder
from hitherto.store.store import Store
from tests.conftest import SCOPE
from tests.engine.test_expired_elsewhere import SECRET, noticed, unnoticed
from tests.memories import open_on

TOOL = {"type": "function", "function": {"name": "sail", "parameters": {"type": "object", "properties": {}}}}


def opened(store: Store, **options: Any) -> Any:
    return open_on(store, embedder=ScriptedEmbedder(), **options)


@pytest.fixture
async def memory(store: Store) -> AsyncIterator[Memory]:
    async with opened(store, keep_contexts=3) as found:
        yield found


async def test_what_the_model_saw_is_made_again(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    first = await chat.context("Where is Ada?", instructions="Be brief.", tools=[TOOL], budget=400)
    (kept,) = await chat.contexts()
    assert kept.manifest == first.manifest
    for number in range(30):
        await chat.append(user(f"Ada is in town {number}."), assistant(f"Noted {number}."))
    await memory.wait_for_index()
    second = await chat.context("Where was Ada, in town 3?", budget=400, recall=True)
    assert second.manifest.recalled
    newest, oldest = await chat.contexts()
    assert (newest.manifest, oldest.id) == (second.manifest, kept.id)
    assert (await chat.rebuild(newest.manifest)).request == second.request
    assert (await chat.rebuild(oldest.manifest)).request == first.request
    assert len(await chat.contexts()) == 2, "what is made again is not kept"
    assert await chat.contexts(before=newest.id) == [oldest]
    assert await chat.contexts(limit=1) == [newest]
    changes = changes_since(oldest.manifest, newest.manifest)
    assert changes.added > 0 == changes.removed
    assert changes.recalled == len(second.manifest.recalled)
    assert changes.tokens == second.tokens - first.tokens


async def test_what_was_recalled_and_taken_back_since_is_made_again(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    for number in range(30):
        await chat.append(user(f"Ada is in town {number}."), assistant(f"Noted {number}."))
    await memory.wait_for_index()
    made = await chat.context("Where was Ada, in town 3?", budget=400, recall=True)
    assert made.manifest.recalled
    await chat.rewind(to=1)
    assert (await chat.rebuild(made.manifest)).request == made.request


async def test_a_manifest_reads_no_more_than_a_context_can_have_recalled(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    await chat.append(*(user(f"Ada is in town {number}.") for number in range(300)))
    await memory.wait_for_index()
    made = await chat.context("Where was Ada, in town 3?", budget=400, recall=True)
    all_of_it = made.manifest.recalled[0].model_copy(update={"start": 0, "end": 299})
    with pytest.raises(NotReproducible, match="that this context recalled"):
        await chat.rebuild(made.manifest.model_copy(update={"recalled": [all_of_it]}))


async def test_each_request_of_a_turn_is_kept_and_only_so_many(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    for number in range(4):
        async with chat.turn(f"Question {number}", budget=2_000) as turn:
            assert turn.request
            await turn.add({"role": "assistant", "content": f"Answer {number}"})
    kept = await chat.contexts()
    assert [one.manifest.next_seq for one in kept] == [6, 4, 2]
    await chat.context("As it was", at=1)
    assert await chat.contexts() == kept, "what is looked at later is not kept"


async def test_items_of_which_none_fits_count_as_none(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    await chat.append(user("word " * 1_000))
    assert await chat.items(budget=100, sent=True) == []
    (kept,) = await chat.contexts()
    assert {name: tokens for name, tokens in kept.manifest.sections.items() if tokens} == {"framing": 3}
    assert kept.manifest.total == 3


async def test_instructions_and_tools_are_stored_once(database: str) -> None:
    async with (
        hitherto.open(database, keep_contexts=9) as memory,
        await psycopg.AsyncConnection[Any].connect(database, autocommit=True) as connection,
    ):

        async def count() -> int:
            row = await (await connection.execute("select count(*) from hitherto.context_text")).fetchone()
            return row[0] if row else 0

        first, second = (memory.conversation(name, scope=SCOPE) for name in "cd")
        for number in range(3):
            for chat in (first, second):
                await chat.context(f"Question {number}", instructions="Be brief.", tools=[TOOL])
        assert await count() == 2
        await second.context("Hello.", instructions="Be kind.", tools=[TOOL])
        assert await count() == 3
        await second.delete()
        await memory.purge_expired()
        assert await count() == 2
        await first.delete()
        await memory.purge_expired()
        assert await count() == 0


async def test_none_is_kept_unless_that_was_asked_for(store: Store) -> None:
    async with opened(store) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.context("Hello.")
        assert await chat.contexts() == []


async def test_for_how_long(store: Store) -> None:
    async with opened(store, keep_contexts_for=timedelta(days=1)) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        for number in range(5):
            await chat.context(f"Hello {number}.")
        assert len(await chat.contexts()) == 5
    async with opened(store, keep_contexts_for=timedelta(milliseconds=1)) as memory:
        await memory.conversation("d", scope=SCOPE).context("Hello.")
    async with opened(store) as memory:  # whoever purges
        await asyncio.sleep(0.01)
        await memory.purge_expired()
        assert await store.contexts.forget() == 0
        assert await memory.conversation("d", scope=SCOPE).contexts() == []
        assert len(await memory.conversation("c", scope=SCOPE).contexts()) == 5


TAKES: dict[str, dict[str, Any]] = {
    "messages": {},
    "digests": {"recall": RecallOptions(kinds=frozenset({EntryKind.DIGEST}))},
    "archives": {"recall": RecallOptions(kinds=frozenset({EntryKind.PASSAGE}))},
    "the newest summary": {"recall": "own", "cross_session": "latest"},
    "another agent's": {"recall": RecallOptions(all_agents=True)},
}


@pytest.mark.parametrize("gone", ["erased", "expired", "deleted", "of a subject"])
@pytest.mark.parametrize("takes", TAKES)
async def test_what_took_from_another_conversation_goes_with_it(store: Store, takes: str, gone: str) -> None:
    policy = token_threshold(30, keep_messages=2, archive=True)
    async with open_on(store, keep_contexts=9, embedder="none") as memory:
        old = memory.conversation("old", scope=SCOPE, policy=policy, subject="boat")
        beside = memory.conversation("beside", scope=SCOPE, policy=policy)
        for chat in (old, beside):
            await unnoticed(store, chat)
            for number in range(3):
                await chat.append(user(f"Question {number}?"), assistant(f"Answer {number}."))
                await memory.wait_for_digests()
        scope = replace(SCOPE, agent="another") if takes == "another agent's" else SCOPE
        new = memory.conversation("new", scope=scope)
        made = await new.context(user(f"What is the password, {SECRET}?"), **TAKES[takes])
        assert "beside" in {one.conversation for one in [*made.manifest.recalled, made.manifest.injected] if one}
        assert len(await new.contexts()) == 1
        match gone:
            case "erased":
                await beside.erase([0])
            case "expired":
                await noticed(store, beside)
                await memory.purge_expired()
            case "deleted":
                await beside.delete()
            case _:
                await beside.configure(subject="boat", create=True)
                await memory.erase_subject(SCOPE.tenant, "boat")
        assert await new.contexts() == []


async def test_a_context_that_cannot_be_kept_is_made_all_the_same(
    memory: Memory, store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails(*_: Any, **__: Any) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(store.contexts, "keep", fails)
    with caplog.at_level(logging.WARNING, logger="hitherto"):
        made = await memory.conversation("c", scope=SCOPE).context("Hello.")
    assert made.messages == [{"role": "user", "content": "Hello."}]
    assert "could not be kept: the disk is full" in caplog.text


async def test_nothing_is_kept_where_nothing_is_written(database: str) -> None:
    store = Store(database)
    await store.open()
    await store.aclose()
    async with hitherto.open(database, keep_contexts=3, read_only=True) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.context("Hello.")
        assert await chat.contexts() == []


@pytest.mark.parametrize("given", [{"limit": 0}, {"limit": "x"}, {"before": "x"}, {"before": True}, {"before": 10**30}])
async def test_bad_arguments(memory: Memory, given: Any) -> None:
    with pytest.raises(InvalidInput):
        await memory.conversation("c", scope=SCOPE).contexts(**given)
