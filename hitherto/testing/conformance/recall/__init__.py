"""The conformance suite of `SearchIndex`."""

from __future__ import annotations

from hitherto.testing.conformance.recall.claims import IndexClaimCases
from hitherto.testing.conformance.recall.digests import SearchDigestCases
from hitherto.testing.conformance.recall.documents import SearchDocumentCases
from hitherto.testing.conformance.recall.facts import SearchFactCases
from hitherto.testing.conformance.recall.filters import SearchFilterCases
from hitherto.testing.conformance.recall.passages import SearchPassageCases
from hitherto.testing.conformance.recall.removal import SearchRemovalCases
from hitherto.testing.conformance.recall.search import SearchCases
from hitherto.testing.conformance.recall.tenancy import SearchScopeCases
from hitherto.testing.conformance.recall.vectors import SearchVectorCases


class RecallConformance(
    SearchFactCases,
    SearchCases,
    SearchFilterCases,
    SearchDigestCases,
    SearchDocumentCases,
    SearchRemovalCases,
    SearchVectorCases,
    SearchPassageCases,
    SearchScopeCases,
    IndexClaimCases,
):
    """Every promise of `SearchIndex`, as tests of the store that the fixture `store` yields."""
