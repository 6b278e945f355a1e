"""Agents from configuration files, on the OpenAI Agents SDK: `pip install 'hitherto[agents]'`."""

from importlib.util import find_spec

if find_spec("agents") is None:
    raise ImportError("the OpenAI Agents SDK is not installed; install it with: pip install 'hitherto[agents]'")

from hitherto.integrations.agents.api_agent import APIAgent
from hitherto.integrations.agents.base_agent import BaseAgent
from hitherto.integrations.agents.configuration import AgentConfiguration
from hitherto.integrations.agents.knowledge_base import KnowledgeBaseResource
from hitherto.integrations.agents.providers import Provider
from hitherto.integrations.agents.setup import configure_agents, register_agent, register_tool

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
