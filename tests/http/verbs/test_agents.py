"""Agents from files, over HTTP."""

from __future__ import annotations

from tests.other_systems.agent_service.conftest import afterwards as afterwards
from tests.other_systems.agent_service.conftest import endpoint as endpoint
from tests.other_systems.agent_service.conftest import memory as memory
from tests.other_systems.agent_service.test_agents import *  # noqa: F403
from tests.other_systems.agent_service.test_configurations import *  # noqa: F403
from tests.other_systems.agent_service.test_knowledge_base import *  # noqa: F403

KEPT = {
    "test_basic_memory_enabled_agent",
    "test_memory_with_compression",
    "test_cross_session_memory",
    "test_archived_conversations_are_searched",
    "test_what_is_set_for_the_agent_stays",
    "test_the_settings_policy_where_nothing_is_configured",
    "test_the_memorys_embedder_is_taken",
}
