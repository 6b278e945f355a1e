"""Conversations with questions about them, each with the messages that answer it, from the `qa` of a LoCoMo file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from hitherto.cli.transcripts.transcript import FileConversation, read_bytes, without_mark
from hitherto.core.scope import Scope
from hitherto.engine.conversation import Conversation
from hitherto.engine.memory import Memory
from hitherto.errors import InvalidTranscript
from hitherto.importers import locomo
from hitherto.importers.imported import file_id
from hitherto.simulation.figures import Labeled

_ID = re.compile(r"D([0-9]+):([0-9]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabeledQuestion(Labeled):
    """An `adversarial` question has no answer: it asks one speaker for what the other said."""

    category: int | None
    adversarial: bool = False


@dataclass(frozen=True, slots=True)
class LabeledConversation:
    """A conversation and the questions about it."""

    transcript: FileConversation
    questions: tuple[LabeledQuestion, ...]

    def sessions(self) -> dict[str, range]:
        """Its sessions in order, each as a conversation of its own: a name, and which of its messages."""
        numbers = [one.metadata.get("session") for one in self.transcript.messages]
        begins = [at for at, number in enumerate(numbers) if at == 0 or number != numbers[at - 1]]
        ends = [*begins[1:], len(numbers)]
        return {
            f"{self.transcript.id} {numbers[begin]}": range(begin, end) for begin, end in zip(begins, ends, strict=True)
        }


def load(path: Path, *, named: bool = True) -> list[LabeledConversation]:
    """The conversations of the LoCoMo file at `path`, their messages named by speaker if `named`, with every question
    that has evidence in them. Raises InvalidTranscript, also if there is no such question."""
    data = without_mark(read_bytes(path), path)
    if data.lstrip()[:1] != b"[":
        raise InvalidTranscript(f"{path} is no LoCoMo file: it does not begin as a JSON list of conversations")
    found = [
        LabeledConversation(
            FileConversation(file_id(sample.name, path), sample.messages),
            tuple(_questions(sample, f"{path}: {sample.name}")),
        )
        for sample in locomo.samples(data, path, named=named)
    ]
    if not any(labeled.questions for labeled in found):
        raise InvalidTranscript(
            f"{path} has no question (in 'qa') whose 'evidence' is the dia_id of a message: nothing to measure"
        )
    return found


def spread(conversations: Sequence[LabeledConversation], most: int | None) -> list[LabeledConversation]:
    """The conversations with at most `most` scored questions in all, spread evenly over them; adversarial questions
    are left out, unless there are no others."""
    scored = [[one for one in labeled.questions if not one.adversarial] for labeled in conversations]
    if not any(scored):
        scored = [list(labeled.questions) for labeled in conversations]
    total = sum(map(len, scored))
    step = 1 if most is None else max(total / most, 1)
    found: list[LabeledConversation] = []
    seen = 0
    for labeled, questions in zip(conversations, scored, strict=True):
        chosen = [one for at, one in enumerate(questions, seen) if int(at / step) > int((at - 1) / step) or at == 0]
        seen += len(questions)
        if chosen:
            found.append(LabeledConversation(labeled.transcript, tuple(chosen)))
    return found


def _questions(sample: locomo.Sample, where: str) -> Iterator[LabeledQuestion]:
    if sample.qa is None:
        return
    if not isinstance(sample.qa, list):
        raise InvalidTranscript(f"{where}, qa is not a list of questions")
    seqs = _seqs(sample, where)
    for number, entry in enumerate(cast("list[object]", sample.qa), 1):
        fields: Mapping[str, Any] = cast("Mapping[str, Any]", entry) if isinstance(entry, dict) else {}
        text = fields.get("question")
        if not isinstance(text, str):
            raise InvalidTranscript(f"{where}, question {number} of qa is not an object with a text as its question")
        evidence = frozenset(seqs[dia_id] for dia_id in _dia_ids(fields.get("evidence")) if dia_id in seqs)
        if evidence:
            yield LabeledQuestion(
                text=text,
                evidence=evidence,
                category=_category(fields.get("category"), f"{where}, question {number} of qa"),
                adversarial="adversarial_answer" in fields,
            )


def _seqs(sample: locomo.Sample, where: str) -> dict[tuple[str, str], int]:
    """The seq of each message that has a dia_id. Raises InvalidTranscript where two have the same."""
    found: dict[tuple[str, str], int] = {}
    for seq, message in enumerate(sample.messages):
        for dia_id in _dia_ids(message.metadata.get("dia_id")):
            if dia_id in found:
                raise InvalidTranscript(f"{where} has two messages with the dia_id D{':'.join(dia_id)}; name each once")
            found[dia_id] = seq
    return found


def _dia_ids(value: object) -> Iterator[tuple[str, str]]:
    """The ids in a text, or in a list of texts, with anything between them; leading zeros are ignored."""
    if isinstance(value, str):
        yield from ((match[1].lstrip("0") or "0", match[2].lstrip("0") or "0") for match in _ID.finditer(value))
    elif isinstance(value, list):
        for entry in cast("list[object]", value):
            yield from _dia_ids(entry)


def _category(value: object, where: str) -> int | None:
    """A whole number, also as a text, or None. Raises InvalidTranscript for anything else."""
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?[0-9]{1,9}\s*", value):
        return int(value)
    raise InvalidTranscript(f"{where} has the category {value!r}; give a whole number, or none")


_BATCH = 500


async def append(
    memory: Memory,
    transcript: FileConversation,
    *,
    scope: Scope,
    policy: str | None = None,
    advance: Callable[[int], None] = lambda _: None,
) -> Conversation:
    """The conversation with all messages of the transcript. `advance` gets the number of messages appended."""
    conversation = memory.conversation(transcript.id, scope=scope, policy=policy)
    for start in range(0, len(transcript.messages), _BATCH):
        batch = transcript.messages[start : start + _BATCH]
        await conversation.append(*batch, expect=start)
        advance(len(batch))
    return conversation
