"""What ships for those who write an adapter: suites that check the contract of a port.

    from hitherto.testing import StoreConformance

    class TestMyStore(StoreConformance):
        @pytest.fixture
        async def store(self): ...   # yields an open, empty store

The tests are asynchronous: pytest-asyncio in its mode "auto" runs them, and so does any plugin like it.
"""

import pytest

pytest.register_assert_rewrite(
    "hitherto.testing.conformance_units",
    "hitherto.testing.conformance_receipts",
    "hitherto.testing.conformance_messages",
    "hitherto.testing.conformance_reading",
    "hitherto.testing.conformance_revisions",
    "hitherto.testing.conformance_retraction",
    "hitherto.testing.conformance_histories",
    "hitherto.testing.conformance_digests",
    "hitherto.testing.conformance_stages",
    "hitherto.testing.conformance_work",
    "hitherto.testing.conformance_claims",
    "hitherto.testing.conformance_fence",
    "hitherto.testing.conformance_load",
    "hitherto.testing.conformance_erasure",
    "hitherto.testing.conformance_agents",
    "hitherto.testing.conformance_walls",
    "hitherto.testing.conformance_keeping",
    "hitherto.testing.conformance_ledger",
    "hitherto.testing.conformance_library",
    "hitherto.testing.conformance_archive",
    "hitherto.testing.conformance_facts",
    "hitherto.testing.conformance_facts_replaced",
    "hitherto.testing.conformance_facts_alone",
    "hitherto.testing.conformance_facts_restored",
    "hitherto.testing.conformance_search_facts",
    "hitherto.testing.conformance_facts_walls",
    "hitherto.testing.conformance_facts_known",
    "hitherto.testing.conformance_facts_evidence",
    "hitherto.testing.conformance_facts_forgotten",
    "hitherto.testing.conformance_facts_shared",
    "hitherto.testing.conformance_facts_review",
    "hitherto.testing.conformance_search",
    "hitherto.testing.conformance_search_filters",
    "hitherto.testing.conformance_search_digests",
    "hitherto.testing.conformance_search_documents",
    "hitherto.testing.conformance_search_taking_away",
    "hitherto.testing.conformance_search_vectors",
    "hitherto.testing.conformance_search_walls",
    "hitherto.testing.conformance_search_claims",
    "hitherto.testing.material_search",
    "hitherto.testing.material_facts",
)

# Only after the line above do the failures of these modules' assertions show their values.
from hitherto.testing.conformance import StoreConformance  # noqa: E402

__all__ = ["StoreConformance"]
