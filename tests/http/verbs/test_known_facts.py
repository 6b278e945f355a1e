"""What contexts show of facts, over HTTP."""

from __future__ import annotations

from tests.engine.facts.test_known_facts import *  # noqa: F403
