"""Lists of conversations and scopes, over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

import hitherto
from hitherto import Memory
from hitherto.ports.store import Store
from hitherto.stores.in_memory.store import InMemoryStore
from tests.engine.test_listing import *  # noqa: F403
from tests.http.serving import over_http
from tests.times import Clock


@pytest.fixture
def store() -> Store:
    return InMemoryStore(clock=Clock())


@pytest.fixture
async def memory(store: Store) -> AsyncIterator[Memory]:
    async with hitherto.open(store=store, worker=False) as opened, over_http(opened) as remote:
        yield remote


# They use scopes of other tenants than the key's, or leave the tenant out, which comes with the key.
del test_a_list_has_pages, test_scopes_have_pages_and_count_documents_and_facts  # noqa: F821
del test_scopes_that_cannot_be_asked_for  # noqa: F821
