"""The configuration of an agent: its model, its tools, and how it remembers."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from hitherto import Scope
from hitherto.core.recall.trigger_phrases import TRIGGERS
from hitherto.errors import InvalidInput

_MOST = 10**9
_Name = Annotated[str, Field(min_length=1, max_length=200)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class CompressionConfiguration(_Part):
    """When older messages become a summary: above `threshold_tokens`, all but the newest `recent_messages_to_keep`.
    With `archive_conversations` what is summarized becomes a document of the user's knowledge base too."""

    enabled: bool = True
    threshold_tokens: int = Field(default=10_000, ge=1, le=_MOST)
    recent_messages_to_keep: int = Field(default=10, ge=1, le=_MOST)
    archive_conversations: bool = False


class MemoryConfiguration(_Part):
    """How an agent remembers a session."""

    compression: CompressionConfiguration = CompressionConfiguration()


class KnowledgeBaseConfiguration(_Part):
    """How archived conversations are cut and found again. `vector_provider` changes nothing: PostgreSQL holds the
    vectors. An embedder other than the memory's is refused by `KnowledgeBaseResource.initialize`. With
    `enable_cross_session_context`, a message with one of `search_triggers` is shown what is relevant in the user's
    other sessions with the agent, with a score of at least `relevance_threshold`."""

    vector_provider: Literal["pgvector"] = "pgvector"
    chunk_size: int = Field(default=800, ge=16, le=8_000)
    chunk_overlap: int = Field(default=100, ge=0, le=8_000)
    embedding_provider: _Name | None = None
    embedding_model: _Name | None = None
    enable_cross_session_context: bool = False
    relevance_threshold: float = Field(default=0.7, ge=0, le=1)
    search_triggers: list[_Name] = Field(default=list(TRIGGERS), max_length=100)
    rerank_provider: _Name | None = None
    rerank_model: _Name | None = None

    @classmethod
    def read(cls, value: object) -> KnowledgeBaseConfiguration:
        """The configuration in a JSON object. Raises InvalidInput naming the key that is wrong."""
        if isinstance(value, KnowledgeBaseConfiguration):
            return value
        if not isinstance(value, Mapping):
            raise InvalidInput(f"the configuration of a knowledge base is {str(value)[:80]!r}; give a JSON object")
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            raise InvalidInput(f"the configuration of a knowledge base: {_told(error, cls)}") from None

    @model_validator(mode="after")
    def _fits(self) -> KnowledgeBaseConfiguration:
        if self.chunk_overlap >= self.chunk_size:
            raise ValueError(f"chunks of {self.chunk_size} tokens cannot share {self.chunk_overlap} of them")
        if self.rerank_model is not None and self.rerank_provider is None:
            raise ValueError("rerank_model is set, and no rerank_provider; name the one that has this model")
        return self


class ResourceConfiguration(_Part):
    """What is set for the resources of an agent."""

    memory: MemoryConfiguration = MemoryConfiguration()
    knowledge_base: KnowledgeBaseConfiguration = KnowledgeBaseConfiguration()


class AgentConfiguration(_Part):
    """An agent. It has only the `resources` that are named: "memory" and "knowledge_base". `provider` says where its
    `model` is; `instructions` go to the model with each request. Of the tools, it is given those of
    `allowed_regular_tools`, and asked at most `max_turns` times for one answer."""

    agent_id: _Name
    resources: list[Literal["memory", "knowledge_base"]] = Field(default_factory=list)
    provider: _Name = "openai"
    model: _Name | None = None
    instructions: str = ""
    allowed_regular_tools: list[_Name] = Field(default_factory=list)
    max_turns: int = Field(default=10, ge=1, le=1_000)
    resource_config: ResourceConfiguration = ResourceConfiguration()

    @classmethod
    def read(cls, value: object, where: str = "the configuration") -> AgentConfiguration:
        """The configuration in a JSON object. Raises InvalidInput naming the agent and the key that is wrong, and for
        an unknown one the nearest that is known."""
        if isinstance(value, AgentConfiguration):
            return value
        if not isinstance(value, Mapping):
            raise InvalidInput(f"{where} is {str(value)[:80]!r}; give a JSON object with an agent_id")
        try:
            found = cls.model_validate(value)
        except ValidationError as error:
            named = cast("Mapping[str, object]", value).get("agent_id")
            whose = f" of {named[:80]!r}" if isinstance(named, str) and named else ""
            raise InvalidInput(f"{where}{whose}: {_told(error, cls)}") from None
        Scope(tenant="-", user="-", agent=found.agent_id)  # which refuses what is no name
        return found


def read_folder(folder: Path) -> list[AgentConfiguration]:
    """The configurations in the folder's .json files, an agent or a list of agents each. Raises InvalidInput naming the
    file that cannot be used."""
    if not folder.is_dir():
        raise InvalidInput(f"there is no folder {folder}; give one with a .json file for each agent")
    found: list[AgentConfiguration] = []
    for path in sorted(folder.glob("*.json")):
        try:
            value: object = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise InvalidInput(f"cannot read {path}: {error}") from None
        listed = cast("list[object]", value) if isinstance(value, list) else [value]
        found += [AgentConfiguration.read(one, f"the configuration in {path}") for one in listed]
    if not found:
        raise InvalidInput(f"there is no configuration in {folder}; put a .json file for each agent there")
    return found


def nearest(name: str, known: Iterable[str]) -> str:
    """What to say of an unknown name."""
    there = sorted(known)
    near = difflib.get_close_matches(name, there, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(there) or 'none'}"


def _told(error: ValidationError, kind: Any) -> str:
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"]))
    if first["type"] != "extra_forbidden":
        return f"{where}: {first['msg']}" if where else str(first["msg"])
    for name in first["loc"][:-1]:
        kind = kind.model_fields[name].annotation
    return f"{where} is not a known key; {nearest(str(first['loc'][-1]), kind.model_fields)}"
