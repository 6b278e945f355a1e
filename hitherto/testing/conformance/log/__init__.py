"""The conformance suite of `LogStore` and `Unit`."""

from __future__ import annotations

from hitherto.testing.conformance.log.agents import AgentCases
from hitherto.testing.conformance.log.erasure import ErasureCases
from hitherto.testing.conformance.log.expiry import ExpiredCases
from hitherto.testing.conformance.log.histories import HistoryCases
from hitherto.testing.conformance.log.listing import ListingCases
from hitherto.testing.conformance.log.messages import MessageCases
from hitherto.testing.conformance.log.reading import ReadingCases
from hitherto.testing.conformance.log.receipts import ReceiptCases
from hitherto.testing.conformance.log.revisions import RevisionCases
from hitherto.testing.conformance.log.rewind import RetractionCases
from hitherto.testing.conformance.log.tenancy import ScopeCases
from hitherto.testing.conformance.log.units import UnitCases


class LogConformance(
    UnitCases,
    ReceiptCases,
    MessageCases,
    ReadingCases,
    RevisionCases,
    RetractionCases,
    HistoryCases,
    ErasureCases,
    ExpiredCases,
    AgentCases,
    ScopeCases,
    ListingCases,
):
    """Every promise of `LogStore` and `Unit`, as tests of the store that the fixture `store` yields."""
