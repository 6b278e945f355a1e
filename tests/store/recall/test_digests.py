"""Digests in the search index: the summary that stands, and every chunk."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hitherto.core.digests.work import DigestOutcome
from hitherto.core.log.frontier import DigestAction
from hitherto.core.recall.filter import EntryKind
from hitherto.core.recall.index import Source
from hitherto.core.scope import THE_USER
from hitherto.store.store import Store
from tests.store.digests.stage_samples import stage_row, superseded
from tests.store.recall.samples import MINE, candidates, found, indexed, keys_of, search_data, waiting
from tests.store.samples import (
    OTHER_STAGE,
    SCOPE,
    STAGE,
    dialogue,
    ending,
    fire,
    head_of,
    log_of,
    user,
    write,
)

DIGESTS = replace(MINE, kinds=frozenset({EntryKind.DIGEST}))

each_side = pytest.mark.parametrize("first", [False, True], ids=["waiting", "indexed"])


async def ended(store: Store, start: int, end: int, text: str, *, stage: str = STAGE, base: int | None = None) -> int:
    """A summary of "c" with that text; its id."""
    made = await fire(store, "c", start, end, stage=stage, base=base)
    await write(store, "c", outcomes=[DigestOutcome(digest=made, text=text, tokens=len(text))])
    return made


async def chunked(
    store: Store, start: int, end: int, text: str, *, base: int | None = None, action: DigestAction = DigestAction.CHUNK
) -> int:
    """A chunk of "c" with that text; its id."""
    (made,) = (await write(store, "c", fire=[stage_row(action, start, end, completed=False, base=base)])).fired
    await write(store, "c", outcomes=[DigestOutcome(digest=made, text=text, tokens=len(text))])
    return made


class TestSearchDigest:
    @each_side
    async def test_a_digest_is_told_whole(self, store: Store, first: bool) -> None:
        for _ in range(3):
            await write(store, "c", *dialogue(1))
        digest = await ended(store, 1, 3, "a summary")
        said_at = (await log_of(store, "c"))[3].created_at
        if first:
            await indexed(store)
        told = [one.source for one in await candidates(store, DIGESTS)]
        assert [*told, *(await search_data(store, DIGESTS)).waiting] == [
            Source(
                kind=EntryKind.DIGEST,
                origin=(await head_of(store, "c")).ref,
                place=digest,
                text="a summary",
                said_at=said_at,
                conversation="c",
                start=1,
                end=3,
                agent=SCOPE.agent,
                subject=THE_USER,
            )
        ]
        assert len(told) == (1 if first else 0)

    @each_side
    async def test_of_a_chain_of_summaries_the_newest_is_found(self, store: Store, first: bool) -> None:
        await write(store, "c", *dialogue(4))
        base: int | None = None
        for end in (1, 3, 5):
            base = await ended(store, 0, end, f"up to {end}", base=base)
            if first:
                await indexed(store)
            assert await found(store, DIGESTS) == [f"up to {end}"]
        assert base is not None
        await superseded(store, "c", base)
        assert await found(store, DIGESTS) == ["up to 3"]
        await indexed(store)
        assert await waiting(store) == []
        assert await found(store, DIGESTS) == ["up to 3"]
        assert len(keys_of(await search_data(store))) == len(await found(store))

    @each_side
    async def test_the_summary_that_reaches_furthest_stands(self, store: Store, first: bool) -> None:
        """Whichever stage made it, and whatever was made later."""
        await write(store, "c", *dialogue(4))
        await ended(store, 0, 5, "further")
        if first:
            await indexed(store)
        await ended(store, 0, 3, "later", stage=OTHER_STAGE)
        assert await found(store, DIGESTS) == ["further"]
        await indexed(store)
        assert await waiting(store) == []
        assert await found(store, DIGESTS) == ["further"]

    async def test_a_summary_without_text_takes_the_place_of_the_one_before(self, store: Store) -> None:
        await write(store, "c", *dialogue(4))
        base = await ended(store, 0, 3, "before")
        await indexed(store)
        await ended(store, 0, 5, "", base=base)
        await indexed(store)
        assert await found(store, DIGESTS) == []
        assert len(keys_of(await search_data(store))) == len(await found(store))

    @each_side
    async def test_every_chunk_is_found(self, store: Store, first: bool) -> None:
        await write(store, "c", *dialogue(4))
        base: int | None = None
        for start in (0, 2, 4):
            base = await chunked(store, start, start + 1, f"from {start}", base=base)
            if first:
                await indexed(store)
        await ended(store, 0, 7, "of all", base=base)
        assert await found(store, DIGESTS) == ["from 0", "from 2", "from 4", "of all"]
        assert base is not None
        await superseded(store, "c", base)
        assert await found(store, DIGESTS) == ["from 0", "from 2", "of all"]
        await indexed(store)
        assert await waiting(store) == []
        assert await found(store, DIGESTS) == ["from 0", "from 2", "of all"]

    @each_side
    async def test_chunks_go_with_a_clear(self, store: Store, first: bool) -> None:
        """Chunks that reach beyond the clear stay."""
        await write(store, "c", *dialogue(4))
        await chunked(store, 0, 1, "early")
        await chunked(store, 2, 7, "late")
        if first:
            await indexed(store)
        before = keys_of(await search_data(store))
        await write(store, "c", view_start=4)
        assert await found(store, DIGESTS) == ["late"]
        assert {one.source.text for one in await candidates(store, DIGESTS, keys=before)} <= {"late"}
        await indexed(store)
        assert await found(store, DIGESTS) == ["late"]
        await write(store, "c", view_start=0)
        assert await found(store, DIGESTS) == ["early", "late"]
        await indexed(store)
        assert await found(store, DIGESTS) == ["early", "late"]
        assert await waiting(store) == []

    async def test_what_is_no_text_of_a_range_is_not_found(self, store: Store) -> None:
        await write(store, "c", *dialogue(4))
        await fire(store, "c", 0, 1)
        for how, stage in (("failed", "a"), ("superseded", "b")):
            digest = await fire(store, "c", 0, 1, stage=stage)
            await write(store, "c", outcomes=[replace(ending(how, digest), text="tea")])
        for action in (DigestAction.COMPACT, DigestAction.DROP, DigestAction.REDACT):
            await chunked(store, 0, 1, "tea", action=action)
        await chunked(store, 0, 1, " \n")
        assert await found(store, DIGESTS) == []
        await indexed(store)
        assert await found(store, DIGESTS) == []
        assert await waiting(store) == []

    async def test_a_digest_has_no_neighbours(self, store: Store) -> None:
        await write(store, "c", *(user(f"{at}") for at in range(4)))
        await chunked(store, 0, 1, "of two")
        await indexed(store)
        (key,) = [one.key for one in await candidates(store, DIGESTS)]
        assert [one.source.text for one in await candidates(store, keys=[key], around=9)] == ["of two"]
