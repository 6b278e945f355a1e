"""What is in a file or a folder, told by its content and not by its name."""

from __future__ import annotations

import lzma
import re
import sqlite3
import struct
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, cast
from zipfile import BadZipFile, ZipFile, ZipInfo

from hitherto.errors import InvalidTranscript
from hitherto.importers import agents_sdk, chatgpt, claude_ai, claude_code, langgraph, llm_logs, locomo, mem0
from hitherto.importers.imported import (
    LARGEST,
    Found,
    ImportedConversation,
    ImportedMessage,
    Unreadable,
    UnreadableList,
    file_id,
    mapping_of,
)
from hitherto.importers.items import (
    conversation_in_list,
    conversation_of_lines,
    conversation_of_list,
    numbered_lines,
)
from hitherto.importers.json_stream import Element, list_elements, loads, whole_value
from hitherto.importers.sqlite_file import MARK, Tables, opened

Progress = Callable[[int], None]
"""Told how many bytes were read, of a folder's files together."""

EXPORT = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"export"\s*:')
"""How an export of Hitherto's begins: perhaps with a mark of UTF-8 that an editor has put there."""

_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_KEYS = {"mapping", "chat_messages", "results", "messages", "conversations"}
"""What an object has that is more than a message."""

_CONVERSATIONS = re.compile(r"conversations[-_0-9]*\.json")
_SQLITE = (agents_sdk, langgraph, llm_logs)
_KINDS = 5
"""So many kinds of files that are not read are named."""

_BROKEN_ZIP = (BadZipFile, RuntimeError, EOFError, OSError, ValueError, struct.error, zlib.error, lzma.LZMAError)
"""What `zipfile`, and what unpacks there, raises for a file that is broken, encrypted or packed in another way."""

_LARGE, _RATIO = 2**28, 200
"""Packed files that are larger, and so many times as large as what they are packed in, are a trap."""


def files_of(path: Path) -> list[Path]:
    """The files that are read of a path: of a folder an export's conversations, or else all `*.jsonl` in it, at any
    depth. Raises InvalidTranscript."""
    if not path.is_dir():
        return [path]
    names = sorted(one for one in path.iterdir() if one.is_file() and _CONVERSATIONS.fullmatch(one.name))
    files = names or sorted(one for one in path.rglob("*.jsonl") if one.is_file())
    if not files:
        raise InvalidTranscript(f"the folder {path} has no conversations.json and no *.jsonl in it")
    return files


def other_files(path: Path) -> str | None:
    """The files of a folder that are not read, by kind, in words; None where there are none."""
    if not path.is_dir():
        return None
    read, kinds = set(files_of(path)), dict[str, list[str]]()
    for one in sorted(path.rglob("*")):
        if one not in read and one.is_file():
            hidden = any(part.startswith(".") for part in one.relative_to(path).parts)
            kinds.setdefault("hidden" if hidden else one.suffix, []).append(one.name)
    if not kinds:
        return None
    by_number = sorted(kinds.items(), key=lambda kind: -len(kind[1]))
    words = [_counted(kind, names) for kind, names in by_number[:_KINDS]]
    number, more = sum(map(len, kinds.values())), ", …" if len(by_number) > _KINDS else ""
    return f"{number:,} other {'file is' if number == 1 else 'files are'} not read: {', '.join(words)}{more}"


def _counted(kind: str, names: list[str]) -> str:
    if kind == "hidden":
        return f"{len(names):,} hidden"
    return names[0] if len(names) == 1 else f"{len(names):,} like {names[0]}"


