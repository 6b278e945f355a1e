"""Sessions of the OpenAI Agents SDK, over HTTP."""

from __future__ import annotations

from tests.integrations.conftest import memory as memory
from tests.integrations.test_session import *  # noqa: F403
