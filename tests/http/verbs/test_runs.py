"""Runs of agents, over HTTP."""

from __future__ import annotations

from tests.engine.test_runs import *  # noqa: F403

KEPT = {
    "test_a_run_beside_the_log",
}
