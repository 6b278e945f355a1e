"""Receipts: what an append with the same idempotency key answered before."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from hitherto.core.changes import Changes
from hitherto.core.log.append import extended
from hitherto.core.log.conversations import Receipt
from hitherto.core.scope import Scope
from hitherto.errors import HithertoError
from hitherto.store.store import Store
from tests.store.samples import SCOPE, dialogue, snapshot, user, write

A_WHILE = timedelta(hours=1)
KEYS = ["k", " k", "K", "k\x00", "k\ud800", "ключ 🗝", "k" * 10_000, "'; drop table receipt; --", "%(ref)s"]


async def answered(store: Store, name: str, key: str | None, *, scope: Scope = SCOPE) -> Receipt | None:
    """The receipt, which a unit of work and a reader are told alike."""
    async with store.write(scope, name, key=key) as unit:
        found = unit.receipt
    if key is not None:
        assert await store.receipt(scope, name, key) == found
    return found


class TestReceipt:
    async def test_a_key_answers_what_it_answered(self, store: Store) -> None:
        await write(store, "c", *dialogue(1), key="first")
        await write(store, "c", user(), key="second")
        assert await answered(store, "c", "first") == Receipt(start=0, end=1, rev=1, fingerprint="of first")
        assert await answered(store, "c", "second") == Receipt(start=2, end=2, rev=2, fingerprint="of second")
        assert await answered(store, "c", "third") is None
        assert await answered(store, "c", None) is None

    async def test_keys_are_told_apart_exactly(self, store: Store) -> None:
        for at, key in enumerate(KEYS):
            assert await answered(store, "c", key) is None
            await write(store, "c", user(), key=key)
            receipt = await answered(store, "c", key)
            assert receipt is not None
            assert receipt.start == at

    async def test_a_key_belongs_to_its_conversation_and_scope(self, store: Store) -> None:
        await write(store, "c", *dialogue(1), key="k")
        assert await answered(store, "d", "k") is None
        for other in (replace(SCOPE, tenant="x"), replace(SCOPE, user="x"), replace(SCOPE, agent="x")):
            assert await answered(store, "c", "k", scope=other) is None
        await write(store, "d", user(), key="k")
        assert await answered(store, "c", "k") == Receipt(start=0, end=1, rev=1, fingerprint="of k")

    async def test_parts_that_read_alike_when_joined_are_told_apart(self, store: Store) -> None:
        await write(store, "c", user(), key="dk", scope=Scope(tenant="t", user="ab", agent="c"))
        assert await answered(store, "c", "dk", scope=Scope(tenant="t", user="a", agent="bc")) is None
        assert await answered(store, "cd", "k", scope=Scope(tenant="t", user="ab", agent="c")) is None

    async def test_of_one_key_at_once_one_unit_writes(self, store: Store) -> None:
        async def append() -> Receipt | None:
            async with store.write(SCOPE, "c", key="k") as unit:
                if unit.receipt is None:
                    logged, head = extended(unit.head, dialogue(1), [1, 1])
                    mine = Receipt(start=logged[0].seq, end=head.last_seq, rev=head.rev, fingerprint="f")
                    await unit.commit(Changes(head=head, messages=logged, key="k", receipt=mine))
                return unit.receipt

        answers = await asyncio.gather(*(append() for _ in range(10)))
        assert answers.count(None) == 1
        assert answers.count(Receipt(start=0, end=1, rev=1, fingerprint="f")) == 9

    async def test_a_key_never_gets_a_second_receipt(self, store: Store) -> None:
        await write(store, "c", user(), key="k")
        before = await snapshot(store, "c")
        async with store.write(SCOPE, "c") as unit:
            logged, head = extended(unit.head, [user()], [1])
            twice = Receipt(start=1, end=1, rev=2, fingerprint="another")
            with pytest.raises(HithertoError):
                await unit.commit(Changes(head=head, messages=logged, key="k", receipt=twice))
        assert await snapshot(store, "c") == before
        assert await answered(store, "c", "k") == Receipt(start=0, end=0, rev=1, fingerprint="of k")

    async def test_after_delete_a_key_still_answers_but_tells_nothing(self, store: Store) -> None:
        await write(store, "c", *dialogue(1), key="k")
        await write(store, "d", user(), key="k")
        async with store.write(SCOPE, "c") as unit:
            await unit.delete()
        forgotten = Receipt(start=0, end=1, rev=1, fingerprint=None)
        assert await answered(store, "c", "k") == forgotten
        assert await answered(store, "d", "k") == Receipt(start=0, end=0, rev=1, fingerprint="of k")
        # A new conversation of the same name does not change the answer.
        await write(store, "c", *dialogue(2), key="l")
        assert await answered(store, "c", "k") == forgotten
        async with store.write(SCOPE, "c") as unit:
            await unit.delete()
        assert await answered(store, "c", "k") == forgotten
        assert await answered(store, "c", "l") == Receipt(start=0, end=3, rev=1, fingerprint=None)

    async def test_once_what_it_wrote_is_erased_a_receipt_tells_nothing(self, store: Store) -> None:
        for key in ("a", "b", "c", "d"):
            await write(store, "c", *dialogue(1), key=key)
        await write(store, "d", *dialogue(4), key="a")
        await write(store, "c", erase=((2, 2), (5, 5)))
        prints = [await answered(store, "c", key) for key in ("a", "b", "c", "d")]
        assert [receipt and receipt.fingerprint for receipt in prints] == ["of a", None, None, "of d"]
        assert [receipt and receipt.start for receipt in prints] == [0, 2, 4, 6]
        other = await answered(store, "d", "a")
        assert other is not None
        assert other.fingerprint == "of a"

    async def test_receipts_are_forgotten_after_their_time(self, store: Store) -> None:
        await write(store, "c", user(), key="k")
        await write(store, "d", user(), key="k", scope=Scope(tenant="another", user="u", agent="a"))
        await write(store, "e", user(), key="k")
        async with store.write(SCOPE, "e") as unit:
            await unit.delete()
        await asyncio.sleep(0.01)
        assert await store.forget_receipts(older_than=A_WHILE) == 0
        assert await answered(store, "c", "k") is not None
        assert await store.forget_receipts(older_than=timedelta(0)) == 3
        assert await answered(store, "c", "k") is None
        assert await answered(store, "e", "k") is None
        assert await store.forget_receipts(older_than=timedelta(0)) == 0
        await write(store, "c", user(), key="k")
        assert await answered(store, "c", "k") == Receipt(start=1, end=1, rev=2, fingerprint="of k")
