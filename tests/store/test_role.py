"""The store as a service's role, which sees one tenant at a time: all cases hold for it but these."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hitherto.errors import StoreError
from hitherto.store.store import Store
from tests.store.ledger.test_ledger import FIRST
from tests.store.samples import SCOPE

pytestmark = pytest.mark.parametrize("store", ["role"], indirect=True)


async def test_all_tenants_are_not_for_it(store: Store) -> None:
    with pytest.raises(StoreError, match="name the tenant"):
        await store.costs("tenant")
    with pytest.raises(StoreError, match="name the tenant"):
        await store.scopes("tenant", limit=9)


async def test_a_call_that_ends_after_a_tenant_is_gone_names_nobody(store: Store) -> None:
    await store.end_erasure(await store.begin_erasure(tenant="another", user=None))
    await store.note_calls(replace(SCOPE, tenant="another"), None, [FIRST])
    assert await store.costs("tenant", tenant="another") == []
