"""Transcript files, read and checked as a whole: messages in OpenAI chat shape, or a LoCoMo file."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from hitherto.cli.transcripts import locomo
from hitherto.core.log.append import extended
from hitherto.core.log.head import empty
from hitherto.core.log.message import CHAT, Message
from hitherto.core.log.title import checked_title
from hitherto.core.scope import checked_name
from hitherto.errors import InvalidBatch, InvalidInput, InvalidMessage, InvalidScope, InvalidTranscript
from hitherto.wire import detected, read

_STDIN = Path("-")
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_LISTS = re.compile(rb"\s*\[\s*\[")
_TIMES = ("at", "created_at", "timestamp")


@dataclass(frozen=True, slots=True)
class FileConversation:
    """One conversation of a file, in order. `id` is a valid name of a conversation, `title` what the file calls it."""

    id: str
    messages: tuple[Message, ...]
    title: str | None = None


def load(path: Path, *, conversation: str | None = None, unreadable: list[str] | None = None) -> list[FileConversation]:
    """The conversations of the file at `path`, as `parse` returns them. Raises InvalidTranscript."""
    data = read_bytes(path)
    path = Path("standard input") if path == _STDIN else path
    return parse(data, path, conversation=conversation, unreadable=unreadable)


def read_bytes(path: Path) -> bytes:
    """The content of the file at `path`, of standard input for "-". Raises InvalidTranscript."""
    try:
        return sys.stdin.buffer.read() if path == _STDIN else path.read_bytes()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InvalidTranscript(f"cannot read {path}: {why}") from error


def parse(
    data: bytes, path: Path, *, conversation: str | None = None, unreadable: list[str] | None = None
) -> list[FileConversation]:
    """The conversations in a file's content, or only `conversation`: those of a LoCoMo file, named by their
    `sample_id`; of a JSON list of lists of messages, named as the file and their place in it (from 0); of JSON lines
    the only one, named as the file.

    Raises InvalidTranscript, with the line if one line is wrong. Where `unreadable` is given, an entry of a list of
    lists that cannot be read is left out, and why is added there.
    """
    data = without_mark(data, path)
    if _LISTS.match(data):
        return _lists(data, path, conversation, unreadable)
    if data.lstrip()[:1] == b"[":
        samples = locomo.samples(data, path, conversation)
        return [FileConversation(checked_id(sample.name, path), sample.messages) for sample in samples]
    if conversation is not None and conversation != path.stem:
        raise InvalidTranscript(f"{path} holds one conversation, {path.stem!r}; leave --conversation out")
    try:
        return [_lines(data, path)]
    except InvalidTranscript as error:
        raise _unused(error) from error


def without_mark(data: bytes, path: Path) -> bytes:
    """UTF-8 without the byte order mark that some editors write. Raises InvalidTranscript for UTF-16."""
    if data.startswith(_UTF16_MARKS):
        raise InvalidTranscript(f"{path} is written in UTF-16; save it in UTF-8")
    return data.removeprefix(_UTF8_MARK)


def _lines(data: bytes, path: Path) -> FileConversation:
    title: str | None = None
    messages: list[Message] = []
    places: list[_Place] = []
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        place = _Place(f"{path}, line {number}", number)
        with _at(place):
            if not messages and title is None and (title := title_of_line(line)) is not None:
                continue
            messages.append(message_of(line))
        places.append(place)
    if not messages:
        raise InvalidTranscript(f"{path} holds no messages; give one JSON object with role and content a line")
    _check_calls(messages, places)
    return FileConversation(checked_id(path.stem, path), tuple(messages), title)


def _lists(data: bytes, path: Path, wanted: str | None, unreadable: list[str] | None) -> list[FileConversation]:
    try:
        conversations = cast("list[object]", json.loads(data, parse_constant=_no_number))
    except (ValueError, RecursionError, InvalidMessage) as error:
        raise InvalidTranscript(f"{path} begins like a JSON list of conversations and is not JSON: {error}") from error
    names = [f"{path.stem}-{number}" for number in range(len(conversations))]
    if wanted is not None and wanted not in names:
        raise InvalidTranscript(f"{path} has no conversation {wanted!r}; it has {names[0]} to {names[-1]}")
    found: list[FileConversation] = []
    for name, items in zip(names, conversations, strict=True):
        if wanted not in (None, name):
            continue
        try:
            found.append(FileConversation(checked_id(name, path), _listed(items, f"{path}: {name}")))
        except InvalidTranscript as error:
            if unreadable is None:
                raise _unused(error) from error
            unreadable.append(str(error))
    return found


def _listed(items: object, name: str) -> tuple[Message, ...]:
    if not isinstance(items, list) or not items:
        raise InvalidTranscript(f"{name} is no list of messages; each entry of the list must be one")
    messages: list[Message] = []
    places: list[_Place] = []
    for number, item in enumerate(cast("list[object]", items), 1):
        places.append(_Place(f"{name}, message {number}"))
        with _at(places[-1]):
            messages.append(_message(item))
    _check_calls(messages, places)
    return tuple(messages)


def _unused(error: InvalidTranscript) -> InvalidTranscript:
    return InvalidTranscript(f"{error}; nothing of the file was used", line=error.line)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in a file a message stands, in words, and its line if it has one of its own."""

    words: str
    line: int | None = None


