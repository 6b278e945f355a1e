"""The conformance suite of `RunStore`."""

from __future__ import annotations

from hitherto.testing.conformance.runs.runs import RunCases


class RunConformance(
    RunCases,
):
    """Every promise of `RunStore`, as tests of the store that the fixture `store` yields."""
