"""The requests that an agent made, read off its transcript."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hitherto.core.log.message import Message, Role


@dataclass(frozen=True, slots=True)
class Step:
    """One request: what had come in since the one before, and what the model answered."""

    asked: tuple[Message, ...]
    answered: tuple[Message, ...]


def steps(messages: Iterable[Message]) -> Iterator[Step]:
    """The transcript as requests, in order.

    What an assistant says in one go, its calls included, is the answer to one request, which held everything before
    it: so a user's message and every batch of tool results that the assistant goes on from make a request each. What
    nobody answered at the end is a request too. An answer to nothing, at the beginning, has a step without a
    question: no request was made for it here.
    """
    asked: list[Message] = []
    answered: list[Message] = []
    for message in messages:
        if message.role is Role.ASSISTANT:
            answered.append(message)
            continue
        if answered:
            yield Step(tuple(asked), tuple(answered))
            asked, answered = [], []
        asked.append(message)
    if asked or answered:
        yield Step(tuple(asked), tuple(answered))
