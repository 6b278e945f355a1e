"""Runs of agents, over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

import hitherto
from hitherto import Memory
from hitherto.ports.store import Store
from hitherto.stores.in_memory.store import InMemoryStore
from tests.engine.test_runs import *  # noqa: F403
from tests.http.serving import over_http
from tests.times import Clock


@pytest.fixture
def store() -> Store:
    return InMemoryStore(clock=Clock())


@pytest.fixture
async def memory(store: Store) -> AsyncIterator[Memory]:
    async with hitherto.open(store=store, worker=False) as opened, over_http(opened) as remote:
        yield remote


# They use scopes of another tenant than the key's.
del test_what_has_ended_takes_nothing, test_any_history  # noqa: F821
