"""What each step of an agent at work needs, whether the request for it shows that, and what the requests cost."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, cast

from hitherto.core.context.budget import TokenCounter
from hitherto.core.log.message import Message, Role, Wire
from hitherto.simulation.figures import Repeats, parts_of
from hitherto.simulation.run import Step, full_tokens, steps
from hitherto.wire import codec
from hitherto.wire.neutral import text_of

Value = str | int | float
"""A value among a call's arguments."""

_CHARACTERS, _DIGITS = 4, 3
"""Shorter values occur anywhere by chance."""

CACHED_PRICES = (0.5, 0.1)
"""What a cached token costs, as a share of the price of one that is not."""

_BEGINNING = 200
"""Characters of the rules whose presence shows that something is left of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What the step behind one request needs of the log: `values`, those of its calls' arguments that occurred before
    them, each once.

    The others are seqs, in order. `incoming` are the messages that no request has had yet; `rules` are the system
    messages that the log begins with. `words` are the user's messages since the assistant's last answer. `unanswered`
    are the messages with the calls whose results are incoming. `task` is the log's first user message.
    """

    incoming: range
    answered: tuple[Message, ...]
    rules: range
    words: tuple[int, ...]
    unanswered: tuple[int, ...]
    task: int | None
    values: tuple[Value, ...]

    @property
    def required(self) -> frozenset[int]:
        """The messages without which the request makes no sense: its budget must hold them."""
        return frozenset((*self.rules, *self.words, *self.unanswered, *self.incoming))


def needs(messages: Sequence[Message]) -> Iterator[Need]:
    """What each of a transcript's answers needs, in order; see `steps` for what an answer is. Messages at the end that
    nobody answered, and an answer to nothing, have no need."""
    rules = range(next((seq for seq, one in enumerate(messages) if one.role is not Role.SYSTEM), len(messages)))
    task = next((seq for seq, one in enumerate(messages) if one.opens_turn), None)
    words: list[int] = []
    makers: dict[str, int] = {}
    occurred = _Occurred()
    for step in steps(messages):
        end = step.incoming.stop
        occurred.add(step.asked)
        words += [at for at, one in zip(step.incoming, step.asked, strict=True) if one.opens_turn]
        if step.asked and step.answered:
            answers = (call for one in step.asked for call in one.answers)
            yield Need(
                incoming=step.incoming,
                answered=step.answered,
                rules=rules,
                words=tuple(words),
                unanswered=tuple(sorted({makers[call] for call in answers if call in makers})),
                task=task if task is not None and task < end else None,
                values=tuple(value for value in _values_of(step) if value in occurred),
            )
        occurred.add(step.answered)
        makers |= {call: at for at, one in enumerate(step.answered, end) for call in one.calls}
        if step.answered and not any(one.calls for one in step.answered):
            words.clear()


class _Occurred:
    """The values that occurred in the messages so far. Of a value that is asked for again, only the messages since are
    searched."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._searched: dict[Value, int] = {}
        self._found = set[Value]()

    def add(self, messages: Sequence[Message]) -> None:
        self._texts += [one.text for one in messages]

    def __contains__(self, value: Value) -> bool:
        if value not in self._found and any(
            occurs(value, text) for text in self._texts[self._searched.get(value, 0) :]
        ):
            self._found.add(value)
        self._searched[value] = len(self._texts)
        return value in self._found


def _values_of(step: Step) -> Iterator[Value]:
    """The values in the arguments of a step's calls, each once, in order."""
    calls = (call for one in step.answered for call in codec(one.wire).calls(one))
    yield from dict.fromkeys(value for call in calls for value in values(call.arguments))


def values(arguments: str) -> Iterator[Value]:
    """The values in a call's arguments at any depth, in order: strings of four characters and more, numbers of three
    digits and more. What is no JSON is one string."""
    try:
        given: object = json.loads(arguments)
    except (ValueError, RecursionError):
        given = arguments
    todo = [given]
    while todo:
        one = todo.pop()
        match one:
            case str(text) if len(text.strip()) >= _CHARACTERS:
                yield text.strip()
            case int() | float() as number if sum(map(str.isdigit, json.dumps(number))) >= _DIGITS:
                yield number
            case Mapping():
                todo += reversed([*cast("Mapping[str, object]", one).values()])
            case list():
                todo += reversed(cast("list[object]", one))
            case _:
                pass


