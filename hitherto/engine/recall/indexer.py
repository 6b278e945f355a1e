"""Indexing in the background: messages, digests, passages and facts get entries, then vectors, batch by batch."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from hitherto.core.recall.index import IndexEntry, IndexWork, Source
from hitherto.core.recall.passages import passage_ranges
from hitherto.core.recall.vectors import Space
from hitherto.core.scope import Scope
from hitherto.engine.calls import Calls, told
from hitherto.engine.daily_limit import CallPostponed
from hitherto.engine.digests.attempt import jitter
from hitherto.engine.recall.embedding import Embedding
from hitherto.engine.recall.search import entries_of
from hitherto.engine.services import Services
from hitherto.errors import DatabaseReadOnly, DatabaseUnavailable, StoreError
from hitherto.logs import logger
from hitherto.uninterrupted import uninterrupted

if TYPE_CHECKING:
    from hitherto.store.recall.index import SearchIndex

log = logger("hitherto.index")

_EVERY = 2.0
"""Seconds between two checks for what other processes appended."""

_GATHER = 0.1
"""After so many seconds without an append, what this process appended is indexed together; at the latest after
`_EVERY`."""

_BATCH, _IN_A_ROW = 512, 8
"""Sources in a batch, and batches before the next scope has its turn."""

_LATER = 30.0
"""Seconds before an embedder that failed is called again."""

_DOCUMENTS = "documents"
"""The agent in the ledger for what belongs to no agent."""

_PORTION = 50_000
"""Characters of texts that one call in a thread analyzes; closing the memory waits for no more."""


class Wakeup(asyncio.Event):
    """Set when something was appended. Setting it never fails, even where the indexer's event loop has ended: the
    append is already written."""

    def set(self) -> None:
        with suppress(RuntimeError):
            super().set()


class Indexer:
    """Keeps the search index of all tenants up to date, one scope at a time, under a claim. A dead process's scope is
    taken over when its claim ends. A failed embedder is tried again later; meanwhile what was said is found by its
    words. Closing never interrupts a statement to the store."""

    def __init__(self, services: Services, index: SearchIndex, calls: Calls) -> None:
        self._services, self._index = services, index
        self._embedding = Embedding(services, calls)
        self._calls = calls
        self._lease = services.settings.lease_timeout
        self._loop: asyncio.Task[None] | None = None
        self._again = 0.0
        """When a failed embedder may be called again, by the event loop's clock."""
        self._waits = WeakValueDictionary[str | None, asyncio.Lock]()

    async def start(self) -> None:
        """Start the background task."""
        self._loop = asyncio.create_task(self._run(), name="indexing")

    async def aclose(self) -> None:
        """Stop; the claim on the current scope is given back."""
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.cancel()
            await asyncio.wait([loop])

    async def caught_up(self, tenant: str | None) -> bool:
        """Index all that waits, of any tenant or of one, and wait for what other processes are indexing. Returns
        whether all of it has vectors too: False while the embedder is unavailable. Of many that wait at once for the
        same, one works."""
        async with self._waits.setdefault(tenant, asyncio.Lock()):
            return await self._caught_up(tenant)

    async def _caught_up(self, tenant: str | None) -> bool:
        self._again = 0.0
        while True:
            worked = await self._round(tenant)
            space = self._space()
            load = await self._index.backlog(space, tenant=tenant)
            if not load.waiting and (space is None or not load.unembedded):
                return space is not None or self._services.embedder is None
            if not worked:
                await asyncio.sleep(0.05)

    async def tidied(self, tenant: str | None) -> None:
        """Rebuild all parts of indexes, of any tenant or of one, from which something was removed, or wait for who is
        doing so."""
        while (await self._index.backlog(None, tenant=tenant)).untidy:
            if not await self._round(tenant):
                await asyncio.sleep(0.05)

    async def _run(self) -> None:
        away = False
        while True:
            try:
                while await self._round():
                    pass
                away = False
                while not (await self._wait() or self._services.queue.has_turn()):
                    pass
            except DatabaseReadOnly:
                await asyncio.sleep(60 * jitter())
            except DatabaseUnavailable as error:
                if not away:
                    log.warning("Indexing waits for the database: %s", error)
                away = True
                await asyncio.sleep(_EVERY * jitter())
            except StoreError as error:
                log.warning("Indexing failed and will be tried again: %s", error)
                await asyncio.sleep(_EVERY * 5 * jitter())
            except Exception:  # the edge of a worker: the next round may do better
                log.exception("Indexing failed")
                await asyncio.sleep(_EVERY * 5 * jitter())

    async def _wait(self) -> bool:
        """Wait until this process has appended something and then paused, which it returns, or until other processes
        may have."""
        appended, was_set = self._services.appended, False
        try:
            async with asyncio.timeout(_EVERY * jitter()):
                was_set = await appended.wait()
                while appended.is_set():
                    appended.clear()
                    await asyncio.sleep(_GATHER)
        except TimeoutError:
            appended.clear()
        return was_set

    def _space(self) -> Space | None:
        """The space to be filled; None while a failed embedder is not called."""
        return self._embedding.space if asyncio.get_running_loop().time() >= self._again else None

    async def _round(self, tenant: str | None = None) -> bool:
        """Index one scope, of any tenant or of this one, until nothing is left there or it is another's turn. Returns
        whether there was one."""
        await self._learn()
        work = await self._taken(tenant)
        if work is None:
            return False
        keeping = asyncio.create_task(self._keep(work), name="an index claim")
        try:
            current: IndexWork | None = work
            for _ in range(_IN_A_ROW):
                if current is None or current.done or not await self._worked(current):
                    break
                current = await uninterrupted(
                    self._index.more(current, space=self._space(), lease=self._lease, limit=_BATCH)
                )
        finally:
            keeping.cancel()
            await uninterrupted(self._given_back(work))
        return True

    async def _learn(self) -> None:
        """Learn the embedder's space, if its endpoint was unavailable when the memory was opened."""
        if self._embedding.known or asyncio.get_running_loop().time() < self._again:
            return
        try:
            await self._embedding.learn()
        except Exception as error:  # noqa: BLE001 (a user-supplied embedder may raise anything; there are still words)
            self._again = asyncio.get_running_loop().time() + _LATER
            log.warning("Embedder unavailable; texts will be embedded later: %s", told(error))

    async def _taken(self, tenant: str | None) -> IndexWork | None:
        """Claim a scope; None where nothing is to be done. If cancelled meanwhile, it gives the claim back."""
        found: IndexWork | None = None

        async def take() -> None:
            nonlocal found
            found = await self._index.take(space=self._space(), lease=self._lease, limit=_BATCH, tenant=tenant)

        try:
            await uninterrupted(take())
        except asyncio.CancelledError:
            if found is not None:
                await uninterrupted(self._given_back(found))
            raise
        return found

    async def _keep(self, work: IndexWork) -> None:
        """Renew the claim until cancelled: an embedder may be slow."""
        while True:
            await asyncio.sleep(self._lease.total_seconds() / 3)
            try:
                await uninterrupted(self._index.prolong(work, lease=self._lease))
            except StoreError as error:
                log.debug("A claim on an index could not be renewed: %s", error)

    async def _given_back(self, work: IndexWork) -> None:
        try:
            await self._index.release(work)
        except StoreError as error:
            log.debug("A claim on an index could not be released and will time out: %s", error)

    async def _worked(self, work: IndexWork) -> bool:
        """Index this batch. Returns whether the claim still holds."""
        if work.seen or work.sources:
            entries = [one for some in _portions(work.sources) for one in await asyncio.to_thread(_analyzed, some)]
            if not await uninterrupted(self._index.add(work, entries)):
                return False
        if work.unembedded:
            held = await self._embedded(work)
            if not held:
                return False
        return await uninterrupted(self._index.compact_index(work)) if work.untidy else True

    async def _embedded(self, work: IndexWork) -> bool:
        scope = Scope(tenant=work.tenant, user=work.user, agent=work.agent or _DOCUMENTS)
        texts = [one.text for one in work.unembedded]
        try:
            async with self._calls.recorded(scope) as ledger:
                space, vectors = await self._embedding.documents(texts, work.tenant, ledger)
        except Exception as error:  # noqa: BLE001 (a user-supplied embedder may raise anything; there are still words)
            seconds = error.seconds if isinstance(error, CallPostponed) else _LATER
            self._again = asyncio.get_running_loop().time() + min(seconds, _LATER)
            log.warning("Embedder unavailable; texts will be embedded later: %s", told(error), tenant=work.tenant)
            return True
        return await uninterrupted(self._index.embed(work, space, vectors))


def _analyzed(sources: Sequence[Source]) -> list[list[IndexEntry]]:
    return [entries_of(source, passage_ranges(source.text)) for source in sources]


def _portions(sources: Sequence[Source]) -> Iterator[list[Source]]:
    """All sources in their order, in portions that have at least `_PORTION` characters each, but for the last."""
    portion, size = list[Source](), 0
    for source in sources:
        portion.append(source)
        size += len(source.text)
        if size >= _PORTION:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion
