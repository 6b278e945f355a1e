"""An agent's memory and knowledge base, as its configuration says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from hitherto.core.cross_session import CrossSession
from hitherto.core.log.message import CHAT
from hitherto.core.policy.policy import Policy, policy_json
from hitherto.core.policy.presets import none, token_threshold
from hitherto.core.scope import Scope
from hitherto.engine.conversation import Conversation
from hitherto.engine.memory import Memory
from hitherto.errors import HithertoError, InvalidInput
from hitherto.logs import logger
from hitherto.other_systems.agent_service.knowledge_base import KnowledgeBaseResource
from hitherto.other_systems.agent_service.setup import AgentSetup, current
from hitherto.wire import codec
from hitherto.wire.chat import assistant, system, user

log = logger("hitherto.agents")

Resource = TypeVar("Resource")

_CHAT = codec(CHAT)

_MAKERS = {"user": user, "assistant": assistant, "system": system}


class BaseAgent:
    """An agent with the id of its configuration, for one user and one session. It has a `memory` and a
    `knowledge_base` once `initialize` has returned, if its configuration lists them; else they are None.

    Raises InvalidScope for an unusable id, NotFound for an agent that is not configured, InvalidInput before
    `configure_agents`, unless a `setup` is given.
    """

    def __init__(self, agent_id: str, user_id: str, session_id: str, *, setup: AgentSetup | None = None) -> None:
        self._setup: AgentSetup = setup or current()
        self.agent_id, self.user_id, self.session_id = agent_id, user_id, session_id
        self.configuration = self._setup.configuration(agent_id)
        self.scope = Scope(tenant=self._setup.tenant, user=user_id, agent=agent_id)
        self.memory: Conversation | None = None
        self.knowledge_base: KnowledgeBaseResource | None = None
        self._missing: Exception | None = InvalidInput(f"the agent {agent_id!r} is not initialized; await initialize()")

    async def initialize(self) -> None:
        """Make the resources that the configuration lists. One that is unavailable is logged and left out; a
        configuration that cannot be used raises InvalidInput."""
        if self.wants_knowledge_base():
            self.knowledge_base = await self._available("knowledge base", self.create_knowledge_base)
        if self.wants_memory():
            self.memory = await self._available("memory", self.create_memory)
        else:
            self._missing = None

    def wants_memory(self) -> bool:
        """Whether the configuration lists "memory"."""
        return "memory" in self.configuration.resources

    def wants_knowledge_base(self) -> bool:
        """Whether the configuration lists "knowledge_base"."""
        return "knowledge_base" in self.configuration.resources

    async def create_memory(self) -> Conversation:
        """The session as a conversation; the configured compression is stored as the agent's policy, with a setup that
        goes by what is stored (`stored_first`) only where there is none. Where nothing is configured and the setting
        `policy` is, the agent has none of its own. Raises StoreError where the database is away."""
        memory = self._memory
        services, made = memory._services, self._policy  # pyright: ignore[reportPrivateUsage] — agents are part of Hitherto
        stored = await services.store.defaults(tenant=self.scope.tenant, agent=self.agent_id)
        crosses = self._crosses if self._crosses or stored.cross_session.triggers else None
        policy, crossing = policy_json(made), CrossSession(triggers=crosses)
        if self._setup.stored_first:
            policy, crossing = stored.policy or policy, stored.cross_session.over(crossing)
        else:
            crossing = crossing.over(stored.cross_session)
        if (stored.policy, stored.cross_session) != (policy, crossing):
            await memory.configure_agent(
                tenant=self.scope.tenant,
                agent=self.agent_id,
                policy=None if policy == stored.policy else made or "",
                cross_session=crossing,
            )
        return memory.conversation(self.session_id, scope=self.scope)

    async def create_knowledge_base(self) -> KnowledgeBaseResource:
        """The user's knowledge base, ready."""
        config = self.configuration.resource_config.knowledge_base
        made = KnowledgeBaseResource(f"{self.agent_id}_kb", config, scope=self.scope, memory=self._setup.memory)
        made.set_chat_provider(self._setup.provider(self.configuration.provider))
        embedding = None if config.embedding_provider is None else self._setup.provider(config.embedding_provider)
        made.set_embedding_provider(embedding, config.embedding_model)
        if config.rerank_provider is not None:
            made.set_rerank_provider(self._setup.provider(config.rerank_provider), config.rerank_model or self._model)
        await made.initialize()
        return made

    async def load_memory(self) -> list[dict[str, str]]:
        """What the session shows now, oldest first: the summary as a system message, then what was said. Each has
        `role` and `content`. An error is logged, and nothing is loaded."""
        if self.memory is None:
            return []
        try:
            items = await self.memory.items(wire=CHAT)
        except Exception:  # the application goes on without its memory
            log.exception("The memory of %s could not be loaded", self.agent_id, conversation=self.session_id)
            return []
        said = [(str(item.get("role")), _CHAT.spoken(_CHAT.read(item))) for item in items]
        return [{"role": role, "content": text} for role, text in said if role in _MAKERS and text]

    async def save_memory(self, role: str, content: str) -> None:
        """Append a message of "user", "assistant" or "system" to the session. Does nothing if the configuration has no
        memory. Raises InvalidInput for another role and before `initialize`, the StoreError for which the memory was
        left out, and what an append raises."""
        make = _MAKERS.get(role)
        if make is None:
            raise InvalidInput(f"role is {role!r}; give one of {', '.join(_MAKERS)}")
        if self.memory is not None:
            await self.memory.append(make(content))
        elif self._missing is not None:
            raise self._missing

    async def cleanup(self) -> None:
        """Release what the agent holds. What it remembers stays."""
        if self.knowledge_base is not None:
            await self.knowledge_base.cleanup()
        self.memory = self.knowledge_base = None

    @property
    def _model(self) -> str:
        model = self.configuration.model or self._setup.model
        if model is None:
            raise InvalidInput(
                f"the configuration of {self.agent_id!r} names no model; add one, or say it once for all: "
                "configure_agents(model=…)"
            )
        return model

    @property
    def _crosses(self) -> bool:
        config = self.configuration.resource_config.knowledge_base
        return self.wants_knowledge_base() and config.enable_cross_session_context

    @property
    def _memory(self) -> Memory:
        made = self.knowledge_base
        return self._setup.memory if made is None or made.memory is None else made.memory

    @property
    def _policy(self) -> Policy | None:
        resources = self.configuration.resource_config
        if "memory" not in resources.model_fields_set and self._memory._services.policy is not None:  # pyright: ignore[reportPrivateUsage]
            return None
        compression, pieces = resources.memory.compression, resources.knowledge_base
        if not compression.enabled:
            return none()
        archives = compression.archive_conversations and self.wants_knowledge_base()
        return token_threshold(
            compression.threshold_tokens,
            compression.recent_messages_to_keep,
            archives,
            passage_tokens=pieces.chunk_size if archives else None,
            passage_overlap=pieces.chunk_overlap if archives else None,
        )

    async def _available(self, what: str, create: Callable[[], Awaitable[Resource]]) -> Resource | None:
        try:
            return await create()
        except InvalidInput:
            raise
        except HithertoError as error:
            self._missing = error
            log.exception("The %s of %s is not available; the agent goes on without it", what, self.agent_id)
            return None
