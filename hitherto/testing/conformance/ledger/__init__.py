"""The conformance suite of `LedgerStore`."""

from __future__ import annotations

from hitherto.testing.conformance.ledger.ledger import LedgerCases


class LedgerConformance(
    LedgerCases,
):
    """Every promise of `LedgerStore`, as tests of the store that the fixture `store` yields."""
