"""Branches, over HTTP."""

from __future__ import annotations

from tests.engine.log.test_branches import *  # noqa: F403

KEPT = {"test_answers_of_one_question"}
