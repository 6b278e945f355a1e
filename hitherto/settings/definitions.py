"""Every setting, with its meaning and its default, in groups."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal, TypedDict, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
)

from hitherto.core.cross_session import RecallFrom, Way
from hitherto.core.facts.fact import CATEGORIES, category_of
from hitherto.core.recall.trigger_phrases import TRIGGERS
from hitherto.settings.values import (
    SECONDS,
    Categories,
    CrossSessionWays,
    Duration,
    EmbedderProvider,
    ModelProvider,
    Origins,
    Phrases,
    PolicyText,
    TimeZone,
    daily_limit,
    recall_from,
    takes_numbers,
)


class _Group(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, protected_namespaces=(), hide_input_in_errors=True
    )

    @field_validator("*", mode="before")
    @classmethod
    def _no_switch_for_a_number(cls, value: object, info: ValidationInfo) -> object:
        """Raises ValueError for True and False where Pydantic would take them for 1 and 0."""
        if isinstance(value, bool) and takes_numbers(cls.model_fields[cast(str, info.field_name)].annotation):
            raise ValueError(f"it is {value}; give a number")
        return value


class DatabaseSettings(_Group):
    """Where conversations are kept, and how long.

    `database`: a PostgreSQL URL, or "memory:" for a throw-away memory; unset: the server that Hitherto runs itself.
    `data_dir`: that server's directory. `pool_size`: the most connections of this process.
    `database_timeout`: seconds to wait for a connection. `prepared_statements`: whether statements that come often are
    prepared, which an old connection pooler does not support. `read_only`: nothing is written, and no digest is made;
    a database without Hitherto's current schema is refused, not set up. `row_security`: whether PostgreSQL must keep
    tenants apart too, by its row-level security; a role that passes it, such as the tables' owner, is then refused (the
    server that Hitherto runs itself has one that does not). `ttl`: how long a message is kept where neither
    it nor its conversation, agent or tenant says so (unset or 0: for ever).
    """

    database: str | None = Field(default=None, min_length=1, repr=False)
    data_dir: Annotated[Path, AfterValidator(Path.expanduser)] | None = None
    pool_size: int = Field(default=10, ge=1)
    database_timeout: float = Field(default=10.0, gt=0, le=3_600)
    prepared_statements: bool = True
    read_only: bool = False
    row_security: bool = False
    ttl: Annotated[timedelta, Field(ge=timedelta(0), le=timedelta(days=36_500)), SECONDS] | None = None


class ModelSettings(_Group):
    """The model that makes digests, and the one that compacts.

    `model`: "extractive" (no model at all) or the name of a model at `model_base_url` (unset: OpenAI) with `model_key`.
    It takes prompts of at most `model_input_limit` tokens; one call gets `model_timeout` seconds. `model_provider`:
    which API that is: "openai" (and all that are compatible with it), "azure" (with `model_api_version`, for a
    resource's older API), "ollama" (without a URL: on this machine) or "anthropic". `compact_model`: the agent's own
    model, if its endpoint (`compact_base_url`, unset: OpenAI; with `compact_key`) makes the opaque items of native
    compaction. `model_output`: how the model writes its answers: "json", or "text" for one that cannot write JSON: then
    a digest is one text, and no facts are found.
    """

    model: str = Field(default="extractive", min_length=1)
    model_provider: ModelProvider = "openai"
    model_api_version: str | None = Field(default=None, min_length=1)
    model_base_url: str | None = Field(default=None, repr=False)
    model_key: SecretStr | None = None
    model_input_limit: int = Field(default=100_000, ge=1_000)
    model_timeout: float = Field(default=60.0, gt=0)
    model_output: Literal["json", "text"] = "json"
    compact_model: str | None = Field(default=None, min_length=1)
    compact_base_url: str | None = Field(default=None, repr=False)
    compact_key: SecretStr | None = None


class ContextSettings(_Group):
    """How contexts are made where a request does not say.

    `policy`: what governs conversations that have none of their own, nor their agent: a policy's name, its command-line
    form or its JSON (unset: `balanced`). `encoding`: the tokenizer, or the name of the agent's model, that budgets are
    counted with. `time_zone`: the zone (such as "Europe/Berlin") whose days count where a message's own time is in UTC
    or not given; it is kept with each message that is appended. `budget`: tokens of a context. `context_window`: the
    tokens that the agent's model takes (unset: the budget). Of the newest digest of earlier conversations ("latest" of
    `cross_session`), contexts show at most `injection_tokens`, and none that is older than `injection_age`.
    `cache_breakpoints`: whether requests tell the provider's prompt cache where what stays the same ends, if it is
    known that the API takes that. `join_neighbors`: whether neighbors of one role are one chat message (unset: where
    the model's provider is a server of one's own). `date_messages`: whether each user message begins with its day.
    """

    policy: PolicyText | None = None
    encoding: str = "o200k_base"
    time_zone: TimeZone = "UTC"
    budget: int = Field(default=16_000, ge=1)
    context_window: int | None = Field(default=None, ge=1)
    injection_tokens: int = Field(default=500, ge=1)
    injection_age: Duration = Field(default=timedelta(days=30), gt=timedelta(0))
    cache_breakpoints: bool = True
    join_neighbors: bool | None = None
    date_messages: bool = False


class DigestSettings(_Group):
    """Who makes digests, how often a failed one is tried, and what a tenant may spend.

    `worker`: whether this process makes digests, `digest_concurrency` at a time, or leaves that to others. After
    `lease_timeout` a dead worker's digest is taken over by another. A call that fails for a temporary reason is tried
    `model_max_attempts` times in a row; then the digest is put off for `backoff`, twice as long each time, and fails
    for good after `digest_max_attempts`; after another `backoff`, the conversation's next digest begins (0: with the
    next append). When `breaker_failures` calls in a row have failed, none is made for
    `breaker_cooldown`. `daily_cost` (US dollars, calls without a known price left out) and `daily_tokens` (in and out):
    a tenant that has spent so much on a day (UTC) gets no more digests that day, nor does a user that has had
    `daily_user_share` of it, where the tenant has other users. `prices`: the path of your own price
    list.
    """

    worker: bool = True
    digest_concurrency: int = Field(default=4, ge=1)
    lease_timeout: Duration = Field(default=timedelta(minutes=1), ge=timedelta(milliseconds=100), le=timedelta(hours=1))
    model_max_attempts: int = Field(default=3, ge=1, le=100)
    digest_max_attempts: int = Field(default=5, ge=1, le=1_000)
    backoff: Duration = Field(default=timedelta(seconds=10), ge=timedelta(0), le=timedelta(minutes=15))
    breaker_failures: int = Field(default=5, ge=1)
    breaker_cooldown: Duration = Field(default=timedelta(seconds=30), gt=timedelta(0), le=timedelta(minutes=15))
    daily_cost: Annotated[float, BeforeValidator(daily_limit)] | None = Field(default=None, gt=0, allow_inf_nan=False)
    daily_tokens: Annotated[int, BeforeValidator(daily_limit)] | None = Field(default=None, gt=0)
    daily_user_share: float = Field(default=0.5, gt=0, le=1)
    prices: Annotated[Path, AfterValidator(Path.expanduser)] | None = None


class RecallSettings(_Group):
    """The embedder, the reranker, and what is recalled.

    `embedder`: "wordllama" (in this process, no network), "none" (search by words alone), or the name of a model of
    `embedder_provider` at `embedder_base_url` (unset: the provider's own) with `embedder_key`. Its vectors have
    `embedder_dimensions` (unset: the model's own), and it reads `embedder_input_limit` tokens of a text (unset: what is
    known of the model). A question's vector gets `embedder_timeout` seconds, and so do those that choose the known
    facts for a digest; an embedder in this process gets ten times as long, and so does each request in the background.
    `previous_embedder`: the embedder before a change, of the same provider; its vectors are searched until the new one
    has caught up.
    `reranker`: "model" (the model for digests orders what was found), or the name of a cross-encoder at
    `reranker_base_url` with `reranker_key`; it gets `reranker_timeout` seconds. `recall_share`: the part of a context's
    budget that is reserved for what is recalled, where the budget cuts; it takes whatever else is left too, but at most
    `recall_max_tokens` tokens (unset: no limit). Where tools are used it is two and a half times as much, up to 1,000
    tokens, and no more.

    `recall`: where contexts recall from: "scope" or True (all conversations of the scope, and its user's documents),
    "own" (the context's own), "off" or False; unset: the policy decides. Where own messages are cut, what is from
    elsewhere takes at most the part `recall_others_share` of what is recalled.

    `cross_session`: in which ways contexts show other conversations of the scope: "latest" (their newest digest, in the
    instructions), "triggers" (what a search in them finds, if the incoming message has one of `search_triggers`, as
    whole words), "always" (what a search in them finds). Of what is found, at most `cross_session_limit` hits are
    shown, whose relevance is at least `relevance_threshold` (0 to 1).
    """

    embedder: str = Field(default="wordllama", min_length=1)
    embedder_provider: EmbedderProvider = "openai"
    embedder_base_url: str | None = Field(default=None, repr=False)
    embedder_key: SecretStr | None = None
    embedder_api_version: str | None = Field(default=None, min_length=1)
    embedder_dimensions: int | None = Field(default=None, ge=8, le=16_000)
    embedder_input_limit: int | None = Field(default=None, ge=16)
    embedder_timeout: float = Field(default=5.0, gt=0)
    previous_embedder: str | None = Field(default=None, min_length=1)
    reranker: str | None = Field(default=None, min_length=1)
    reranker_base_url: str | None = Field(default=None, repr=False)
    reranker_key: SecretStr | None = None
    reranker_timeout: float = Field(default=2.0, gt=0)
    recall_share: float = Field(default=0.25, gt=0, lt=1)
    recall_max_tokens: int | None = Field(default=None, ge=1)
    recall: Annotated[RecallFrom | None, BeforeValidator(recall_from)] = None
    recall_others_share: float = Field(default=0.5, ge=0, le=1)
    cross_session: CrossSessionWays = ()
    search_triggers: Phrases = TRIGGERS
    relevance_threshold: float = Field(default=0.2, ge=0, le=1)
    cross_session_limit: int = Field(default=3, ge=1, le=50)


class DocumentSettings(_Group):
    """How documents are cut: into passages of `passage_tokens` tokens, of which neighbors share `passage_overlap`."""

    passage_tokens: int = Field(default=800, ge=16, le=8_000)
    passage_overlap: int = Field(default=100, ge=0)

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


class FactSettings(_Group):
    """Which facts are found and shown.

    `facts`: whether facts are found in conversations, and whether contexts show what is known of a conversation's
    subject, in at most the part `facts_share` of their budget. `rest_after`: how long after its last message a
    conversation rests; then what no digest has read of it is read for facts, if its policy finds facts in that way
    (0: never). `facts_place`: "system" (always at the end of the instructions), "incoming" (always in front of
    the incoming message) or "auto" (at the end of the instructions as long as all of them fit; else those chosen for
    the incoming message, in front of it, so that what comes before stays the same). `fact_categories`: the categories
    of facts ("other" is always one). In each of `single_fact_categories`, such as "current city", a subject has one
    fact at a time.
    """

    facts: bool = True
    rest_after: Annotated[timedelta, Field(ge=timedelta(0), le=timedelta(days=30)), SECONDS] | None = timedelta(
        minutes=10
    )
    facts_share: float = Field(default=0.15, gt=0, lt=1)
    facts_place: Literal["auto", "system", "incoming"] = "auto"
    fact_categories: Categories = CATEGORIES
    single_fact_categories: Categories = ()

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
        """The names as `fact_categories` spells them. Raises ValueError for one that is not there."""
        known: tuple[str, ...] = info.data.get("fact_categories", ())
        if not known:  # they are invalid themselves, which is another error
            return value
        meant = {name: category_of(name, known) for name in value}
        for name, (kept, told) in meant.items():
            if told or kept not in known:
                raise ValueError(
                    f"{name!r} is none of {', '.join(known)} (HITHERTO_FACT_CATEGORIES); name it there too"
                )
        return tuple(dict.fromkeys(kept for kept, _ in meant.values()))


class ServiceSettings(_Group):
    """The service (`hitherto serve`).

    `host` and `port`: where it listens. `require_keys`: whether requests need a key on this machine too, as behind a
    proxy; those from elsewhere always do. `cors_origins`: the web pages that may call it from a browser, by their
    origins ("*": all); none by default. A request has at most `request_size` bytes and takes at most `request_seconds`;
    a key allows at most `requests_per_minute` of each process (unset: any number).
    """

    host: str = Field(default="127.0.0.1", min_length=1)
    port: int = Field(default=8480, ge=0, le=65_535)
    require_keys: bool = False
    cors_origins: Origins = ()
    request_size: int = Field(default=16_777_216, ge=1_024)
    request_seconds: float = Field(default=60.0, gt=0, le=3_600)
    requests_per_minute: int | None = Field(default=None, ge=1)


class CommandSettings(_Group):
    """The scope of commands: its `tenant`, `user` and `agent` where their options do not say. Programs name a scope in
    each call."""

    tenant: str = Field(default="local", min_length=1)
    user: str = Field(default="me", min_length=1)
    agent: str = Field(default="cli", min_length=1)


class ProcessSettings(_Group):
    """`tracing`: whether there are OpenTelemetry spans. `keep_receipts`: how long an idempotency key is remembered.
    `keep_contexts`: how many contexts of a conversation are kept (0: none), `keep_contexts_for`: for how long each
    (unset: without an end). `grace`: seconds that running digests get when a memory is closed."""

    tracing: bool = False
    keep_receipts: Duration = Field(default=timedelta(days=30), gt=timedelta(0), le=timedelta(days=36_500))
    keep_contexts: int = Field(default=0, ge=0, le=1_000_000)
    keep_contexts_for: Annotated[timedelta, Field(gt=timedelta(0), le=timedelta(days=36_500)), SECONDS] | None = None
    grace: float = Field(default=5.0, ge=0)


class SettingsOptions(TypedDict, total=False):
    """Every setting that `hitherto.open` takes beside its own parameters; None leaves it to the environment."""

    data_dir: Path | str | None
    pool_size: int | None
    database_timeout: float | None
    prepared_statements: bool | None
    read_only: bool | None
    row_security: bool | None
    ttl: timedelta | float | str | None
    model_provider: ModelProvider | None
    model_api_version: str | None
    model_base_url: str | None
    model_key: SecretStr | str | None
    model_input_limit: int | None
    model_timeout: float | None
    model_output: Literal["json", "text"] | None
    compact_model: str | None
    compact_base_url: str | None
    compact_key: SecretStr | str | None
    encoding: str | None
    time_zone: str | None
    budget: int | None
    context_window: int | None
    injection_tokens: int | None
    injection_age: timedelta | float | str | None
    cache_breakpoints: bool | None
    join_neighbors: bool | None
    date_messages: bool | None
    worker: bool | None
    digest_concurrency: int | None
    lease_timeout: timedelta | float | str | None
    model_max_attempts: int | None
    digest_max_attempts: int | None
    backoff: timedelta | float | str | None
    breaker_failures: int | None
    breaker_cooldown: timedelta | float | str | None
    daily_cost: float | None
    daily_tokens: int | None
    daily_user_share: float | None
    prices: Path | str | None
    embedder_provider: EmbedderProvider | None
    embedder_base_url: str | None
    embedder_key: SecretStr | str | None
    embedder_api_version: str | None
    embedder_dimensions: int | None
    embedder_input_limit: int | None
    embedder_timeout: float | None
    previous_embedder: str | None
    reranker_base_url: str | None
    reranker_key: SecretStr | str | None
    reranker_timeout: float | None
    recall_share: float | None
    recall_max_tokens: int | None
    recall: RecallFrom | bool | None
    recall_others_share: float | None
    cross_session: Way | Sequence[Way] | None
    search_triggers: Sequence[str] | None
    relevance_threshold: float | None
    cross_session_limit: int | None
    passage_tokens: int | None
    passage_overlap: int | None
    facts: bool | None
    rest_after: timedelta | float | str | None
    facts_share: float | None
    facts_place: Literal["auto", "system", "incoming"] | None
    fact_categories: Sequence[str] | None
    single_fact_categories: Sequence[str] | None
    tracing: bool | None
    keep_receipts: timedelta | float | str | None
    keep_contexts: int | None
    keep_contexts_for: timedelta | float | str | None
    grace: float | None
