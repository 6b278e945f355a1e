"""Ranges of messages, by their seqs."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from operator import itemgetter

Ranges = tuple[tuple[int, int], ...]
"""Seqs as inclusive ranges, ascending, disjoint and not touching: (0, 2), (5, 5) is 0, 1, 2 and 5."""


def ranges(seqs: Iterable[int]) -> Ranges:
    """Seqs in any order, repeats allowed, as ranges."""
    return joined((seq, seq) for seq in seqs)


def joined(parts: Iterable[tuple[int, int]]) -> Ranges:
    """Inclusive ranges in any order, overlaps allowed, as ranges."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(parts):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return tuple(found)


def without(some: Ranges, others: Ranges) -> Ranges:
    """The part of `some` that is not in `others`."""
    found: list[tuple[int, int]] = []
    at = 0
    for start, end in some:
        left = start
        while at < len(others) and others[at][0] <= end:
            first, last = others[at]
            if left < first:
                found.append((left, first - 1))
            left = max(left, last + 1)
            if last > end:
                break  # it may go on in the next
            at += 1
        if left <= end:
            found.append((left, end))
    return tuple(found)


def any_in(some: Ranges, first: int, last: int) -> bool:
    """Whether any of the seqs `first` to `last` (inclusive) is in `some`."""
    at = bisect_right(some, last, key=itemgetter(0))
    return at > 0 and some[at - 1][1] >= first


def all_in(some: Ranges, first: int, last: int) -> bool:
    """Whether all of the seqs `first` to `last` (inclusive) are in `some`."""
    at = bisect_right(some, first, key=itemgetter(0))
    return at > 0 and some[at - 1][1] >= last


def clipped(sources: Ranges, first: int) -> Ranges:
    """The part of `sources` from seq `first` on."""
    return tuple((max(start, first), end) for start, end in sources if end >= first)


def before(sources: Ranges, first: int) -> Ranges:
    """The part of `sources` before seq `first`."""
    return tuple((start, min(end, first - 1)) for start, end in sources if start < first)
