"""Making a digest: a generator that yields prompts, is sent answers, and returns the statements. No I/O.

The model answers with changes only. What it does not touch is carried over to the letter, what rests on messages that
left the window is dropped here, and the whole is kept under its limit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from hitherto.core.digest import Item, clipped, joined, ranges, render_items
from hitherto.core.message import storable
from hitherto.core.prompts import CondenseTask, DigestTask, Line, Prompt, condense_prompt, corrected, digest_prompt
from hitherto.errors import ModelAnswerUnusable

Count = Callable[[str], int]
Digesting = Generator[Prompt, str, "Digested"]

_CONDENSING_ROUNDS = 2
_FAR_TOO_LONG = 4
"""An answer of so many times the tokens that it was given is not read."""

_WORD = re.compile(r"[^\W_]")
_JSON = json.JSONDecoder(strict=False)
"""Grammars that endpoints hold a model to may let line breaks stand in a string."""

_PROMPT_OVERHEAD = 800
"""Tokens of a digest prompt beside its material, rounded up (checked by a test)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Digested:
    """A finished digest. `cut` counts statements that had to be cut because condensing did not bring them under the
    limit; 0 is the rule."""

    items: tuple[Item, ...]
    text: str
    tokens: int
    cut: int = 0


def digest(
    *, base: Sequence[Item], lines: Sequence[Line], start: int, end: int, limit: int, input_limit: int, count: Count
) -> Digesting:
    """The digest of `start` to `end` (inclusive), from the base's statements and the new messages `lines`.

    Statements that rest only on messages before `start` are gone; those that rest partly on them are shown to the
    model once, and gone if it does not restate them. Input that does not fit one prompt of `input_limit` tokens is
    digested in several steps; nothing is left out. An answer that is empty, garbled, far too long, or leaves no
    statement at all (a digest of nothing would hide its messages) is asked for once more; so is one that the driver
    throws ModelAnswerUnusable for. Raises ModelAnswerUnusable if that is none either.
    """
    items = tuple(item for item in base if clipped(item.sources, start))
    steps = list(_steps(lines, max(input_limit - _PROMPT_OVERHEAD - 2 * limit, 500), count))
    something = any(_WORD.search(line.text) for line in lines)
    for number, shown in enumerate(steps, 1):
        leaving = frozenset(number for number, item in enumerate(items, 1) if item.first < start)
        task = DigestTask(known=items, leaving=leaving, lines=tuple(shown), limit=limit)
        last = number == len(steps)

        def read(answer: str, task: DigestTask = task, *, needed: bool = something and last) -> tuple[Item, ...]:
            changed = _changed(answer, task, start, task.lines[-1].seq)
            if needed and not changed:
                raise ModelAnswerUnusable("the model's answer leaves nothing of the messages; they stay undigested")
            return changed

        items = yield from _asked(digest_prompt(task), read, count)
    items, cut = yield from _condensed(items, limit, count)
    text = render_items(items)
    return Digested(items=items, text=text, tokens=count(text), cut=cut)


def _asked(
    prompt: Prompt, read: Callable[[str], tuple[Item, ...]], count: Count
) -> Generator[Prompt, str, tuple[Item, ...]]:
    """What `read` makes of the answer to `prompt`, which is asked for twice at most."""

    def usable(answer: str) -> tuple[Item, ...]:
        if len(answer) > _FAR_TOO_LONG * prompt.max_tokens and count(answer) > _FAR_TOO_LONG * prompt.max_tokens:
            raise ModelAnswerUnusable(
                f"the model's answer is far longer than the {prompt.max_tokens} tokens it was given; it is not read"
            )
        return read(answer)

    try:
        answer = yield prompt
        return usable(answer)
    except ModelAnswerUnusable:
        answer = yield corrected(prompt)
        return usable(answer)


def _steps(lines: Sequence[Line], room: int, count: Count) -> Iterator[list[Line]]:
    """`lines` in portions of at most `room` tokens; a longer message is split into pieces of its own seq."""
    portion: list[Line] = []
    used = 0
    for line in lines:
        for piece in _pieces(line, room, count):
            size = count(piece.text) + 30
            if portion and used + size > room:
                yield portion
                portion, used = [], 0
            portion.append(piece)
            used += size
    if portion:
        yield portion


