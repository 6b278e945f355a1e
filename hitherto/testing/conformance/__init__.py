"""The conformance suite of `hitherto.ports.store.Store`: a suite for each of its parts, and all of them together."""

from __future__ import annotations

from hitherto.testing.conformance.contexts import ContextConformance
from hitherto.testing.conformance.digests import DigestConformance
from hitherto.testing.conformance.documents import DocumentConformance
from hitherto.testing.conformance.export import ExportConformance
from hitherto.testing.conformance.facts import FactConformance
from hitherto.testing.conformance.keys import KeyConformance
from hitherto.testing.conformance.ledger import LedgerConformance
from hitherto.testing.conformance.log import LogConformance
from hitherto.testing.conformance.recall import RecallConformance
from hitherto.testing.conformance.runs import RunConformance


class StoreConformance(
    LogConformance,
    DigestConformance,
    RecallConformance,
    FactConformance,
    DocumentConformance,
    ContextConformance,
    RunConformance,
    KeyConformance,
    LedgerConformance,
    ExportConformance,
):
    """Every promise of `Store`, `Unit` and their values, as tests of the store that the fixture `store` yields.

    The fixture must yield an open, empty store to each test. A test runs at most two dozen tasks at once and sleeps for
    at most two seconds. What only one kind of store can promise (durability, several processes) is not covered.
    """
