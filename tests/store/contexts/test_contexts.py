"""Kept contexts."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from psycopg import AsyncConnection

from hitherto.core.context.manifest import FactsShown, Injected, Manifest, RecalledEntry, SavedRequest, record_of
from hitherto.core.policy.span import Fate, Reason, Span
from hitherto.core.scope import Scope
from hitherto.store.store import Store
from tests.databases import OpenStore
from tests.store.samples import SCOPE, dialogue, write

OTHER_USER = replace(SCOPE, user="another")
TOOL = '{"type": "function", "function": {"name": "sail"}}'


def manifest(
    conversation: str = "c",
    *spans: Span,
    scope: Scope = SCOPE,
    rev: int = 1,
    instructions: str | None = None,
    incoming: int = 0,
    takes: tuple[str, ...] = (),
    injected: str | None = None,
) -> Manifest:
    """A manifest: `spans` are the fates of the messages, `takes` the conversations that something is recalled from."""
    recalled = [
        RecalledEntry(why="request", kind="message", conversation=name, start=0, end=0, score=0.5, tokens=1)
        for name in takes
    ]
    return Manifest(
        tenant=scope.tenant,
        user=scope.user,
        agent=scope.agent,
        conversation=conversation,
        rev=rev,
        next_seq=spans[-1].end + 1 if spans else 0,
        policy={},
        wire="openai.chat",
        encoding="o200k_base",
        exact=True,
        budget=100,
        reserve=0,
        total=3,
        sections={"framing": 3},
        fates=list(spans),
        digest=None,
        injected=None if injected is None else Injected(conversation=injected, digest=1, limit=9),
        recalled=recalled,
        request=SavedRequest(
            incoming=[("openai.chat", '{"role": "user", "content": "\\u0000"}')] * incoming,
            instructions=instructions,
            tools=[TOOL],
        ),
        sha256="0" * 64,
    )


def shown(start: int, end: int) -> Span:
    return Span(start=start, end=end, fate=Fate.IN, reason=Reason.VERBATIM)


def dropped(start: int, end: int) -> Span:
    return Span(start=start, end=end, fate=Fate.DROPPED, reason=Reason.BUDGET)


async def keep(
    store: Store,
    found: Manifest,
    *,
    newest: int | None = None,
    lifetime: timedelta | None = None,
    scope: Scope = SCOPE,
    said: str = "Hello.",
) -> None:
    record = record_of(found, [("{}", said)] * len(found.request.incoming))
    await store.contexts.keep(scope, found.conversation, record, newest=newest, lifetime=lifetime)


async def revs(store: Store, conversation: str = "c", *, scope: Scope = SCOPE) -> list[int]:
    """The revisions of the contexts that are kept, by which the tests tell them apart."""
    found = await store.contexts.kept(scope, conversation, limit=99)
    return [one.manifest.rev for one in found]


class TestContext:
    async def test_a_context_comes_back_as_it_was(self, store: Store) -> None:
        """Also of a conversation that is not there, and with text that no column has."""
        await write(store, "c", *dialogue(5))
        await write(store, "d", *dialogue(1))
        made = [
            manifest(instructions="Be brief. \x00 \ud800", incoming=2, injected="d"),
            manifest("c", dropped(0, 3), shown(4, 9), rev=2, takes=("d", "c")),
            manifest("other", rev=3),
        ]
        for one in made:
            await keep(store, one)
        found = await store.contexts.kept(SCOPE, "c", limit=9)
        assert [one.manifest for one in found] == [made[1], made[0]]
        assert found[0].id > found[1].id
        assert found[0].kept_at >= found[1].kept_at
        assert await store.contexts.kept(SCOPE, "c", limit=0) == []
        assert await store.contexts.kept(SCOPE, "c", limit=1) == found[:1]
        assert await store.contexts.kept(SCOPE, "c", before=found[0].id, limit=9) == found[1:]
        assert await revs(store, scope=OTHER_USER) == []
        assert await store.head(SCOPE, "other") is None, "it need not be there"

    async def test_only_the_newest_of_a_conversation_stay(self, store: Store) -> None:
        await keep(store, manifest("other", rev=7))
        for rev in range(5):
            await keep(store, manifest(rev=rev), newest=3)
        assert await revs(store) == [4, 3, 2]
        assert await revs(store, "other") == [7]

    async def test_many_at_once(self, store: Store) -> None:
        """All with the same tools."""
        await asyncio.gather(*(keep(store, manifest(rev=rev)) for rev in range(10)))
        await asyncio.gather(
            *(keep(store, manifest("other", rev=rev)) for rev in range(5)), *(store.contexts.forget() for _ in range(5))
        )
        assert sorted(await revs(store)) == [*range(10)]
        assert {len(one.manifest.request.tools) for one in await store.contexts.kept(SCOPE, "other", limit=9)} == {1}

    async def test_old_ones_are_forgotten(self, store: Store) -> None:
        await keep(store, manifest(rev=1))
        await keep(store, manifest(rev=2), lifetime=timedelta(hours=1))
        await keep(store, manifest(rev=3), lifetime=timedelta(milliseconds=5))
        await asyncio.sleep(0.02)
        assert await revs(store) == [2, 1], "it is not shown any more"
        assert await store.contexts.forget(tenant="another") == 0
        assert await store.contexts.forget(tenant=SCOPE.tenant) == 1
        assert await store.contexts.forget() == 0
        assert await revs(store) == [2, 1]

    async def test_what_was_erased_meanwhile_is_not_kept(self, store: Store) -> None:
        await write(store, "c", *dialogue(2))
        await write(store, "c", erase=((1, 1),))
        await keep(store, manifest("c", shown(0, 3)))
        await keep(store, manifest("c", shown(0, 0), dropped(1, 1), shown(2, 3), rev=2))
        assert await revs(store) == [2]
        async with store.write(SCOPE, "c") as unit:
            await unit.delete()
        await keep(store, manifest("c", shown(0, 3)))
        assert await revs(store) == []

    async def test_nor_what_was_taken_from_another_conversation(self, store: Store) -> None:
        for name in ("c", "d", "gone"):
            await write(store, name, *dialogue(2))
        await write(store, "c", erase=((0, 0),))
        async with store.write(SCOPE, "gone") as unit:
            await unit.delete()
        await keep(store, manifest("d", shown(0, 3), rev=1, takes=("c",)))
        await keep(store, manifest("d", shown(0, 3), rev=2, takes=("gone",)))
        await keep(store, manifest("d", shown(0, 3), rev=3, injected="gone"))
        assert await revs(store, "d") == []
        await keep(store, manifest("d", shown(0, 3), rev=4, injected="c"))
        assert await revs(store, "d") == [4]

    @pytest.mark.parametrize("takes", ["c", "d"])
    async def test_whoever_is_about_to_erase_is_waited_for(self, store: Store, takes: str) -> None:
        for name in ("c", "d"):
            await write(store, name, *dialogue(2))
        found = manifest("d", shown(0, 3), takes=() if takes == "d" else (takes,))
        assert isinstance(store, OpenStore)
        async with await AsyncConnection.connect(store.owners_url) as erasing:
            # As who erases does, when it has looked for kept contexts and is about to commit.
            await erasing.execute("update hitherto.conversation set erased = '[[0, 0]]' where id = %s", [takes])
            keeping = asyncio.create_task(keep(store, found))
            await asyncio.wait([keeping], timeout=0.3)
            await erasing.commit()
        await keeping
        assert await revs(store, "d") == []

    async def test_nor_what_was_appended_and_erased_since(self, store: Store) -> None:
        await write(store, "c", *dialogue(2))
        await write(store, "c", erase=((2, 2),))
        await keep(store, manifest("c", shown(0, 1), incoming=1))
        await keep(store, manifest("c", incoming=1, rev=2))
        await keep(store, manifest("c", shown(0, 1), dropped(2, 3), incoming=1, rev=3))
        assert await revs(store) == [3]

    async def test_those_that_showed_an_erased_message_go(self, store: Store) -> None:
        await write(store, "c", *dialogue(5))
        await write(store, "d", *dialogue(1))
        await write(store, "e", *dialogue(1))
        await keep(store, manifest("c", dropped(0, 3), shown(4, 9), rev=1))
        await keep(store, manifest("c", shown(0, 9), rev=2))
        await keep(store, manifest("c", shown(0, 1), rev=3, incoming=2), said="answer 1")
        await keep(store, manifest("c", incoming=1, rev=4), said="Another")
        await keep(store, manifest("d", shown(0, 1), rev=4, takes=("c",)))
        await keep(store, manifest("d", shown(0, 1), rev=5, takes=("e",)))
        await keep(store, manifest("d", shown(0, 1), rev=6, injected="c"))
        await keep(store, manifest("c", incoming=1, rev=7, scope=OTHER_USER), scope=OTHER_USER, said="answer 1")
        await write(store, "c", erase=((3, 3),))
        assert await revs(store) == [4, 1], "the content of 3 was incoming in the third"
        assert await revs(store, "d") == [5]
        assert await revs(store, scope=OTHER_USER) == [7]

    async def test_a_conversation_takes_its_contexts_along(self, store: Store) -> None:
        await write(store, "c", *dialogue(1))
        await write(store, "d", *dialogue(1))
        await keep(store, manifest("c", shown(0, 1)))
        await keep(store, manifest("c", incoming=1))
        await keep(store, manifest("d", shown(0, 1), takes=("c",)))
        await keep(store, manifest("d", shown(0, 1), rev=2))
        async with store.write(SCOPE, "c") as unit:
            await unit.delete()
        assert await revs(store) == []
        assert await revs(store, "d") == [2]
        await keep(store, manifest("never", incoming=1))
        async with store.write(SCOPE, "never") as unit:
            await unit.delete()
        assert await revs(store, "never") == [], "of one that was never appended to, too"

    async def test_an_erasure_takes_those_of_conversations_along_that_never_were(self, store: Store) -> None:
        other = replace(SCOPE, agent="another")
        for scope in (SCOPE, other, OTHER_USER):
            await keep(store, manifest(instructions="Of all", scope=scope), scope=scope)
        await store.end_erasure(await store.begin_erasure(tenant=SCOPE.tenant, user=SCOPE.user))
        assert [await revs(store, scope=scope) for scope in (SCOPE, other, OTHER_USER)] == [[], [], [1]]
        (left,) = await store.contexts.kept(OTHER_USER, "c", limit=9)
        assert left.manifest.request.instructions == "Of all"
        erasing = await store.begin_erasure(tenant=SCOPE.tenant, user=None)
        since = manifest(rev=2, scope=OTHER_USER)
        await keep(store, since, scope=OTHER_USER)
        facts = FactsShown(subject="", name="The user", place="system", known=1, shown=[])
        await keep(store, since.model_copy(update={"rev": 3, "facts": facts}), scope=OTHER_USER)
        await store.end_erasure(erasing)
        assert await revs(store, scope=OTHER_USER) == [2], "it was kept since, and shows nothing that went"
