"""Runs of an agent in one call, over HTTP."""

from __future__ import annotations

from tests.integrations.conftest import agents as agents
from tests.integrations.conftest import memory as memory
from tests.integrations.test_run_agent import *  # noqa: F403
