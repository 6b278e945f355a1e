"""Digests in the search index: the summary that stands, and every chunk."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hitherto.core.digests.digest import DigestOutcome
from hitherto.core.log.frontier import DigestAction
from hitherto.core.recall.filter import EntryKind
from hitherto.core.recall.index import Source
from hitherto.core.scope import THE_USER
from hitherto.store.store import Store
from tests.store.digests.stage_samples import stage_row
from tests.store.recall.samples import MINE, candidates, indexed, search_data
from tests.store.samples import (
    SCOPE,
    STAGE,
    dialogue,
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

    async def test_a_digest_has_no_neighbours(self, store: Store) -> None:
        await write(store, "c", *(user(f"{at}") for at in range(4)))
        await chunked(store, 0, 1, "of two")
        await indexed(store)
        (key,) = [one.key for one in await candidates(store, DIGESTS)]
        assert [one.source.text for one in await candidates(store, keys=[key], around=9)] == ["of two"]
