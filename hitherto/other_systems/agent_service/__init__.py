"""Agents from configuration files, on the OpenAI Agents SDK: `pip install 'hitherto[agents]'`."""

from importlib.util import find_spec

if find_spec("agents") is None:
    raise ImportError("the OpenAI Agents SDK is not installed; install it with: pip install 'hitherto[agents]'")

from hitherto.other_systems.agent_service.api_agent import APIAgent
from hitherto.other_systems.agent_service.base_agent import BaseAgent
from hitherto.other_systems.agent_service.configuration import AgentConfiguration
from hitherto.other_systems.agent_service.knowledge_base import KnowledgeBaseResource
from hitherto.other_systems.agent_service.providers import Provider
from hitherto.other_systems.agent_service.setup import configure_agents, register_agent, register_tool

__all__ = [
    "APIAgent",
    "AgentConfiguration",
    "BaseAgent",
    "KnowledgeBaseResource",
    "Provider",
    "configure_agents",
    "register_agent",
    "register_tool",
]
