"""Recall, over HTTP."""

from __future__ import annotations

from tests.engine.recall.test_recall import *  # noqa: F403

KEPT = {
    "test_what_is_around_a_hit_can_be_opened",
}
