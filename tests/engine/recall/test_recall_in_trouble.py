"""Recall while an embedder fails or a search is cut off: what it answers, and what is paid for."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import date
from typing import Any

import pytest

from hitherto import Memory, assistant, user
from hitherto.core.context.recalled import RecallReason
from hitherto.core.recall.filter import SearchFilter
from hitherto.core.recall.index import SearchData
from hitherto.core.recall.vectors import Vectors
from hitherto.engine.context.recalled import RecallQuery, load_searches
from hitherto.engine.recall import embedding, recall
from hitherto.errors import ModelRejected, ModelUnavailable, StoreError
from hitherto.limiter import served_caller
from hitherto.policies import Policy, chunks
from hitherto.ports.models import Embeddings
from hitherto.providers.scripted import EmbedderReply, Hang, ScriptedEmbedder, not_a_number
from hitherto.store.recall import search
from hitherto.store.recall.index import SearchIndex
from hitherto.store.store import Store
from tests.conftest import SCOPE
from tests.memories import open_on
from tests.patience import PATIENCE

Opened = Callable[..., AbstractAsyncContextManager[Memory]]
TODAY = date(2026, 7, 15)
QUESTION = "what instrument do I play, my friend"


class Local(ScriptedEmbedder):
    """Computes in this process."""

    @property
    def local(self) -> bool:
        return True


class Panic(BaseException):
    """As what a panic in an extension module is raised as: no Exception."""


def out_of_memory(_: Vectors) -> object:
    raise RuntimeError("out of memory")


def panics(_: Vectors) -> object:
    raise Panic("index out of bounds")


def cancels(_: Vectors) -> object:
    raise asyncio.CancelledError


@pytest.fixture
def opened(store: Store) -> Opened:
    """Opens memories on one store that index only when they are told to."""

    def opening(**options: Any) -> AbstractAsyncContextManager[Memory]:
        given: dict[str, Any] = {"worker": False, "embedder": ScriptedEmbedder(), **options}
        return open_on(store, **given)

    return opening


def index_of(memory: Memory) -> SearchIndex:
    return memory._services.store.index


class Slow(Local):
    """Takes longer than `embedder_timeout`, as a computation in this process does on a busy machine."""

    async def query(self, text: str) -> Embeddings:
        await asyncio.sleep(0.05)
        return await super().query(text)


async def test_a_computation_in_this_process_gets_longer_than_a_request(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "PATIENCE", 50_000)  # so that no machine is too slow for this test
    async with opened(embedder=Slow(), embedder_timeout=0.02) as memory:
        await memory.conversation("c", scope=SCOPE).append(user("I play the cello"), assistant("ok"))
        assert await memory.wait_for_index()
        assert (await memory.recall("cello", scope=SCOPE)).missing == ()


class TestWhatIsNotIndexedYet:
    @pytest.mark.parametrize(
        "fault",
        [not_a_number, out_of_memory, ModelUnavailable("gone"), ModelRejected("no"), panics, cancels, Hang()],
        ids=["NaN", "defect", "away", "refused", "panic", "cancelled by its own", "hanging"],
    )
    async def test_it_is_found_by_its_words_where_the_embedder_fails(
        self, opened: Opened, fault: EmbedderReply
    ) -> None:
        """What computes in this process is asked for the vectors of what waits for the index, too."""
        embedder = Local()
        async with opened(embedder=embedder, embedder_timeout=0.1) as memory:
            chat = memory.conversation("c", scope=SCOPE)
            await chat.append(user("The cello is old."))
            assert await memory.wait_for_index()
            embedder._then = fault
            await chat.append(user("I play the cello"), assistant("ok"))
            recalled = await memory.recall("cello", scope=SCOPE)
            assert {hit.text for hit in recalled.hits} == {"The cello is old.", "I play the cello"}
            assert (recalled.missing, recalled.space) == (("embedder",), None)
            made = await memory.conversation("d", scope=SCOPE).context(user("and the cello?"), recall=True)
            assert made.manifest.recalled
            assert "embedder" in made.manifest.missing
            embedder._then = None
            assert (await memory.recall("cello", scope=SCOPE)).missing == ()

    async def test_a_cancellation_is_none_of_its_faults(self, opened: Opened) -> None:
        async with opened(embedder=Local(then=Hang())) as memory:
            await memory.conversation("c", scope=SCOPE).append(user("I play the cello"))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await memory.recall("cello", scope=SCOPE)


class TestTheLedger:
    """What a question's vector cost is put down, whatever comes of the search; and counts once against a ceiling."""

    @pytest.mark.parametrize("how", ["cancelled", "failing"])
    async def test_of_a_search_that_is_cut_off(self, opened: Opened, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
        async def connection_lost(*_: object, **__: object) -> None:
            if how == "failing":
                raise StoreError("statement timeout")
            await asyncio.sleep(0.1)

        embedder = ScriptedEmbedder()
        async with opened(embedder=embedder, daily_tokens=100) as memory:
            await memory.conversation("c", scope=SCOPE).append(user("I play the cello"))
            await memory.wait_for_index()
            with monkeypatch.context() as patched:
                patched.setattr(index_of(memory), "candidates", connection_lost)
                for _ in range(3):
                    with pytest.raises((TimeoutError, StoreError)):
                        async with asyncio.timeout(0.05):
                            await memory.recall(QUESTION, scope=SCOPE)
            await self.every_call_is_in_it_once(memory, embedder)

    async def test_of_a_question_that_is_cancelled(self, opened: Opened) -> None:
        embedder = ScriptedEmbedder()
        async with opened(embedder=embedder, daily_tokens=100) as memory:
            await memory.conversation("c", scope=SCOPE).append(user("I play the cello"))
            await memory.wait_for_index()
            embedder._then = Hang()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await memory.recall(QUESTION, scope=SCOPE)
            await self.every_call_is_in_it_once(memory, embedder)

    async def test_of_a_search_that_is_left_after_its_first_half(self, opened: Opened) -> None:
        """As by a context that turns out not to fit."""
        embedder = ScriptedEmbedder()
        async with opened(embedder=embedder, daily_tokens=100) as memory:
            await memory.conversation("c", scope=SCOPE).append(user("I play the cello"))
            await memory.wait_for_index()
            async with memory._services.searches.late_turn() as turn:
                await memory._recaller.load_search(QUESTION, SearchFilter(scope=SCOPE), turn, today=TODAY)
            await self.every_call_is_in_it_once(memory, embedder)

    async def test_of_an_embedder_that_had_to_be_asked_for_its_space(self, opened: Opened) -> None:
        class Shy(ScriptedEmbedder):
            @property
            def space(self) -> Any:
                if not self.calls:
                    raise ModelUnavailable("not asked yet")
                return super().space

        async with opened(embedder=Shy(), daily_tokens=100) as memory:
            await memory.conversation("c", scope=SCOPE).append(user("I play the cello"))
            assert await memory.wait_for_index()
            assert memory._recaller._calls._daily_limit._unwritten == {}

    async def every_call_is_in_it_once(self, memory: Memory, embedder: ScriptedEmbedder) -> None:
        (costs,) = await memory.costs("tenant", tenant=SCOPE.tenant)
        assert costs.calls == len(embedder.calls)
        assert memory._recaller._calls._daily_limit._unwritten == {}, "nothing is under way"


async def test_few_hold_a_large_scope_at_once(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one tenant two, also while its scope is searched for the first time; those beyond wait with nothing."""
    monkeypatch.setattr(recall, "_LARGE", 1)
    held, most = set[int](), list[int]()
    async with opened() as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user("I play the cello"), assistant("Since when?"))
        assert await memory.wait_for_index()
        search_data = index_of(memory).search_data

        async def held_data(*given: Any, **named: Any) -> SearchData:
            found = await search_data(*given, **named)
            lengths = found.blocks[0].lengths
            held.add(id(lengths))
            weakref.finalize(lengths, held.discard, id(lengths))
            return found

        async def ask(number: int) -> None:
            served_caller.set((SCOPE.tenant, ""))
            if number % 2:
                other = memory.conversation("d", scope=SCOPE)
                assert "cello" in str((await other.context(user(QUESTION), recall=True)).messages)
            else:
                assert (await memory.recall(QUESTION, scope=SCOPE)).hits
            most[-1] = max(most[-1], len(held))

        async def waits(*given: Any, **named: Any) -> Any:
            most[-1] = max(most[-1], len(held))
            return await candidates(*given, **named)

        candidates = index_of(memory).candidates
        monkeypatch.setattr(index_of(memory), "search_data", held_data)
        monkeypatch.setattr(index_of(memory), "candidates", waits)
        for _ in range(2):
            most.append(0)
            async with asyncio.timeout(PATIENCE):
                await asyncio.gather(*map(ask, range(20)))
        monkeypatch.undo()
    assert most[0] < 10, "the first time, those that load it on a connection too"
    assert most[1] == 2
    assert not held


async def test_searches_for_more_than_a_hundred_hits_take_turns(opened: Opened) -> None:
    async with opened() as memory:
        await memory.conversation("c", scope=SCOPE).append(user("I play the cello"), assistant("Since when?"))
        searches = memory._services.searches
        async with searches.turn(), searches.turn(), searches.turn(), searches.turn():
            many = asyncio.create_task(memory.recall(QUESTION, scope=SCOPE, limit=101))
            for _ in range(3):
                assert (await memory.recall(QUESTION, scope=SCOPE, limit=100)).hits
            assert not many.done()
        assert (await many).hits


async def test_of_long_texts_that_wait_the_newest_are_searched(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall, "_WAITING_TEXT", 100)
    async with opened() as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(*(user(f"I play the cello, and this is number {number}") for number in range(5)))
        found = await memory.recall(QUESTION, scope=SCOPE)
        assert {hit.start for hit in found.hits} == {3, 4}
        assert "index" in found.missing


async def test_of_a_large_message_that_waits_the_item_is_not_read(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """500 of them would be parsed for their authors' names while all others wait."""
    read = list[int]()

    def author_in(role: str, raw: str) -> None:
        read.append(len(raw))

    monkeypatch.setattr(search, "author_in", author_in)
    async with opened() as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user("I play the cello"), user("I play the cello" + " again" * 10_000))
        assert {hit.start for hit in (await memory.recall(QUESTION, scope=SCOPE)).hits} == {0, 1}
    assert len(read) == 1


async def test_stages_with_recalled_digests_make_one_search(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    stages = [stage for threshold in (30, 40, 50) for stage in chunks(threshold=threshold).stages]
    async with opened(policy=Policy("chunks", tuple(stages))) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user("I play the cello"), assistant("Since when?"))
        search_data, asked = index_of(memory).search_data, 0

        async def counted(*given: Any, **named: Any) -> SearchData:
            nonlocal asked
            asked += 1
            return await search_data(*given, **named)

        monkeypatch.setattr(index_of(memory), "search_data", counted)
        await chat.context(user(QUESTION))
        assert asked == 1


async def test_a_search_that_fails_leaves_no_turn_taken(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by another search of the same context either, which takes its turn after that."""
    monkeypatch.setattr(recall, "_LARGE", 1)
    async with opened() as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user("I play the cello"), assistant("Since when?"))
        assert await memory.wait_for_index()
        search_data, asked = index_of(memory).search_data, 0

        async def first_fails(*given: Any, **named: Any) -> SearchData:
            nonlocal asked
            asked += 1
            if asked == 1:
                raise RuntimeError
            return await search_data(*given, **named)

        monkeypatch.setattr(index_of(memory), "search_data", first_fails)
        queries = [
            RecallQuery(
                why=RecallReason.REQUEST,
                question=QUESTION,
                criteria=SearchFilter(scope=SCOPE),
                limit=1,
                min_score=0,
                today=TODAY,
            )
            for _ in range(2)
        ]
        searches = memory._services.searches
        with pytest.raises(RuntimeError):
            async with searches.late_turn() as turn:
                await load_searches(memory._recaller, queries, turn)
        assert asked == 3, "the other one has ended too"
        async with asyncio.timeout(PATIENCE), searches.turn(), searches.turn(), searches.turn(), searches.turn():
            pass
