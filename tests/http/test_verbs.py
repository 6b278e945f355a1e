"""The verbs keep their promises over HTTP: their tests, run once more with a client and a service."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

import hitherto
from hitherto import Memory
from hitherto.ports.store import Store
from hitherto.providers.scripted.model import Scripted
from tests.engine import test_verbs
from tests.engine.test_verbs import *  # noqa: F403
from tests.http.serving import over_http


@pytest.fixture
async def memory(store: Store) -> AsyncIterator[Memory]:
    model = Scripted(then=test_verbs.each)
    async with hitherto.open(store=store, model=model) as opened, over_http(opened) as remote:
        yield remote


# The housekeeping of all tenants is the service's own.
del test_a_clock_that_was_ahead_erases_nothing  # noqa: F821
# An argument of a wrong type is refused as the document says, and not in the verb's own words.
del test_a_budget_is_a_positive_number, test_unusable_keys_manifests_revisions  # noqa: F821
del test_what_cannot_be_used_is_refused_in_our_words  # noqa: F821
