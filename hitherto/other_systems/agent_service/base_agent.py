"""An agent's memory and knowledge base, as its configuration says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal, TypeVar

from hitherto import (
    Conversation,
    CrossSession,
    Memory,
    MemorySettings,
    Policy,
    Scope,
    assistant,
    none,
    policy_of,
    system,
    token_threshold,
    user,
)
from hitherto.errors import HithertoError, InvalidInput
from hitherto.logs import logger
from hitherto.other_systems.agent_service.knowledge_base import KnowledgeBaseResource
from hitherto.other_systems.agent_service.setup import AgentSetup, current
from hitherto.wire import read
from hitherto.wire.neutral import spoken

log = logger("hitherto.agents")

Resource = TypeVar("Resource")

_CHAT: Literal["openai.chat"] = "openai.chat"

_MAKERS = {"user": user, "assistant": assistant, "system": system}


class BaseAgent:
    """An agent with the id of its configuration, for one user and one session. It has a `memory` and a
    `knowledge_base` once `initialize` has returned, if its configuration lists them; else they are None.

    `policy` and `cross_session` are what its configuration comes to: they hold for a session that says nothing of its
    own, where `Memory.configure_agent` has stored nothing for the agent. With the policy None the memory's applies.
    Nothing of them is stored: another process may have another configuration.

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
        self.policy: Policy | None = None
        self.cross_session = CrossSession()
        self._settings: MemorySettings | None = None
        self._missing: Exception | None = InvalidInput(f"the agent {agent_id!r} is not initialized; await initialize()")

    async def initialize(self) -> None:
        """Make the resources that the configuration lists. One that is unavailable is logged and left out; a
        configuration that cannot be used raises InvalidInput."""
        self._settings = await self._available("settings of the memory", self._memory.settings)
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
        """The session as a conversation. Raises StoreError where the database is away."""
        memory = self._memory
        stored = await memory.agent(self.agent_id, tenant=self.scope.tenant)
        self.policy = policy_of(stored.policy) or await self._configured(memory)
        self.cross_session = stored.cross_session.over(self._crosses)
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
            items = await self.memory.items(wire=_CHAT, policy=await self.governing())
            said = [(str(item.get("role")), spoken(read(item, _CHAT))) for item in items]
        except Exception:  # the application goes on without its memory
            log.exception("The memory of %s could not be loaded", self.agent_id, conversation=self.session_id)
            return []
        return [{"role": role, "content": text} for role, text in said if role in _MAKERS and text]

    async def save_memory(self, role: str, content: str) -> None:
        """Append a message of "user", "assistant" or "system" to the session. Does nothing if the configuration has no
        memory. Raises InvalidInput for another role and before `initialize`, the StoreError for which the memory was
        left out, and what an append raises."""
        make = _MAKERS.get(role)
        if make is None:
            raise InvalidInput(f"role is {role!r}; give one of {', '.join(_MAKERS)}")
        if self.memory is not None:
            await self.memory.append(make(content), policy=await self.governing())
        elif self._missing is not None:
            raise self._missing

    async def governing(self) -> Policy | None:
        """The policy to be asked for in the session: None where it has one of its own."""
        head = None if self.memory is None else await self.memory.head()
        return self.policy if head is None or head.policy is None else None

    async def cleanup(self) -> None:
        """Release what the agent holds. What it remembers stays."""
        if self.knowledge_base is not None:
            await self.knowledge_base.cleanup()
        self.memory = self.knowledge_base = None

    @property
    def _model(self) -> str:
        return self._setup.model_of(self.configuration)

    @property
    def _crosses(self) -> CrossSession:
        config = self.configuration.resource_config.knowledge_base
        if not (self.wants_knowledge_base() and config.enable_cross_session_context):
            return CrossSession()
        phrases = tuple(config.search_triggers) or None
        return CrossSession(triggers=True, search_triggers=phrases, relevance_threshold=config.relevance_threshold)

    @property
    def _memory(self) -> Memory:
        made = self.knowledge_base
        return self._setup.memory if made is None or made.memory is None else made.memory

    async def _configured(self, memory: Memory) -> Policy | None:
        resources = self.configuration.resource_config
        if (
            "memory" not in resources.model_fields_set
            and (self._settings or await memory.settings()).policy is not None
        ):
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