@contextmanager
def _at(place: _Place) -> Generator[None]:
    """Names the place of a message that cannot be used."""
    try:
        yield
    except InvalidMessage as error:
        raise InvalidTranscript(f"{place.words}: {error}", line=place.line) from error


def title_of_line(line: bytes) -> str | None:
    """The title of the conversation, which a file may begin with: `{"title": "…"}`. None for any other line. Raises
    InvalidMessage for one that cannot be a title."""
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or value.keys() != {"title"}:
        return None
    try:
        return checked_title(cast("Mapping[str, object]", value)["title"])
    except InvalidInput as error:
        raise InvalidMessage(str(error)) from error


def message_of(line: bytes, *, take_id: bool = False) -> Message:
    """The message of a line, dated if it says when it was said: in `at`, `created_at` or `timestamp`, a time in ISO
    format or seconds since 1970; with `take_id`, its `id` is the message's. Raises InvalidMessage."""
    try:
        value: object = json.loads(line, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise InvalidMessage(f"this is not JSON ({error.msg}, at character {error.pos + 1} of the line)") from error
    except UnicodeDecodeError as error:
        raise InvalidMessage(f"this is not UTF-8 ({error.reason}, at byte {error.start + 1} of the line)") from error
    except (ValueError, RecursionError) as error:
        raise InvalidMessage(f"this JSON cannot be read ({error})") from error
    return _message(value, take_id=take_id)


def _message(value: object, *, take_id: bool = False) -> Message:
    """Raises InvalidMessage."""
    if not isinstance(value, dict):
        raise InvalidMessage("this is JSON, but not an object with role and content")
    item = dict(cast("Mapping[str, Any]", value))
    times = [time for name in _TIMES if (time := item.pop(name, None)) is not None]
    try:
        message = read(item, CHAT, take_id=take_id)
    except InvalidMessage as error:
        if (wire := detected(item)) != CHAT:
            raise InvalidMessage(
                f"this is an item of {wire}, and files are read as chat completions; append it in Python, with {wire=}"
            ) from error
        raise
    return message.dated(_time(times[0])) if times else message


def _time(given: object) -> datetime:
    """Raises InvalidMessage."""
    try:
        if isinstance(given, int | float) and not isinstance(given, bool):
            return datetime.fromtimestamp(given, UTC)
        time = datetime.fromisoformat(str(given))
    except (ValueError, OverflowError, OSError):
        raise InvalidMessage(
            f"its time is {given!r}; give one like 2026-05-08T13:30:00Z, or seconds since 1970"
        ) from None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time


def _no_number(name: str) -> None:
    raise InvalidMessage(f"this is not JSON ({name} is no JSON number)")


def _check_calls(messages: Sequence[Message], places: Sequence[_Place]) -> None:
    head = empty(datetime.now(UTC))
    for message, place in zip(messages, places, strict=True):
        try:
            _, head = extended(head, [message], [0])
        except InvalidBatch as error:
            call = ", ".join(repr(call) for call in message.answers)
            raise InvalidTranscript(
                f"{place.words}: the result of tool call {call}, but no such call waits for one before it",
                line=place.line,
            ) from error


def checked_id(name: str, path: Path) -> str:
    """`name`, if it is a valid name of a conversation. Raises InvalidTranscript."""
    try:
        return checked_name(name, "conversation")
    except InvalidScope as error:
        raise InvalidTranscript(f"{path} names its conversation so that none can be kept under it: {error}") from error