def read_file(path: Path, *, progress: Progress | None = None) -> Generator[Found]:
    """What is in the file at `path`, or in the files of a folder, one by one: conversations, facts, and what cannot be
    read. Nothing is changed, and nothing that stands there is run. A conversation that is no tree is read before the
    next one is asked for. Raises InvalidTranscript for what cannot be read at all."""
    done, many = 0, path.is_dir()
    for one in files_of(path):
        try:
            with one.open("rb") as file:
                told = None if progress is None else partial(_tell_more, progress, done)
                yield from read_opened(file, one, progress=told)
                done += file.seek(0, 2)
        except (OSError, InvalidTranscript) as error:
            words = f"cannot read {one}: {error.strerror or error}" if isinstance(error, OSError) else str(error)
            if not many:
                raise InvalidTranscript(words) from error
            yield Unreadable(words)


def _tell_more(progress: Progress, before: int, place: int) -> None:
    progress(before + place)


class CountedFile:
    """A file that tells how many bytes come before the place that was read to."""

    def __init__(self, file: BinaryIO, progress: Progress) -> None:
        self._file, self._progress, self._place = file, progress, 0

    def read(self, size: int = -1, /) -> bytes:
        return self._counted(self._file.read(size))

    def readline(self, size: int = -1, /) -> bytes:
        return self._counted(self._file.readline(size))

    def seek(self, place: int, whence: int = 0, /) -> int:
        self._place = self._file.seek(place, whence)
        return self._place

    def _counted(self, data: bytes) -> bytes:
        self._place += len(data)
        self._progress(self._place)
        return data


def read_opened(file: BinaryIO, path: Path, *, progress: Progress | None = None) -> Iterator[Found]:
    """What is in a file that is open for bytes and can be read from any place; `path` names it. See `read_file`."""
    begin = file.read(2**16)
    file.seek(0)
    counted = file if progress is None else cast(BinaryIO, CountedFile(file, progress))
    text = begin.removeprefix(_UTF8_MARK).lstrip()
    if begin.startswith(MARK):
        yield from _tables(path, file.seek(0, 2), progress)
    elif begin.startswith(b"PK\x03\x04"):
        yield from _packed(file, path, progress)
    elif EXPORT.match(begin):
        raise InvalidTranscript(f"{path} is an export of Hitherto's; import it by itself, with memory.import_from")
    elif begin.startswith(_UTF16_MARKS):
        raise InvalidTranscript(f"{path} is written in UTF-16; save it in UTF-8")
    elif text.startswith(b"["):
        yield from _list(counted, path)
    elif text.startswith(b"{") and _is_object(file):
        yield from _object(counted, path)
    else:
        yield from _lines(counted, path)


def _is_object(file: BinaryIO) -> bool:
    """Whether a file that begins with { is one object, over several lines or on its only one, and not an object a line:
    by its first line, however long that is."""
    lines = numbered_lines(file)
    (_, first), more = next(lines), next(lines, None)
    file.seek(0)
    if more is not None:
        return first.rstrip()[-1:] in (b"{", b",", b"[")
    try:
        return bool(first) and bool(mapping_of(loads(first)).keys() & _KEYS)
    except ValueError:
        return True


def _lines(file: BinaryIO, path: Path) -> Iterator[Found]:
    is_transcript = any(claude_code.is_line(_object_of(line)) for _, line in islice(numbered_lines(file), 50))
    file.seek(0)
    if is_transcript:
        unreadable = UnreadableList()
        yield from claude_code.conversations(_objects(file, path, unreadable), path)
        yield from unreadable
    else:
        yield conversation_of_lines(file, path)


