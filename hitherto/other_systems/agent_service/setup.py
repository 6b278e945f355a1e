"""What all agents of a process share: the memory, the tenant, the configurations, the tools, the providers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents import Tool

from hitherto import Memory, Scope
from hitherto.errors import InvalidInput, NotFound
from hitherto.other_systems.agent_service.configuration import AgentConfiguration, nearest, read_folder
from hitherto.other_systems.agent_service.providers import PROVIDERS, Provider

KNOWLEDGE_BASE_TOOLS = ("search_knowledge_base", "list_documents")


@dataclass
class AgentSetup:
    """What `configure_agents` is told."""

    memory: Memory
    tenant: str
    providers: dict[str, Provider]
    model: str | None = None
    tools: dict[str, Tool] = field(default_factory=dict[str, Tool])
    configurations: dict[str, AgentConfiguration] = field(default_factory=dict[str, AgentConfiguration])

    def configuration(self, agent_id: str) -> AgentConfiguration:
        """Raises NotFound."""
        found = self.configurations.get(agent_id)
        if found is None:
            raise NotFound(
                f"there is no configuration of the agent {agent_id!r}; {nearest(agent_id, self.configurations)}"
            )
        return found

    def provider(self, name: str) -> Provider:
        """Raises InvalidInput."""
        found = self.providers.get(name)
        if found is None:
            raise InvalidInput(f"there is no provider {name!r}; {nearest(name, self.providers)}")
        return found

    def model_of(self, one: AgentConfiguration) -> str:
        """Raises InvalidInput where none is named."""
        model = one.model or self.model
        if model is None:
            raise InvalidInput(
                f"the configuration of {one.agent_id!r} names no model; add one, or say it once for all: "
                "configure_agents(model=…)"
            )
        return model

    def check_runs(self) -> None:
        """Raises InvalidInput if an agent could not answer: it has no model, or its provider no key or address."""
        for one in self.configurations.values():
            self.model_of(one)
            self.provider(one.provider).check()

    def check(self, one: AgentConfiguration) -> None:
        """Raises InvalidInput for a provider or a tool that is not there."""
        base = one.resource_config.knowledge_base
        for name in (one.provider, base.embedding_provider, base.rerank_provider):
            if name is not None:
                self.provider(name)
        known = {*self.tools, *KNOWLEDGE_BASE_TOOLS}
        if "knowledge_base" not in one.resources and (own := {*KNOWLEDGE_BASE_TOOLS} & {*one.allowed_regular_tools}):
            raise InvalidInput(
                f"the agent {one.agent_id!r} may use {min(own)!r}, and has no knowledge base; add "
                '"knowledge_base" to its resources'
            )
        for name in one.allowed_regular_tools:
            if name not in known:
                raise InvalidInput(
                    f"the agent {one.agent_id!r} may use the tool {name!r}, which is not registered; "
                    f"{nearest(name, known)} (register_tool adds one)"
                )


_CURRENT: list[AgentSetup] = []


def configure_agents(
    memory: Memory,
    *,
    tenant: str,
    configurations: str | Path | Iterable[Mapping[str, Any] | AgentConfiguration] = (),
    tools: Iterable[Tool] = (),
    providers: Mapping[str, Provider] | None = None,
    model: str | None = None,
) -> AgentSetup:
    """Say once what the agents of this process share; a second call replaces the first. Returns what `BaseAgent` takes
    as its `setup`.

    `configurations` is a folder of .json files, or the configurations themselves. `tools` are those that they can name,
    beside `search_knowledge_base` and `list_documents`. `providers` are added to "openai", "azure_openai",
    "azure_openai_cc" and "ollama", or replace them. `model` is that of a configuration that names none. Raises
    InvalidInput naming the file or the agent, and the key that cannot be used, InvalidScope for an unusable tenant.
    """
    if not isinstance(memory, Memory):  # pyright: ignore[reportUnnecessaryIsInstance] — callers need not be typed
        raise InvalidInput(f"memory is {memory!r}; give an open memory: async with hitherto.open() as memory")
    scope = Scope(tenant=tenant, user="-", agent="-")
    made = AgentSetup(memory, scope.tenant, {**PROVIDERS, **(providers or {})}, model)
    for name, one in made.providers.items():
        if not isinstance(one, Provider):  # pyright: ignore[reportUnnecessaryIsInstance] — callers need not be typed
            raise InvalidInput(f"the provider {name!r} is {one!r}; give a Provider")
    made.tools = {_checked(one).name: one for one in tools}
    given = (
        read_folder(Path(configurations))
        if isinstance(configurations, str | Path)
        else [AgentConfiguration.read(one) for one in configurations]
    )
    for one in given:
        if one.agent_id in made.configurations:
            raise InvalidInput(f"the agent {one.agent_id!r} is configured twice")
        made.check(one)
        made.configurations[one.agent_id] = one
    _CURRENT[:] = [made]
    return made


def register_agent(configuration: Mapping[str, Any] | AgentConfiguration) -> AgentConfiguration:
    """Add the configuration of an agent, or replace it. Raises InvalidInput."""
    made, one = current(), AgentConfiguration.read(configuration)
    made.check(one)
    made.configurations[one.agent_id] = one
    return one


def register_tool(tool: Tool) -> None:
    """Add a tool that configurations can name, or replace it. Raises InvalidInput."""
    current().tools[_checked(tool).name] = tool


def _checked(tool: Tool) -> Tool:
    if not isinstance(getattr(tool, "name", None), str):
        raise InvalidInput(f"a tool is {tool!r}; give tools of the OpenAI Agents SDK, as @function_tool makes them")
    return tool


def current() -> AgentSetup:
    """Raises InvalidInput before `configure_agents`."""
    if not _CURRENT:
        raise InvalidInput("no agents are configured; call configure_agents(memory, tenant=…) first")
    return _CURRENT[0]
