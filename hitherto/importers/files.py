"""What is in a file or a folder, told by its content and not by its name."""

from __future__ import annotations

import json
import re
import sqlite3
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, cast
from zipfile import BadZipFile, ZipFile, ZipInfo

from hitherto.errors import InvalidTranscript
from hitherto.importers import agents_sdk, chatgpt, claude_ai, claude_code, langgraph, llm_logs, locomo, mem0
from hitherto.importers.imported import (
    Found,
    ImportedConversation,
    ImportedMessage,
    Unreadable,
    file_id,
    mapping_of,
)
from hitherto.importers.items import (
    conversation_in_list,
    conversation_of_lines,
    conversation_of_list,
    numbered_lines,
)
from hitherto.importers.json_stream import Element, list_elements, whole_value
from hitherto.importers.sqlite_file import MARK, Tables, opened

Progress = Callable[[int], None]
"""Told how many bytes were read, of a folder's files together."""

EXPORT = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"export"\s*:')
"""How an export of Hitherto's begins: perhaps with a mark of UTF-8 that an editor has put there."""

_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_CONVERSATIONS = re.compile(r"conversations[-_0-9]*\.json")
_SQLITE = (agents_sdk, langgraph, llm_logs)
_LARGE, _RATIO = 2**28, 200
"""A packed file that is larger, and so many times as large as it is packed, is a trap."""


def files_of(path: Path) -> list[Path]:
    """The files that are read of a path: of a folder an export's conversations, or else all `*.jsonl` in it, at any
    depth. Raises InvalidTranscript."""
    if not path.is_dir():
        return [path]
    names = sorted(one for one in path.iterdir() if one.is_file() and _CONVERSATIONS.fullmatch(one.name))
    found = names or sorted(one for one in path.rglob("*.jsonl") if one.is_file())
    if not found:
        raise InvalidTranscript(f"the folder {path} has no conversations.json and no *.jsonl in it")
    return found


def read_file(path: Path, *, progress: Progress | None = None) -> Generator[Found]:
    """What is in the file at `path`, or in the files of a folder, one by one: conversations, facts, and what cannot be
    read. Nothing is changed, and nothing that stands there is run. A conversation that is no tree is read before the
    next one is asked for. Raises InvalidTranscript for what cannot be read at all."""
    done, many = 0, path.is_dir()
    for one in files_of(path):
        try:
            with one.open("rb") as file:
                counted = _Counted(file, done, progress)
                yield from read_opened(cast(BinaryIO, counted), one)
                done += file.seek(0, 2)
        except (OSError, InvalidTranscript) as error:
            words = f"cannot read {one}: {error.strerror or error}" if isinstance(error, OSError) else str(error)
            if not many:
                raise InvalidTranscript(words) from error
            yield Unreadable(words)


class _Counted:
    """A file that tells how far it was read."""

    def __init__(self, file: BinaryIO, before: int, told: Progress | None) -> None:
        self._file, self._before, self._told = file, before, told
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        return self._tell(self._file.read(size))

    def readline(self, size: int = -1) -> bytes:
        return self._tell(self._file.readline(size))

    def _tell(self, data: bytes) -> bytes:
        if self._told is not None:
            self._told(self._before + self._file.tell())
        return data


def read_opened(file: BinaryIO, path: Path) -> Iterator[Found]:
    """What is in a file that is open for bytes and can be read from any place; `path` names it. See `read_file`."""
    begin = file.read(2**16)
    file.seek(0)
    if begin.startswith(MARK):
        yield from _tables(path)
    elif begin.startswith(b"PK\x03\x04"):
        yield from _packed(file, path)
    elif EXPORT.match(begin):
        raise InvalidTranscript(f"{path} is an export of Hitherto's; import it by itself, with memory.import_from")
    elif begin.startswith(_UTF16_MARKS):
        raise InvalidTranscript(f"{path} is written in UTF-16; save it in UTF-8")
    elif begin.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"["):
        yield from _list(file, path)
    elif _is_object(begin):
        yield from _object(file, path)
    else:
        yield from _lines(file, path)


def _is_object(begin: bytes) -> bool:
    """Whether a file is one object, over several lines or on its only one, and not an object a line."""
    first, _, rest = begin.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")
    if not first.startswith(b"{"):
        return False
    try:
        keys = json.loads(first).keys() & {"mapping", "chat_messages", "results", "messages"}
        return bool(keys) and not rest.strip()
    except (ValueError, RecursionError, AttributeError):
        return first.rstrip() == b"{" or first.rstrip()[-1:] in b",[" or not rest


def _lines(file: BinaryIO, path: Path) -> Iterator[Found]:
    begin = [value for _, line in zip(range(50), numbered_lines(file), strict=False) if (value := _object_of(line[1]))]
    file.seek(0)
    if any(claude_code.is_line(value) for value in begin):
        unreadable: list[Unreadable] = []
        yield from claude_code.conversations(_objects(file, path, unreadable), path)
        yield from unreadable
    else:
        yield conversation_of_lines(file, path)


