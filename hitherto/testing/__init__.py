"""Conformance suites for authors of adapters: they check that an adapter keeps the contract of its port.

    from hitherto.testing import StoreConformance

    class TestMyStore(StoreConformance):
        @pytest.fixture
        async def store(self): ...   # yields an open, empty store

The tests are coroutines: run them with pytest-asyncio in its mode "auto", or with a similar plugin. For an embedder,
call `hitherto.testing.embedders.check_embedder`.
"""

import pytest

pytest.register_assert_rewrite("hitherto.testing.conformance")

# Imported after the line above, so that failing assertions in these modules show their values.
from hitherto.testing.conformance import StoreConformance  # noqa: E402

__all__ = ["StoreConformance"]
