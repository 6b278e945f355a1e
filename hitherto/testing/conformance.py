"""The conformance suite of `hitherto.ports.store`, whole."""

from __future__ import annotations

from hitherto.testing.conformance_agents import AgentCases
from hitherto.testing.conformance_archive import ArchiveCases
from hitherto.testing.conformance_claims import ClaimCases, ProlongCases, PutOffCases
from hitherto.testing.conformance_digests import DigestCases
from hitherto.testing.conformance_erasure import ErasureCases
from hitherto.testing.conformance_facts import FactCases
from hitherto.testing.conformance_facts_alone import AloneFactCases
from hitherto.testing.conformance_facts_evidence import FactEvidenceCases
from hitherto.testing.conformance_facts_forgotten import ForgottenFactCases
from hitherto.testing.conformance_facts_known import KnownFactCases
from hitherto.testing.conformance_facts_replaced import ReplacedFactCases
from hitherto.testing.conformance_facts_restored import RestoredFactCases
from hitherto.testing.conformance_facts_review import FactReviewCases
from hitherto.testing.conformance_facts_shared import SharedFactCases
from hitherto.testing.conformance_facts_walls import FactWallCases
from hitherto.testing.conformance_fence import FenceCases
from hitherto.testing.conformance_histories import HistoryCases
from hitherto.testing.conformance_keeping import KeepingCases
from hitherto.testing.conformance_ledger import LedgerCases
from hitherto.testing.conformance_library import LibraryCases
from hitherto.testing.conformance_load import LoadCases
from hitherto.testing.conformance_messages import MessageCases
from hitherto.testing.conformance_reading import ReadingCases
from hitherto.testing.conformance_receipts import ReceiptCases
from hitherto.testing.conformance_retraction import RetractionCases
from hitherto.testing.conformance_revisions import RevisionCases
from hitherto.testing.conformance_search import SearchCases
from hitherto.testing.conformance_search_claims import IndexClaimCases
from hitherto.testing.conformance_search_digests import SearchDigestCases
from hitherto.testing.conformance_search_documents import SearchDocumentCases
from hitherto.testing.conformance_search_facts import SearchFactCases
from hitherto.testing.conformance_search_filters import SearchFilterCases
from hitherto.testing.conformance_search_taking_away import SearchTakingAwayCases
from hitherto.testing.conformance_search_vectors import SearchVectorCases
from hitherto.testing.conformance_search_walls import SearchWallCases
from hitherto.testing.conformance_stages import StageCases
from hitherto.testing.conformance_units import UnitCases
from hitherto.testing.conformance_walls import WallCases
from hitherto.testing.conformance_work import WorkCases


class StoreConformance(
    UnitCases,
    ReceiptCases,
    MessageCases,
    ReadingCases,
    RevisionCases,
    RetractionCases,
    HistoryCases,
    DigestCases,
    StageCases,
    WorkCases,
    ClaimCases,
    ProlongCases,
    PutOffCases,
    FenceCases,
    LoadCases,
    ErasureCases,
    AgentCases,
    WallCases,
    KeepingCases,
    LedgerCases,
    LibraryCases,
    ArchiveCases,
    FactCases,
    ReplacedFactCases,
    AloneFactCases,
    RestoredFactCases,
    SearchFactCases,
    FactWallCases,
    KnownFactCases,
    FactEvidenceCases,
    ForgottenFactCases,
    SharedFactCases,
    FactReviewCases,
    SearchCases,
    SearchFilterCases,
    SearchDigestCases,
    SearchDocumentCases,
    SearchTakingAwayCases,
    SearchVectorCases,
    SearchWallCases,
    IndexClaimCases,
):
    """Every promise of `Store`, `Unit` and their values, as tests of whatever the fixture `store` gives them.

    The fixture gives an open, empty store to each test; the tests use two dozen tasks at most, and no time but a few
    hundredths of a second here and there. What only one kind of store can promise (durability, several processes) is
    not in it.
    """
