"""Agents from files, over HTTP."""

from __future__ import annotations

from tests.other_systems.agent_service.conftest import afterwards as afterwards
from tests.other_systems.agent_service.conftest import endpoint as endpoint
from tests.other_systems.agent_service.conftest import memory as memory
from tests.other_systems.agent_service.test_agents import *  # noqa: F403
from tests.other_systems.agent_service.test_configurations import *  # noqa: F403
from tests.other_systems.agent_service.test_knowledge_base import *  # noqa: F403

LEFT_OUT = {
    # The service orders what is found by its own reranker alone.
    "test_a_reranker_of_ones_own",
    "test_a_reranker_is_where_the_environment_says",
    # The database is the service's, which waits for it.
    "test_an_unavailable_memory",
    "test_a_database_that_goes_away_while_it_answers",
}
