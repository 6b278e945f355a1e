"""A sequence that counts how often one of its elements is read: what a function does, whatever the machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar, overload

_T = TypeVar("_T")


class Counted(Sequence[_T]):
    """`elements`, and how many `reads` there were of one of them."""

    def __init__(self, elements: Sequence[_T]) -> None:
        self._elements = elements
        self.reads = 0

    def __len__(self) -> int:
        return len(self._elements)

    def __iter__(self) -> Iterator[_T]:
        for one in self._elements:
            self.reads += 1
            yield one

    @overload
    def __getitem__(self, at: int) -> _T: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[_T]: ...
    def __getitem__(self, at: int | slice) -> _T | Sequence[_T]:
        self.reads += 1
        return self._elements[at]
