"""Documents of the knowledge base: what they are, what is checked of them, and their passages."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any, cast

from hitherto.core.log.message import DEPTH, LONGEST_METADATA, storable
from hitherto.core.scope import LONGEST_NAME
from hitherto.errors import InvalidDocument, InvalidInput

CONVERSATION = "conversation"
"""The doc_type of an archived conversation; "conversations" matches it too."""

PREVIEW = 1_000
"""Characters of a document's text in a listing."""


def namespace_of(user: str) -> str:
    """The namespace of a user's archived conversations."""
    return f"conversations:{user}"


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document that is found by itself. `start` is where it begins in the document's text (in
    characters), `tokens` its canonical tokens (o200k_base)."""

    text: str
    start: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDocument:
    """A document to be stored. `metadata` is the JSON text of an object. `fingerprint` identifies its content: a user
    has at most one document of a fingerprint in a namespace. `said_at` is when its content was said; None: now."""

    namespace: str
    doc_type: str
    title: str | None
    text: str
    metadata: str
    fingerprint: str
    passages: tuple[Passage, ...]
    said_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveOrigin:
    """Where an archived document comes from: the digest with which it was made, and the messages `start` to `end`
    (inclusive) that it stands for."""

    conversation: str
    digest: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A stored document. `passages` is how many it has. `agent` is that of the conversation it came from, None for a
    document that the user added. `created_at` is when it was stored, `said_at` as in `NewDocument`."""

    id: int
    namespace: str
    doc_type: str
    title: str | None
    text: str
    metadata: dict[str, Any]
    passages: int
    created_at: datetime
    said_at: datetime
    agent: str | None = None
    archived: ArchiveOrigin | None = None


@dataclass(frozen=True, slots=True)
class KeptDocument:
    """The result of keeping a document: its id, and whether it is new. If not, the same content was there before, and
    nothing was written."""

    id: int
    new: bool


MOST_CHARACTERS = 20_000_000
"""Characters of one document."""

LONGEST_NAMESPACE = len(namespace_of("")) + LONGEST_NAME
"""The most characters of a namespace: the namespace of any user's conversations fits."""

LONGEST_TITLE = 500

ALL = "all"
"""The doc_type that stands for every type in a search."""

_CONVERSATIONS = frozenset({CONVERSATION, CONVERSATION + "s"})
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_SEEN = re.compile("[^\\W_]|[^\\s\x00-\x7f\u200b-\u200f\ufeff]")
"""What a search can find: a letter, a digit, or a visible character beyond ASCII, such as an emoji."""

_HEADING = re.compile(r"\s*#\s+(\S[^\n]*)")
_MARKDOWN = re.compile(r"^(?:#{1,6}\s{1,90}\S|```|~~~)", re.MULTILINE)

_LONGEST_MATCH = 100
"""The longest match of a pattern that `_search` is given, in characters. (`_MARKDOWN` has at most 90 blanks for it.)"""

_PART = 50_000
"""Characters that are searched, or encoded, at once, while other threads wait."""


def checked_text(text: object) -> str:
    """`text`. Raises InvalidDocument if it is not a string, is too long, has NUL or lone surrogates, or has nothing
    that a search could find."""
    if not isinstance(text, str):
        raise InvalidDocument(f"the document is {type(text).__name__}, not text; decode it, or extract its text, first")
    if len(text) > MOST_CHARACTERS:
        raise InvalidDocument(
            f"the document has {len(text):,} characters; at most {MOST_CHARACTERS:,} are kept as one, so split it"
        )
    if found := _search(_UNSTORABLE, text):
        raise InvalidDocument(
            f"the document has the character U+{ord(found[0]):04X} at {found.start()}, which no text has; if it is a "
            "binary file (PDF, Word, an image), extract its text first"
        )
    if not _search(_SEEN, text):
        raise InvalidDocument("the document has no text that could be found: not one letter or digit; give it some")
    return text


def checked_title(title: object) -> str | None:
    """`title`, which may be None. Raises InvalidDocument if it is not text, is blank, or is too long."""
    return None if title is None else _name(title, "title", LONGEST_TITLE)


def checked_namespace(namespace: object) -> str:
    """`namespace`. Raises InvalidDocument if it is not a usable name."""
    return _name(namespace, "namespace", LONGEST_NAMESPACE)


def checked_type(doc_type: object) -> str:
    """The type under which a document is stored; "conversations" becomes "conversation". Raises InvalidDocument for
    "all" and for what is not a usable name."""
    kept = type_of(_name(doc_type, "doc_type", LONGEST_NAME))
    if kept is None:
        raise InvalidDocument(f"doc_type is {doc_type!r}, which stands for all types; give the document one of its own")
    return kept


def type_of(doc_type: object) -> str | None:
    """The type to search for: None (every type) for None and "all", "conversation" for "conversations" too. Raises
    InvalidInput for what is no text."""
    if doc_type is None:
        return None
    if not isinstance(doc_type, str):
        raise InvalidInput(f"{doc_type!r} is no type of documents; give one as text, or {ALL!r}")
    word = doc_type.strip().casefold()
    if word == ALL:
        return None
    return CONVERSATION if word in _CONVERSATIONS else storable(doc_type)


