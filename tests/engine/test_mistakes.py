"""What newcomers try first, and what they are told."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any, cast

import pytest

import hitherto
from hitherto import Manifest, Memory, RecallOptions, assistant, rolling, sliding_window, user
from hitherto.errors import (
    ConcurrentWrite,
    DatabaseUnavailable,
    InvalidInput,
    InvalidMessage,
    NotReproducible,
    StoreError,
)
from hitherto.providers.scripted import Scripted
from hitherto.store.store import Store
from tests.conftest import SCOPE
from tests.memories import open_on


@pytest.fixture
async def memory() -> AsyncIterator[Memory]:
    async with hitherto.open("memory:") as opened:
        yield opened


class _HalfAnEmbedder:
    async def query(self, text: str) -> object:
        return text


@pytest.mark.parametrize(
    ("name", "given", "why"),
    [
        ("embedder", _HalfAnEmbedder(), "has no aclose, batch, documents, local, space; give"),
        ("embedder", 3, r"int that cannot be used: .*hitherto.ports.models.Embedder"),
        ("previous_embedders", [_HalfAnEmbedder()], "previous_embedders is a _HalfAnEmbedder"),
        ("model", Scripted, "model is a .*: it is a class; give an object"),
        ("model", object(), "it has no aclose, complete, input_limit, name"),
        ("reranker", object(), "it has no aclose, limit, name, rerank"),
        ("compactor", object(), "compactor is a object"),
        ("watch", object(), "watch is a object"),
    ],
)
async def test_an_object_that_lacks_something(name: str, given: Any, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        await hitherto.open("memory:", **{name: given})


async def test_a_text_is_a_users_message(memory: Memory) -> None:
    chat = memory.conversation("text", scope=SCOPE)
    context = await chat.context("hello")
    assert context.messages == [{"role": "user", "content": "hello"}]
    assert (await chat.context("hello", wire="anthropic")).messages == [{"role": "user", "content": "hello"}]
    assert context.request == (await chat.context(user("hello"))).request
    assert (await chat.rebuild(context.manifest)).request == context.request


async def test_a_contexts_policy_is_for_that_context_alone() -> None:
    """Tasks that share a conversation's object do not change what each other's appends set off."""
    async with hitherto.open("memory:", model=Scripted()) as memory:
        chat = memory.conversation("c", scope=SCOPE, policy=rolling(threshold=40))
        await chat.append(user("one"))
        context = await chat.context("two", policy=sliding_window(window=2, after_seq=0))
        assert context.manifest.policy_from == "request"
        appended = await chat.append(user("two"), hitherto.assistant("answer"))
        assert appended.digest is None
        appended = await chat.append(
            user("three"), hitherto.assistant("more"), policy=sliding_window(window=2, after_seq=0)
        )
        assert appended.digest is not None


@pytest.mark.parametrize("content", [None, 3, {"role": "user"}])
def test_a_message_without_a_text(content: object) -> None:
    with pytest.raises(InvalidMessage, match="give a text"):
        user(cast(Any, content))


def test_an_expiry_that_is_a_duration() -> None:
    with pytest.raises(InvalidMessage, match=r"give a time with a zone, e\.g\. datetime\.now"):
        user("hello").expiring(cast(Any, timedelta(days=1)))


async def test_what_is_no_manifest(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match=r"give a Manifest: context\.manifest, or Manifest\.from_json"):
        await memory.conversation("c", scope=SCOPE).rebuild(cast(Any, {}))


def test_an_await_that_was_forgotten() -> None:
    opening = hitherto.open("memory:")
    with pytest.raises(AttributeError, match=r"was not awaited.*async with hitherto\.open"):
        cast(Any, opening).conversation("c", scope=SCOPE)
    assert not hasattr(opening, "conversation")


@pytest.mark.parametrize("database", ["memory", "Memory", "in-memory", "memroy:"])
async def test_a_database_that_is_no_address(database: str) -> None:
    with pytest.raises(DatabaseUnavailable, match=r"write it as postgresql://.*or as 'memory:'"):
        await hitherto.open(database)


async def test_a_memory_that_was_closed() -> None:
    memory = await hitherto.open("memory:")
    chat = memory.conversation("c", scope=SCOPE)
    await chat.append(user("kept"))
    await memory.aclose()
    with pytest.raises(StoreError, match="closed"):
        await chat.append(user("lost"))
    with pytest.raises(StoreError, match="closed"):
        await chat.context("lost")
    with pytest.raises(InvalidInput, match=r"closed; open another one"):
        await memory.start()


async def test_a_memory_that_is_started_twice(database: str) -> None:
    before = asyncio.all_tasks()
    async with await hitherto.open(database) as memory:  # `open()` started it, and so does `async with`
        await asyncio.sleep(0)
        names = [task.get_name() for task in asyncio.all_tasks() - before]
        assert [names.count(name) for name in ("digest looks", "digest sweep", "indexing")] == [1, 1, 1]
        assert await memory.start() is memory
    assert asyncio.all_tasks() == before


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, True),
        ({"model_provider": "anthropic"}, True),
        ({"model_key": "sk-x"}, False),
        ({"model_base_url": "http://127.0.0.1:9/v1"}, False),
        ({"model_provider": "ollama"}, False),
    ],
)
async def test_a_model_without_a_key(given: dict[str, Any], told: bool, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "hitherto"):
        async with hitherto.open("memory:", model="some-model", **given):
            pass
    assert ("Set HITHERTO_MODEL_KEY" in caplog.text) is told


async def test_an_argument_of_another_kind(memory: Memory) -> None:
    cases: list[tuple[Any, ...]] = [
        ({"incoming": 5}, "incoming is 5; give a text, a message such as user"),
        ({"instructions": ["Be brief."]}, r"instructions is \['Be brief.'\]; give a text"),
        ({"model": 7}, "model is 7; give a text"),
        ({"at": "2026-01-01"}, "at is '2026-01-01'; give the number of a revision"),
        ({"incoming": [[user("one")]]}, "a message is a mapping and this is list"),
    ]
    for given, says in cases:
        chat = memory.conversation("kinds", scope=SCOPE)
        with pytest.raises((InvalidInput, InvalidMessage), match=says):
            await chat.context(**given)


async def test_a_list_of_messages(memory: Memory) -> None:
    with pytest.raises(InvalidMessage, match=r"append\(\*messages\)"):
        await memory.conversation("list", scope=SCOPE).append(cast(Any, [user("one"), user("two")]))


@pytest.mark.parametrize("number", [10**400, -(10**400), 2**63], ids=["huge", "negative", "long"])
async def test_a_number_beyond_all_that_can_be(number: int, store: Store) -> None:
    async with open_on(store) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user("We took the Granary."), assistant("How was it?"))
        await memory.facts(SCOPE).add("Likes the Granary.")
        manifest = (await chat.context("And?", budget=1_000, recall=False)).manifest
        told: dict[str, Any] = {"why": "request", "kind": "message", "conversation": "c", "score": 1, "tokens": 1}
        recalled = {**manifest.to_json(), "recalled": [{**told, "agent": SCOPE.agent, "start": number, "end": number}]}
        for verb in (
            lambda: chat.known(budget=number),
            lambda: chat.context("And?", budget=number, recall=False),
            lambda: chat.context("And?", budget=number, reserve=number - 1, recall=False),
            lambda: chat.context("And?", wait=number, recall=False),
            lambda: chat.rebuild(Manifest.from_json(recalled)),
            lambda: chat.expand((0, 1), budget=number),
            lambda: chat.erase([number]),
            lambda: chat.rewind(to=number),
            lambda: chat.append(user("Good."), expect=number),
            lambda: memory.recall("Granary", scope=SCOPE, min_score=number),
            lambda: memory.recall("Granary", scope=SCOPE, limit=number),
        ):
            with pytest.raises((InvalidInput, NotReproducible, ConcurrentWrite)):
                await verb()
        with pytest.raises(InvalidInput, match="share"):
            RecallOptions(share=number)
        assert await memory.facts(SCOPE).get(number) is None
        assert await memory.documents(SCOPE).get(number) is None
