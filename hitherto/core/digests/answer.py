"""Reading the answer to a digest prompt."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from hitherto.core.log.message import storable
from hitherto.errors import InvalidModelAnswer

_OURS = ("add", "replace", "drop", "items")

SUMMARY_AND_FACTS = ("summary", "facts")
"""The keys of another common form of the answer, which models may give in place of ours."""

_JSON = json.JSONDecoder(strict=False)
"""Not strict: some endpoints that constrain the output to JSON allow line breaks in a string."""


def json_object(answer: str, *, also: tuple[str, ...] = ()) -> dict[str, Any] | None:
    """The JSON object that was asked for: bare, in a code fence, or after some words; None for plain text.

    It has one of our keys or of those in `also`. JSON that has none of them counts as part of a plain text, unless it
    is the whole answer. Raises InvalidModelAnswer for an empty answer, for one that is JSON of another shape, and for
    JSON as asked for that breaks off.
    """
    text = answer.strip()
    if not text:
        raise InvalidModelAnswer("the model answered with nothing; the range stays undigested until the next round")
    keys = (*_OURS, *also)
    fenced = re.search(r"```(?:json)?\s*(\{.*)```", text, re.DOTALL)
    begun = re.search(rf'\{{\s*"({"|".join(keys)})"', text)
    starts = [text, *([fenced[1]] if fenced else []), *([text[begun.start() :]] if begun else [])]
    for body in starts:
        try:
            value, end = _JSON.raw_decode(body)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and any(key in value for key in keys):
            return cast(dict[str, Any], value)
        if body is text and end == len(text) and isinstance(value, dict | list):
            raise InvalidModelAnswer("the model's answer is JSON, but not the object that was asked for")
    if begun is not None:
        raise InvalidModelAnswer("the model's answer breaks off in the middle of its JSON")
    return None


def no_json() -> InvalidModelAnswer:
    """The error for plain text where JSON was asked for."""
    return InvalidModelAnswer(
        "the model answered with plain text where JSON was asked for; if it cannot write JSON, set model_output "
        '(HITHERTO_MODEL_OUTPUT) to "text"'
    )


def changes(found: Mapping[str, Any], *, also: tuple[str, ...] = ()) -> dict[str, list[Any]]:
    """The lists "add", "replace" and "drop" of an answer, without blank statements. With "summary" in `also`, a summary
    is added if no statement is.

    Raises InvalidModelAnswer for an object with none of our keys nor those in `also`, and for one of another shape.
    """
    if not {"add", "replace", "drop", *also} & set(found):
        raise InvalidModelAnswer("the model's JSON has none of add, replace and drop")
    read: dict[str, list[Any]] = {}
    for name in ("add", "replace", "drop"):
        value = found.get(name)
        if value is None:
            value = []
        if not isinstance(value, list):
            raise InvalidModelAnswer(f"the model's JSON has {name!r} as {type(value).__name__}, not as a list")
        listed = cast(list[Any], value)
        if name != "drop" and not all(isinstance(one, dict) for one in listed):
            raise InvalidModelAnswer(f"the model's JSON has something else than objects in {name!r}")
        read[name] = [one for one in listed if name == "drop" or not _says_nothing(one)]
    if "summary" in also and not read["add"]:
        read["add"] = _summed_up(found.get("summary"))
    return read


def _summed_up(value: object) -> list[Any]:
    """A summary as statements to add: it is one text, or a list of texts or of statements."""
    listed = cast(list[object], value) if isinstance(value, list) else [] if value is None else [value]
    stated = [{"text": one} if isinstance(one, str) else one for one in listed]
    if not all(isinstance(one, dict) for one in stated):
        raise InvalidModelAnswer("the model's JSON has a 'summary' that is neither a text nor a list of statements")
    return [one for one in cast(list[dict[str, Any]], stated) if not _says_nothing(one)]


def _says_nothing(change: dict[str, Any]) -> bool:
    """Small models fill a list up with statements whose text is blank."""
    text = change.get("text")
    return isinstance(text, str) and not text.strip()


def statement(value: object) -> str:
    """The text of a statement. Raises InvalidModelAnswer where there is none."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidModelAnswer(f"the model's answer has a statement without text (it is {type(value).__name__})")
    return storable(value.strip())
