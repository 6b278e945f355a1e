"""The paths of other memory systems, for clients that call them: see docs/service-paths.md."""

from fastapi import APIRouter

from hitherto.http.server.other_systems import agent_runs, chat_sessions, legacy_facts


def add_other_systems(router: APIRouter) -> None:
    """Add the routes."""
    for system in (agent_runs, chat_sessions, legacy_facts):
        system.add_routes(router)
