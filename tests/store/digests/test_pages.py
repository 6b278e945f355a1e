"""Pages of a conversation's digests."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hitherto.core.digests.digest import Digest
from hitherto.store import rows
from hitherto.store.store import Store
from tests.store.digests.samples import add_failed
from tests.store.samples import SCOPE, user, write


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(sizes=st.lists(st.integers(0, 3_000), max_size=12), limit=st.integers(1, 13))
async def test_pages_of_any_digests_join(store: Store, sizes: list[int], limit: int) -> None:
    name = f"{sizes} {limit}"[:150]
    await write(store, name, user())
    await add_failed(store, name, sizes)
    await write(store, "another", user())
    await add_failed(store, "another", [1])
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(rows.PAGE, "size", 5_000)
        found = list[Digest]()
        while page := await store.digests(SCOPE, name, after=found[-1].id if found else 0, limit=limit):
            assert len(page) <= limit
            assert len(page) == 1 or sum(len(one.text) for one in page) <= 5_000
            found += page
    assert [len(one.text) for one in found] == sizes
    assert await store.digests(SCOPE, name) == found
    for one in found:
        assert await store.digest(SCOPE, name, one.id) == one
        assert await store.digest(SCOPE, "another", one.id) is None
