"""Lists as models write them: with bullets, numbers or commas, one entry a line or all on one, or "None"."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from hitherto.core.log.message import storable
from hitherto.core.plain_text import plain
from hitherto.errors import InvalidModelAnswer

MOST = 50
"""Entries of one list; what follows is left out."""

LONGEST = 500
"""Characters of one entry; a longer one is cut."""

_BULLET = re.compile(r"(?:[-*+•‣◦–]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
_SEPARATORS = ",;、，；"
_OPENING, _CLOSING = "([{（“", ")]}）”"
_MARKS = re.compile(r"\*\*|`")
_QUOTES = ('""', "''", "“”", "‘’", "«»", "„“")
_NOTHING = re.compile(
    r"(?:none|nothing|nil|n/?a|not applicable|no (?:\w+ ){0,2}(?:decisions?|questions?|topics?|entit(?:y|ies)))"
    r"(?: (?:were|was|are|is|have|been|made|remain\w*|left|identified|mentioned|noted|yet|so|far|at|this|time|raised|"
    r"open|unresolved|discussed|to|report))*",
    re.IGNORECASE,
)


def listed(lines: Iterable[str], *, commas: bool) -> tuple[str, ...]:
    """The entries of a list that was written as text, in its order, without duplicates (whatever their case); none for
    "None".

    With `commas`, a line without a bullet, or an only line, is divided at its commas too, except in brackets and
    numbers.
    """
    text = [line for line in lines if line.strip()]
    whole = " ".join(text).strip()
    if whole[:1] == "[" and whole[-1:] == "]":
        values = _json_list(whole)
        if values is not None:
            return listed_values(values)
        text = [whole[1:-1]]
    entries: list[list[str]] = []  # each as the lines it was written in
    continued = False
    for line in text:
        words = line.strip()
        bullet = _BULLET.match(words)
        if bullet is None and continued and line[0].isspace():
            entries[-1].append(words)
            continue
        words = words if bullet is None else words[bullet.end() :]
        parts = _divided(words) if commas and (bullet is None or len(text) == 1) else [words]
        entries += ([part] for part in parts)
        continued = bullet is not None
    return _kept(map(" ".join, entries), sentences=not commas)


def listed_values(values: Iterable[object]) -> tuple[str, ...]:
    """The entries of a list that was given as JSON; an object counts as its first text."""
    return _kept([text for value in values if (text := _text(value)) is not None], sentences=True)


def _kept(entries: Iterable[str], *, sentences: bool) -> tuple[str, ...]:
    found: dict[str, str] = {}
    for entry in entries:
        text = " ".join(_MARKS.sub("", storable(entry)).split())
        text = text if sentences else text.removeprefix("and ").rstrip(" .")
        if len(text) > 1 and text[0] + text[-1] in _QUOTES:
            text = text[1:-1].strip()
        if not any(map(str.isalnum, text)) or _NOTHING.fullmatch(text.strip(" .()–—-")):
            continue
        found.setdefault(text.casefold(), text if len(text) <= LONGEST else text[: LONGEST - 1].rstrip() + "…")
        if len(found) == MOST:
            break
    return tuple(found.values())


def _divided(text: str) -> Iterator[str]:
    """`text` at its commas; those in brackets do not count, unless the brackets are never closed."""
    depth, start, seams = 0, 0, list[int]()
    for at, character in enumerate(text):
        if character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth = max(depth - 1, 0)
        elif character in _SEPARATORS and not depth and not _in_number(text, at):
            seams.append(at)
    if depth:
        seams = [at for at, character in enumerate(text) if character in _SEPARATORS and not _in_number(text, at)]
    for at in seams:
        yield text[start:at]
        start = at + 1
    yield text[start:]


def _in_number(text: str, at: int) -> bool:
    return text[at - 1 : at].isdigit() and text[at + 1 : at + 2].isdigit()


def _json_list(text: str) -> list[object] | None:
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    return cast("list[object]", value) if isinstance(value, list) else None


def _text(value: object) -> str | None:
    match value:
        case str():
            return value
        case bool() | None:
            return None
        case int() | float():
            return str(value)
        case dict():
            inner = cast("dict[str, Any]", value).values()
            return next((one for one in inner if isinstance(one, str) and one.strip()), None)
        case _:
            return None


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
    return isinstance(text, str) and not plain(text)


def statement(value: object) -> str:
    """The text of a statement, on one line. Raises InvalidModelAnswer where there is none."""
    text = plain(storable(value)) if isinstance(value, str) else ""
    if not text:
        raise InvalidModelAnswer(f"the model's answer has a statement without text (it is {type(value).__name__})")
    return text
