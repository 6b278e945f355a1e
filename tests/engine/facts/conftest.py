"""Ana's facts about her mother, in a memory whose model finds that she played the cello and was a nurse."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hitherto import Facts, Memory
from hitherto.store.store import Store
from tests.acceptance.family import ANA, ROSA, opened
from tests.engine.facts.reviewing import CELLO, NURSE


@pytest.fixture
async def memory(store: Store) -> AsyncIterator[Memory]:
    async with opened(store, CELLO, NURSE, worker=True) as made:
        yield made


@pytest.fixture
def facts(memory: Memory) -> Facts:
    """Ana's, about Rosa."""
    return memory.facts(ANA, subject=ROSA)
