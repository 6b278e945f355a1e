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
    """What a model is asked to do, as values: for a model that is code and reads no prompt. Each kind is a frozen
    dataclass in the package whose prompts ask for it."""

    purpose: ClassVar[Purpose]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One request to a model. A language model reads `system` and `user`; a model that is code reads `task`. `schema`
    is the JSON schema of the answer, `max_tokens` its limit. `corrects`: an earlier answer to this request was
    unusable."""

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
    """The same request, after an answer that was unusable. It repeats nothing of that answer: what made it unusable may
    have come from the input."""
    return replace(prompt, system=prompt.system + _CORRECT, corrects=True)
