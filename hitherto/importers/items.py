"""Items of an API in a file: a message a line, a list of messages, or a list of such lists."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, cast

from hitherto.core.log.message import CHAT, Message
from hitherto.core.log.title import checked_title
from hitherto.errors import InvalidInput, InvalidMessage
from hitherto.importers.imported import (
    LARGEST,
    ImportedConversation,
    ImportedMessage,
    Unreadable,
    file_id,
    time_of,
    try_message,
    without_echoes,
)
from hitherto.importers.json_stream import Element, loads
from hitherto.wire import read

LINES, LIST = "JSON lines", "JSON list"

_TIMES = ("at", "created_at", "timestamp")


def numbered_lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers. One that is longer than LARGEST bytes is empty."""
    number = 0
    while line := file.readline(LARGEST + 1):
        number += 1
        if len(line) > LARGEST:
            while line and not line.endswith(b"\n"):
                line = file.readline(LARGEST)
            yield number, b""
        elif line.strip():
            yield number, line if number > 1 else line.removeprefix(b"\xef\xbb\xbf")


def conversation_of_lines(file: BinaryIO, path: Path) -> ImportedConversation:
    """The conversation of a file with an item a line, which is read as one goes through the messages. The first line
    may be its title."""
    lines = numbered_lines(file)
    first = next(lines, None)
    conversation = ImportedConversation(LINES, file_id(path.stem, path), (), tree=False, named_by_file=True)
    if first is not None:
        try:
            conversation.title = title_of_line(first[1])
        except InvalidMessage as error:
            conversation.unreadable.append(Unreadable(f"{path}, line {first[0]}: {error}", first[0]))
            first = None
    if first is not None and conversation.title is None:
        lines = _with_first(first, lines)
    items = ((f"{path}, line {number}", number, _message_of_line(line)) for number, line in lines)
    conversation.messages = _messages(items, conversation.unreadable)
    return conversation


def conversation_of_list(elements: Iterable[Element], path: Path) -> ImportedConversation:
    """The conversation of a file that is a list of items."""
    conversation = ImportedConversation(LIST, file_id(path.stem, path), (), tree=False, named_by_file=True)
    items = ((f"{path}, message {one.number}", None, _message_of_element(one)) for one in elements)
    conversation.messages = _messages(items, conversation.unreadable)
    return conversation


def conversation_in_list(element: Element, path: Path) -> ImportedConversation | Unreadable:
    """The conversation that is an entry of a list of lists of items, named as the file and its place, from 0."""
    name = f"{path.stem}-{element.number - 1}"
    where = f"{path}: {name}"
    if element.refused:
        return Unreadable(f"{where}: {element.refused}")
    if element.constant:
        return Unreadable(f"{where}: this is not JSON ({element.constant} is no JSON number)")
    if not isinstance(element.value, list) or not element.value:
        return Unreadable(f"{where} is no list of messages; each entry of the list must be one")
    conversation = ImportedConversation(LIST, file_id(name, path), (), tree=False)
    listed = enumerate(cast("list[object]", element.value), 1)
    items = ((f"{where}, message {number}", None, _message_of_value(item)) for number, item in listed)
    conversation.messages = _messages(items, conversation.unreadable)
    return conversation


def title_of_line(line: bytes) -> str | None:
    """The title of the conversation, which a file may begin with: `{"title": "…"}`. None for any other line. Raises
    InvalidMessage for one that cannot be a title."""
    try:
        value = loads(line)
    except ValueError:
        return None
    if not isinstance(value, dict) or value.keys() != {"title"}:
        return None
    try:
        return checked_title(cast("Mapping[str, object]", value)["title"])
    except InvalidInput as error:
        raise InvalidMessage(str(error)) from error


def _with_first(first: tuple[int, bytes], others: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    yield first
    yield from others


def _messages(
    items: Iterable[tuple[str, int | None, Callable[[], Message]]], unreadable: list[Unreadable]
) -> Iterator[ImportedMessage]:
    """The messages of the items, with their own ids. An id that a chat message has again leaves it out; servers of the
    other formats give one id to several items, of which the first has it then."""
    seen: dict[str, str] = {}
    for place, line, make in items:
        message = try_message(make, place, unreadable, line)
        if message is None:
            continue
        if message.id is not None and message.id in seen:
            if message.wire == CHAT:
                before = seen[message.id]
                unreadable.append(Unreadable(f"{place}: it has the id {message.id!a:.80}, as {before} has", line))
                continue
            message = message.with_id(None)
        if message.id is not None:
            seen[message.id] = place
        yield ImportedMessage(message, place, line=line)


def _message_of_line(line: bytes) -> Callable[[], Message]:
    def read_message() -> Message:
        if not line:
            raise InvalidMessage(f"it is longer than {LARGEST:,} bytes")
        try:
            value = loads(line, parse_constant=_no_number)
        except json.JSONDecodeError as error:
            raise InvalidMessage(f"this is not JSON ({error.msg}, at character {error.pos + 1} of the line)") from error
        except UnicodeDecodeError as error:
            raise InvalidMessage(
                f"this is not UTF-8 ({error.reason}, at byte {error.start + 1} of the line)"
            ) from error
        except ValueError as error:
            raise InvalidMessage(f"this JSON cannot be read ({error})") from error
        return _message(value)

    return read_message


def _message_of_element(element: Element) -> Callable[[], Message]:
    def read_message() -> Message:
        if element.refused:
            raise InvalidMessage(element.refused)
        if element.constant:
            _no_number(element.constant)
        return _message(element.value)

    return read_message


def _message_of_value(value: object) -> Callable[[], Message]:
    return lambda: _message(value)


def _message(value: object) -> Message:
    """The message of an item in any of the formats, dated if it says when it was said: in `at`, `created_at` or
    `timestamp`. Raises InvalidMessage."""
    if not isinstance(value, dict):
        raise InvalidMessage("this is JSON, but not an object with role and content")
    item = dict(cast("Mapping[str, Any]", value))
    times = [time for name in _TIMES if (time := item.pop(name, None)) is not None]
    message = read(without_echoes(item))
    return message.dated(_time(times[0])) if times else message


def _time(given: object) -> datetime:
    """Raises InvalidMessage."""
    if (time := time_of(given)) is None:
        raise InvalidMessage(f"its time is {given!r}; give one like 2026-05-08T13:30:00Z, or seconds since 1970")
    return time


def _no_number(name: str) -> None:
    raise InvalidMessage(f"this is not JSON ({name} is no JSON number)")
