"""Cutting a document into passages: by tokens, at the largest seams that fit, with an overlap."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from semantic_text_splitter import MarkdownSplitter, TextSplitter

from hitherto.core.documents.document import Passage

_WINDOW = 20
"""Characters that are split at once, for each token of a passage: about five passages of English. The splitter's work
on a text without any seam (a page of Chinese without a full stop) grows with the square of it."""

_WORK, _SPARE = 150, 400
"""The most characters that are given to the token counter: for each character of the text, and in addition for each of
the first window. Prose takes 10, a page of rare ideographs 110; a text through which the splitter moves by one blank or
dash at a time takes thousands."""

_BLANKS = 2_000
"""A run of more blanks than this is a seam if it fills half of the window."""

_Piece = tuple[int, str]
"""A piece's start in the text, and its text."""


def passages(
    text: str, *, limit: int, overlap: int, count: Callable[[str], int], markdown: bool
) -> tuple[Passage, ...]:
    """The passages of `text`, in its order: each of at most `limit` tokens by `count`, without blanks at its ends (in
    Markdown, the indentation of its first line stays).

    Together they have every character of the text that is not blank, and none lies inside another. Two neighbors share
    at most `overlap` tokens, give or take two at its ends, and never more than half of `limit`: whole sentences or
    words. They share nothing where that would take far more work than prose does. Cuts are made at the largest seams
    that fit: paragraphs, sentences, words; with `markdown` at headings, lists and code blocks first. Takes time linear
    in the length of the text. A text of blanks alone has no passages.
    """
    found: list[_Piece] = []
    at, size = 0, _WINDOW * limit
    spare = _SPARE * size
    while at < len(text):
        window = text[at : at + size]
        cut, counted = _cut(window, limit, min(overlap, limit // 2), count, markdown=markdown, most=spare)
        spare -= counted
        last, reached = (cut[-1][0], cut[-1][0] + len(cut[-1][1])) if cut else (0, 0)
        moved = last
        if at + size >= len(text):
            moved = size
        elif size - reached > max(size // 2, _BLANKS):  # what follows may begin with a line that is indented
            line = max(window.rfind("\n"), window.rfind("\r")) + 1
            moved = line if line > reached else size
        elif last == 0:  # the window has one passage, or only blanks
            size *= 2
            continue
        else:
            # The last piece ends where the window does, so it is made again. Its start includes the overlap already.
            cut.pop()
        found += [(at + start, piece) for start, piece in cut]
        at += moved
        spare += _WORK * moved
        size = _WINDOW * limit
    return tuple(Passage(piece, start, count(piece)) for start, piece in _checked_phrases(found))


def _cut(
    window: str, limit: int, shared: int, count: Callable[[str], int], *, markdown: bool, most: int
) -> tuple[list[_Piece], int]:
    """The pieces of a window, and how many characters were counted for them. Where that would be more than `most`, they
    share nothing."""
    present = set(window)
    # A marker that occurs only at the window's end: a piece that has it reaches the end.
    end = next(character for character in map(chr, range(0x10FFFF, 0, -1)) if character not in present)
    counted = 0

    def measured(piece: str) -> int:
        nonlocal counted
        counted += len(piece)
        if shared and counted > most:
            return shared + 1  # Fits a passage and is too long to be shared: this ends the splitter's work soon.
        _, text = _trimmed(0, piece.removesuffix(end), markdown=markdown)
        # The last piece shares nothing with a next one, but the splitter would still try every seam in it.
        return max(count(text), shared + 1) if piece.endswith(end) else count(text)

    splitter = MarkdownSplitter if markdown else TextSplitter
    # With trim=True an indented piece can begin before the piece that it follows, and the splitter panics.
    split = splitter.from_callback(measured, limit, shared, trim=False)
    cut = split.chunk_indices(f"{window}\n\n{end}")
    if shared and counted > most:
        pieces, more = _cut(window, limit, 0, count, markdown=markdown, most=most)
        return pieces, counted + more
    pieces: list[_Piece] = []
    reached = 0
    for place, piece in cut:
        start, text = _trimmed(place, piece.removesuffix(end), markdown=markdown)
        if text and start + len(text) > reached:
            pieces.append((start, text))
            reached = start + len(text)
    return pieces, counted


def _trimmed(start: int, piece: str, *, markdown: bool) -> _Piece:
    """A piece without the blanks at its ends; in Markdown the first of several lines stays indented."""
    text = piece.strip()
    if markdown and ("\n" in text or "\r" in text):
        begun = piece.lstrip("\r\n")
        return start + len(piece) - len(begun), begun.rstrip()
    return start + len(piece) - len(piece.lstrip()), text


def _checked_phrases(found: Iterable[_Piece]) -> list[_Piece]:
    """The pieces that do not lie inside a neighbor: the splitter's overlap may be all of a short piece."""
    telling: list[_Piece] = []
    reached = 0
    for start, piece in found:
        if start + len(piece) <= reached or not piece[max(reached - start, 0) :].strip():
            continue
        while telling and telling[-1][0] >= start:
            telling.pop()
        telling.append((start, piece))
        reached = start + len(piece)
    return telling
