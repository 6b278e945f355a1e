"""The settings, from calls, the environment and a file, in one frozen object."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from pydantic import ValidationError

from hitherto.errors import InvalidSettings
from hitherto.settings.definitions import (
    CommandSettings,
    ContextSettings,
    DatabaseSettings,
    DigestSettings,
    DocumentSettings,
    FactSettings,
    ModelSettings,
    ProcessSettings,
    RecallSettings,
    ServiceSettings,
)
from hitherto.settings.sources import SettingValue, check_keys, environment_values, file_values, given_values, nearest

ADDRESSES = ("database", "model_base_url", "compact_base_url", "embedder_base_url", "reranker_base_url")
"""The settings that are addresses, which may have a password in them."""


class Settings(
    CommandSettings,
    ServiceSettings,
    ProcessSettings,
    FactSettings,
    DocumentSettings,
    RecallSettings,
    DigestSettings,
    ContextSettings,
    ModelSettings,
    DatabaseSettings,
):
    """What each setting means, `definitions` says. Durations are a number of seconds or ISO 8601 (PT5M)."""

    @property
    def own_server(self) -> bool:
        """Whether the model's provider is a server of one's own."""
        compatible = self.model_provider == "openai" and self.model_base_url is not None
        return self.model_provider == "ollama" or compatible

    @property
    def joins_neighbors(self) -> bool:
        return self.own_server if self.join_neighbors is None else self.join_neighbors

    @classmethod
    def load(cls, config: Path | str | None = None, **given: Any) -> Self:
        """The settings that are in force; see `load_with_places`."""
        return cls.load_with_places(config, **given)[0]

    @classmethod
    def load_with_places(cls, config: Path | str | None = None, **given: Any) -> tuple[Self, dict[str, str]]:
        """The settings that are in force, and where each comes from that has not its default.

        What is `given` and is not None comes first, then the environment (`HITHERTO_DATABASE`, …), then a file: the one
        at `config`, else the one that HITHERTO_CONFIG names, else hitherto.toml in the working folder, if there is one.
        Raises InvalidSettings naming the setting that is wrong.
        """
        unknown = sorted(set(given) - set(cls.model_fields))
        if unknown:
            raise InvalidSettings(f"{unknown[0]!r} is not a setting; {nearest(unknown[0], cls.model_fields)}")
        values = cls.read_sources(config, given)
        try:
            found = cls.model_validate({name: one.value for name, one in values.items()})
        except ValidationError as error:
            first = error.errors(include_input=False)[0]
            name = ".".join(str(part) for part in first["loc"])
            where = values[name].where if name in values and values[name].level else variable(name)
            raise InvalidSettings(f"the setting {name} ({where}) is unusable: {_why_unusable(first['msg'])}") from error
        return found, {name: one.where for name, one in values.items()}

    @classmethod
    def read_sources(
        cls,
        config: Path | str | None,
        given: Mapping[str, object],
        *,
        aliases: Mapping[str, str] = MappingProxyType({}),
        translate: Callable[[dict[str, SettingValue]], dict[str, SettingValue]] = lambda values: values,
    ) -> dict[str, SettingValue]:
        """The values of all sources, by setting, not checked yet. `aliases` are names that are known too, with their
        variables, and `translate` makes settings of them.

        Raises InvalidSettings for a file that cannot be used, and where one that was only found says where a key from
        elsewhere goes."""
        variables = {name: variable(name) for name in cls.model_fields} | {**aliases}
        values = translate(file_values(config, variables) | environment_values(variables) | given_values(given))
        check_keys(values, {name: field.default for name, field in cls.model_fields.items()})
        return values


def variable(name: str) -> str:
    """The variable of the environment for a setting."""
    return f"HITHERTO_{name.upper()}"


def _why_unusable(said: str) -> str:
    """What Pydantic says of a value, in Hitherto's words."""
    found = re.match(r"(?:Input|String) should (.*?)(?:, (?:unable|invalid|unexpected)\b.*)?$", said)
    why = said.removeprefix("Value error, ") if found is None else f"it should {found[1]}"
    for theirs, ours in _OURS.items():
        why = why.replace(theirs, ours)
    return why


_OURS = {
    "a valid integer": "a whole number",
    "a valid boolean": "true or false",
    "a valid timedelta": "a number of seconds, or a duration like PT5M",
    "100000 microseconds": "0.1 seconds",
}
