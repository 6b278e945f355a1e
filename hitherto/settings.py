"""What can be set from outside, in one frozen object."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from hitherto.core.fact import CATEGORIES, LONGEST_CATEGORY, category_of
from hitherto.core.phrases import TRIGGERS
from hitherto.errors import InvalidSettings


def _seconds(value: object) -> object:
    """The environment has only text: a bare number in it means seconds, as in code."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _ceiling(value: object) -> object:
    if value in (0, 0.0, "0", "0.0"):
        raise ValueError(
            "a ceiling of 0 would stop all digests; leave it out for none, or take a policy without digests"
        )
    return value


def _phrases(value: object) -> object:
    """The environment has only text: phrases with commas between them, or a JSON list."""
    if not isinstance(value, str):
        return value
    if not value.lstrip().startswith("["):
        return [phrase.strip() for phrase in value.split(",")]
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise ValueError(
            'it begins like a JSON list and is none; write ["last time", "remind me"], or last time, remind me'
        ) from None


def _names(value: object) -> object:
    """The environment has only text: names with commas between them, or a JSON list."""
    if not isinstance(value, str):
        return value
    if not value.lstrip().startswith("["):
        return [name.strip() for name in value.split(",")]
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise ValueError(
            'it begins like a JSON list and is none; write ["hobby", "current city"], or hobby, current city'
        ) from None


def _categories(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if not any(character.isalnum() for character in name) or not name.isprintable():
            raise ValueError(f"the category {name!r} has no word in it, or cannot be printed; name it in words")
        if len(name) > LONGEST_CATEGORY:
            raise ValueError(f"the category {name!r} has {len(name)} characters; at most {LONGEST_CATEGORY} are kept")
    if len(names) > _MOST_CATEGORIES:
        raise ValueError(f"there are {len(names)} categories; at most {_MOST_CATEGORIES} fit into a prompt well")
    return tuple(dict.fromkeys(names))


_MOST_CATEGORIES = 50


def _telling(phrases: tuple[str, ...]) -> tuple[str, ...]:
    if not phrases:
        raise ValueError("there is no phrase in it; name one, or set HITHERTO_CROSS_SESSION to off or always")
    for phrase in phrases:
        if not any(character.isalnum() for character in phrase):
            raise ValueError(f"the phrase {phrase!r} has no word in it, so that no message could have it; leave it out")
    return phrases


Duration = Annotated[timedelta, BeforeValidator(_seconds)]
Categories = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_names), AfterValidator(_categories)]
Phrases = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_phrases), AfterValidator(_telling)]


