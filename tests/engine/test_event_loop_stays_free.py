"""Work that grows with somebody's text leaves the event loop, or is done on a part of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

import hitherto
from hitherto import assistant, token_threshold, user
from hitherto.core.recall.trigger_phrases import TRIGGERS, triggered
from hitherto.engine.context.recalled import question_of
from hitherto.providers.scripted import Scripted, items
from hitherto.tokens import BpeCounter
from hitherto.wiring import Opening
from tests.conftest import SCOPE

PASTED = "2026-01-01 12:00 INFO nothing to see here\n" * 30_000
ARCHIVING = token_threshold(threshold=10, keep_messages=2, archive=True)

Watched = Callable[[str], "set[threading.Thread]"]


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    """The threads in which a function is called, by its name where it is used."""

    def watching(name: str) -> set[threading.Thread]:
        place, _, called = f"hitherto.{name}".rpartition(".")
        real: Callable[..., Any] = getattr(import_module(place), called)
        threads: set[threading.Thread] = set()

        def call(*given: Any, **named: Any) -> Any:
            threads.add(threading.current_thread())
            return real(*given, **named)

        monkeypatch.setattr(f"{place}.{called}", call)
        return threads

    return watching


def memory(**given: Any) -> Opening:
    options: dict[str, Any] = {"worker": False, **given}
    return hitherto.open("memory:", **options)


async def test_a_document_is_cut_in_a_thread_however_short_it_is(watched: Watched) -> None:
    threads = watched("core.documents._cut")
    async with memory() as opened:
        await opened.documents(SCOPE).add("The code of the alarm is 4711.")
    assert threads
    assert threading.current_thread() not in threads


async def test_an_archive_is_cut_in_a_thread(watched: Watched) -> None:
    threads = watched("engine.digests.make.passages")
    async with memory(worker=True, model=Scripted(then=items(("They talked.", [0])))) as opened:
        chat = opened.conversation("c", scope=SCOPE, policy=ARCHIVING)
        for turn in range(5):
            await chat.append(user(f"What about number {turn}?"), assistant("It is fine, and so are the others."))
        await opened.wait_for_digests()
        assert await opened.documents(SCOPE).list()
    assert threads
    assert threading.current_thread() not in threads


async def test_what_was_said_is_indexed_in_a_thread(watched: Watched) -> None:
    threads = watched("engine.recall.indexer.entries_of")
    async with memory() as opened:
        await opened.conversation("c", scope=SCOPE).append(*(user("We took the Granary. " * 50) for _ in range(60)))
        assert await opened.wait_for_index()
    assert threads
    assert threading.current_thread() not in threads


async def test_much_that_waits_to_be_indexed_is_searched_in_a_thread(watched: Watched) -> None:
    threads = watched("engine.recall.search.analyzed")
    async with memory() as opened:
        await opened.conversation("c", scope=SCOPE).append(user("The code of the alarm is 4711."), *[user(PASTED)] * 3)
        found = await opened.recall("the code of the alarm", scope=SCOPE)
        assert "4711" in found.hits[0].text
    assert threads
    assert threading.current_thread() not in threads


async def test_what_every_second_message_is_missing_of_is_shown_in_a_thread(watched: Watched) -> None:
    views, contexts = watched("engine.context.log_reader.view"), watched("engine.context.build.Fitting")
    async with memory() as opened:
        chat = opened.conversation("c", scope=SCOPE)
        await chat.append(*(user("Hello.") for _ in range(16_000)))
        assert await chat.erase(range(1, 16_000, 2)) == 8_000
        whole = await chat.context("Go on.", budget=1_000_000, recall=False)
        assert [(one.start, one.end) for one in whole.manifest.fates] == [(seq, seq) for seq in range(16_000)]
        assert (await chat.rebuild(whole.manifest)).request == whole.request
        for threads in (views, contexts):
            threads.clear()
        await chat.context("Go on.", budget=400, recall=False)
    for threads in (views, contexts):
        assert threads
        assert threading.current_thread() not in threads


async def test_the_room_beside_long_messages_is_counted_in_a_thread(watched: Watched) -> None:
    threads = watched("core.context.fit.digest_tokens")
    async with memory() as opened:
        chat = opened.conversation("c", scope=SCOPE)
        await chat.append(user(PASTED))
        await opened.facts(SCOPE).add("The alarm is loud.")
        assert (await chat.context("Which code?", budget=1_000_000)).manifest.facts is not None
    assert threads
    assert threading.current_thread() not in threads


async def test_a_long_message_in_a_new_conversation_is_counted_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads, count = set[threading.Thread](), BpeCounter._count

    def counted(self: BpeCounter, text: str) -> int:
        if len(text) >= len(PASTED):
            threads.add(threading.current_thread())
        return count(self, text)

    monkeypatch.setattr(BpeCounter, "_count", counted)
    async with memory() as opened:
        await opened.facts(SCOPE).add("Plays chess.", category="hobby")
        context = await opened.conversation("c", scope=SCOPE).context(PASTED, budget=2_000_000)
        assert context.manifest.facts is not None
    assert threads
    assert threading.current_thread() not in threads


@pytest.mark.parametrize("asked", ["{}\n" + PASTED, PASTED + "{}", PASTED + "{}\n"])
def test_of_a_long_message_both_ends_are_what_is_asked(asked: str) -> None:
    question = question_of([user(asked.format("What did we discuss about the Granary last time?"))])
    assert len(question) < len(PASTED) / 10
    assert triggered(question, TRIGGERS) == "what did we discuss"
    assert "Granary" in question


def test_what_is_asked_is_all_of_a_usual_message() -> None:
    said = "a question. " * 3_000
    assert question_of([user(said), assistant("No."), user("And?")]) == f"{said}\nAnd?"
