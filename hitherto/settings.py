"""What can be set from outside, in one frozen object."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from hitherto.errors import InvalidSettings


class Settings(BaseSettings):
    """Read from the environment (`HITHERTO_DATABASE`, …); `load` overrides it with what a call passes.

    `database`: a PostgreSQL URL, or nothing for the server that Hitherto runs itself, or "memory:" for the in-memory
    store. `home`: that server's directory. `model`: "extractive" (no model at all) or the name of a model for digests
    at `model_base_url` (nothing: OpenAI) with `model_key`. `encoding`: the tokenizer, or the name of the agent's
    model, that budgets are counted with where a context does not say. `budget`: tokens of a context that does not
    say. Times: `database_timeout` seconds for a connection to the database; `model_timeout` seconds for one model
    call; `stuck_after` until a digest whose process died is given up; `keep_receipts` is how long an idempotency key
    is remembered; `grace` seconds for digests in hand when a memory is closed.
    """

    model_config = SettingsConfigDict(env_prefix="HITHERTO_", frozen=True, extra="ignore", protected_namespaces=())

    database: str | None = None
    home: Path | None = None
    pool_size: int = Field(default=10, ge=1)
    database_timeout: float = Field(default=10.0, gt=0)
    model: str = "extractive"
    model_base_url: str | None = None
    model_key: SecretStr | None = None
    model_timeout: float = Field(default=60.0, gt=0)
    encoding: str = "o200k_base"
    budget: int = Field(default=16_000, ge=1)
    digests_at_once: int = Field(default=4, ge=1)
    stuck_after: timedelta = Field(default=timedelta(minutes=5), gt=timedelta(0))
    keep_receipts: timedelta = Field(default=timedelta(days=30), gt=timedelta(0))
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