def _pieces(line: Line, room: int, count: Count) -> Iterator[Line]:
    # Escaping in JSON can double a text's tokens, so a piece takes at most half of the room.
    if count(line.text) * 2 <= room or len(line.text) < 2:
        yield line
        return
    middle = len(line.text) // 2
    space = line.text.rfind(" ", middle // 2, middle)
    at = middle if space < 1 else space
    for part in (line.text[:at], line.text[at:]):
        yield from _pieces(Line(line.seq, line.role, part), room, count)


def _changed(answer: str, task: DigestTask, start: int, end: int) -> tuple[Item, ...]:
    """The statements after one answer: structured changes, or a plain text that stands for everything."""
    found = _json_object(answer)
    if found is None:
        first = min(start, task.lines[0].seq)
        return (Item(_statement(answer), ((first, end),)),)
    changes = _changes(found)
    fresh = {line.seq for line in task.lines}
    everything = joined((line.seq, line.seq) for line in task.lines)
    replaced: dict[int, Item] = {}
    added: list[Item] = []
    for change in changes["replace"]:
        number = change.get("item")
        sources = ranges(_seqs(change.get("sources"), fresh))
        text = _statement(change.get("text"))
        if isinstance(number, int) and 1 <= number <= len(task.known):
            kept = clipped(task.known[number - 1].sources, start)
            replaced[number] = Item(text, joined((*kept, *sources)))
        else:
            added.append(Item(text, sources or everything))
    for change in changes["add"]:
        sources = ranges(_seqs(change.get("sources"), fresh))
        added.append(Item(_statement(change.get("text")), sources or everything))
    gone = set(_seqs(changes["drop"], set(range(1, len(task.known) + 1)))) | (task.leaving - set(replaced))
    kept_items = (replaced.get(number, item) for number, item in enumerate(task.known, 1) if number not in gone)
    return (*kept_items, *added)


_OURS = ("add", "replace", "drop", "items")
_BROKEN_OFF = re.compile(r'\{\s*"(add|replace|drop|items)"')


def _json_object(answer: str) -> dict[str, Any] | None:
    """The JSON object that was asked for: bare, in a code fence, or after some words; None for plain text.

    JSON that has none of the asked-for keys is part of a plain text, but for an answer that is nothing else. Raises
    ModelAnswerUnusable for nothing at all, for JSON of another shape, and for the asked-for JSON where it breaks off.
    """
    text = answer.strip()
    if not text:
        raise ModelAnswerUnusable("the model answered with nothing; the range stays undigested until the next round")
    fenced = re.search(r"```(?:json)?\s*(\{.*)```", text, re.DOTALL)
    begun = _BROKEN_OFF.search(text)
    starts = [text, *([fenced[1]] if fenced else []), *([text[begun.start() :]] if begun else [])]
    for body in starts:
        try:
            value, end = _JSON.raw_decode(body)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and any(key in value for key in _OURS):
            return cast(dict[str, Any], value)
        if body is text and end == len(text) and isinstance(value, dict | list):
            raise ModelAnswerUnusable("the model's answer is JSON, but not the object that was asked for")
    if begun is not None:
        raise ModelAnswerUnusable("the model's answer breaks off in the middle of its JSON")
    return None


def _changes(found: dict[str, Any]) -> dict[str, list[Any]]:
    if not {"add", "replace", "drop"} & set(found):
        raise ModelAnswerUnusable("the model's JSON has none of add, replace and drop")
    changes: dict[str, list[Any]] = {}
    for name in ("add", "replace", "drop"):
        value = found.get(name)
        if value is None:
            value = []
        if not isinstance(value, list):
            raise ModelAnswerUnusable(f"the model's JSON has {name!r} as {type(value).__name__}, not as a list")
        listed = cast(list[Any], value)
        if name != "drop" and not all(isinstance(one, dict) for one in listed):
            raise ModelAnswerUnusable(f"the model's JSON has something else than objects in {name!r}")
        changes[name] = [one for one in listed if name == "drop" or not _says_nothing(one)]
    return changes


def _says_nothing(change: dict[str, Any]) -> bool:
    """Small models fill a list up with statements whose text is blank."""
    text = change.get("text")
    return isinstance(text, str) and not text.strip()


def _statement(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ModelAnswerUnusable(f"the model's answer has a statement without text (it is {type(value).__name__})")
    return storable(value.strip())


def _seqs(value: object, allowed: set[int]) -> list[int]:
    """The numbers of `value` that are allowed; a model's other numbers are not believed."""
    if not isinstance(value, list):
        return []
    return [one for one in cast(list[object], value) if type(one) is int and one in allowed]


def _condensed(
    items: tuple[Item, ...], limit: int, count: Count
) -> Generator[Prompt, str, tuple[tuple[Item, ...], int]]:
    for _ in range(_CONDENSING_ROUNDS):
        excess = count(render_items(items)) - limit
        if excess <= 0:
            return items, 0
        oldest = _oldest(items, 2 * excess, count)
        part = items[:oldest]
        target = max(count(render_items(part)) - excess, 1)
        task = CondenseTask(items=part, limit=max(target * 3 // 4, 1))

        def read(answer: str, task: CondenseTask = task) -> tuple[Item, ...]:
            return _said_shorter(answer, task)

        shorter = yield from _asked(condense_prompt(task), read, count)
        items = (*shorter, *items[oldest:])
    return _cut(items, limit, count)


def _oldest(items: Sequence[Item], tokens: int, count: Count) -> int:
    """How many of the oldest statements make up at least `tokens`."""
    used = 0
    for number, item in enumerate(items, 1):
        used += count(item.text) + 1
        if used >= tokens:
            return number
    return len(items)


def _said_shorter(answer: str, task: CondenseTask) -> tuple[Item, ...]:
    everything = joined(source for item in task.items for source in item.sources)
    found = _json_object(answer)
    if found is None:
        return (Item(_statement(answer), everything),)
    listed = found.get("items")
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in cast(list[object], listed)):
        raise ModelAnswerUnusable("the model's JSON has no list of objects as 'items'")
    allowed = set(range(1, len(task.items) + 1))
    shorter: list[Item] = []
    for one in cast(list[dict[str, Any]], listed):
        numbers = _seqs(one.get("items"), allowed)
        sources = joined(source for number in numbers for source in task.items[number - 1].sources)
        shorter.append(Item(_statement(one.get("text")), sources or everything))
    return tuple(shorter)


def _cut(items: tuple[Item, ...], limit: int, count: Count) -> tuple[tuple[Item, ...], int]:
    """The newest statements that fit; the last resort against a model that cannot write short."""
    before, used, keep = len(items), 0, 0
    for item in reversed(items):
        used += count(item.text) + 1
        if used > limit and keep:
            break
        keep += 1
    items = items[before - keep :]
    while len(items) > 1 and count(render_items(items)) > limit:
        items = items[1:]
    cut = before - len(items)
    if items and count(items[0].text) > limit:
        text = items[0].text
        while count(text + "…") > limit and text:
            shorter = text[: len(text) * 9 // 10]
            text = shorter.rpartition(" ")[0] or shorter
        items, cut = (Item(text + "…", items[0].sources),), cut + 1
    return items, cut
