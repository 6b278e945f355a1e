"""How much the tests that take longest try: some in `make test`, twelve times as much in `make test-long`."""

from __future__ import annotations

import pytest
from hypothesis import settings

lasting = pytest.mark.lasting
"""Marks the tests that `make test-long` runs, with the profile "long" of Hypothesis."""


def at_length() -> bool:
    """Whether this is `make test-long`."""
    return settings.get_current_profile_name() == "long"


def examples(some: int) -> int:
    """So many, or twelve times as many at length."""
    return 12 * some if at_length() else some
