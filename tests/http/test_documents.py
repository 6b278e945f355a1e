"""Documents, over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

import hitherto
from hitherto import Memory
from hitherto.ports.store import Store
from hitherto.stores.in_memory.store import InMemoryStore
from tests.engine.documents.test_documents import *  # noqa: F403
from tests.http.serving import over_http
from tests.times import Clock


@pytest.fixture
def store() -> Store:
    return InMemoryStore(clock=Clock())


@pytest.fixture
async def memory(store: Store) -> AsyncIterator[Memory]:
    async with (
        hitherto.open(store=store, worker=False, passage_tokens=16, passage_overlap=0) as opened,
        over_http(opened) as remote,
    ):
        yield remote


# An argument of a wrong type is refused as the document says, and not in the verb's own words.
del test_what_is_no_text_is_refused, test_what_makes_no_sense_is_refused  # noqa: F821
del test_an_id_that_is_no_number_is_refused  # noqa: F821
# It uses a scope of another tenant than the key's.
del test_nobody_else_finds_it  # noqa: F821
