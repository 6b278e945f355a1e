"""The settings, read from the environment, in one frozen object."""

from __future__ import annotations

import difflib
import re
from typing import Any

from pydantic import ValidationError

from hitherto.errors import InvalidSettings
from hitherto.settings.definitions import (
    ContextSettings,
    DatabaseSettings,
    DigestSettings,
    DocumentSettings,
    FactSettings,
    ModelSettings,
    ProcessSettings,
    RecallSettings,
)


class Settings(
    ProcessSettings,
    FactSettings,
    DocumentSettings,
    RecallSettings,
    DigestSettings,
    ContextSettings,
    ModelSettings,
    DatabaseSettings,
):
    """Read from the environment (`HITHERTO_DATABASE`, …); `load` overrides it with what a call passes. `definitions`
    says what each setting means. Durations are a number of seconds or ISO 8601 (PT5M)."""

    @classmethod
    def load(cls, **given: Any) -> Settings:
        """The environment's settings, overridden by those of `given` that are not None.

        Raises InvalidSettings naming the setting that is wrong.
        """
        unknown = sorted(set(given) - set(cls.model_fields))
        if unknown:
            near = difflib.get_close_matches(unknown[0], cls.model_fields, n=1)
            known = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(cls.model_fields))}"
            raise InvalidSettings(f"{unknown[0]!r} is not a setting; {known}")
        try:
            return cls(**{name: value for name, value in given.items() if value is not None})
        except ValidationError as error:
            first = error.errors(include_input=False)[0]
            name = ".".join(str(part) for part in first["loc"])
            raise InvalidSettings(
                f"the setting {name} (HITHERTO_{name.upper()}) is unusable: {why_unusable(first['msg'])}"
            ) from error


def why_unusable(said: str) -> str:
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
}
