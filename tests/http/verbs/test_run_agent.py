"""Runs of an agent in one call, over HTTP."""

from __future__ import annotations

from tests.integrations.conftest import agents as agents
from tests.integrations.conftest import memory as memory
from tests.integrations.test_run_agent import *  # noqa: F403

KEPT = {
    "test_a_run_with_a_tool",
    "test_what_happens_to_the_conversation_in_mid_run",
}
