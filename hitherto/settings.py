"""What can be set from outside, in one frozen object."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from hitherto.errors import InvalidSettings


def _seconds(value: object) -> object:
    """The environment has only text: a bare number in it means seconds, as in code."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


Duration = Annotated[timedelta, BeforeValidator(_seconds)]


class Settings(BaseSettings):
    """Read from the environment (`HITHERTO_DATABASE`, …); `load` overrides it with what a call passes.

    `database`: a PostgreSQL URL, or nothing for the server that Hitherto runs itself, or "memory:" for the in-memory
    store. `home`: that server's directory. `model`: "extractive" (no model at all) or the name of a model for digests
    at `model_base_url` (nothing: OpenAI) with `model_key`, taking `model_input_limit` tokens of prompt at once.
    `compact_model`: the agent's model, where its endpoint (`compact_base_url`, nothing: OpenAI; with `compact_key`)
    makes the opaque items of native compaction.
    `window`: the size of the agent's model's context window in tokens (nothing: the budget).
    `injection`: whether memory of the scope's earlier conversations goes into the instructions, at most
    `injection_tokens` of it and none older than `injection_age`.
    `encoding`: the tokenizer, or the name of the agent's model, that budgets are counted with where a context does
    not say. `budget`: tokens of a context that does not say. Times: `database_timeout` seconds for a connection to
    the database; `model_timeout` seconds for one model call; `stuck_after` until a digest whose process died is given
    up; `keep_receipts` is how long an idempotency key is remembered (both as a number of seconds or in ISO 8601,
    PT5M); `grace` seconds for digests in hand when a memory is closed.
    """

    model_config = SettingsConfigDict(
        env_prefix="HITHERTO_", env_ignore_empty=True, frozen=True, extra="ignore", protected_namespaces=()
    )

    database: str | None = Field(default=None, min_length=1)
    home: Annotated[Path, AfterValidator(Path.expanduser)] | None = None
    pool_size: int = Field(default=10, ge=1)
    database_timeout: float = Field(default=10.0, gt=0)
    model: str = Field(default="extractive", min_length=1)
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
    digests_at_once: int = Field(default=4, ge=1)
    stuck_after: Duration = Field(default=timedelta(minutes=5), gt=timedelta(0))
    keep_receipts: Duration = Field(default=timedelta(days=30), gt=timedelta(0))
    grace: float = Field(default=5.0, ge=0)

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
                f"the setting {name} (HITHERTO_{name.upper()}) is unusable: {first['msg']}"
            ) from error
