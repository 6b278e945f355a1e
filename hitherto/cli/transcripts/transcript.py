"""Transcript files, read and checked as a whole: whatever `hitherto import` reads."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

from hitherto.core.log.append import extended
from hitherto.core.log.head import empty
from hitherto.core.log.message import Message
from hitherto.errors import InvalidBatch, InvalidTranscript
from hitherto.importers.files import read_file, read_opened
from hitherto.importers.imported import (
    Found,
    ImportedConversation,
    ImportedMessage,
    Unreadable,
    shown_messages,
)

_STDIN = Path("-")
_STDIN_NAME = Path("standard input")
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class FileConversation:
    """One conversation of a file, in order. `id` is a valid name of a conversation, `title` what the file calls it."""

    id: str
    messages: tuple[Message, ...]
    title: str | None = None


def load(path: Path, *, conversation: str | None = None, unreadable: list[str] | None = None) -> list[FileConversation]:
    """The conversations of the file or folder at `path`, as `parse` returns them. Raises InvalidTranscript."""
    if path == _STDIN:
        return parse(read_bytes(path), _STDIN_NAME, conversation=conversation, unreadable=unreadable)
    return _chosen(read_file(path), path, conversation, unreadable)


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
    """The conversations in a file's content, or only `conversation`, each with the branch that is shown.

    Raises InvalidTranscript, with the line if one line is wrong. Where `unreadable` is given, a conversation that
    cannot be read is left out, and why is added there.
    """
    return _chosen(read_opened(BytesIO(data), path), path, conversation, unreadable)


def without_mark(data: bytes, path: Path) -> bytes:
    """UTF-8 without the byte order mark that some editors write. Raises InvalidTranscript for UTF-16."""
    if data.startswith(_UTF16_MARKS):
        raise InvalidTranscript(f"{path} is written in UTF-16; save it in UTF-8")
    return data.removeprefix(_UTF8_MARK)


def _chosen(
    found: Iterable[Found], path: Path, wanted: str | None, unreadable: list[str] | None
) -> list[FileConversation]:
    conversations, names = list[FileConversation](), list[str]()
    for one in found:
        try:
            if isinstance(one, Unreadable):
                raise InvalidTranscript(one.words, line=one.line)
            if isinstance(one, ImportedConversation):
                names.append(one.id)
                if wanted is not None and wanted != one.id:
                    if one.named_by_file:
                        raise InvalidTranscript(f"{path} holds one conversation, {one.id!r}; leave --conversation out")
                    continue
                if one.id in names[:-1]:
                    raise InvalidTranscript(f"{path} has several conversations {one.id!r}; give each a name of its own")
                conversations.append(_read(one, path))
        except InvalidTranscript as error:
            if unreadable is None:
                raise InvalidTranscript(f"{error}; nothing of the file was used", line=error.line) from error
            unreadable.append(str(error))
    if not conversations and wanted is not None:
        raise InvalidTranscript(f"{path} has no conversation {wanted!r}; it has {', '.join(names) or 'none at all'}")
    if not conversations and not unreadable:
        raise InvalidTranscript(f"{path} holds no messages; give one JSON object with role and content a line")
    return conversations


def _read(found: ImportedConversation, path: Path) -> FileConversation:
    """Raises InvalidTranscript."""
    messages = shown_messages(found)
    for first in found.unreadable:
        raise InvalidTranscript(first.words, line=first.line)
    if not messages:
        raise InvalidTranscript(
            f"{path}: {found.id!r} holds no messages; give one JSON object with role and content a line"
        )
    _check_calls(messages)
    return FileConversation(found.id, tuple(one.message for one in messages), found.title)


def _check_calls(messages: Sequence[ImportedMessage]) -> None:
    head = empty(datetime.now(UTC))
    for one in messages:
        try:
            _, head = extended(head, [one.message], [0])
        except InvalidBatch as error:
            call = ", ".join(repr(call) for call in one.message.answers)
            raise InvalidTranscript(
                f"{one.place}: the result of tool call {call}, but no such call waits for one before it", line=one.line
            ) from error
