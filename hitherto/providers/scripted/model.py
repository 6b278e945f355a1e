"""A model for tests, with replies, delays and faults from a list."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TypeAlias, cast

from hitherto.core.prompt import Prompt
from hitherto.ports.models.model import Completion, Model
from hitherto.providers.extractive.model import Extractive

Reply: TypeAlias = "str | Exception | Callable[[Prompt], str] | Delayed | Hang | Gate"
"""What one call gets: a text, an error to raise, a function of the prompt, or one of these after a wait."""


@dataclass(frozen=True, slots=True)
class Delayed:
    """`reply`, after `seconds`."""

    seconds: float
    reply: Reply


@dataclass(frozen=True, slots=True)
class Hang:
    """No answer, ever: the call ends when its task is cancelled."""


class Gate:
    """`reply`, once the test calls `open`, so that a digest can be looked at while it is being made.

    `await gate.reached()` returns when a call waits at the gate. An open gate stays open. It belongs to one event
    loop: from another thread, call `open` through that loop.
    """

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self._reached = asyncio.Event()
        self._opened = asyncio.Event()

    def open(self) -> None:
        self._opened.set()

    async def reached(self) -> None:
        await self._reached.wait()

    async def passed(self) -> None:
        """Waits until the gate is open; called by the model."""
        self._reached.set()
        await self._opened.wait()


Statement: TypeAlias = "str | tuple[str, Sequence[int]]"
"""A statement's text, with the seqs it rests on or without (it then rests on all that was shown)."""


@dataclass(frozen=True, slots=True)
class ScriptedFact:
    """A fact in an answer. `sources` are the seqs that say so; `relation` is "new", "repeats" or "replaces", `known`
    the number (from 1) of the known fact that is repeated or replaced."""

    category: str
    content: str
    sources: Sequence[int] = ()
    confidence: float = 0.9
    relation: str = "new"
    known: int = 0


ScriptedFacts: TypeAlias = "ScriptedFact | tuple[str, str] | tuple[str, str, Sequence[int]]"
"""A fact's category and content, with the seqs that say so or without (it then rests on all that was shown)."""


def items(
    *add: Statement,
    replace: Mapping[int, Statement] | None = None,
    drop: Sequence[int] = (),
    facts: Sequence[ScriptedFacts] | None = None,
) -> str:
    """The JSON in which a model answers a digest's prompt: statements to add, and others, by their number
    (from 1), to replace or to drop; and facts, if `facts` is given. `items("They talk.", facts=[("hobby", "Plays the
    cello.", [3])])`."""
    answer: dict[str, object] = {
        "add": [_stated(one) for one in add],
        "replace": [{"item": number, **_stated(one)} for number, one in (replace or {}).items()],
        "drop": list(drop),
    }
    if facts is not None:
        answer["facts"] = [_told(one) for one in facts]
    return json.dumps(answer)


def _told(fact: ScriptedFacts) -> dict[str, object]:
    match fact:
        case ScriptedFact():
            return {**asdict(fact), "sources": list(fact.sources)}
        case (category, content):
            return _told(ScriptedFact(category, content))
        case (category, content, sources):
            return _told(ScriptedFact(category, content, sources))


def _stated(statement: Statement) -> dict[str, object]:
    text, sources = (statement, ()) if isinstance(statement, str) else statement
    return {"text": text, "sources": list(sources)}


class Scripted(Model):
    """Answers its calls with `replies`, one each, in the order in which they come; then always with `then`,
    which is a reply or another model (`extractive` if left out).

    `calls` are the prompts of its calls, each added when the call begins. `closed` counts calls of `aclose`.
    """

    def __init__(
        self,
        replies: Sequence[Reply] = (),
        *,
        then: Reply | Model | None = None,
        name: str = "scripted",
        input_limit: int = 100_000,
    ) -> None:
        self.calls: list[Prompt] = []
        self.closed = 0
        self._replies = list(replies)
        self._then = Extractive() if then is None else then
        self._name = name
        self._input_limit = input_limit

    @property
    def name(self) -> str:
        return self._name

    @property
    def input_limit(self) -> int:
        return self._input_limit

    async def complete(self, prompt: Prompt) -> Completion:
        reply = self._replies[len(self.calls)] if len(self.calls) < len(self._replies) else self._then
        self.calls.append(prompt)
        while True:
            match reply:
                case str():
                    return Completion(text=reply)
                case Exception():
                    raise reply
                case Delayed():
                    await asyncio.sleep(reply.seconds)
                    reply = reply.reply
                case Gate():
                    await reply.passed()
                    reply = reply.reply
                case Hang():
                    await asyncio.Event().wait()
                case _:
                    if callable(reply):
                        return Completion(text=reply(prompt))
                    return await cast(Model, reply).complete(prompt)

    async def aclose(self) -> None:
        self.closed += 1
