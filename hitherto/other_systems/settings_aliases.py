"""Names of settings in other systems: for the policy, and for the model that makes digests."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from hitherto import policy_of
from hitherto.errors import InvalidPolicy, InvalidSettings
from hitherto.settings import Settings, variable
from hitherto.settings.sources import CONFIG, SettingValue, environment_values, nearest

_WINDOW, _AFTER = "memory_rolling_window_size", "memory_summarize_after_seq"
_ENABLED, _THRESHOLD, _KEEP = "summaryEnabled", "summaryThreshold", "summaryKeepLast"

ALIASES = {
    _WINDOW: "HITHERTO_MEMORY_ROLLING_WINDOW_SIZE",
    _AFTER: "HITHERTO_MEMORY_SUMMARIZE_AFTER_SEQ",
    "memory_model": "HITHERTO_MEMORY_MODEL",
    _ENABLED: "HITHERTO_SUMMARY_ENABLED",
    _THRESHOLD: "HITHERTO_SUMMARY_THRESHOLD",
    _KEEP: "HITHERTO_SUMMARY_KEEP_LAST",
    "openai.summaryModel": "OPENAI_SUMMARY_MODEL",
    "openai.summaryBaseURL": "OPENAI_SUMMARY_URL",
    "openai.model": "HITHERTO_OPENAI_MODEL",
    "openai.baseURL": "HITHERTO_OPENAI_BASE_URL",
}
"""Each name as it stands in a file, and the variable of the environment that says the same."""


_OTHER_VARIABLES = {CONFIG, "HITHERTO_KEY", "HITHERTO_TRACEBACK"}
"""Variables of ours that are no settings."""


def ignored_variables(*, aliases: bool = False) -> Iterator[tuple[str, str]]:
    """The variables of the environment that only look like settings, and what to do about each; first those that are
    settings by their names in other systems, unless these are known (`aliases`)."""
    for one in [] if aliases else sorted(environment_values(ALIASES).values(), key=lambda one: one.where):
        yield (
            one.where,
            "only `hitherto serve --other-systems` and `hitherto agent` know it; set HITHERTO_MODEL, "
            "HITHERTO_MODEL_BASE_URL or HITHERTO_POLICY instead",
        )
    ours = {*map(variable, Settings.model_fields), *_OTHER_VARIABLES}
    for one in sorted(map(str.upper, os.environ)):
        if one.startswith("HITHERTO_") and one not in ours | {*ALIASES.values()}:
            near = difflib.get_close_matches(one, ours, n=1)
            yield one, f"if {near[0]} is meant, rename it" if near else "leave it out, or see docs/settings.md"


class AliasedSettings(Settings):
    """The settings, of which files and the environment may have these names too. For `hitherto serve --other-systems`
    and `hitherto agent`."""

    @classmethod
    def read_sources(cls, config: Path | str | None, given: Mapping[str, object], **_: Any) -> dict[str, SettingValue]:
        return super().read_sources(config, given, aliases=ALIASES, translate=without_aliases)


def settings_of(names: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that another system's configuration means, for `hitherto.open(**settings_of(…))`: {"policy": …,
    "model": …, "model_base_url": …}, those that it says. Raises InvalidSettings for unknown names."""
    flat = dict[str, Any]()
    for name, value in names.items():
        table = cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else None
        flat |= {name: value} if table is None else {f"{name}.{key}": one for key, one in table.items()}
    for name in flat:
        if name not in ALIASES:
            raise InvalidSettings(f"{name!r} is no setting of another system; {nearest(name, ALIASES)}")
    values = {name: SettingValue(value, 0, name) for name, value in flat.items() if value is not None}
    return {name: value.value for name, value in without_aliases(values).items()}


def without_aliases(values: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
    """The settings that these values mean.

    `memory_rolling_window_size` and `memory_summarize_after_seq` select `sliding_window`, `summaryEnabled` selects
    `rolling` (false: `none`, where nothing else is selected). `openai.model` and `openai.baseURL` stand where there is
    no other name for the model, or its address. Of names for one setting, that of the source that comes first counts.
    Raises InvalidSettings for two of one source that contradict each other.
    """
    found = {name: value for name, value in values.items() if name not in ALIASES}
    chosen = {
        "policy": _policy(values) or _disabled(values),
        "model": _first(values, "model", "memory_model", "openai.summaryModel") or values.get("openai.model"),
        "model_base_url": _first(values, "model_base_url", "openai.summaryBaseURL") or values.get("openai.baseURL"),
    }
    return found | {name: value for name, value in chosen.items() if value is not None}


def _policy(values: Mapping[str, SettingValue]) -> SettingValue | None:
    sliding = {"window": _number(values, _WINDOW), "after_seq": _number(values, _AFTER)}
    rolling = {"threshold": _number(values, _THRESHOLD), "keep_last": _number(values, _KEEP)}
    enabled = values[_ENABLED] if _ENABLED in values and _is_true(values[_ENABLED]) else None
    return _agreed(
        [
            *([values["policy"]] if "policy" in values else []),
            *([_preset("sliding_window", sliding)] if any(sliding.values()) else []),
            *([_preset("rolling", rolling, enabled)] if enabled else []),
        ],
        _as_policy,
    )


def _disabled(values: Mapping[str, SettingValue]) -> SettingValue | None:
    off = values.get(_ENABLED)
    return None if off is None or _is_true(off) else SettingValue("none", off.level, off.where)


def _preset(
    name: str, parameters: Mapping[str, SettingValue | None], selected: SettingValue | None = None
) -> SettingValue:
    """The preset in its command-line form; its source is that of `selected`, or the first of its parameters."""
    there = {parameter: one for parameter, one in parameters.items() if one is not None}
    source = selected or min(there.values(), key=lambda one: one.level)
    pairs = ",".join(f"{parameter}={one.value}" for parameter, one in there.items())
    return SettingValue(f"{name}:{pairs}" if pairs else name, source.level, source.where)


def _first(values: Mapping[str, SettingValue], *names: str) -> SettingValue | None:
    return _agreed([values[name] for name in names if name in values])


def _agreed(
    choices: Sequence[SettingValue], meaning: Callable[[object], object] = lambda value: value
) -> SettingValue | None:
    """The choice of the source that comes first. Raises InvalidSettings for two of that source that differ in their
    meaning."""
    first = min(choices, key=lambda one: one.level, default=None)
    for other in choices:
        if first is not None and other.level == first.level and meaning(other.value) != meaning(first.value):
            raise InvalidSettings(f"{first.where} and {other.where} say different things; leave one of them out")
    return first


def _as_policy(value: object) -> object:
    """The policy that a value is in any of its forms. One that is none stays as it is, and is refused later."""
    try:
        return policy_of(value)
    except InvalidPolicy:
        return value


def _number(values: Mapping[str, SettingValue], name: str) -> SettingValue | None:
    one = values.get(name)
    return (
        None if one is None else SettingValue(_checked(one, TypeAdapter(int), "a whole number"), one.level, one.where)
    )


def _is_true(one: SettingValue) -> bool:
    return bool(_checked(one, TypeAdapter(bool), "true or false"))


def _checked(one: SettingValue, kind: TypeAdapter[Any], wanted: str) -> Any:
    try:
        return kind.validate_python(one.value)
    except ValidationError as error:
        raise InvalidSettings(f"{one.where} should be {wanted}") from error
