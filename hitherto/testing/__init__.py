"""What ships for those who write an adapter: suites that check the contract of a port.

    from hitherto.testing import StoreConformance

    class TestMyStore(StoreConformance):
        @pytest.fixture
        async def store(self): ...   # yields an open, empty store

The tests are asynchronous: pytest-asyncio in its mode "auto" runs them, and so does any plugin like it.
"""

import pytest

pytest.register_assert_rewrite("hitherto.testing.conformance")

# Only after the line above do the failures of these modules' assertions show their values.
from hitherto.testing.conformance import StoreConformance  # noqa: E402

__all__ = ["StoreConformance"]
