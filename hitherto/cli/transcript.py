"""Transcript files, read whole and checked before any use: JSON lines in OpenAI chat shape, or LoCoMo's list."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from hitherto.cli import locomo
from hitherto.core.append import extended
from hitherto.core.head import empty
from hitherto.core.message import CHAT, Message
from hitherto.core.scope import checked_name
from hitherto.errors import InvalidBatch, InvalidMessage, InvalidScope, InvalidTranscript
from hitherto.wire import read

_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_UNUSED = "nothing of the file was used"


@dataclass(frozen=True, slots=True)
class Transcript:
    """One conversation of a file, in order. `id` is a usable name of a conversation."""

    id: str
    messages: tuple[Message, ...]

    def rounds(self) -> Iterator[tuple[Message, ...]]:
        """Portions that each begin with a user message; a first one may lack it."""
        portion: list[Message] = []
        for message in self.messages:
            if message.opens_turn and portion:
                yield tuple(portion)
                portion = []
            portion.append(message)
        if portion:
            yield tuple(portion)


def load(path: Path, *, conversation: str | None = None) -> list[Transcript]:
    """The conversations of the file at `path`, as `parse` gives them. Raises InvalidTranscript."""
    return parse(content(path), path, conversation=conversation)


def content(path: Path) -> bytes:
    """What is in the file at `path`. Raises InvalidTranscript."""
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InvalidTranscript(f"cannot read {path}: {why}") from error


def parse(data: bytes, path: Path, *, conversation: str | None = None) -> list[Transcript]:
    """The conversations in the content of a file: of a LoCoMo file the one with that `sample_id`, or all; of JSON
    lines the only one, which is named as the file.

    Raises InvalidTranscript, naming the line where one line is at fault.
    """
    data = unmarked(data, path)
    if data.lstrip()[:1] == b"[":
        samples = locomo.samples(data, path, conversation)
        return [Transcript(usable(one.name, path), one.messages) for one in samples]
    if conversation is not None and conversation != path.stem:
        raise InvalidTranscript(f"{path} holds one conversation, {path.stem!r}; leave --conversation out")
    return [Transcript(usable(path.stem, path), _lines(data, path))]


def unmarked(data: bytes, path: Path) -> bytes:
    """UTF-8 without the mark that some editors begin it with. Raises InvalidTranscript for UTF-16."""
    if data.startswith(_UTF16_MARKS):
        raise InvalidTranscript(f"{path} is written in UTF-16; save it in UTF-8")
    return data.removeprefix(_UTF8_MARK)


def _lines(data: bytes, path: Path) -> tuple[Message, ...]:
    messages: list[Message] = []
    numbers: list[int] = []
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            messages.append(_message(line))
        except InvalidMessage as error:
            raise InvalidTranscript(f"{path}, line {number}: {error}; {_UNUSED}", line=number) from error
        numbers.append(number)
    if not messages:
        raise InvalidTranscript(f"{path} holds no messages; give one JSON object with role and content a line")
    _check_calls(messages, numbers, path)
    return tuple(messages)


def _message(line: bytes) -> Message:
    try:
        value: object = json.loads(line, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise InvalidMessage(f"this is not JSON ({error.msg}, at character {error.pos + 1} of the line)") from error
    except UnicodeDecodeError as error:
        raise InvalidMessage(f"this is not UTF-8 ({error.reason}, at byte {error.start + 1} of the line)") from error
    except (ValueError, RecursionError) as error:
        raise InvalidMessage(f"this JSON cannot be read ({error})") from error
    if not isinstance(value, dict):
        raise InvalidMessage("this is JSON, but not an object with role and content")
    return read(cast(Mapping[str, Any], value), CHAT)


def _no_number(name: str) -> None:
    raise InvalidMessage(f"this is not JSON ({name} is no JSON number)")


def _check_calls(messages: Sequence[Message], numbers: Sequence[int], path: Path) -> None:
    head = empty(datetime.now(UTC))
    for message, number in zip(messages, numbers, strict=True):
        try:
            _, head = extended(head, [message], [0])
        except InvalidBatch as error:
            call = ", ".join(repr(call) for call in message.answers)
            raise InvalidTranscript(
                f"{path}, line {number}: the result of tool call {call}, but no such call waits for one before it; "
                f"{_UNUSED}",
                line=number,
            ) from error


def usable(name: str, path: Path) -> str:
    """`name`, if a conversation can be kept under it. Raises InvalidTranscript."""
    try:
        return checked_name(name, "conversation")
    except InvalidScope as error:
        raise InvalidTranscript(f"{path} names its conversation so that none can be kept under it: {error}") from error
