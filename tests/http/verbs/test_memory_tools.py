"""An agent's tools on its memory, over HTTP."""

from __future__ import annotations

from tests.integrations.conftest import *  # noqa: F403
from tests.integrations.test_memory_tools import *  # noqa: F403

KEPT = {
    "test_a_private_conversation_keeps_to_itself_in_its_first_turn",
    "test_recall_finds_other_conversations_facts_and_documents",
    "test_two_processes_pass_no_bound",
    "test_what_an_agent_remembers_can_be_reviewed",
}
