"""The keys of the service."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import uuid4

from hitherto.core.key import ApiKey, Right, hash_of
from hitherto.store.store import Store
from tests.store.samples import LONG_AGO, SCOPE

ANOTHER = "another"


async def added(store: Store, secret: str, **values: Any) -> ApiKey:
    plain = ApiKey(
        id=uuid4(),
        tenant=SCOPE.tenant,
        user=None,
        name="app",
        rights=frozenset({Right.READ, Right.WRITE}),
        created_at=LONG_AGO,
    )
    return await store.keys.add(replace(plain, **values), hash_of(secret))


async def erased(store: Store, *, user: str | None) -> None:
    await store.end_erasure(await store.begin_erasure(tenant=SCOPE.tenant, user=user))


class TestKey:
    async def test_a_key_is_found_by_its_secret(self, store: Store) -> None:
        first = await added(store, "a")
        second = await added(store, "b", user="u", name="one", requests=5, size=6, seconds=0.5)
        foreign = await added(store, "c", tenant=ANOTHER)
        assert first.created_at > LONG_AGO
        assert second == replace(
            second, user="u", name="one", rights=first.rights, requests=5, size=6, seconds=0.5, revoked_at=None
        )
        assert [await store.keys.find(hash_of(secret)) for secret in "abcd"] == [
            *(key.access for key in (first, second, foreign)),
            None,
        ]

    async def test_a_key_is_added_once(self, store: Store) -> None:
        """As when the answer to it was lost."""
        one = await added(store, "a")
        assert await store.keys.add(one, hash_of("a")) == one
        assert await store.keys.keys(SCOPE.tenant) == [one]

    async def test_keys_of_a_tenant_the_oldest_first(self, store: Store) -> None:
        kept = [await added(store, str(number)) for number in range(5)]
        await added(store, "foreign", tenant=ANOTHER)
        assert await store.keys.keys(SCOPE.tenant) == kept
        assert await store.keys.keys("none") == []

    async def test_a_revoked_key_is_listed_and_not_found(self, store: Store) -> None:
        one, other = await added(store, "a"), await added(store, "b")
        assert await store.keys.revoke(ANOTHER, one.id) is None
        assert await store.keys.revoke(SCOPE.tenant, uuid4()) is None
        assert await store.keys.find(hash_of("a")) == one.access
        revoked = await store.keys.revoke(SCOPE.tenant, one.id)
        assert revoked == replace(one, revoked_at=revoked and revoked.revoked_at)
        assert revoked is not None
        assert revoked.revoked_at is not None
        assert await store.keys.revoke(SCOPE.tenant, one.id) == revoked
        assert await store.keys.find(hash_of("a")) is None
        assert await store.keys.keys(SCOPE.tenant) == [revoked, other]

    async def test_keys_go_with_their_user_and_their_tenant(self, store: Store) -> None:
        tenants, theirs = await added(store, "a"), await added(store, "b", user="u")
        users, foreign = await added(store, "c", user="v"), await added(store, "d", tenant=ANOTHER)
        await erased(store, user="u")
        assert await store.keys.find(hash_of("b")) is None
        assert await store.keys.keys(SCOPE.tenant) == [tenants, users]
        assert theirs.user == "u"
        await erased(store, user=None)
        assert await store.keys.keys(SCOPE.tenant) == []
        assert await store.keys.keys(ANOTHER) == [foreign]

    async def test_a_key_that_is_made_during_an_erasure_stays(self, store: Store) -> None:
        erasing = await store.begin_erasure(tenant=SCOPE.tenant, user=None)
        await added(store, "a")
        await store.end_erasure(erasing)
        assert await store.keys.find(hash_of("a")) is not None
