"""A part of the log word for word, in pages that fit a budget: for what a digest stands for, was dropped or cut."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hitherto.core.log.message import Logged
from hitherto.core.log.speaker import Voice
from hitherto.core.plain_text import RECORD, mark_at

LEAD = f"From this conversation's log, by number. {RECORD}"

_MORE = "(More follows: go on with start={}, end={}, character={}.)"
_HIGHEST = 10**12
"""No text has so many characters."""

_LONGEST = 20
"""At most so many characters of a message are taken for each token of the room."""

_SEAM = 5
"""A text is cut behind a line, or else a word, that ends in the last of so many parts of what fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """Messages of a conversation word for word, oldest first, as many as fit a budget.

    `text` shows them to a model, as a record of what was said: a line for each, with its seq and who said it, under the
    days on which they were said. Where several speak in a message, such as a tool that ran at the provider, each has a
    line of its own. Further lines are indented by two blanks, so that none of them can pass for a line of ours; "…"
    stands where a message is cut. It is empty if nothing can be shown. `tokens` are its canonical tokens (o200k_base),
    `seqs` the messages in it, ascending. `next` is what to expand next: the first and the last seq that are left, and
    how many characters of the first are shown already; None if all was shown.
    """

    text: str
    seqs: tuple[int, ...]
    tokens: int
    next: tuple[int, int, int] | None


class ExpansionPage:
    """A page that is filled with messages: of a range that ends with seq `last`, in `budget` tokens as `count` counts
    them."""

    def __init__(self, last: int, budget: int, count: Callable[[str], int]) -> None:
        self._last, self._count = last, count
        self._room = budget - count(LEAD + "\n") - count(_MORE.format(last, last, _HIGHEST))
        self._lines: list[str] = []
        self._seqs: list[int] = []
        self._above = ""
        self._next: tuple[int, int, int] | None = None

    def add(self, one: Logged, voices: Sequence[Voice], skipped: int) -> bool:
        """Put a message on the page as far as there is room, without its first `skipped` characters. `voices` are as
        `WireFormat.voices` gives them. Returns whether the whole of it is on the page, so that another can follow."""
        day = one.said_at.date().isoformat()
        heading = "" if day == self._above else f"{day}:\n"
        whole = "\n".join(voice.words for voice in voices)
        text = whole[skipped:]
        pieces: list[tuple[int, int, str]] = []
        at = -skipped
        for voice in voices:
            start, at = at, at + len(voice.words) + 1
            if at > 1 or not skipped:
                begins = f"- {one.seq} {voice.label}: " + (
                    "…" + mark_at(whole, skipped) if skipped and not pieces else ""
                )
                pieces.append((max(start, 0), at - 1, begins))
        if not pieces:
            return True

        def line(size: int) -> str:
            shown = [one for one in pieces if one is pieces[0] or one[0] < size]
            words = [text[start : min(end, size)] for start, end, _ in shown]
            words[-1] += "" if size == len(text) else "…"
            lines = ["  ".join(one.splitlines(keepends=True)) for one in words]
            return heading + "\n".join(begins + one for (*_, begins), one in zip(shown, lines, strict=True)) + "\n"

        def takes(size: int) -> int:
            return self._count(line(size))

        size, longest = len(text), _LONGEST * self._room
        if size > longest or takes(size) > self._room:
            fits = bisect_right(range(min(size, longest)), self._room, key=lambda size: takes(_seam(text, size)))
            size = _seam(text, max(fits - 1, 0))
            self._next = one.seq, self._last, skipped + size
            if size == 0:
                return False
        self._lines.append(line(size))
        self._seqs.append(one.seq)
        self._room -= takes(size)
        self._above = day
        return self._next is None

    def finished(self) -> Expansion:
        """What is on the page."""
        text = "".join(self._lines)
        if text:
            text = LEAD + "\n" + (text[:-1] if self._next is None else text + _MORE.format(*self._next))
        return Expansion(text=text, seqs=tuple(self._seqs), tokens=self._count(text), next=self._next)


def _seam(text: str, size: int) -> int:
    """Where a text is cut best, at or before `size` characters."""
    first = size - size // _SEAM
    return next((at + 1 for mark in "\n " if (at := text.rfind(mark, first, size)) >= 0), size)
