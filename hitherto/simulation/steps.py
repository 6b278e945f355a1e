"""Splits a transcript into the requests that its agent made."""

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

    Consecutive messages of the assistant, tool calls included, are the answer to one request, which held everything
    before them. What came in before them is that request's `asked`: a user's messages, or a batch of tool results.
    Messages at the end that nobody answered are a request too. Messages of the assistant at the beginning are a step
    with empty `asked`: no request was made for them here.
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
