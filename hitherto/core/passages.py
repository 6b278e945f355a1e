"""Cutting a document into passages: by tokens, at the largest seams that fit, with an overlap."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from semantic_text_splitter import MarkdownSplitter, TextSplitter

from hitherto.core.document import Passage

_WINDOW = 20
"""Characters that are looked at at once, for each token of a passage: some five passages of English. What the splitter
does with a text without any seam (a page of Chinese without a full stop) grows with the square of it."""


def passages(
    text: str, *, limit: int, overlap: int, count: Callable[[str], int], markdown: bool
) -> tuple[Passage, ...]:
    """The passages of `text`, in its order: each of at most `limit` tokens by `count`, without blanks at its ends
    (of Markdown, what its first line is indented by stays).

    Together they have every character of the text that is no blank, and none is inside of another. Two
    neighbours share `overlap` tokens at most, give or take two at its ends, and never more than half of `limit`: whole
    sentences or words. Cuts are made at the largest seams that fit: paragraphs, sentences, words; with `markdown` at
    its headings, lists and code blocks first. In time linear in the text. A text of blanks alone has no passages.
    """
    split = (MarkdownSplitter if markdown else TextSplitter).from_callback(count, limit, min(overlap, limit // 2))
    found: list[tuple[int, str]] = []
    at, size = 0, _WINDOW * limit
    while at < len(text):
        cut = [(at + start, piece) for start, piece in split.chunk_indices(text[at : at + size])]
        if at + size >= len(text):
            found += cut
            break
        if not cut or cut[-1][0] == at:  # one passage, or blanks, as far as can be seen
            size *= 2
            continue
        # The last one ends where the window does, so it is made again: its start has the overlap already.
        found += cut[:-1]
        at, size = cut[-1][0], _WINDOW * limit
    return tuple(Passage(piece, start, count(piece)) for start, piece in _telling(found))


def _telling(found: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
    """Those that are not inside of a neighbour: where pieces are short, the splitter's overlap may be all of one."""
    telling: list[tuple[int, str]] = []
    reached = 0
    for start, piece in found:
        if start + len(piece) <= reached or not piece[max(reached - start, 0) :].strip():
            continue
        while telling and telling[-1][0] >= start:
            telling.pop()
        telling.append((start, piece))
        reached = start + len(piece)
    return telling
