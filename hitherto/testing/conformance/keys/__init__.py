"""The conformance suite of `KeyStore`."""

from __future__ import annotations

from hitherto.testing.conformance.keys.keys import KeyCases


class KeyConformance(
    KeyCases,
):
    """Every promise of `KeyStore`, as tests of the store that the fixture `store` yields."""
