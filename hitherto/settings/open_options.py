"""The types of the settings as options of `hitherto.open`; `definitions` says what each means."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Literal, TypedDict

from pydantic import SecretStr

from hitherto.core.cross_session import Way
from hitherto.settings.values import EmbedderProvider, ModelProvider


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
    budget: int | None
    context_window: int | None
    injection_tokens: int | None
    injection_age: timedelta | float | str | None
    cache_breakpoints: bool | None
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
    cross_session: Way | Sequence[Way] | None
    search_triggers: Sequence[str] | None
    relevance_threshold: float | None
    cross_session_limit: int | None
    passage_tokens: int | None
    passage_overlap: int | None
    facts: bool | None
    facts_share: float | None
    facts_place: Literal["auto", "system", "incoming"] | None
    fact_categories: Sequence[str] | None
    single_fact_categories: Sequence[str] | None
    tracing: bool | None
    keep_receipts: timedelta | float | str | None
    keep_contexts: int | None
    keep_contexts_for: timedelta | float | str | None
    grace: float | None