def _objects(file: BinaryIO, path: Path, unreadable: list[Unreadable]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, line in numbered_lines(file):
        if value := _object_of(line):
            yield number, value
        else:
            why = "this is no JSON object" if line else f"it is longer than {LARGEST:,} bytes"
            unreadable.append(Unreadable(f"{path}, line {number}: {why}", number))


def _object_of(line: bytes) -> Mapping[str, Any]:
    try:
        return mapping_of(loads(line))
    except ValueError:
        return {}


def _list(file: BinaryIO, path: Path) -> Iterator[Found]:
    """A list: its first entry tells of what. What was read before its JSON breaks off is used."""
    failed = UnreadableList()
    elements = _until_broken(list_elements(file), path, failed)
    begin = list[Element]()
    for element in elements:
        begin.append(element)
        if not element.refused:
            break
    if begin:
        first, rest = begin[-1], chain(begin, elements)
        value = mapping_of(first.value)
        if isinstance(first.value, list):
            yield from (conversation_in_list(one, path) for one in rest)
        elif isinstance(value.get("conversation"), dict):
            yield from _locomo(rest, path)
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
    if element.refused:
        return Unreadable(f"{path}: entry {element.number} of its list: {element.refused}")
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
    if whole.refused:
        raise InvalidTranscript(f"{path}: {whole.refused}")
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


def _locomo(elements: Iterable[Element], path: Path) -> Iterator[Found]:
    names = set[str]()
    for one in elements:
        try:
            if refused := one.refused or (one.constant and f"{one.constant} is no JSON number"):
                raise InvalidTranscript(f"{path}: entry {one.number} of its list: {refused}")
            sample = locomo.sample(one.value, one.number - 1, path, names)
            name = file_id(sample.name, path)
        except InvalidTranscript as error:
            yield Unreadable(str(error))
            continue
        messages = [ImportedMessage(said, f"{path}: {name}, turn {n}") for n, said in enumerate(sample.messages, 1)]
        yield ImportedConversation("LoCoMo", name, messages, tree=False)


def _packed(file: BinaryIO, path: Path, progress: Progress | None) -> Iterator[Found]:
    """The conversations of an export that is packed as a zip file."""
    try:
        packed = ZipFile(file)
    except _BROKEN_ZIP as error:
        raise InvalidTranscript(f"{path} is a zip file that cannot be read: {error}") from error
    with packed:
        members = [one for one in packed.infolist() if _CONVERSATIONS.fullmatch(one.filename.rpartition("/")[2])]
        if not members:
            raise InvalidTranscript(f"{path} is a zip file without a conversations.json in it")
        done, unpacked, size = 0, 0, file.seek(0, 2)
        for member in members:
            told = None if progress is None else partial(_tell_packed, progress, done, member)
            place = Path(f"{path}/{member.filename}")
            unpacked += member.file_size
            if unpacked > max(_LARGE, _RATIO * size):
                whole = f"{unpacked:,} bytes with those before, packed in {size:,}"
                yield Unreadable(f"{place} would be {whole}: left out, with those behind")
                return
            yield from _member(packed, member, place, told)
            done += member.compress_size


def _tell_packed(progress: Progress, before: int, member: ZipInfo, place: int) -> None:
    progress(before + place * member.compress_size // max(member.file_size, 1))


def _member(packed: ZipFile, member: ZipInfo, path: Path, progress: Progress | None) -> Iterator[Found]:
    try:
        with packed.open(member) as unpacked:
            file = cast(BinaryIO, unpacked)
            yield from _list(cast(BinaryIO, CountedFile(file, progress)) if progress else file, path)
    except _BROKEN_ZIP as error:
        yield Unreadable(f"{path} is packed so that it cannot be read, or not to its end: {error}")


def _tables(path: Path, size: int, progress: Progress | None) -> Iterator[Found]:
    try:
        with opened(path) as tables:
            reader = next((one for one in _SQLITE if tables.names >= one.TABLES), None)
            if reader is None:
                names = ", ".join(sorted(tables.names)[:10]) or "none"
                raise InvalidTranscript(
                    f"{path} is an SQLite file of no program that is known here: it has the tables {names}"
                )
            if progress is not None:
                tables.count_rows(reader.ROWS, size, progress)
            read: Callable[[Tables], Iterable[Found]] = reader.conversations
            yield from read(tables)
    except sqlite3.Error as error:
        raise InvalidTranscript(f"{path} is an SQLite file that cannot be read: {error}") from error
