"""Making a digest: a generator that yields prompts, is sent answers, and returns the digest. No I/O.

The model answers with changes only. This code carries over unchanged what the model does not touch, drops statements
that rest on messages outside the window, and keeps the whole under its limit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from hitherto.core.answers import numbers
from hitherto.core.digests.digest import Item, render_items
from hitherto.core.digests.lists import SUMMARY_AND_FACTS, changes, json_object, no_json, statement
from hitherto.core.digests.prompts import (
    CondenseTask,
    DigestTask,
    FactsOnlyTask,
    condense_prompt,
    digest_prompt,
    facts_prompt,
    known_line,
    speakers_rule,
)
from hitherto.core.facts.extract import Extraction, FactsTask, extraction, once_each
from hitherto.core.facts.fact import ExtractedFact
from hitherto.core.log.message import Role
from hitherto.core.log.ranges import Ranges, before, clipped, joined, ranges
from hitherto.core.plain_text import mark_at
from hitherto.core.prompt import Prompt, PromptLine, corrected
from hitherto.errors import InvalidModelAnswer

Count = Callable[[str], int]
Digesting = Generator[Prompt, str, "DigestContent"]
_Read = TypeVar("_Read")

_CONDENSING_ROUNDS = 2
_FAR_TOO_LONG = 4
"""An answer of more than so many times its `max_tokens` is not read."""

_WORD = re.compile(r"[^\W_]")

_PROMPT_OVERHEAD = 800
"""Tokens of a digest prompt beside its input, rounded up (checked by a test); what facts add is counted."""

_READ_AT_ONCE = 3_500
"""Tokens of messages that one call reads for facts alone: so much that their facts fit into its answer."""

_KNOWN_SHARE = 4
"""Known facts take at most one part in so many of the input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestContent:
    """A finished digest. `cut` counts statements that had to be cut because condensing did not bring them under the
    limit; it is normally 0. `facts` are those in the new messages; None where they were not asked for, or no answer
    said anything of facts. `left_out` counts facts that were not taken (see `Extraction`)."""

    items: tuple[Item, ...]
    text: str
    tokens: int
    cut: int = 0
    facts: tuple[ExtractedFact, ...] | None = None
    left_out: int = 0


