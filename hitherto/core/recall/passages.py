"""The passages of a long text. A message, a digest or a passage of a document is ranked by its best one: in a long text
taken as a whole, what answers a question drowns in all else that it says."""

from __future__ import annotations

from collections.abc import Sequence

from hitherto.core.documents import passages

LENGTH = 800
"""The most characters of a passage: about 120 words of English. Cuts at seams leave 80 on average."""

CUT = 40_000
"""Characters of a text that are cut. The last passage of a longer one has all that follows."""

CharRange = tuple[int, int]
"""Where a passage starts and ends (exclusive) in its text, in characters."""


def passage_ranges(text: str) -> tuple[CharRange, ...]:
    """The passages of a text in their order, at least one. They do not overlap; what lies between them is blank. Takes
    time linear in the length of the text."""
    if len(text) <= LENGTH:
        return ((0, len(text)),)
    cut = passages(text[:CUT], limit=LENGTH, overlap=0, count=len, markdown=True)
    found = [(one.start, one.start + len(one.text)) for one in cut] or [(0, len(text))]
    found[0] = 0, found[0][1]
    if len(text) > CUT:
        found[-1] = found[-1][0], len(text)
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
