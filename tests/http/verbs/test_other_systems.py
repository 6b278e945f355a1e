"""Other systems' functions, over HTTP."""

from __future__ import annotations

from tests.acceptance.seeds.test_memory_service import *  # noqa: F403