def digest(
    *,
    base: Sequence[Item],
    lines: Sequence[PromptLine],
    start: int,
    limit: int,
    input_limit: int,
    count: Count,
    facts: FactsTask | None = None,
    prose: bool = False,
    plain_text: bool = False,
) -> Digesting:
    """The digest of the messages from `start` on, from the base's statements and the new messages `lines`.

    Statements that rest only on messages before `start` are dropped. Those that rest partly on them are shown to the
    model once, and dropped if it does not restate them. Input that does not fit one prompt of `input_limit` tokens is
    digested in several steps; nothing is left out. An answer that is empty, not JSON, far too long, or leaves no
    statement at all (a digest of nothing would hide its messages) is asked for once more; so is one for which the
    caller throws InvalidModelAnswer into the generator. Raises InvalidModelAnswer if the second answer is unusable too.

    With `facts` the same prompts ask for facts too; malformed facts make an answer unusable. Of the known facts the
    first are shown, as many as a quarter of `input_limit` holds. With `prose` the statements are the sentences of a
    short summary. With `plain_text`, for a model that cannot write JSON, the digest is one text that rests on the whole
    range, and no facts are asked for.
    """
    items = tuple(item for item in base if clipped(item.sources, start))
    facts = None if plain_text else facts
    if facts is not None:
        facts = _shortened(facts, input_limit // _KNOWN_SHARE, count)
    bare = DigestTask(
        known=(), leaving=frozenset(), lines=(), limit=limit, facts=facts, prose=prose, plain_text=plain_text
    )
    steps = list(_steps(lines, max(input_limit - _overhead(digest_prompt(bare), lines, count) - 2 * limit, 500), count))
    extractions: list[Extraction] = []
    something = any(_WORD.search(line.text) for line in lines)
    for number, shown in enumerate(steps, 1):
        leaving = frozenset(number for number, item in enumerate(items, 1) if item.first < start)
        task = replace(bare, known=items, leaving=leaving, lines=tuple(shown))
        last = number == len(steps)

        def read(
            answer: str, task: DigestTask = task, *, needed: bool = something and last
        ) -> tuple[tuple[Item, ...], Extraction | None]:
            changed, extracted = _taken(answer, task, start)
            if needed and not changed:
                raise InvalidModelAnswer("the model's answer says nothing of the messages: no digest was made of them")
            return changed, extracted

        items, extracted = yield from _asked(digest_prompt(task), read, count)
        if extracted is not None:
            extractions.append(extracted)
    items, cut = yield from _condensed(items, limit, count, plain_text=plain_text)
    text = render_items(items)
    return DigestContent(
        items=items,
        text=text,
        tokens=count(text),
        cut=cut,
        facts=once_each(fact for one in extractions for fact in one.facts) if extractions else None,
        left_out=sum(one.left_out for one in extractions),
    )


def find_facts(*, lines: Sequence[PromptLine], input_limit: int, count: Count, facts: FactsTask) -> Digesting:
    """The facts in the messages `lines`, in a digest that says nothing else. As `digest`, but nothing is asked of those
    in which no user speaks."""
    facts = _shortened(facts, input_limit // _KNOWN_SHARE, count)
    bare = facts_prompt(FactsOnlyTask(lines=(), facts=facts))
    room = min(input_limit - _overhead(bare, lines, count) - bare.max_tokens, _READ_AT_ONCE)
    extractions: list[Extraction] = []
    for shown in _steps(lines, max(room, 500), count):
        if not any(line.role == Role.USER for line in shown):
            continue
        task = FactsOnlyTask(lines=tuple(shown), facts=facts)

        def read(answer: str, task: FactsOnlyTask = task) -> Extraction:
            found = json_object(answer, also=("facts",))
            if found is None:
                raise no_json()
            extracted = extraction(found, task.facts, task.lines)
            if extracted is None:
                raise InvalidModelAnswer("the model's JSON has no 'facts'")
            return extracted

        extractions.append((yield from _asked(facts_prompt(task), read, count)))
    return DigestContent(
        items=(),
        text="",
        tokens=0,
        facts=once_each(fact for one in extractions for fact in one.facts),
        left_out=sum(one.left_out for one in extractions),
    )


def _shortened(facts: FactsTask, room: int, count: Count) -> FactsTask:
    """The task with the first of its known facts, as many as take `room` tokens."""
    used = 0
    for number, fact in enumerate(facts.known, 1):
        used += count(known_line(number, fact)) + 1
        if used > room:
            return replace(facts, known=facts.known[: number - 1])
    return facts


def _overhead(bare: Prompt, lines: Sequence[PromptLine], count: Count) -> int:
    """Tokens of a prompt beside the statements so far and the messages; `bare` has none."""
    prompt = corrected(bare)
    return max(
        _PROMPT_OVERHEAD, count(prompt.system + speakers_rule(lines) + prompt.user) + count(json.dumps(prompt.schema))
    )


def _asked(prompt: Prompt, read: Callable[[str], _Read], count: Count) -> Generator[Prompt, str, _Read]:
    """What `read` makes of the answer to `prompt`, which is asked for twice at most."""

    def usable(answer: str) -> _Read:
        if len(answer) > _FAR_TOO_LONG * prompt.max_tokens and count(answer) > _FAR_TOO_LONG * prompt.max_tokens:
            raise InvalidModelAnswer(
                f"the model's answer is far longer than the {prompt.max_tokens} tokens it was given; it is not read"
            )
        return read(answer)

    try:
        answer = yield prompt
        return usable(answer)
    except InvalidModelAnswer:
        answer = yield corrected(prompt)
        return usable(answer)


def _steps(lines: Sequence[PromptLine], room: int, count: Count) -> Iterator[list[PromptLine]]:
    """`lines` in portions of at most `room` tokens; a longer message is split into pieces that have its seq."""
    portion: list[PromptLine] = []
    used = 0
    for line in lines:
        for piece in _pieces(line, room, count):
            size = count(piece.text) + count(piece.speaker or "") + 30
            if portion and used + size > room:
                yield portion
                portion, used = [], 0
            portion.append(piece)
            used += size
    if portion:
        yield portion


def _pieces(line: PromptLine, room: int, count: Count) -> Iterator[PromptLine]:
    # Escaping in JSON can double a text's tokens, so a piece takes at most half of the room.
    if count(line.text) * 2 <= room or len(line.text) < 2:
        yield line
        return
    middle = len(line.text) // 2
    space = line.text.rfind(" ", middle // 2, middle)
    at = middle if space < 1 else space
    for part in (line.text[:at], mark_at(line.text, at) + line.text[at:]):
        yield from _pieces(replace(line, text=part), room, count)


def _taken(answer: str, task: DigestTask, start: int) -> tuple[tuple[Item, ...], Extraction | None]:
    """The statements after one answer, and the facts in it. A plain text, where the task allows it, stands for
    everything and says nothing of facts."""
    also = SUMMARY_AND_FACTS if task.prose or task.facts is not None else ()
    found = json_object(answer, also=also)
    if found is None:
        if not task.plain_text:
            raise no_json()
        first = min(start, task.lines[0].seq)
        return (Item(statement(answer), ((first, task.lines[-1].seq),), _earlier(task.known, first)),), None
    items = _changed(changes(found, also=also), task, start)
    if task.facts is None:
        return items, None
    return items, extraction(found, task.facts, task.lines)


def _changed(changes: dict[str, list[Any]], task: DigestTask, start: int) -> tuple[Item, ...]:
    """The statements after structured changes."""
    fresh = {line.seq for line in task.lines}
    everything = joined((line.seq, line.seq) for line in task.lines)
    replaced: dict[int, Item] = {}
    added: list[Item] = []
    for change in changes["replace"]:
        number = change.get("item")
        sources = ranges(numbers(change.get("sources"), fresh))
        text = statement(change.get("text"))
        if isinstance(number, int) and 1 <= number <= len(task.known):
            known = task.known[number - 1]
            kept = clipped(known.sources, start)
            replaced[number] = Item(text, joined((*kept, *sources)), _earlier((known,), start))
        else:
            added.append(Item(text, sources or everything))
    for change in changes["add"]:
        sources = ranges(numbers(change.get("sources"), fresh))
        added.append(Item(statement(change.get("text")), sources or everything))
    gone = set(numbers(changes["drop"], set(range(1, len(task.known) + 1)))) | (task.leaving - set(replaced))
    kept_items = (replaced.get(number, item) for number, item in enumerate(task.known, 1) if number not in gone)
    return (*kept_items, *added)


def _earlier(known: Sequence[Item], start: int) -> Ranges:
    """The messages before `start` whose content a restatement of `known` may carry."""
    return joined(part for item in known for part in before(item.rests, start))


def _condensed(
    items: tuple[Item, ...], limit: int, count: Count, *, plain_text: bool
) -> Generator[Prompt, str, tuple[tuple[Item, ...], int]]:
    for _ in range(_CONDENSING_ROUNDS):
        excess = count(render_items(items)) - limit
        if excess <= 0:
            return items, 0
        oldest = _oldest(items, 2 * excess, count)
        part = items[:oldest]
        target = max(count(render_items(part)) - excess, 1)
        task = CondenseTask(items=part, limit=max(target * 3 // 4, 1), plain_text=plain_text)

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
    earlier = joined(source for item in task.items for source in item.earlier)
    found = json_object(answer)
    if found is None:
        if not task.plain_text:
            raise no_json()
        return (Item(statement(answer), everything, earlier),)
    listed = found.get("items")
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in cast(list[object], listed)):
        raise InvalidModelAnswer("the model's JSON has no list of objects as 'items'")
    allowed = set(range(1, len(task.items) + 1))
    shorter: list[Item] = []
    for one in cast(list[dict[str, Any]], listed):
        stands_for = numbers(one.get("items"), allowed)
        sources = joined(source for number in stands_for for source in task.items[number - 1].sources)
        shorter.append(Item(statement(one.get("text")), sources or everything, earlier))
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
        items, cut = (replace(items[0], text=text + "…"),), cut + 1
    return items, cut
