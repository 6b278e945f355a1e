"""The knowledge base of an agent: documents and archived conversations of its user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hitherto import Memory, MemorySettings, Scope
from hitherto.errors import InvalidInput, InvalidSettings
from hitherto.integrations.document_tools import DocumentTools
from hitherto.logs import logger
from hitherto.other_systems.agent_service.configuration import KnowledgeBaseConfiguration
from hitherto.other_systems.agent_service.providers import Provider, text_model
from hitherto.other_systems.agent_service.setup import current
from hitherto.ports.models import Model
from hitherto.providers.chat_model_reranker import ChatModelReranker

log = logger("hitherto.agents")

_LONGEST = 60.0
"""Seconds: the memory's setting `reranker_timeout` ends an answer before."""


class KnowledgeBaseResource:
    """The knowledge base of one user, as an agent uses it. It is ready once `initialize` has returned.

    `config` may be the JSON object that an agent's configuration has for it. Embeddings are the memory's; a
    configuration that names another model, or only another provider, is refused. A reranker is used if one is set.

    Raises InvalidInput for a configuration that cannot be used.
    """

    def __init__(
        self,
        name: str,
        config: KnowledgeBaseConfiguration | Mapping[str, Any],
        *,
        scope: Scope | None = None,
        memory: Memory | None = None,
    ) -> None:
        self.name, self.config = name, KnowledgeBaseConfiguration.read(config)
        self.memory: Memory | None = None
        self._scope, self._given = scope, memory
        self._embedding: tuple[Provider | None, str | None] = (None, self.config.embedding_model)
        self._rerank: tuple[Provider, str] | None = None
        self._model: Model | None = None

    def set_chat_provider(self, provider: Provider) -> None:
        """Takes the agent's provider. Nothing depends on it: archives are made by the memory's model."""

    def set_embedding_provider(self, provider: Provider | None, model: str | None) -> None:
        """Set who embeds. Only the memory's own embedder can: `initialize` refuses another."""
        self._embedding = provider, model

    def set_rerank_provider(self, provider: Provider, model: str) -> None:
        """Let this model order what a search finds. Limited where the model is small."""
        self._rerank = provider, model

    async def initialize(self) -> None:
        """Make it ready, on the memory that was given or that of `configure_agents`. On a memory over HTTP only the
        service's own reranker puts in order what is found, which is logged. Raises InvalidSettings for another
        embedder than the memory's, InvalidInput before `configure_agents`, and where the reranker has no address or
        key."""
        memory = self._given or current().memory
        self._check_embedder(await memory.settings())
        if self._rerank is not None:
            self._model = text_model(*self._rerank)
            try:
                memory = memory.with_reranker(ChatModelReranker(self._model, timeout=_LONGEST))
            except InvalidInput as error:
                log.warning("The reranker of %s is not used: %s", self.name, error)
        self.memory = memory

    def _check_embedder(self, settings: MemorySettings) -> None:
        (provider, model), there = self._embedding, settings.embedders or ("none",)
        if model is not None:
            same, asked = model in there, f"the embedding model {model!r}"
        elif provider is not None:
            same = provider.kind == settings.embedder_provider
            asked = f"an embedder of {provider.kind!r}, and names no model"
        else:
            return
        if not same:
            raise InvalidSettings(
                f"{self.name} asks for {asked}; the memory has {there[-1]!r}: one memory has one embedder, because "
                "vectors of two cannot be compared; set HITHERTO_EMBEDDER and HITHERTO_EMBEDDER_PROVIDER, or leave "
                "embedding_provider and embedding_model out"
            )

    async def search(self, query: str, *, search_type: str = "all", limit: int = 5) -> list[dict[str, Any]]:
        """Passages of the user's documents that answer `query` best, the best first. Raises InvalidInput."""
        return await self._tools.search_knowledge_base(query, search_type, limit)

    async def list_documents(self, *, doc_type: str = "all", limit: int = 10) -> list[dict[str, Any]]:
        """The user's documents, the newest first. Raises InvalidInput."""
        return await self._tools.list_documents(doc_type, limit)

    async def cleanup(self) -> None:
        """Close the reranker's connection."""
        if self._model is not None:
            await self._model.aclose()

    @property
    def _tools(self) -> DocumentTools:
        if self.memory is None or self._scope is None:
            raise InvalidInput(f"{self.name} is not ready; call initialize() first, and give it a scope")
        return DocumentTools(self.memory, self._scope)