def occurs(value: Value, text: str) -> bool:
    """Whether the value stands in the text: a string also as JSON writes it, a number not as a part of a longer one."""
    if isinstance(value, str):
        forms = {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
        return any(form in text for form in forms)
    forms = {json.dumps(value), *([str(int(value))] if isinstance(value, float) and value.is_integer() else ())}
    return any(re.search(rf"(?<![\d.]){re.escape(form)}(?!\.?\d)", text) for form in forms)


def request_text(request: Mapping[str, Any], wire: str, *, users: bool = False) -> str:
    """All that a model reads in a request: instructions, messages, calls with their arguments, and results; with
    `users`, only what stands in the messages of users. Tool schemas are left out: they are the same in each."""
    parts = [part for part, _ in parts_of(request) if part[0] != "tools"]
    if users:
        parts = [(kind, value) for kind, value in parts if kind == "item" and codec(wire).is_user(value)]
    return "\n".join(value if kind == "system" else text_of(value, wire) for kind, value in parts)


@dataclass(slots=True)
class Seen:
    """Of `count` things, how many the requests show."""

    count: int = 0
    shown: int = 0

    def add(self, shown: Iterable[bool]) -> None:
        for one in shown:
            self.count += 1
            self.shown += one

    @property
    def share(self) -> float | None:
        """From 0 to 1; None of nothing."""
        return self.shown / self.count if self.count else None


@dataclass(slots=True)
class SentTokens:
    """The tokens of requests, and those of them that repeat the request before from its beginning."""

    sent: int = 0
    repeated: int = 0

    def cost(self, cached_price: float) -> float:
        """What they cost, in tokens that are not cached."""
        return self.sent - (1 - cached_price) * self.repeated


@dataclass(slots=True, kw_only=True)
class WorkFigures:
    """What the contexts of one policy and budget show and cost.

    `requests` counts the answers of transcripts that a request was due for, `refused` those whose context could not be
    made; such a request shows nothing and costs nothing. In `too_large` of them what must be there takes more than
    the budget. An API would refuse `unacceptable` of those that could be made. `rules`, `words` (the user's in the
    running turn) and `task` (the first user message) count the requests whose budget holds the message beside what must
    be there, `rules_begin` all that have rules. `values` counts what calls need. `everything` are the tokens of the
    same requests with the whole log in each.
    """

    policy: str
    budget: int
    requests: int = 0
    refused: int = 0
    too_large: int = 0
    unacceptable: int = 0
    rules: Seen = field(default_factory=Seen)
    rules_begin: Seen = field(default_factory=Seen)
    words: Seen = field(default_factory=Seen)
    task: Seen = field(default_factory=Seen)
    values: Seen = field(default_factory=Seen)
    context: SentTokens = field(default_factory=SentTokens)
    everything: SentTokens = field(default_factory=SentTokens)

    def cost_ratio(self, cached_price: float) -> float | None:
        """What the contexts cost, divided by what everything costs; None where nothing was sent."""
        everything = self.everything.cost(cached_price)
        return self.context.cost(cached_price) / everything if everything else None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; shares from 0 to 1."""
        seen = ("rules", "rules_begin", "words", "task", "values")
        return {
            "policy": self.policy,
            "budget": self.budget,
            "requests": self.requests,
            "refused": self.refused,
            "too_large": self.too_large,
            "unacceptable": self.unacceptable,
            **{name: _rounded(getattr(self, name).share) for name in seen},
            "counted": {name: getattr(self, name).count for name in seen},
            "tokens": self.context.sent,
            "repeated": self.context.repeated,
            "everything_tokens": self.everything.sent,
            "everything_repeated": self.everything.repeated,
            "cost": {str(price): _rounded(self.cost_ratio(price)) for price in CACHED_PRICES},
        }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


class WorkCounter:
    """Counts the requests of one transcript, in the order of its needs. `counter` counts as the memory does. `refusals`
    says why the API would refuse a request."""

    def __init__(
        self,
        messages: Sequence[Message],
        into: WorkFigures,
        *,
        wire: Wire,
        counter: TokenCounter,
        refusals: Callable[[Mapping[str, Any]], Sequence[str]],
    ) -> None:
        self._refusals = refusals
        self._messages, self._into, self._codec = messages, into, codec(wire)
        self._repeats = Repeats(self._codec, counter)
        self._whole = full_tokens(messages, self._codec, counter)
        self._costs = [after - before for before, after in pairwise(self._whole)]
        self._before = 0
        """What the last request that was made would have cost with everything in it, without its framing."""

    def refused(self, need: Need) -> None:
        """Count a request that could not be made."""
        self._into.refused += 1
        self._count(need, "", "")

    def made(self, need: Need, request: Mapping[str, Any], tokens: int) -> None:
        """Count a request of so many tokens."""
        into = self._into
        wire = self._codec.name
        self._count(need, request_text(request, wire), request_text(request, wire, users=True))
        into.unacceptable += bool(self._refusals(request))
        into.context.sent += tokens
        into.context.repeated += self._repeats.of(request)
        into.everything.sent += self._whole[need.incoming.stop]
        into.everything.repeated += self._before
        self._before = self._whole[need.incoming.stop] - self._codec.framing

    def _count(self, need: Need, text: str, of_users: str) -> None:
        into = self._into
        rules, words = self._texts(need.rules), self._texts(need.words)
        into.requests += 1
        into.values.add(occurs(value, text) for value in need.values)
        if rules:
            into.rules_begin.add([all(one[:_BEGINNING] in text for one in rules)])
        if not self._fits(need.required):
            into.too_large += 1
            return
        if rules:
            into.rules.add([all(one in text for one in rules)])
        if words:
            into.words.add([all(one in of_users for one in words)])
        if need.task is not None and self._fits(need.required | {need.task}):
            into.task.add([self._messages[need.task].text in of_users])

    def _texts(self, seqs: Iterable[int]) -> list[str]:
        return [self._messages[seq].text for seq in seqs]

    def _fits(self, seqs: Iterable[int]) -> bool:
        return self._codec.framing + sum(self._costs[seq] for seq in seqs) <= self._into.budget
