"""Words of a text, and the terms by which each is found."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from hitherto.core.recall.folding import folded, lower
from hitherto.core.recall.languages import ENGLISH, UNKNOWN, stem
from hitherto.core.recall.stopwords import (
    EMPTY_UNSPACED,
    OF_LANGUAGES,
    OF_OTHER_LETTERS,
    OF_QUESTIONS,
    OF_QUESTIONS_IN_OTHER_LETTERS,
    STOP_WORDS,
)


class Word(NamedTuple):
    """A word as it is written, but folded, and the terms by which it is found. The first term does not depend on the
    language of the text. `empty`: of a script without spaces, a piece of what is a stop word there."""

    text: str
    terms: tuple[str, ...]
    empty: bool = False


# Python's \w does not match vowel signs; without them a Hindi word falls apart into consonants.
_MARKS = "".join(
    chr(point)
    for start, end in ((0x0483, 0x0590), (0x0700, 0x1E00), (0x302A, 0x3030), (0x3099, 0x309B), (0xA66F, 0xAC00))
    for point in range(start, end)
    if unicodedata.category(chr(point))[0] == "M"
)
# Thai, Lao, Myanmar, Khmer, kana and Han put no space between words; Hangul does, but its words take endings.
_UNSPACED = (
    "\u0e00-\u0e4e\u0e80-\u0ece\u1000-\u103f\u1780-\u17d3\u3005-\u3007\u3031-\u3035\u303b\u3041-\u3096\u3099-\u309f"
    "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
)
_SIGNS = "\u2190-\u21ff\u2300-\u23ff\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff\U0001f000-\U0001f3fa\U0001f400-\U0001faff"
_JOINT = r"'@#%&+=~/.,:?\-"
_ASCII = re.compile(rf"\w+(?:[{_JOINT}]{{1,3}}\w+)*", re.ASCII)
_ANY = re.compile(rf"[\w{_MARKS}]+(?:[{_JOINT}]{{1,3}}[\w{_MARKS}]+)*|[\U0001f1e6-\U0001f1ff]{{2}}|[{_SIGNS}]")
_RUN = re.compile(f"[{_UNSPACED}]+")
_EMPTY_UNSPACED = re.compile(lower(EMPTY_UNSPACED))
_PART = re.compile(rf"[{_JOINT}_]+")
_LONGEST = 128
"""The most characters of a term. A longer word is cut; of a longer joined token only the parts are terms, not the
whole."""

PIECE = "~"
"""What terms that are a piece of a word begin with."""

_BEGINNING, _PIECE = 5, 3
"""Letters of the beginning of a word, by which words in other languages than English are found too, and of the pieces
of a Hebrew word."""


def words_of(text: str, language: str = ENGLISH, *, asked: bool = False) -> Iterator[Word]:
    """The words of a text in `lower` case; of a joined token ("order_id", "ORD-4711", an address) its parts and the
    whole. Where a script has no spaces, pairs of characters; in a text that is not `asked`, every character too."""
    if text.isascii():
        for token in _ASCII.finditer(text):
            yield from _of_token(token[0], language)
        return
    for token in _ANY.finditer(text):
        found = token[0]
        start = 0
        for run in () if found.isascii() else _RUN.finditer(found):
            yield from _of_token(found[start : run.start()], language)
            yield from _of_run(run[0], asked=asked)
            start = run.end()
        yield from _of_token(found[start:], language)


def _of_run(run: str, *, asked: bool) -> Iterator[Word]:
    """Every pair of neighboring characters; for a text, or a question's run of one character, also every character."""
    empty = (
        {place for found in _EMPTY_UNSPACED.finditer(run) for place in range(*found.span())} if asked else set[int]()
    )
    if len(run) == 1 or not asked:
        for place, character in enumerate(run):
            yield Word(character, (character,), place in empty)
    for place in range(len(run) - 1):
        pair = run[place : place + 2]
        yield Word(pair, (pair,), place in empty and place + 1 in empty)


def _of_token(token: str, language: str) -> tuple[Word, ...]:
    return _known(token, language) if len(token) <= _LONGEST else _taken_apart(token, language)


def _taken_apart(token: str, language: str) -> tuple[Word, ...]:
    if token.isalpha():
        return _of_part(token, language)
    token = token.strip("_")
    whole, apostrophe, ending = token.rpartition("'")
    if apostrophe and ending in _CONTRACTED and whole.isalpha():
        return _of_part(whole + ending if ending == "t" else whole, language)
    parts = [part for part in _PART.split(token) if part]
    if len(parts) <= 1:
        return tuple(word for part in parts for word in _of_part(part, language))
    if all(part.isdigit() for part in parts) and "," in token:
        whole = folded(token.replace(",", ""))
    else:
        whole = folded(token.replace("'", ""))
        parts = [part for part in parts if len(part) > 1 or "'" not in token]
    words = [word for part in parts for word in _of_part(part, language)]
    return (*words, Word(folded(token), (whole,))) if len(whole) <= _LONGEST else tuple(words)


_known = lru_cache(maxsize=20_000)(_taken_apart)
_CONTRACTED = frozenset({"s", "m", "re", "ve", "ll", "d", "t"})
_ORDINAL = re.compile(r"([0-9]+)(?:st|nd|rd|th)")
_LETTERS = re.compile("[a-z\u00df-\u024f\u0370-\u058f\u1e00-\u1eff]+")  # Latin, Greek, Cyrillic, Armenian
_HEBREW = re.compile("[\u05d0-\u05ea]+")


def _of_part(part: str, language: str) -> tuple[Word, ...]:
    plain = folded(part[:_LONGEST])[:_LONGEST]
    if plain.isascii() and not plain.isalpha():
        ordinal = _ORDINAL.fullmatch(plain)
        return (Word(plain, (ordinal[1] if ordinal else plain,)),)
    first = stem(plain)
    if _HEBREW.fullmatch(plain):
        # There is no stemmer; what a word begins with may be "and the", in one letter each.
        pieces = (plain[at : at + _PIECE] for at in range(len(plain) - _PIECE + 1))
        return (Word(plain, (first,)), *(Word(plain, (PIECE + piece,)) for piece in pieces))
    if (language == ENGLISH and plain.isascii()) or not _LETTERS.fullmatch(part):
        return (Word(plain, (first,)),)
    # The beginning meets compounds, stems that change, and words of texts whose language nothing tells.
    beginning = [PIECE + plain[:_BEGINNING]] if len(plain) >= _BEGINNING else []
    return (Word(plain, tuple(dict.fromkeys([first, folded(stem(part[:_LONGEST], language)), *beginning]))),)


def says_nothing(word: Word, language: str) -> bool:
    """Whether a word of a question in this language carries no meaning of its own."""
    empty = _empty(language)
    if word.empty or word.text in empty or (language in (ENGLISH, UNKNOWN) and word.terms[0] in _stops()):
        return True
    return "'" in word.text and all(part in empty or len(part) < 2 for part in _PART.split(word.text))  # "qu'est"


@cache
def _empty(language: str) -> frozenset[str]:
    words = (
        OF_OTHER_LETTERS,
        OF_QUESTIONS_IN_OTHER_LETTERS,
        OF_LANGUAGES.get(language, ""),
        OF_QUESTIONS.get(language, ""),
    )
    return frozenset(folded(word) for word in " ".join(words).split())


@cache
def _stops() -> frozenset[str]:
    return frozenset(term for word in STOP_WORDS for one in words_of(word) for term in one.terms)
