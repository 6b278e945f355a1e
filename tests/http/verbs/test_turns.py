"""A turn in one piece, over HTTP."""

from __future__ import annotations

from tests.engine.test_turn import *  # noqa: F403
