"""The passages of a long text. A message, a digest or a passage of a document is ranked by its best one: in a long text
taken as a whole, what answers a question drowns in all else that it says."""

from __future__ import annotations

from collections.abc import Sequence

from hitherto.core.documents import passages
from hitherto.core.plain_text import beside_data

LENGTH = 800
"""The most characters of a passage: about 120 words of English. Cuts at seams leave 80 on average."""

CUT = 40_000
"""Characters of a text that are cut. The last passage of a longer one has all that follows."""

CharRange = tuple[int, int]
"""Where a passage starts and ends (exclusive) in its text, in characters."""


def passage_ranges(text: str) -> tuple[CharRange, ...]:
    """The passages of a text in their order, at least one, the first from 0 on. They do not overlap; what lies between
    them is blank or data. Takes time linear in the length of the text."""
    if len(text) <= LENGTH:
        return ((0, len(text)),)
    found: list[CharRange] = []
    room = CUT
    for start, end in beside_data(text):
        cut = passages(text[start : min(end, start + room)], limit=LENGTH, overlap=0, count=len, markdown=True)
        found += [(start + one.start, start + one.start + len(one.text)) for one in cut]
        if start == 0:
            found[:1] = [(0, found[0][1] if found else 0)]
        room -= max(end - start, LENGTH)
        if room <= 0:
            found[-1] = found[-1][0], len(text)
            break
    return tuple(found)


def excerpt(text: str, ranges: Sequence[CharRange]) -> str:
    """These ranges (ascending) of a text, with "…" wherever something that is not blank is left out."""
    parts: list[str] = []
    end = 0
    for start, stop in ranges:
        between = text[end:start]
        parts += [between] if not between.strip() else ["…\n" if end == 0 else "\n…\n"]
        parts.append(text[start:stop])
        end = stop
    return "".join(parts).strip() + ("\n…" if text[end:].strip() else "")
