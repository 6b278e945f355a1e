"""Lists as models write them: with bullets, numbers or commas, one entry a line or all on one, or "None"."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, cast

from hitherto.core.log.message import storable

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
