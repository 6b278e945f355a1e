"""The facts that a context may show: unpacked from whole columns, without a loop over the facts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from hitherto.core.facts.fact import Subject
from hitherto.core.facts.queries import KnownFacts
from hitherto.core.scope import Scope

Row = Sequence[Any]

_FIGURES = np.dtype(
    [
        ("id", ">i8"),
        ("version", ">i4"),
        ("tokens", ">i4"),
        ("length", ">i4"),
        ("size", ">i4"),
        ("content", ">i4"),
        ("category", ">i4"),
        ("shared", ">i2"),
        ("space", ">i2"),
    ]
)
"""The column `fact.figures`."""

_Order = NDArray[np.int64] | slice
_Spans = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Where the parts of a concatenation begin and where they end."""


class ConcatenatedTexts(Sequence[str]):
    """The parts of one concatenated text; each is cut out on access."""

    __slots__ = ("_ends", "_starts", "_text")

    def __init__(self, text: str, spans: _Spans) -> None:
        self._text, (self._starts, self._ends) = text, spans

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> ConcatenatedTexts: ...
    def __getitem__(self, at: int | slice) -> str | ConcatenatedTexts:
        if isinstance(at, slice):
            return ConcatenatedTexts(self._text, (self._starts[at], self._ends[at]))
        return self._text[self._starts[at] : self._ends[at]]


def subject_from(id: str, name: str | None, members: Sequence[str], scope: Scope) -> Subject:
    """A subject as the scope's user sees it. One that was never set has its id as its name; the user has the user's
    name."""
    found = Subject(id=id, name=(id or scope.user) if name is None else name, members=tuple(members))
    return found.seen_by(scope.user)


def known_from(rows: Sequence[Row], scope: Scope) -> KnownFacts:
    """`KnownFacts` from the rows of the statement `known`: the scope's own facts and those that others share, ascending
    by id."""
    (subject, space, name, members), *_ = (row[:4] for row in rows)
    columns = [tuple(row[at] for row in rows if row[at]) for at in range(4, 10)]
    figures = np.frombuffer(b"".join(columns[0]), _FIGURES)
    mine = len(rows[0][4] or b"") // _FIGURES.itemsize
    # By id, shared facts come between the scope's own.
    order: _Order = slice(None) if mine == len(figures) else np.argsort(figures["id"])
    sizes = figures["size"]
    at: _Order = slice(None) if isinstance(order, slice) else _side_by_side(_spans(sizes, order))
    codes, coded = _codes(figures["space"], b"".join(columns[5]), space)
    ordered = figures[order]
    return KnownFacts(
        subject=subject_from(subject, name, members, scope),
        ids=ordered["id"].astype(np.int64),
        versions=ordered["version"].astype(np.int32),
        own=(np.arange(len(figures)) < mine)[order],
        shared=ordered["shared"].astype(np.bool_),
        tokens=ordered["tokens"].astype(np.int32),
        categories=ConcatenatedTexts("".join(columns[1]), _spans(figures["category"], order)),
        contents=ConcatenatedTexts("".join(columns[2]), _spans(figures["content"], order)),
        sizes=ordered["size"].astype(np.int32),
        lengths=ordered["length"].astype(np.int32),
        terms=np.frombuffer(b"".join(columns[3]), "<i8")[at],
        counts=np.frombuffer(b"".join(columns[4]), np.uint8)[at],
        codes=None if codes is None else codes[order],
        coded=None if coded is None else coded[order],
        taken=max(row[11] or 0 for row in rows),
        due=bool(rows[0][10]),
    )


def _spans(sizes: NDArray[Any], order: _Order) -> _Spans:
    ends: NDArray[np.int64] = np.cumsum(sizes, dtype=np.int64)
    starts: NDArray[np.int64] = ends - sizes
    return starts[order], ends[order]


def _side_by_side(spans: _Spans) -> NDArray[np.int64]:
    """The indices in the spans, one span after the other."""
    starts, ends = spans
    sizes: NDArray[np.int64] = ends - starts
    ahead: NDArray[np.int64] = starts - np.cumsum(sizes) + sizes
    return np.repeat(ahead, sizes) + np.arange(int(sizes.sum()), dtype=np.int64)


def _codes(
    spaces: NDArray[Any], codes: bytes, space: int | None
) -> tuple[NDArray[np.uint8], NDArray[np.bool_]] | tuple[None, None]:
    """The codes of the facts that have one in the space, zeros for the others; and which have one."""
    if not codes:
        return None, None
    coded: NDArray[np.bool_] = spaces == space
    found = np.frombuffer(codes, np.uint8).reshape(np.count_nonzero(coded), -1)
    if len(found) == len(coded):
        return found, coded
    spread = np.zeros((len(coded), found.shape[1]), np.uint8)
    spread[coded] = found
    return spread, coded