def plain_metadata(metadata: object) -> dict[str, Any]:
    """Metadata as JSON has it; None gives an empty one. Characters of strings that PostgreSQL cannot store (NUL, lone
    surrogates) become U+FFFD. Raises InvalidDocument if it is not a JSON object, or nested too deep."""
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping):
        raise InvalidDocument(f"metadata is {type(metadata).__name__}; give an object, like {{'source': 'handbook'}}")
    try:
        given: Mapping[Any, Any] = cast("Mapping[Any, Any]", metadata)
        return _storable(json.loads(json.dumps(dict(given), allow_nan=False)))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidDocument(f"metadata is not JSON: {error}; pass only what json.dumps can write") from error


def metadata_json(metadata: object) -> str:
    """The text of `plain_metadata`. Raises InvalidDocument as it does, and where the text is too long."""
    text = json.dumps(plain_metadata(metadata), ensure_ascii=False)
    if len(text) > LONGEST_METADATA:
        raise InvalidDocument(
            f"metadata has {len(text):,} characters as JSON; at most {LONGEST_METADATA:,} are kept, so keep the "
            "rest elsewhere"
        )
    return text


def has(metadata: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether `metadata` has every entry of `wanted`: an equal value, or a list that contains it."""
    return all(key in metadata and _found(metadata[key], value) for key, value in wanted.items())


def fingerprint_of(*parts: str) -> str:
    """SHA-256 over the parts, each with its length in front, in hexadecimal."""
    found = hashlib.sha256()
    for part in parts:
        pieces = [part[at : at + _PART].encode("utf-8", "surrogatepass") for at in range(0, len(part), _PART)]
        found.update(sum(map(len, pieces)).to_bytes(8, "big"))
        for piece in pieces:
            found.update(piece)
    return found.hexdigest()


def heading_of(text: str) -> str | None:
    """The heading that a Markdown document begins with, if it begins with one."""
    found = _HEADING.match(text, 0, _PART)
    return None if found is None else found[1].strip().rstrip("#").strip()[:LONGEST_TITLE] or None


def is_markdown(text: str) -> bool:
    """Whether the text has headings or code blocks as Markdown has them."""
    return _search(_MARKDOWN, text) is not None


def _search(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """The first match in a text that may be very long."""
    parts = (pattern.search(text, start, start + _PART + _LONGEST_MATCH) for start in range(0, len(text), _PART))
    return next(filter(None, parts), None)


def _name(value: object, what: str, longest: int) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidDocument(f"{what} is {value!r}; give some text, or leave it out")
    if len(value) > longest:
        raise InvalidDocument(f"{what} has {len(value):,} characters; at most {longest} are kept")
    if _UNSTORABLE.search(value):
        raise InvalidDocument(f"{what} is {value!r}; NUL and lone surrogates cannot be part of it")
    return value


def _storable(value: Any, depth: int = 0) -> Any:
    if depth > DEPTH:
        raise ValueError(f"it is nested more than {DEPTH} deep")
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [_storable(one, depth + 1) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {storable(key): _storable(one, depth + 1) for key, one in cast("dict[str, Any]", value).items()}
    return value


def _found(value: Any, wanted: Any) -> bool:
    listed = cast("list[Any]", value) if isinstance(value, list) else []
    return _same(value, wanted) or any(_same(one, wanted) for one in listed)


def _same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal; true is not 1, in JSON."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        these, those = cast("list[Any]", one), cast("list[Any]", other)
        return len(these) == len(those) and all(_same(a, b) for a, b in zip(these, those, strict=True))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        mine, yours = cast("Mapping[str, Any]", one), cast("Mapping[str, Any]", other)
        return mine.keys() == yours.keys() and all(_same(value, yours[key]) for key, value in mine.items())
    return one == other


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
    parts = passages_in_parts(text, limit=limit, overlap=overlap, count=count, markdown=markdown)
    return without_inner(chain.from_iterable(parts))


def passages_in_parts(
    text: str, *, limit: int, overlap: int, count: Callable[[str], int], markdown: bool
) -> Iterator[list[Passage]]:
    """What `passages` gives, window by window of the text, before `without_inner`."""
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
        yield [Passage(piece, at + start, count(piece)) for start, piece in cut]
        at += moved
        spare += _WORK * moved
        size = _WINDOW * limit


def without_inner(found: Iterable[Passage]) -> tuple[Passage, ...]:
    """The passages that do not lie inside a neighbor: the splitter's overlap may be all of a short one."""
    telling: list[Passage] = []
    reached = 0
    for one in found:
        end = one.start + len(one.text)
        if end <= reached or not one.text[max(reached - one.start, 0) :].strip():
            continue
        while telling and telling[-1].start >= one.start:
            telling.pop()
        telling.append(one)
        reached = end
    return tuple(telling)


def _cut(
    window: str, limit: int, shared: int, count: Callable[[str], int], *, markdown: bool, most: int
) -> tuple[list[_Piece], int]:
    """The pieces of a window, and how many characters were counted for them. Where that would be more than `most`, they
    share nothing."""
    from semantic_text_splitter import MarkdownSplitter, TextSplitter

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
