"""Scopes: conversations of another scope are never found, counted, named or changed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from hitherto.core.digests.digest import DigestOutcome, Item, RewrittenDigest
from hitherto.core.log.conversations import MessageRange
from hitherto.core.log.frontier import DigestAction
from hitherto.core.log.probe import DialogueAt, TurnAt
from hitherto.core.scope import Scope
from hitherto.errors import HithertoError
from hitherto.store.store import Store
from tests.store.conftest import AS_BOTH
from tests.store.digests.stage_samples import stage_row, staged
from tests.store.samples import (
    HOUR,
    SCOPE,
    claimed,
    conversations,
    dialogue,
    digested,
    fire,
    head_of,
    snapshot,
    user,
    write,
)

OTHERS = {
    "tenant": replace(SCOPE, tenant="another"),
    "user": replace(SCOPE, user="another"),
    "agent": replace(SCOPE, agent="another"),
    "case": replace(SCOPE, user=SCOPE.user.upper()),
    "space": replace(SCOPE, user=SCOPE.user + " "),
    "wildcard": replace(SCOPE, user="%"),
    "swapped": Scope(tenant=SCOPE.user, user=SCOPE.tenant, agent=SCOPE.agent),
}
NAMES = ["c", "C", "c ", "ç", "c\u0327", "%", "_", "c'", 'c"', "c\\", "$1", "%(tenant)s", "c\n", "会話", "🗝", "c" * 200]


pytestmark = [AS_BOTH, pytest.mark.slow]


class TestScope:
    @pytest.fixture
    async def full(self, store: Store) -> AsyncIterator[tuple[object, ...]]:
        """The snapshot of a conversation "c" with data of every kind. Afterwards, checks that it is unchanged."""
        late = replace(user(), expires_at=datetime.now(UTC) - timedelta(days=1))
        await write(store, "c", *dialogue(3), late, key="k")
        await digested(store, "c", 0, 3, Item("a", ((0, 0),)))
        await staged(store, "c", stage_row(DigestAction.COMPACT, 0, 1, opaque="[{}]"))
        await fire(store, "c", 0, 5)
        before = await snapshot(store, "c")
        yield before
        assert await snapshot(store, "c") == before

    async def test_no_verb_shows_it(self, store: Store, full: tuple[object, ...]) -> None:
        head = await head_of(store, "c")
        for other in OTHERS.values():
            assert await store.head(other, "c") is None
            assert await store.head(other, "c", at=1) is None
            assert await store.messages(other, "c", head.ref, MessageRange(start=0, stop=100, tools_from=0)) == []
            assert await store.digests(other, "c") == []
            if other.tenant != SCOPE.tenant:
                assert await store.claim(other.tenant, head.running[0].id, lease=HOUR) is None
            assert await store.opaque(other, "c", head.frontiers["compact"].digest or 0) is None
            assert await store.earlier(other, "d", within=timedelta(days=1)) is None
            assert await conversations(store, other) == []
            async with store.write(other, "c", key="k") as unit:
                assert (unit.head.rev, unit.head.next_seq, unit.head.digest, unit.head.running) == (0, 0, None, ())
                assert unit.receipt is None
                assert await unit.probe(DialogueAt(1)) is None
                assert await unit.probe(TurnAt(1)) is None
                assert await unit.tail(9) == []
                assert await unit.digests() == []
                assert await unit.expired() == ((), None)

    async def test_no_unit_changes_it(self, store: Store, full: tuple[object, ...]) -> None:
        head = await head_of(store, "c")
        assert head.digest is not None
        foreign = [head.digest.id, head.running[0].id]
        for other in OTHERS.values():
            written = await write(
                store,
                "c",
                *dialogue(4),
                scope=other,
                key="k",
                erase=((0, 0),),
                outcomes=[DigestOutcome(digest=one, text="x") for one in foreign],
                rewritten=[RewrittenDigest(digest=one, text="x", superseded=True) for one in foreign],
                supersede=foreign,
            )
            assert (written.head.rev, written.head.next_seq) == (1, 8)
            assert [one.messages for one in await conversations(store, other)] == [8]
            async with store.write(other, "c") as unit:
                await unit.delete()
            async with store.write(SCOPE, "c", key="k") as unit:
                assert unit.receipt is not None
                assert unit.receipt.fingerprint == "of k"

    async def test_a_foreign_base_is_no_way_in(self, store: Store, full: tuple[object, ...]) -> None:
        """A store may refuse such a digest; if it takes it, the base shows nothing."""
        head = await head_of(store, "c")
        assert head.digest is not None
        for other in OTHERS.values():
            await write(store, "c", *dialogue(3), scope=other)
            try:
                made = await fire(store, "c", 0, 5, scope=other, base=head.digest.id)
            except HithertoError:
                continue
            work = await claimed(store, made, tenant=other.tenant)
            assert work.base == ()

    async def test_names_are_told_apart_exactly(self, store: Store) -> None:
        for at, name in enumerate(NAMES):
            assert await store.head(SCOPE, name) is None
            await write(store, name, *dialogue(at + 1))
        for at, name in enumerate(NAMES):
            assert (await head_of(store, name)).next_seq == 2 * (at + 1)
        assert [one.conversation for one in await conversations(store)] == NAMES[::-1]

    async def test_scopes_are_told_apart_exactly(self, store: Store) -> None:
        for at, scope in enumerate([SCOPE, *OTHERS.values()]):
            await write(store, "c", *dialogue(at + 1), scope=scope)
        for at, scope in enumerate([SCOPE, *OTHERS.values()]):
            (found,) = await conversations(store, scope)
            assert (found.conversation, found.messages) == ("c", 2 * (at + 1))