class Settings(BaseSettings):
    """Read from the environment (`HITHERTO_DATABASE`, …); `load` overrides it with what a call passes.

    `prepared_statements`: whether statements that come often are prepared, which an old pooler cannot follow.
    `database`: a PostgreSQL URL, or nothing for the server that Hitherto runs itself, or "memory:" for the in-memory
    store. `home`: that server's directory. `model`: "extractive" (no model at all) or the name of a model for digests
    at `model_base_url` (nothing: OpenAI) with `model_key`, taking `model_input_limit` tokens of prompt at once.
    `model_provider`: which API that is: "openai" (and all that are compatible with it), "azure" (with
    `model_api_version`, for a resource's older API), "ollama" (nothing for the URL: this machine), "anthropic".
    `compact_model`: the agent's model, where its endpoint (`compact_base_url`, nothing: OpenAI; with `compact_key`)
    makes the opaque items of native compaction.
    `window`: the size of the agent's model's context window in tokens (nothing: the budget).
    `injection`: whether memory of the scope's earlier conversations goes into the instructions, at most
    `injection_tokens` of it and none older than `injection_age`.
    `encoding`: the tokenizer, or the name of the agent's model, that budgets are counted with where a context does
    not say. `budget`: tokens of a context that does not say. Times: `database_timeout` seconds for a connection to
    the database; `model_timeout` seconds for one model call; `keep_receipts` is how long an idempotency key is
    remembered; `grace` seconds for digests in hand when a memory is closed.

    Digests. `worker`: whether this process makes them, `digests_at_once` of them, or leaves that to others.
    `take_over_after`: within this time a dead worker's digest is taken over by another. A call that fails for a passing
    reason is made `model_tries` times at once; then the digest is put off for `backoff`, twice as long each time, and
    fails for good after `digest_tries`. When `breaker_failures` calls in a row have failed, none is made for
    `breaker_rest`. `daily_cost` (US dollars, calls without a known price left out) and `daily_tokens` (in and out):
    a tenant that has spent so much on a day (UTC) gets no more digests on it. `prices`: a price list of yours.

    Recall. `embedder`: "wordllama" (in this process, no network), "none" (lexical search alone), or the name of a
    model of `embedder_provider` at `embedder_base_url` (nothing: the provider's own) with `embedder_key`, in so many
    `embedder_dimensions` (nothing: its own), which reads `embedder_input_limit` tokens of a text (nothing: what is
    known of it). A question's vector gets `embedder_timeout` seconds; those made in the background get ten times as
    long per request. `former_embedder`: the one before, of the same provider, which answers until its successor has
    caught up. `reranker`: "model" (the model for digests orders what was found), or the name of a cross-encoder at
    `reranker_base_url` with `reranker_key`; it gets `reranker_timeout` seconds. `recall_share`: the part of a
    context's budget that recalled passages may take. `cross_session`: whether contexts get what fits from other
    conversations: "off", "triggers" (where the incoming message has one of `search_triggers`, as whole words) or
    "always"; only what is as relevant as `relevance_threshold` (0 to 1), at most `cross_session_limit` of it.
    Documents are cut into passages of `passage_tokens` tokens that share `passage_overlap`.

    Facts. `facts`: whether contexts show what is known of a conversation's subject, in at most the part `facts_share`
    of their budget. `facts_place`: "system" (always at the end of the instructions, as seed 002 has them), "incoming"
    (always in front of the incoming message) or "auto" (the first as long as all of them fit; those that are chosen for
    the incoming message stand in front of it, so that what comes before stays the same). `fact_categories` are those
    that are extracted ("other" is always one), and of each of `single_fact_categories`, such as "current city", a
    subject has one at a time.

    `tracing`: whether there are OpenTelemetry spans. Durations are a number of seconds or ISO 8601 (PT5M).
    """

    model_config = SettingsConfigDict(
        env_prefix="HITHERTO_", env_ignore_empty=True, frozen=True, extra="ignore", protected_namespaces=()
    )

    database: str | None = Field(default=None, min_length=1)
    home: Annotated[Path, AfterValidator(Path.expanduser)] | None = None
    pool_size: int = Field(default=10, ge=1)
    database_timeout: float = Field(default=10.0, gt=0, le=3_600)
    prepared_statements: bool = True
    model: str = Field(default="extractive", min_length=1)
    model_provider: Literal["openai", "azure", "ollama", "anthropic"] = "openai"
    model_api_version: str | None = Field(default=None, min_length=1)
    model_base_url: str | None = None
    model_key: SecretStr | None = None
    model_input_limit: int = Field(default=100_000, ge=1_000)
    model_timeout: float = Field(default=60.0, gt=0)
    compact_model: str | None = Field(default=None, min_length=1)
    compact_base_url: str | None = None
    compact_key: SecretStr | None = None
    encoding: str = "o200k_base"
    budget: int = Field(default=16_000, ge=1)
    window: int | None = Field(default=None, ge=1)
    injection: bool = False
    injection_tokens: int = Field(default=500, ge=1)
    injection_age: Duration = Field(default=timedelta(days=30), gt=timedelta(0))
    worker: bool = True
    digests_at_once: int = Field(default=4, ge=1)
    take_over_after: Duration = Field(
        default=timedelta(minutes=1), ge=timedelta(milliseconds=100), le=timedelta(hours=1)
    )
    model_tries: int = Field(default=3, ge=1, le=100)
    digest_tries: int = Field(default=5, ge=1, le=1_000)
    backoff: Duration = Field(default=timedelta(seconds=10), ge=timedelta(0), le=timedelta(minutes=15))
    breaker_failures: int = Field(default=5, ge=1)
    breaker_rest: Duration = Field(default=timedelta(seconds=30), gt=timedelta(0), le=timedelta(minutes=15))
    daily_cost: Annotated[float, BeforeValidator(_ceiling)] | None = Field(default=None, gt=0, allow_inf_nan=False)
    daily_tokens: Annotated[int, BeforeValidator(_ceiling)] | None = Field(default=None, gt=0)
    prices: Annotated[Path, AfterValidator(Path.expanduser)] | None = None
    embedder: str = Field(default="wordllama", min_length=1)
    embedder_provider: Literal["openai", "azure", "ollama", "sentence_transformers"] = "openai"
    embedder_base_url: str | None = None
    embedder_key: SecretStr | None = None
    embedder_api_version: str | None = Field(default=None, min_length=1)
    embedder_dimensions: int | None = Field(default=None, ge=8, le=16_000)
    embedder_input_limit: int | None = Field(default=None, ge=16)
    embedder_timeout: float = Field(default=5.0, gt=0)
    former_embedder: str | None = Field(default=None, min_length=1)
    reranker: str | None = Field(default=None, min_length=1)
    reranker_base_url: str | None = None
    reranker_key: SecretStr | None = None
    reranker_timeout: float = Field(default=2.0, gt=0)
    recall_share: float = Field(default=0.25, gt=0, lt=1)
    cross_session: Literal["off", "triggers", "always"] = "off"
    search_triggers: Phrases = TRIGGERS
    relevance_threshold: float = Field(default=0.7, ge=0, le=1)
    cross_session_limit: int = Field(default=3, ge=1, le=50)
    passage_tokens: int = Field(default=800, ge=16, le=8_000)
    passage_overlap: int = Field(default=100, ge=0)
    facts: bool = True
    facts_share: float = Field(default=0.15, gt=0, lt=1)
    facts_place: Literal["auto", "system", "incoming"] = "auto"
    fact_categories: Categories = CATEGORIES
    single_fact_categories: Categories = ()
    tracing: bool = False
    keep_receipts: Duration = Field(default=timedelta(days=30), gt=timedelta(0), le=timedelta(days=36_500))
    grace: float = Field(default=5.0, ge=0)

    @field_validator("passage_overlap")
    @classmethod
    def _shorter_than_a_passage(cls, value: int, info: ValidationInfo) -> int:
        tokens = info.data.get("passage_tokens")
        if tokens is not None and value >= tokens:
            raise ValueError(
                f"passages of {tokens} tokens (HITHERTO_PASSAGE_TOKENS) cannot share {value} of them; share fewer, or "
                "make passages longer"
            )
        return value

    @field_validator("fact_categories")
    @classmethod
    def _some(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value:
            raise ValueError(
                'there is no category in it; name at least one, or set "facts": false in the policy\'s stage'
            )
        return value

    @field_validator("single_fact_categories")
    @classmethod
    def _among_the_categories(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        """As they are defined, however they are spelt here."""
        known: tuple[str, ...] = info.data.get("fact_categories", ())
        if not known:  # they are unusable, which is said of them
            return value
        meant = {name: category_of(name, known) for name in value}
        for name, (kept, told) in meant.items():
            if told or kept not in known:
                raise ValueError(
                    f"{name!r} is none of {', '.join(known)} (HITHERTO_FACT_CATEGORIES); name it there too"
                )
        return tuple(dict.fromkeys(kept for kept, _ in meant.values()))

    @classmethod
    def load(cls, **given: Any) -> Settings:
        """The environment's settings, overridden by those of `given` that are not None.

        Raises InvalidSettings naming the setting that is wrong.
        """
        unknown = sorted(set(given) - set(cls.model_fields))
        if unknown:
            raise InvalidSettings(f"{unknown[0]!r} is not a setting; known: {', '.join(sorted(cls.model_fields))}")
        try:
            return cls(**{name: value for name, value in given.items() if value is not None})
        except ValidationError as error:
            first = error.errors(include_input=False)[0]
            name = ".".join(str(part) for part in first["loc"])
            raise InvalidSettings(
                f"the setting {name} (HITHERTO_{name.upper()}) is unusable: {why_unusable(first['msg'])}"
            ) from error


def why_unusable(said: str) -> str:
    """What Pydantic says of a value, in the words of these pages."""
    found = re.match(r"(?:Input|String) should (.*?)(?:, (?:unable|invalid|unexpected)\b.*)?$", said)
    why = said.removeprefix("Value error, ") if found is None else f"it should {found[1]}"
    for theirs, ours in _OURS.items():
        why = why.replace(theirs, ours)
    return why


_OURS = {
    "a valid integer": "a whole number",
    "a valid boolean": "true or false",
    "a valid timedelta": "a number of seconds, or a duration like PT5M",
}
