"""The conformance suite of `FactStore`."""

from __future__ import annotations

from hitherto.testing.conformance.facts.erasure import FactErasureCases
from hitherto.testing.conformance.facts.evidence import FactEvidenceCases
from hitherto.testing.conformance.facts.facts import FactCases
from hitherto.testing.conformance.facts.in_contexts import KnownFactCases
from hitherto.testing.conformance.facts.replacement import ReplacedFactCases
from hitherto.testing.conformance.facts.restoring import RestoredFactCases
from hitherto.testing.conformance.facts.review import FactReviewCases
from hitherto.testing.conformance.facts.sharing import SharedFactCases
from hitherto.testing.conformance.facts.single_valued import SingleValuedFactCases
from hitherto.testing.conformance.facts.tenancy import FactScopeCases


class FactConformance(
    FactCases,
    ReplacedFactCases,
    SingleValuedFactCases,
    RestoredFactCases,
    FactScopeCases,
    KnownFactCases,
    FactEvidenceCases,
    FactErasureCases,
    SharedFactCases,
    FactReviewCases,
):
    """Every promise of `FactStore`, as tests of the store that the fixture `store` yields."""
