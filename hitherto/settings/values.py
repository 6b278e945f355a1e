"""The types of settings, with validators that parse text from the environment."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BeforeValidator

from hitherto.core.cross_session import Way, recall_from_of
from hitherto.core.facts.fact import LONGEST_CATEGORY
from hitherto.core.log.time_zone import zone_named
from hitherto.core.policy.presets import policy_of
from hitherto.errors import InvalidPolicy


def _seconds(value: object) -> object:
    """The environment has only text: a bare number in it means seconds, as in code."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def takes_numbers(hint: Any) -> bool:
    """Whether values of the type are numbers, or durations."""
    return hint in (int, float, timedelta) or any(map(takes_numbers, get_args(hint)))


def recall_from(value: object) -> object:
    """The environment has only text: `true` and `false` stand for truth values in it, which stand for where from."""
    if isinstance(value, str):
        value = {"true": True, "false": False}.get(value.lower(), value)
    return recall_from_of(value) if isinstance(value, bool) else value


def daily_limit(value: object) -> object:
    if value in (0, 0.0, "0", "0.0"):
        raise ValueError(
            "a ceiling of 0 would stop all digests; leave it out for none, or take a policy without digests"
        )
    return value


def _zone(value: str) -> str:
    zone_named(value)
    return value


TimeZone = Annotated[str, AfterValidator(_zone)]


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


def _ways(value: object) -> object:
    """As `_names`; an empty text means none."""
    return () if value == "" else _names(value)


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


def _checked_phrases(phrases: tuple[str, ...]) -> tuple[str, ...]:
    if not phrases:
        raise ValueError("there is no phrase in it; name one, or leave 'triggers' out of HITHERTO_CROSS_SESSION")
    for phrase in phrases:
        if not any(character.isalnum() for character in phrase):
            raise ValueError(f"the phrase {phrase!r} has no word in it, so that no message could have it; leave it out")
    return phrases


def _origins(origins: tuple[str, ...]) -> tuple[str, ...]:
    for origin in origins:
        if origin != "*" and not _ORIGIN.fullmatch(origin):
            raise ValueError(
                f"{origin!r} is no origin of web pages; write it as https://app.example.com or http://localhost:3000, "
                "with no path behind it, or * for all"
            )
    return tuple(origin.lower() for origin in origins)


_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://([^\s/?#@:,\[\]]+|\[[0-9a-f:.]+\])(:\d{1,5})?", re.IGNORECASE)
"""As browsers send it: scheme, host and perhaps port."""


def _policy(value: object) -> str:
    """A table in a file is the policy's JSON. One that compacts is checked later: that needs an endpoint."""
    text = json.dumps(value) if isinstance(value, dict) else value
    try:
        policy_of(text)
    except InvalidPolicy as error:
        raise ValueError(str(error)) from error
    return str(text)


ModelProvider = Literal["openai", "azure", "ollama", "anthropic"]
EmbedderProvider = Literal["openai", "azure", "ollama", "sentence_transformers"]
PolicyText = Annotated[str, BeforeValidator(_policy)]
SECONDS = BeforeValidator(_seconds)
Duration = Annotated[timedelta, SECONDS]
Categories = Annotated[tuple[str, ...], BeforeValidator(_names), AfterValidator(_categories)]
Origins = Annotated[tuple[str, ...], BeforeValidator(_ways), AfterValidator(_origins)]
CrossSessionWays = Annotated[tuple[Way, ...], BeforeValidator(_ways)]
Phrases = Annotated[tuple[str, ...], BeforeValidator(_phrases), AfterValidator(_checked_phrases)]
