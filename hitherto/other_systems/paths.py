"""The paths of other systems, for clients that call them: see docs/service-paths.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter

from hitherto.http.server.app import MorePaths
from hitherto.other_systems.chat_store import agent_runs, chat_sessions
from hitherto.other_systems.legacies import facts_paths

if TYPE_CHECKING:
    from hitherto.other_systems.agent_service.setup import AgentSetup


def paths(agents: AgentSetup | None = None) -> MorePaths:
    """All of them. `agents` are those that run at /agent/run. Raises InvalidInput for one that could not answer."""
    if agents is not None:
        agents.check_runs()
    return MorePaths(add=_add_routes, lasting=agent_runs.RUNS, scope={"agents": agents})


def _add_routes(router: APIRouter) -> None:
    for part in (agent_runs, chat_sessions, facts_paths):
        part.add_routes(router)
