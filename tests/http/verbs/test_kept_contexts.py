"""Kept contexts, over HTTP."""

from __future__ import annotations

from tests.engine.test_kept_contexts import *  # noqa: F403

KEPT = {
    "test_what_the_model_saw_is_made_again",
}
