"""Other systems' functions, over HTTP."""

from __future__ import annotations

from tests.other_systems.test_memory_service import *  # noqa: F403
