"""Indexing in the background: messages, digests and passages get entries, then vectors, batch by batch."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress

from hitherto.core.recall.terms import TermCounts, analyzed
from hitherto.core.scope import Scope
from hitherto.engine.calls import Calls, told
from hitherto.engine.daily_limit import CallPostponed
from hitherto.engine.digests.attempt import jitter
from hitherto.engine.recall.embedding import Embedding
from hitherto.engine.services import Services
from hitherto.errors import DatabaseReadOnly, StoreError
from hitherto.logs import logger
from hitherto.ports.embedder import Space
from hitherto.ports.recall import IndexWork, SearchIndex, Source
from hitherto.uninterrupted import uninterrupted

log = logger("hitherto.index")

_EVERY = 2.0
"""Seconds between two looks for what others appended."""

_GATHER = 0.1
"""Seconds without an append of this process after which what it appended is indexed together; at the latest it is
when others' are looked for."""

_BATCH, _IN_A_ROW = 512, 8
"""So many messages at once, and so many times before the next scope has its turn."""

_LATER = 30.0
"""Seconds for which an embedder that failed is left alone."""

_DOCUMENTS = "documents"
"""Whom the ledger names for what belongs to no agent."""

_PORTION = 50_000
"""Characters of texts that are analyzed in a thread at once; whoever closes the memory waits for no more."""


class Wakeup(asyncio.Event):
    """Is rung where something was appended: that is written by then, and must not fail for want of one who listens, as
    it would where the event loop that the indexer ran in has ended."""

    def set(self) -> None:
        with suppress(RuntimeError):
            super().set()


class Indexer:
    """Keeps the search index up to date, for all tenants, and never leaves the store in the middle of a statement: one
    scope at a time, behind a claim. A dead process's scope is taken over when its claim ends. Whatever goes wrong with
    an embedder is tried again later; meanwhile what was said is found by its words."""

    def __init__(self, services: Services, index: SearchIndex, calls: Calls) -> None:
        self._services, self._index = services, index
        self._embedding = Embedding(services, calls)
        self._calls = calls
        self._lease = services.settings.lease_timeout
        self._loop: asyncio.Task[None] | None = None
        self._again = 0.0
        """When the embedder is to be asked again, by the event loop's clock."""

    async def start(self) -> None:
        """Begin to index what comes."""
        self._loop = asyncio.create_task(self._run(), name="indexing")

    async def aclose(self) -> None:
        """Stop; a batch in hand is given back."""
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.cancel()
            await asyncio.wait([loop])

    async def caught_up(self) -> bool:
        """Index all that waits, and wait for what others have in hand; returns whether all of it has vectors too, which
        an embedder that is away prevents."""
        self._again = 0.0
        while True:
            worked = await self._round()
            space = self._space()
            load = await self._index.backlog(space)
            if not load.waiting and (space is None or not load.unembedded):
                return space is not None or self._services.embedder is None
            if not worked:
                await asyncio.sleep(0.05)

    async def _run(self) -> None:
        while True:
            try:
                while await self._round():
                    pass
                await self._wait()
            except DatabaseReadOnly:
                await asyncio.sleep(60 * jitter())
            except StoreError as error:
                log.warning("Indexing failed and will be tried again: %s", error)
                await asyncio.sleep(_EVERY * 5 * jitter())
            except Exception:  # the edge of a worker: the next round may do better
                log.exception("Indexing failed")
                await asyncio.sleep(_EVERY * 5 * jitter())

    async def _wait(self) -> None:
        """Until others may have appended something, or this process has and is quiet again for a moment."""
        appended = self._services.appended
        try:
            async with asyncio.timeout(_EVERY * jitter()):
                await appended.wait()
                while appended.is_set():
                    appended.clear()
                    await asyncio.sleep(_GATHER)
        except TimeoutError:
            appended.clear()

    def _space(self) -> Space | None:
        """The space to be filled; None while the embedder is left alone."""
        return self._embedding.space if asyncio.get_running_loop().time() >= self._again else None

    async def _round(self) -> bool:
        """One scope, until nothing is left to be done there or it is others' turn; whether there was one."""
        await self._learn()
        work = await self._taken()
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
        """An endpoint that was away when the memory was opened may be there by now."""
        if self._embedding.known or asyncio.get_running_loop().time() < self._again:
            return
        try:
            await self._embedding.learn()
        except Exception as error:  # noqa: BLE001 (an embedder may be somebody's own; whatever it does, there are words)
            self._again = asyncio.get_running_loop().time() + _LATER
            log.warning("Embedder unavailable; texts will be embedded later: %s", told(error))

    async def _taken(self) -> IndexWork | None:
        """A claim, if there is one to be had. Cancelled meanwhile, it gives back what it got."""
        found: IndexWork | None = None

        async def take() -> None:
            nonlocal found
            found = await self._index.take(space=self._space(), lease=self._lease, limit=_BATCH)

        try:
            await uninterrupted(take())
        except asyncio.CancelledError:
            if found is not None:
                await uninterrupted(self._given_back(found))
            raise
        return found

    async def _keep(self, work: IndexWork) -> None:
        """Renews the claim while an embedder takes its time."""
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
        """Whether the claim still holds after this batch."""
        if work.seen or work.sources:
            entries = [one for some in _portions(work.sources) for one in await asyncio.to_thread(_analysed, some)]
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
        except Exception as error:  # noqa: BLE001 (an embedder may be somebody's own; whatever it does, there are words)
            seconds = error.seconds if isinstance(error, CallPostponed) else _LATER
            self._again = asyncio.get_running_loop().time() + min(seconds, _LATER)
            log.warning("Embedder unavailable; texts will be embedded later: %s", told(error), tenant=work.tenant)
            return True
        return await uninterrupted(self._index.embed(work, space, vectors))


def _analysed(sources: Sequence[Source]) -> list[TermCounts]:
    return [analyzed(source.text, author=source.author) for source in sources]


def _portions(sources: Sequence[Source]) -> Iterator[list[Source]]:
    """All sources in their order; each portion but the last has at least so many characters."""
    portion, size = list[Source](), 0
    for source in sources:
        portion.append(source)
        size += len(source.text)
        if size >= _PORTION:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion
