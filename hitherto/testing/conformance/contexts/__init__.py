"""The conformance suite of `ContextStore`."""

from __future__ import annotations

from hitherto.testing.conformance.contexts.contexts import ContextCases


class ContextConformance(
    ContextCases,
):
    """Every promise of `ContextStore`, as tests of the store that the fixture `store` yields."""