def _objects(file: BinaryIO, path: Path, unreadable: list[Unreadable]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, line in numbered_lines(file):
        if value := _object_of(line):
            yield number, value
        else:
            unreadable.append(Unreadable(f"{path}, line {number}: this is no JSON object", number))


def _object_of(line: bytes) -> Mapping[str, Any]:
    try:
        return mapping_of(json.loads(line))
    except (ValueError, RecursionError):
        return {}


def _list(file: BinaryIO, path: Path) -> Iterator[Found]:
    """A list: its first entry tells of what. What was read before its JSON breaks off is used."""
    failed: list[Unreadable] = []
    elements = _until_broken(list_elements(file), path, failed)
    first = next(elements, None)
    if first is not None:
        rest = chain([first], elements)
        value = mapping_of(first.value)
        if isinstance(first.value, list):
            yield from (conversation_in_list(one, path) for one in rest)
        elif isinstance(value.get("conversation"), dict):
            yield from _locomo(file, path)
            return
        elif value.keys() & {"mapping", "chat_messages", "memory"} and not {"role", "content"} <= value.keys():
            yield from (_entry(one, path) for one in rest)
        else:
            yield conversation_of_list(rest, path)
    elif not failed:
        yield Unreadable(f"{path} is an empty list: it has no conversation")
    yield from failed


def _until_broken(elements: Iterator[Element], path: Path, failed: list[Unreadable]) -> Iterator[Element]:
    try:
        yield from elements
    except InvalidTranscript as error:
        failed.append(Unreadable(f"{path}: {error}"))


def _entry(element: Element, path: Path) -> Found:
    """An entry of a list of conversations, or of facts."""
    value = mapping_of(element.value)
    if "mapping" in value:
        return chatgpt.conversation(value)
    if "chat_messages" in value:
        return claude_ai.conversation(value)
    if "memory" in value:
        return mem0.fact(value, element.number)
    return Unreadable(f"{path}: entry {element.number} of its list is no conversation")


def _object(file: BinaryIO, path: Path) -> Iterator[Found]:
    """One object: a conversation, a request with its messages, or what mem0 returns."""
    try:
        whole = whole_value(file)
    except InvalidTranscript as error:
        raise InvalidTranscript(f"{path}: {error}") from error
    value = mapping_of(whole.value)
    for key, read in (("messages", None), ("results", _fact), ("conversations", _entry)):
        listed = value.get(key)
        if isinstance(listed, list):
            elements = (Element(number, one) for number, one in enumerate(cast("list[object]", listed), 1))
            if read is None:
                yield conversation_of_list(elements, path)
            else:
                yield from (read(one, path) for one in elements)
            return
    yield _entry(whole, path)


def _fact(element: Element, _path: Path) -> Found:
    return mem0.fact(mapping_of(element.value), element.number)


def _locomo(file: BinaryIO, path: Path) -> Iterator[Found]:
    file.seek(0)
    for sample in locomo.samples(file.read(), path, None):
        messages = [
            ImportedMessage(one, f"{path}: {sample.name}, turn {n}") for n, one in enumerate(sample.messages, 1)
        ]
        yield ImportedConversation("LoCoMo", file_id(sample.name, path), messages, tree=False)


def _packed(file: BinaryIO, path: Path) -> Iterator[Found]:
    """The conversations of an export that is packed as a zip file."""
    try:
        with ZipFile(file) as packed:
            members = [one for one in packed.infolist() if _CONVERSATIONS.fullmatch(one.filename.rpartition("/")[2])]
            if not members:
                raise InvalidTranscript(f"{path} is a zip file without a conversations.json in it")
            for member in members:
                yield from _member(packed, member, Path(f"{path}/{member.filename}"))
    except (BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error) as error:
        raise InvalidTranscript(f"{path} is a zip file that cannot be read: {error}") from error


def _member(packed: ZipFile, member: ZipInfo, path: Path) -> Iterator[Found]:
    if member.file_size > max(_LARGE, _RATIO * member.compress_size):
        yield Unreadable(f"{path} would be {member.file_size:,} bytes, packed in {member.compress_size:,}: left out")
        return
    with packed.open(member) as unpacked:
        yield from _list(cast(BinaryIO, unpacked), path)


def _tables(path: Path) -> Iterator[Found]:
    try:
        with opened(path) as tables:
            reader = next((one for one in _SQLITE if tables.names >= one.TABLES), None)
            if reader is None:
                names = ", ".join(sorted(tables.names)[:10]) or "none"
                raise InvalidTranscript(
                    f"{path} is an SQLite file of no program that is known here: it has the tables {names}"
                )
            read: Callable[[Tables], Iterable[Found]] = reader.conversations
            yield from read(tables)
    except sqlite3.Error as error:
        raise InvalidTranscript(f"{path} is an SQLite file that cannot be read: {error}") from error
