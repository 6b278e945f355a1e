"""One request to a language model, and what it is asked to do."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, ClassVar

from hitherto.core.ledger import Purpose


@dataclass(frozen=True, slots=True)
class PromptLine:
    """One message, or a piece of a long one, as a summarizer sees it. `day` is the day on which it was said,
    `speaker` the name of the person who said it, where the message has one."""

    seq: int
    role: str
    text: str
    day: date | None = None
    speaker: str | None = None


def prompt_lines(lines: Iterable[PromptLine]) -> list[dict[str, object]]:
    """The lines as JSON objects; the first of each day has its "date"."""
    found: list[dict[str, object]] = []
    before: date | None = None
    for line in lines:
        day = {} if line.day is None or line.day == before else {"date": line.day.isoformat()}
        speaker = {} if line.speaker is None else {"speaker": line.speaker}
        found.append({"seq": line.seq, **day, "role": line.role, **speaker, "text": line.text})
        before = line.day
    return found


def json_line(value: object) -> str:
    """`value` as JSON on one line, however a model or a reader of logs tells lines apart."""
    return json.dumps(value, ensure_ascii=False).translate(_ENDS_OF_LINES)


_ENDS_OF_LINES = str.maketrans({mark: f"\\u{ord(mark):04x}" for mark in "\x7f\x85\u2028\u2029"})
"""Characters that JSON leaves unescaped and some readers take for the end of a line."""


class Task:
    """What a model is asked to do, as values: for a model that is code and reads no prompt. Each kind is a frozen
    dataclass in the package whose prompts ask for it."""

    purpose: ClassVar[Purpose]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One request to a model. A language model reads `system` and `user`; a model that is code reads `task`. `schema`
    is the JSON schema of the answer, empty where it is plain text; `max_tokens` is its limit. `corrects`: an earlier
    answer to this request was unusable."""

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

Mind: an answer to this was refused, because it was empty, far too long, or not the FORM that was asked for. Answer with
that FORM alone, complete and short."""


def corrected(prompt: Prompt) -> Prompt:
    """The same request, after an answer that was unusable. It repeats nothing of that answer: what made it unusable may
    have come from the input."""
    form = "JSON" if prompt.schema else "text"
    return replace(prompt, system=prompt.system + _CORRECT.replace("FORM", form), corrects=True)
