"""The conformance suite of `DigestStore`."""

from __future__ import annotations

from hitherto.testing.conformance.digests.backlog import BacklogCases
from hitherto.testing.conformance.digests.claims import ClaimCases, ProlongCases, PutOffCases
from hitherto.testing.conformance.digests.digests import DigestCases
from hitherto.testing.conformance.digests.fence import FenceCases
from hitherto.testing.conformance.digests.stages import StageCases
from hitherto.testing.conformance.digests.work import WorkCases


class DigestConformance(
    DigestCases,
    StageCases,
    WorkCases,
    ClaimCases,
    ProlongCases,
    PutOffCases,
    FenceCases,
    BacklogCases,
):
    """Every promise of `DigestStore`, as tests of the store that the fixture `store` yields."""
