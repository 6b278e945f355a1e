"""Sessions and tools for the OpenAI Agents SDK: `pip install 'hitherto[agents]'`."""

from importlib.util import find_spec

if find_spec("agents") is None:
    raise ImportError("the OpenAI Agents SDK is not installed; install it with: pip install 'hitherto[agents]'")

from hitherto.integrations.openai_agents.documents import document_tools
from hitherto.integrations.openai_agents.fit import within_budget
from hitherto.integrations.openai_agents.memory import memory_tools
from hitherto.integrations.openai_agents.recorder import OnEvent, Recorder
from hitherto.integrations.openai_agents.runtime import AgentSpec, RunOutcome, run_agent
from hitherto.integrations.openai_agents.session import HithertoSession, Route

__all__ = [
    "AgentSpec",
    "HithertoSession",
    "OnEvent",
    "Recorder",
    "Route",
    "RunOutcome",
    "document_tools",
    "memory_tools",
    "run_agent",
    "within_budget",
]
