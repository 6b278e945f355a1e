"""Whatever happens to conversations, and whenever they are indexed: what is found is exactly what stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hitherto.core.digests.digest import Digest, DigestOutcome, RewrittenDigest, Status
from hitherto.core.log.frontier import DigestAction
from hitherto.core.log.message import Kind, Message
from hitherto.core.recall.index import IndexWork
from hitherto.store.store import Store
from tests.lengths import examples, lasting
from tests.store.digests.stage_samples import reach, stage_row, superseded, take_back
from tests.store.recall.samples import (
    SPACE,
    candidates,
    found,
    having,
    indexed,
    keys_of,
    made,
    search_data,
    vectors_of,
    waiting,
)
from tests.store.samples import HOUR, SCOPE, assistant, clear, log_of, reasoning, user, write

NAMES = ("c", "d")
WORDS = ("tea", "milk", "sugar")
FOUND = (Kind.TEXT, Kind.TOOL_CALL, Kind.TOOL_RESULT)

Step = tuple[Any, ...]

names = st.sampled_from(NAMES)
texts = st.one_of(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join), st.sampled_from(["", " "]))
messages = st.tuples(st.sampled_from(["user", "user", "assistant", "reasoning", "expired"]), texts)
places = st.integers(0, 30)

talking = st.tuples(st.just("append"), names, st.lists(messages, min_size=1, max_size=4))
digesting = st.tuples(
    st.just("digest"),
    names,
    st.sampled_from([DigestAction.SUMMARIZE, DigestAction.CHUNK]),
    places,
    places,
    st.booleans(),
    texts,
)
erasing = st.tuples(st.just("erase"), names, places)
taking_back = st.tuples(st.just("take back"), names, st.integers(1, 3))
clearing = st.tuples(st.just("clear"), names)
restoring = st.tuples(st.just("restore"), names)
rewriting = st.tuples(st.just("rewrite"), names, places, texts, st.sampled_from([False, False, True]))
superseding = st.tuples(st.just("supersede"), names, places)
deleting = st.tuples(st.just("delete"), names)
taking = st.tuples(st.just("take"), st.integers(1, 4))
adding = st.tuples(st.just("add"))
going_on = st.tuples(st.just("more"), st.integers(1, 4))
tending = st.tuples(st.just("tend"))
indexing = st.tuples(st.just("index"))

# How often each is drawn; alternatives of alternatives would all count alike.
KINDS = [
    *(talking, talking, talking, digesting, digesting, digesting),
    *(erasing, taking_back, clearing, restoring, restoring, rewriting, superseding),
    *(taking, taking, adding, adding, going_on, tending, indexing, indexing),
]
steps_of_any = st.sampled_from([*KINDS, *KINDS, deleting]).flatmap(lambda kind: kind)
histories = st.lists(steps_of_any, min_size=10, max_size=40)


@dataclass
class World:
    """A store, and what an indexing worker has in hand there."""

    store: Store
    work: IndexWork | None = None
    stages: list[str] = field(default_factory=list[str])

    async def do(self, step: Step) -> None:
        match step:
            case ("take" | "add" | "more" | "tend" | "index", *_):
                await self._index(step)
            case ("append", str(name), given_messages):
                await write(self.store, name, *(_message(kind, text) for kind, text in given_messages))
            case (_, str(name), *_) if await self.store.head(SCOPE, name) is not None:
                await self._change(step, name)
                if await self.store.head(SCOPE, name) is not None:
                    await reach(self.store, name)
            case _:
                pass

    async def _change(self, step: Step, name: str) -> None:
        store, head = self.store, await self.store.head(SCOPE, name)
        assert head is not None
        rows = [row for row in await store.digests(SCOPE, name) if row.status is Status.COMPLETED]
        texts = [row for row in rows if row.action is not DigestAction.CLEAR]
        clears = [row for row in rows if row.action is DigestAction.CLEAR and row.visible(head.rev)]
        match step:
            case ("erase", _, int(at)):
                seq = at % head.next_seq
                if not any(first <= seq <= last for first, last in head.erased):
                    await write(store, name, erase=((seq, seq),))
            case ("take back", _, int(count)):
                async with store.write(SCOPE, name) as unit:
                    shown = len(await unit.tail(count))
                if shown:
                    await take_back(store, name, shown)
            case ("clear", _) if head.next_seq > head.view_start:
                await clear(store, name)
            case ("restore", _) if clears:
                before = max((row.end + 1 for row in clears[:-1]), default=0)
                await superseded(store, name, clears[-1].id, view_start=before)
            case ("digest", _, done, int(one), int(other), bool(based), str(text)):
                base = texts[-1].id if based and texts else None
                await self._digest(name, done, sorted((one % head.next_seq, other % head.next_seq)), base, text)
            case ("rewrite", _, int(at), str(text), bool(gone)) if texts:
                row = texts[at % len(texts)]
                await write(
                    store, name, rewritten=[RewrittenDigest(digest=row.id, text="" if gone else text, superseded=gone)]
                )
            case ("supersede", _, int(at)) if texts:
                await superseded(store, name, texts[at % len(texts)].id)
            case ("delete", _):
                async with store.write(SCOPE, name) as unit:
                    await unit.delete()
            case _:
                pass

    async def _digest(self, name: str, action: DigestAction, span: Sequence[int], base: int | None, text: str) -> None:
        self.stages.append(f"{len(self.stages)}")
        row = stage_row(action, *span, stage=self.stages[-1], completed=False, base=base)
        (digest,) = (await write(self.store, name, fire=[row])).fired
        await write(self.store, name, outcomes=[DigestOutcome(digest=digest, text=text, tokens=1)])

    async def _index(self, step: Step) -> None:
        index = self.store.index
        match step:
            case ("take", int(limit)) if self.work is None:
                self.work = await index.take(space=SPACE, lease=HOUR, limit=limit)
            case ("add",) if self.work is not None:
                assert await index.add(self.work, made(self.work.sources))
                assert await index.embed(self.work, SPACE, vectors_of(self.work))
            case ("more", int(limit)) if self.work is not None:
                self.work = await index.more(self.work, space=SPACE, lease=HOUR, limit=limit)
                assert self.work is not None
            case ("tend",) if self.work is not None:
                assert await index.compact_index(self.work)
            case ("index",):
                await self.give_back()
                await indexed(self.store, space=SPACE, limit=3)
            case _:
                pass

    async def give_back(self) -> None:
        if self.work is not None:
            await self.store.index.release(self.work)
        self.work = None

    async def erase_expired(self) -> None:
        for name in NAMES:
            head = await self.store.head(SCOPE, name)
            if head is not None and head.next_expiry is not None:
                log = await log_of(self.store, name)
                seqs = [one.seq for one in log if one.message.expires_at is not None and not one.erased]
                await write(self.store, name, erase=tuple((seq, seq) for seq in seqs), next_expiry=None)

    async def check(self) -> None:
        standing = [text for name in NAMES for text in await self._standing(name)]
        assert await found(self.store) == sorted(standing)
        told = await search_data(self.store, words=WORDS, spaces=[SPACE])
        there = {one.key: one.source.text for one in await candidates(self.store)}
        for word in WORDS:
            counts = {key: count for key, count in having(told, word).items() if key in there}
            assert counts == {key: text.split().count(word) for key, text in there.items() if word in text}

    async def _standing(self, name: str) -> list[str]:
        """The texts that a search of a conversation may come upon, word for word."""
        head, now = await self.store.head(SCOPE, name), datetime.now(UTC)
        if head is None:
            return []
        shown = [
            one.message.text
            for one in await log_of(self.store, name)
            if one.live(head.rev)
            and one.seq >= head.view_start
            and not one.erased
            and one.message.kind in FOUND
            and (one.message.expires_at is None or one.message.expires_at > now)
        ]
        if head.next_expiry is None or head.next_expiry > now:  # Digests may rest on what waits to be erased.
            digests = await self.store.digests(SCOPE, name)
            shown += [row.text for row in digests if _stands(row, head.rev, head.view_start)]
            shown += [] if head.digest is None else [head.digest.text]
        return [text for text in shown if text.strip()]


def _stands(row: Digest, rev: int, view_start: int) -> bool:
    chunk = row.action is DigestAction.CHUNK and row.status is Status.COMPLETED
    return chunk and row.visible(rev) and row.end >= view_start


def _message(kind: str, text: str) -> Message:
    match kind:
        case "assistant":
            return assistant(text)
        case "reasoning":
            return reasoning(text)
        case "expired":
            return replace(user(text), expires_at=datetime.now(UTC) - timedelta(hours=1))
        case _:
            return user(text)


async def play(store: Store, steps: Sequence[Step]) -> None:
    world = World(store)
    for name in NAMES:
        async with store.write(SCOPE, name) as unit:
            await unit.delete()
        await write(store, name, user("tea"), assistant("milk"), user("sugar"))
    for step in steps:
        await world.do(step)
        await world.check()
    await world.give_back()
    await world.erase_expired()
    await indexed(store, space=SPACE, limit=2)
    await world.check()
    assert await waiting(store) == []
    told = await search_data(store, spaces=[SPACE])
    assert len(keys_of(told)) == len(await candidates(store)), "what is in order has nothing that is gone"
    assert told.embedded == told.entries, "all has its vector"
    assert all(one.passages[0].vector is not None for one in await candidates(store, space=SPACE))


SUMMARY, CHUNK = (
    ("digest", "c", done, 0, 1, False, "milk tea") for done in (DigestAction.SUMMARIZE, DigestAction.CHUNK)
)
NEXT: Step = ("digest", "c", DigestAction.SUMMARIZE, 0, 2, True, "sugar sugar")
MORE: Step = ("append", "c", [("user", "milk"), ("reasoning", "tea"), ("assistant", " ")])
GOING: dict[str, tuple[list[Step], list[Step]]] = {
    "erased": ([], [("erase", "c", 1)]),
    "taken back": ([], [("take back", "c", 2)]),
    "cleared and given back": ([CHUNK], [("clear", "c"), ("restore", "c")]),
    "cleared twice and given back once": ([("clear", "c"), MORE], [("clear", "c"), ("restore", "c")]),
    "cleared twice and begun anew": ([("clear", "c"), MORE], [("clear", "c"), MORE]),
    "deleted and begun anew": ([CHUNK], [("delete", "c"), MORE]),
    "a summary by another": ([SUMMARY], [NEXT]),
    "a summary by one without text": ([SUMMARY], [(*NEXT[:-1], " ")]),
    "a summary superseded": ([SUMMARY, NEXT], [("supersede", "c", 1)]),
    "a summary rewritten": ([SUMMARY], [("rewrite", "c", 0, "sugar", False)]),
    "a chunk rewritten": ([CHUNK], [("rewrite", "c", 0, "sugar", False)]),
    "a chunk rewritten to nothing": ([CHUNK], [("rewrite", "c", 0, "", True)]),
    "a chunk cleared": ([CHUNK, MORE], [("clear", "c")]),
}
"""What was there, and how it goes."""

WHILE: dict[str, tuple[list[Step], list[Step]]] = {
    "it waits": ([], []),
    "it is in hand": ([("take", 9)], [("add",)]),
    "it is indexed": ([("index",)], [("index",)]),
    "it is in order": ([("take", 9), ("add",), ("more", 9), ("tend",)], [("add",)]),
}


@pytest.mark.slow
@pytest.mark.parametrize("moment", WHILE)
@pytest.mark.parametrize("how", GOING)
async def test_what_goes(store: Store, how: str, moment: str) -> None:
    (there, goes), (before, after) = GOING[how], WHILE[moment]
    await play(store, [*there, *before, *goes, *after])


@lasting
@settings(
    max_examples=examples(5),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(steps=histories)
async def test_any_history(store: Store, steps: list[Step]) -> None:
    await play(store, steps)
