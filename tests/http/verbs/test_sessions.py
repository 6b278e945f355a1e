"""Sessions of the OpenAI Agents SDK, over HTTP."""

from __future__ import annotations

from tests.integrations.conftest import memory as memory
from tests.integrations.test_session import *  # noqa: F403

KEPT = {
    "test_a_cleared_session_starts_anew_and_the_log_says_so",
    "test_a_popped_item_stays_in_the_log",
    "test_items_come_back_as_they_were_given",
}
