"""Digests, over HTTP."""

from __future__ import annotations

from tests.engine.digests.test_until_nothing_is_due import *  # noqa: F403

KEPT = {
    "test_a_summary_of_all_that_is_left",
}
