"""Reading the answer to an archive prompt: JSON, or text under headings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from hitherto.core.digests.lists import listed, listed_values
from hitherto.core.log.message import storable
from hitherto.errors import InvalidModelAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveSummary:
    """What a conversation was about. `questions` are those that are still open."""

    summary: str
    topics: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()


_STEMS = {"summary": "summar", "topics": "topic", "entities": "entit", "decisions": "decision", "questions": "question"}
"""Each part, and the stem that a heading or key for it contains."""

_LISTS = ("topics", "entities", "decisions", "questions")
_NAMES = ("topics", "entities")
"""Lists of names, which are written with commas."""

_HEADING = re.compile(
    r"(?P<hash>#{1,6})? ?(?:\d{1,2}[.)] )?(?P<bold>\*\*|__)? ?"
    r"(?:(?:the|main|key|important|open|unresolved|remaining|conversation|detailed|narrative|list of)[ _]){0,3}"
    r"(?P<name>summary|topics?|entit(?:y|ies)|decisions?|questions?)"
    r"(?:[ _](?:discussed|mentioned|made|raised|remaining|of the conversation)){0,2}(?![^\W_]) ?"
    r"(?P<end>\*\*|__)? ?(?P<colon>[:：]|[-–—](?= |$))? ?(?:\*\*|__)? ?(?P<rest>.*)",
    re.IGNORECASE,
)
_FEW = 4
"""So many words after the name in a Markdown heading still belong to the heading."""

_JSON = json.JSONDecoder(strict=False)
_FENCED = re.compile(r"```(?:json)?\s*(\{.*)```", re.DOTALL | re.IGNORECASE)
_BEGUN = re.compile(r'\{\s*"[a-z_]{0,30}(?:summar|topic|entit|decision|question)', re.IGNORECASE)


def archive_from(answer: str) -> ArchiveSummary:
    """The parts of an answer. Headings may be of any level, case and order, bold or followed by a colon; lists may have
    bullets, numbers or commas; "None" is nothing. What stands before the first heading is the summary where no heading
    says so.

    Raises InvalidModelAnswer for an empty answer, for text without any heading, for JSON of another shape or that
    breaks off, and for an answer without a summary.
    """
    found = _object(answer)
    if found is not None:
        return _from_object(found)
    parts: dict[str, list[str]] = {}
    for part, line in _lines(answer):
        parts.setdefault(part, []).append(line)
    if not parts.keys() - {""}:
        raise InvalidModelAnswer("the model answered with text that has none of the headings that were asked for")
    before = _prose(parts.get("", []))
    summary = _prose(parts.get("summary", [])) or before
    return _archive(summary, {name: listed(parts.get(name, []), commas=name in _NAMES) for name in _LISTS})


def _archive(summary: str, lists: dict[str, tuple[str, ...]]) -> ArchiveSummary:
    if not any(map(str.isalnum, summary)):
        raise InvalidModelAnswer("the model's answer has no summary of the conversation")
    return ArchiveSummary(summary=summary, **lists)


def _lines(answer: str) -> Iterator[tuple[str, str]]:
    """The lines of an answer, each with the part it belongs to; "" is before the first heading."""
    part = ""
    for line in answer.splitlines():
        if line.strip().startswith("```"):
            continue
        heading = _HEADING.fullmatch(" ".join(line.split()))
        if heading is None or not (heading["hash"] or heading["end"] or heading["colon"] or not heading["rest"]):
            yield part, line
            continue
        part = _part(heading["name"]) or part
        rest = heading["rest"]
        if rest and not (heading["hash"] and not heading["colon"] and len(rest.split()) <= _FEW):
            yield part, rest


def _prose(lines: list[str]) -> str:
    return storable("\n".join(line.rstrip() for line in lines).strip())


def _part(name: str) -> str | None:
    return next((part for part, stem in _STEMS.items() if stem in name.casefold()), None)


def _object(answer: str) -> dict[str, Any] | None:
    """The parts by their names, if the answer is JSON: bare, in a code fence, or after some words; None for text."""
    text = answer.strip()
    if not text:
        raise InvalidModelAnswer("the model answered with nothing")
    fenced, begun = _FENCED.search(text), _BEGUN.search(text)
    bodies = [text, *([fenced[1]] if fenced else []), *([text[begun.start() :]] if begun else [])]
    for body in bodies:
        try:
            value, end = _JSON.raw_decode(body)
        except (ValueError, RecursionError):
            continue
        if parts := _parts(value):
            return parts
        if body is text and end == len(text) and isinstance(value, dict | list):
            raise InvalidModelAnswer("the model's answer is JSON, but not the object that was asked for")
    if begun is not None:
        raise InvalidModelAnswer("the model's answer breaks off in the middle of its JSON")
    return None


def _parts(value: object) -> dict[str, Any]:
    """The parts of a JSON object, or of the object that is its only value."""
    if not isinstance(value, dict):
        return {}
    given = cast("dict[str, Any]", value)
    found = {part: inner for key, inner in given.items() if (part := _part(key)) is not None}
    if len(given) == 1 and isinstance(inner := next(iter(given.values())), dict):
        return _parts(cast("object", inner))
    return found


def _from_object(found: dict[str, Any]) -> ArchiveSummary:
    said = found.get("summary")
    lines = cast("list[object]", said) if isinstance(said, list) else [said]
    summary = _prose([line for line in lines if isinstance(line, str)])
    return _archive(summary, {name: _entries(found.get(name), name) for name in _LISTS})


def _entries(value: object, name: str) -> tuple[str, ...]:
    match value:
        case str():
            return listed(value.splitlines(), commas=name in _NAMES)
        case list():
            return listed_values(cast("list[object]", value))
        case _:
            return ()
