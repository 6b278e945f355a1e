"""MessagePack, read as data and nothing else: an extension is its number and its bytes."""

from __future__ import annotations

import struct
from dataclasses import dataclass

_DEEPEST = 100


@dataclass(frozen=True, slots=True)
class Extension:
    """A value of a type that the program has added to the format."""

    code: int
    data: bytes


class NotMessagePack(ValueError):
    """The bytes are not MessagePack."""


def unpacked(data: bytes) -> object:
    """The value that the bytes stand for. Raises NotMessagePack for any others, for more behind it, and for what is
    nested deeper than 100 levels."""
    reader = _Bytes(data)
    value = reader.value(0)
    if reader.place != len(data):
        raise NotMessagePack(f"more follows behind the first value, at byte {reader.place}")
    return value


_NUMBERS = {
    0xCA: ">f",
    0xCB: ">d",
    **dict(zip(range(0xCC, 0xD0), (">B", ">H", ">I", ">Q"), strict=True)),
    **dict(zip(range(0xD0, 0xD4), (">b", ">h", ">i", ">q"), strict=True)),
}
_LENGTHS = {1: ">B", 2: ">H", 4: ">I"}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


class _Bytes:
    def __init__(self, data: bytes) -> None:
        self._data, self.place = data, 0

    def _take(self, size: int) -> bytes:
        end = self.place + size
        if end > len(self._data):
            raise NotMessagePack(f"the value at byte {self.place} is cut off")
        taken, self.place = self._data[self.place : end], end
        return taken

    def _number(self, form: str) -> int | float:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _length(self, size: int) -> int:
        return int(self._number(_LENGTHS[size]))

    def value(self, depth: int) -> object:
        if depth > _DEEPEST:
            raise NotMessagePack(f"it is nested deeper than {_DEEPEST} levels")
        first = self._take(1)[0]
        match first:
            case _ if first <= 0x7F or first >= 0xE0:
                value: object = first if first <= 0x7F else first - 0x100
            case _ if first in _CONSTANTS:
                value = _CONSTANTS[first]
            case _ if first in _NUMBERS:
                value = self._number(_NUMBERS[first])
            case _ if first <= 0x8F or first in (0xDE, 0xDF):
                value = self._map(first & 0x0F if first <= 0x8F else self._length(2 << first - 0xDE), depth)
            case _ if first <= 0x9F or first in (0xDC, 0xDD):
                value = self._list(first & 0x0F if first <= 0x9F else self._length(2 << first - 0xDC), depth)
            case _ if first <= 0xBF or first in (0xD9, 0xDA, 0xDB):
                value = self._text(first & 0x1F if first <= 0xBF else self._length(1 << first - 0xD9))
            case 0xC4 | 0xC5 | 0xC6:
                value = self._take(self._length(1 << first - 0xC4))
            case 0xC7 | 0xC8 | 0xC9:
                value = self._extension(self._length(1 << first - 0xC7))
            case 0xD4 | 0xD5 | 0xD6 | 0xD7 | 0xD8:
                value = self._extension(1 << first - 0xD4)
            case _:
                raise NotMessagePack(f"byte {self.place - 1} begins no value")
        return value

    def _text(self, length: int) -> str:
        return self._take(length).decode(errors="replace")

    def _extension(self, length: int) -> Extension:
        return Extension(int(self._number(">b")), self._take(length))

    def _list(self, length: int, depth: int) -> list[object]:
        return [self.value(depth + 1) for _ in range(length)]

    def _map(self, length: int, depth: int) -> dict[object, object]:
        found: dict[object, object] = {}
        for _ in range(length):
            key = self.value(depth + 1)
            if isinstance(key, list | dict):
                raise NotMessagePack(f"a key before byte {self.place} is a list or a map")
            found[key] = self.value(depth + 1)
        return found
