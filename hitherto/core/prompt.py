"""One request to a language model, and what it is asked to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from hitherto.core.ledger import Purpose


@dataclass(frozen=True, slots=True)
class PromptLine:
    """One message, or a piece of a long one, as a summarizer sees it."""

    seq: int
    role: str
    text: str


class Task:
    """What a model is asked to do, as values: for a model that computes and does not read. Each kind is a frozen
    dataclass in the room whose prompts ask for it."""

    purpose: ClassVar[Purpose]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One request to a model: the texts for one that reads, the `task` itself for one that computes, and the JSON
    schema of the answer. `max_tokens` bounds the answer. `corrects` says that an answer to it was unusable before."""

    system: str
    user: str
    schema_name: str
    schema: Mapping[str, Any]
    max_tokens: int
    task: Task
    corrects: bool = False

    @property
    def purpose(self) -> Purpose:
        return Purpose.CORRECT if self.corrects else self.task.purpose


_CORRECT = """

Mind: an answer to this was refused, because it was empty, far too long, or not the JSON that was asked for. Answer with
that JSON alone, complete and short."""


def corrected(prompt: Prompt) -> Prompt:
    """The same request after an answer that could not be used. It repeats nothing of that answer: what made it so may
    have come from the input."""
    return replace(prompt, system=prompt.system + _CORRECT, corrects=True)
