"""The passages of a long text. A message, a digest or a passage of a document is ranked by its best one: in a long text
taken as a whole, what answers a question drowns in all else that it says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hitherto.arrays import np
from hitherto.core.documents import passages
from hitherto.core.plain_text import beside_data, mark_at
from hitherto.core.recall.terms import MOST_CHARACTERS, analyzed, question_terms

LENGTH = 800
"""The most characters of a passage: about 120 words of English. Cuts at seams leave 80 on average."""

CUT = 40_000
"""Characters of a text that are cut into such passages. Further on they are longer: a fiftieth of what stands before
them, at most."""

_FIFTIETH = CUT // LENGTH
_READ = 20_000
_VISIBLE = re.compile(r"\S")

CharRange = tuple[int, int]
"""Where a passage starts and ends (exclusive) in its text, in characters."""


def passage_ranges(text: str) -> tuple[CharRange, ...]:
    """The passages of a text in their order, at least one, the first from 0 on. They do not overlap; what lies between
    them is blank or data. The last one of a text that is longer than `MOST_CHARACTERS` has all that follows. Takes time
    linear in the length of the text."""
    if len(text) <= LENGTH:
        return ((0, len(text)),)
    found: list[CharRange] = []
    before = 0
    for start, end in beside_data(text):
        stop = min(end, start + max(CUT - before, 0))
        cut = passages(text[start:stop], limit=LENGTH, overlap=0, count=len, markdown=True)
        if stop < end and cut and cut[-1].start > 0:  # it ends in the middle of something
            stop, cut = start + cut[-1].start, cut[:-1]
        found += [(start + one.start, start + one.start + len(one.text)) for one in cut]
        before += max(stop - start, LENGTH)
        for one in _at_lines(text, stop, end, before):
            found.append(one)
            before += one[1] - one[0]
            if before >= MOST_CHARACTERS:
                break
        if start == 0:
            found[:1] = [(0, found[0][1] if found else 0)]
        if before >= MOST_CHARACTERS:
            found[-1] = found[-1][0], len(text)
            break
    return tuple(found)


def _at_lines(text: str, start: int, end: int, before: int = 0) -> Iterator[CharRange]:
    """The passages between `start` and `end`, behind so many characters, cut at the ends of lines, else at blanks. None
    begins with a blank. Much faster than cutting at the best seams."""
    while (visible := _VISIBLE.search(text, start, end)) is not None:
        start = visible.start()
        stop = min(end, start + max(LENGTH, before // _FIFTIETH))
        if stop < end:
            half = (start + stop) // 2
            stop = text.rfind("\n", half, stop) + 1 or text.rfind(" ", half, stop) + 1 or stop
        yield start, stop
        before += stop - start
        start = stop


def narrowed(text: str, ranges: Sequence[CharRange], question: str) -> tuple[CharRange, ...]:
    """These passages of a text, the best first, for showing them: the best, if it is longer than `LENGTH`, as the part
    of so many characters that has most of the question's words, and others that are longer left out. Of what follows
    the first 20,000 characters of a passage nothing is read."""
    found = [one for one in ranges if one[1] - one[0] <= LENGTH]
    if ranges and ranges[0] not in found:
        start, end = ranges[0]
        start += len(text[start:end]) - len(text[start:end].lstrip())
        words = question_terms(question).words
        parts = _at_lines(text, start, min(end, start + _READ))
        found.insert(0, max(parts, key=lambda part: np.isin(words, analyzed(text[slice(*part)]).hashes).sum()))
    return tuple(found)


def excerpt(text: str, ranges: Sequence[CharRange]) -> str:
    """These ranges (ascending) of a text, with "…" wherever something that is not blank is left out."""
    parts: list[str] = []
    end = 0
    for start, stop in ranges:
        between = text[end:start]
        parts += ["…\n" if end == 0 else "\n…\n", mark_at(text, start)] if between.strip() else [between]
        parts.append(text[start:stop])
        end = stop
    return "".join(parts).strip() + ("\n…" if text[end:].strip() else "")


def excerpts(text: str, parts: Sequence[tuple[int, str]], ranges: Sequence[CharRange]) -> list[tuple[str, str]]:
    """These ranges (ascending; none: all) of a text, by who says them: `parts` are where one begins to speak, and who.
    Of whom nothing is shown is left out."""
    shown: list[tuple[str, str]] = []
    for (start, who), end in zip(parts, [*(start for start, _ in parts[1:]), len(text)], strict=True):
        part = text[start:end]
        clipped = [(max(one, start), min(stop, end)) for one, stop in ranges]
        within = [(one - start, stop - start) for one, stop in clipped if one < stop]
        if within or not ranges:
            shown.append((who, (excerpt(part, within) if ranges else part).strip()))
    return shown
