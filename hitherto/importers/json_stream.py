"""A large JSON list, read value by value: no more is in memory than one of them, and none that is too large.

The standard library decodes the values. ijson would be no faster, and does not bound what a hostile file takes: twenty
thousand brackets cost its `items` a gigabyte, and one NaN, or one byte that is not UTF-8, is the end of a file.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from typing import BinaryIO, cast

from hitherto.errors import InvalidTranscript
from hitherto.importers.imported import LARGEST

MOST_VALUES = 2**20
"""The most values in one value: each takes a hundred bytes or more, however short it is written."""

_CHUNK = 2**20
_NO_SPACE = re.compile(r"[^ \t\r\n]")
_OF_NUMBERS = "0123456789.eE+-"
_LONGEST_TOKEN = 32
"""Characters before the end of what was read that may not be understood because it goes on."""

_SKIPPED, _SKIPPED_MARKS = 3, 2**23
"""The end of a value that is too large is looked for in so many times the largest, and so many marks: they take time,
however short they are written."""

_MARK = re.compile(r'["\[\]{},]')
_WITHIN_TEXT = re.compile(r'(?:[^"\\]++|\\.)*+', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Element:
    """A value of a list, counted from 1. `constant` is what stands in it that is no JSON, such as NaN; None is there in
    its place. `refused` says why it was not read."""

    number: int
    value: object
    constant: str | None = None
    refused: str | None = None


def list_elements(file: BinaryIO) -> Iterator[Element]:
    """The values of the JSON list that the file holds. One that is nested too deep, has more than LARGEST characters or
    more than MOST_VALUES values, is refused. Raises InvalidTranscript behind the last that can be read where what
    follows is no JSON, is cut off, or has no end."""
    reader = _Reader(file)
    if reader.next_character() != "[":
        raise InvalidTranscript("this is not JSON: a list begins with [")
    reader.place += 1
    number = 0
    while reader.next_character() != "]":
        if number:
            if reader.next_character() != ",":
                raise InvalidTranscript(f"this is not JSON: behind entry {number} of the list, neither , nor ] follows")
            reader.place += 1
        number += 1
        yield reader.value(number)


def whole_value(file: BinaryIO) -> Element:
    """The one JSON value of a file. Raises InvalidTranscript as `list_elements` does."""
    reader = _Reader(file)
    whole = reader.value(1)
    if reader.next_character():
        raise InvalidTranscript("this is not JSON: more follows behind the first value")
    return whole


def loads(data: bytes, *, parse_constant: Callable[[str], object] | None = None) -> object:
    """The JSON value in a line. Raises ValueError, also for one with more than MOST_VALUES values."""
    text = data.decode("utf-8", "surrogatepass")
    if _most_values(text, 0) > MOST_VALUES:
        scan = _Scan(MOST_VALUES)
        scan.end_of_value(text, 0)
        if scan.values > MOST_VALUES:
            raise ValueError(_TOO_MANY)
    try:
        return cast("object", json.loads(text, parse_constant=parse_constant))
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


_TOO_MANY = f"it has more than {MOST_VALUES:,} values"


def _most_values(text: str, start: int) -> int:
    """A number that the values in a text are not more than, but for texts between them."""
    return text.count(",", start) + text.count("[", start) + text.count("{", start)


class _Scan:
    """Looks for the end of a value, part by part, and makes nothing of it. `values` are those in it so far, `marks`
    the brackets, commas and texts; it stops where they are more than `most` and `most_marks`."""

    def __init__(self, most: float = inf, most_marks: float = inf) -> None:
        self.values, self._most = 0, most
        self.marks, self._most_marks = 0, most_marks
        self._depth = 0
        self._in_text = False
        self._escaped = False

    def end_of_value(self, text: str, place: int) -> int | None:
        """Where the value ends in the part of it that begins at `place`; None where it goes on."""
        while place < len(text) and self.values <= self._most and self.marks <= self._most_marks:
            if self._in_text:
                within = _WITHIN_TEXT.match(text, place + self._escaped)
                place = len(text) if within is None else within.end()
                self._escaped = text[place : place + 1] == "\\"
                self._in_text = self._escaped or place >= len(text)
                place += 1
            else:
                mark = _MARK.search(text, place)
                if mark is None:
                    return None
                if self._depth == 0 and mark[0] in ",]}":
                    return mark.start()
                place = mark.end()
                self.marks += 1
                self._in_text = mark[0] == '"'
                self._depth += (mark[0] in "[{") - (mark[0] in "]}")
                self.values += mark[0] in "[{,"
            if self._depth == 0 and not self._in_text:
                return place
        return None


class _Reader:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._text = ""
        self._ended = False
        self._may_be_too_large = False
        self._constants: list[str] = []
        self._json = json.JSONDecoder(parse_constant=self._constants.append)
        self.place = 0

    def next_character(self) -> str:
        """The next character that is no space, which is not read; "" at the end."""
        while (found := _NO_SPACE.search(self._text, self.place)) is None:
            self.place = len(self._text)
            if not self._more(_CHUNK):
                return ""
        self.place = found.start()
        return found[0]

    def value(self, number: int) -> Element:
        self.next_character()
        wanted = _CHUNK
        while True:
            if refused := self._too_large():
                return self._skipped(number, refused)
            self._constants.clear()
            try:
                value, end = self._json.raw_decode(self._text, self.place)
            except json.JSONDecodeError as error:
                cut = error.msg.startswith("Unterminated") or error.pos >= len(self._text) - _LONGEST_TOKEN
                if self._ended or not cut:
                    raise InvalidTranscript(f"entry {number} is not JSON ({error.msg}), or is cut off") from error
            except (ValueError, RecursionError) as error:
                return self._skipped(number, f"it cannot be read ({error})")
            else:
                follows, is_number = self._text[end : end + 1], isinstance(value, int | float)
                goes_on = is_number and (not follows or follows in _OF_NUMBERS)
                if not goes_on and (follows or self._ended):
                    self.place = end
                    return Element(number, value, self._constants[0] if self._constants else None)
                if self._ended:
                    raise InvalidTranscript(f"entry {number} is a number that is cut off")
            self._more(wanted)
            wanted = min(2 * wanted, LARGEST)

    def _too_large(self) -> str | None:
        """Why the value that begins here is not to be read."""
        if not self._may_be_too_large:
            return None
        scan = _Scan(MOST_VALUES)
        end = scan.end_of_value(self._text, self.place)
        if scan.values > MOST_VALUES:
            return _TOO_MANY
        too_long = (len(self._text) if end is None else end) - self.place > LARGEST
        return f"it is longer than {LARGEST:,} characters" if too_long else None

    def _skipped(self, number: int, refused: str) -> Element:
        scan, length = _Scan(most_marks=_SKIPPED_MARKS), 0
        while (end := scan.end_of_value(self._text, self.place)) is None:
            length += len(self._text) - self.place
            self.place = len(self._text)
            too_much = length > _SKIPPED * LARGEST or scan.marks > _SKIPPED_MARKS
            if too_much or not self._more(_CHUNK):
                raise InvalidTranscript(
                    f"entry {number}: {refused}, and what follows cannot be read for want of its end"
                )
        self.place = end
        return Element(number, None, refused=refused)

    def _more(self, size: int) -> bool:
        """Read on, and forget what was read. Returns False at the end."""
        if self._ended:
            return False
        data = self._file.read(size)
        self._ended = not data
        self._text = self._text[self.place :] + self._decoder.decode(data, final=not data)
        self.place = 0
        self._may_be_too_large = len(self._text) > LARGEST or _most_values(self._text, 0) > MOST_VALUES
        return True
