"""Questions about conversations, each with the messages that answer it, as LoCoMo's file has them under `qa`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from hitherto.cli import locomo
from hitherto.cli.transcript import Transcript, content, unmarked, usable
from hitherto.errors import InvalidTranscript

_ID = re.compile(r"D([0-9]+):([0-9]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """`evidence` are the seqs of the messages that answer it, at least one. An `adversarial` one has no answer: it asks
    one speaker for what the other said."""

    text: str
    evidence: frozenset[int]
    category: int | None
    adversarial: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """A conversation, and what is asked about it."""

    transcript: Transcript
    questions: tuple[Question, ...]


def load(path: Path) -> list[Asked]:
    """The conversations of the LoCoMo file at `path`, their messages named by their speakers, and every question of
    which a piece of evidence is there. Raises InvalidTranscript, also where there is no such question at all."""
    data = unmarked(content(path), path)
    if data.lstrip()[:1] != b"[":
        raise InvalidTranscript(f"{path} is no LoCoMo file: it does not begin as a JSON list of conversations")
    found = [
        Asked(Transcript(usable(one.name, path), one.messages), tuple(_questions(one, f"{path}: {one.name}")))
        for one in locomo.samples(data, path, None, named=True)
    ]
    if not any(one.questions for one in found):
        raise InvalidTranscript(
            f"{path} has no question (in 'qa') whose 'evidence' is the dia_id of a message: nothing to measure"
        )
    return found


def _questions(sample: locomo.Sample, where: str) -> Iterator[Question]:
    if sample.qa is None:
        return
    if not isinstance(sample.qa, list):
        raise InvalidTranscript(f"{where}, qa is not a list of questions")
    there = _places(sample, where)
    for number, each in enumerate(cast("list[object]", sample.qa), 1):
        asked: Mapping[str, Any] = cast("Mapping[str, Any]", each) if isinstance(each, dict) else {}
        text, category = asked.get("question"), asked.get("category")
        if not isinstance(text, str):
            raise InvalidTranscript(f"{where}, question {number} of qa is not an object with a text as its question")
        evidence = frozenset(there[name] for name in _named(asked.get("evidence")) if name in there)
        if evidence:
            yield Question(
                text=text,
                evidence=evidence,
                category=_category(category, f"{where}, question {number} of qa"),
                adversarial="adversarial_answer" in asked,
            )


def _places(sample: locomo.Sample, where: str) -> dict[tuple[str, str], int]:
    """The seq of each message that has a dia_id. Raises InvalidTranscript where two have the same."""
    found: dict[tuple[str, str], int] = {}
    for seq, message in enumerate(sample.messages):
        for name in _named(json.loads(message.metadata).get("dia_id")):
            if name in found:
                raise InvalidTranscript(f"{where} has two messages with the dia_id D{':'.join(name)}; name each once")
            found[name] = seq
    return found


def _named(value: object) -> Iterator[tuple[str, str]]:
    """The ids in a text or in a list of them, in whatever is between; leading zeros count for nothing."""
    if isinstance(value, str):
        yield from (((one[1].lstrip("0") or "0"), (one[2].lstrip("0") or "0")) for one in _ID.finditer(value))
    elif isinstance(value, list):
        for each in cast("list[object]", value):
            yield from _named(each)


def _category(value: object, where: str) -> int | None:
    """A whole number, or a text of one. Raises InvalidTranscript for anything else that is there."""
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?[0-9]{1,9}\s*", value):
        return int(value)
    raise InvalidTranscript(f"{where} has the category {value!r}; give a whole number, or none")
