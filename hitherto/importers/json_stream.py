"""A large JSON list, read value by value: no more is in memory than one of them."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from hitherto.errors import InvalidTranscript
from hitherto.importers.imported import LARGEST

_CHUNK = 2**20
_SPACE = " \t\r\n"
_OF_NUMBERS = "0123456789.eE+-"
_LONGEST_TOKEN = 32
"""Characters before the end of what was read that may not be understood because it goes on."""


@dataclass(frozen=True, slots=True)
class Element:
    """A value of a list, counted from 1. `constant` is what stands in it that is no JSON, such as NaN; None is there in
    its place."""

    number: int
    value: object
    constant: str | None = None


def list_elements(file: BinaryIO) -> Iterator[Element]:
    """The values of the JSON list that the file holds. Raises InvalidTranscript behind the last that can be read where
    what follows is no JSON, is cut off, or a value has more than LARGEST characters."""
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
    found = reader.value(1)
    if reader.next_character():
        raise InvalidTranscript("this is not JSON: more follows behind the first value")
    return found


class _Reader:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._text = ""
        self._ended = False
        self._constants: list[str] = []
        self._json = json.JSONDecoder(parse_constant=self._constants.append)
        self.place = 0

    def next_character(self) -> str:
        """The next character that is no space, which is not read; "" at the end."""
        while True:
            while self.place < len(self._text):
                if self._text[self.place] not in _SPACE:
                    return self._text[self.place]
                self.place += 1
            if not self._more(_CHUNK):
                return ""

    def value(self, number: int) -> Element:
        self.next_character()
        wanted = _CHUNK
        while True:
            self._constants.clear()
            try:
                value, end = self._json.raw_decode(self._text, self.place)
            except json.JSONDecodeError as error:
                cut = error.msg.startswith("Unterminated") or error.pos >= len(self._text) - _LONGEST_TOKEN
                if self._ended or not cut:
                    raise InvalidTranscript(f"entry {number} is not JSON ({error.msg}), or is cut off") from error
            except (ValueError, RecursionError) as error:
                raise InvalidTranscript(f"entry {number} is JSON that cannot be read ({error})") from error
            else:
                follows, is_number = self._text[end : end + 1], isinstance(value, int | float)
                goes_on = is_number and (not follows or follows in _OF_NUMBERS)
                if not goes_on and (follows or self._ended):
                    self.place = end
                    return Element(number, value, self._constants[0] if self._constants else None)
                if self._ended:
                    raise InvalidTranscript(f"entry {number} is a number that is cut off")
            if len(self._text) - self.place > LARGEST:
                raise InvalidTranscript(f"entry {number} is longer than {LARGEST:,} characters, or is not JSON")
            self._more(wanted)
            wanted *= 2

    def _more(self, size: int) -> bool:
        """Read on, and forget what was read. Returns False at the end."""
        if self._ended:
            return False
        data = self._file.read(size)
        self._ended = not data
        self._text = self._text[self.place :] + self._decoder.decode(data, final=not data)
        self.place = 0
        return True
