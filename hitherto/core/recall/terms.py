"""Text analysis: the terms by which a message can be found, and those that a question asks for.

Terms are 64-bit hashes, so that an index holds only numbers and treats a word of any language, an emoji and an order
number alike. Messages and questions are folded the same way: width, case, accents, vowel points and English endings
make no difference. Text is only ever data here: no character works as an operator.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from threading import local
from typing import cast

import numpy as np
import Stemmer
from numpy.typing import NDArray

from hitherto.core.log.message import Role
from hitherto.core.plain_text import normalized
from hitherto.core.recall.stopwords import POLITE_WORDS, STOP_WORDS

MOST_QUESTION_TERMS = 64
"""The most distinct terms of a question that are looked up: its first ones."""

MOST_CHARACTERS = 1_000_000
"""The most characters of a text that are analyzed; what follows cannot be found by its words."""


@dataclass(frozen=True, slots=True, eq=False)
class TermCounts:
    """The terms of one text: `hashes` ascending and distinct, `counts` beside them (1 to 255; 255 also stands for
    more). `length` is the number of terms in the text, with repetitions and without the author's name."""

    hashes: NDArray[np.int64]
    counts: NDArray[np.uint8]
    length: int


@dataclass(frozen=True, slots=True, eq=False)
class QuestionTerms:
    """What to look up for a question. `words` are its distinct terms, in their order. `authors` are possible names of
    authors: first each of `words` taken as a name, in the same order, then others. A document whose author the question
    names has one of `authors` among its hashes. Messages without an author's name have their role's among theirs;
    `role` is that of the role which most probably said what is asked for: the assistant's where the question is about
    what "you" said, else the user's."""

    words: NDArray[np.int64]
    authors: NDArray[np.int64]
    role: int
    telling: bool = True
    """Whether any of the words says what the question is about: none does in "thanks!" or in "yes, please", for
    example."""

    @property
    def hashes(self) -> NDArray[np.int64]:
        """`words`, `authors` and `role` together. A word and the same word as a name have different hashes."""
        return np.concatenate([self.words, self.authors, [self.role]])


def analyzed(text: str, *, author: str | None = None, role: str | None = None) -> TermCounts:
    """The terms by which a text is found, with those of its author's name or, without one, of its role, which are
    hashed apart from words.

    Takes any string, in time linear in its length; empty text has no terms but these.
    """
    counts = Counter(_terms(text))
    length = counts.total()
    for word in _terms(author or ""):
        counts[_AUTHOR + word] = 1
    if role is not None and not author:
        counts[_ROLE + role] = 1
    hashes = _hashed(counts)
    order = np.argsort(hashes)
    capped = np.fromiter((min(count, 255) for count in counts.values()), dtype=np.uint8, count=len(counts))
    return TermCounts(hashes=hashes[order], counts=capped[order], length=length)


def question_terms(text: str, *, most: int = MOST_QUESTION_TERMS) -> QuestionTerms:
    """What to look up for a question, at most `most` words. Words that carry no meaning ("what", "the") are left out,
    unless all do.

    Takes any string; an empty one, or one of nothing but punctuation, has no terms.
    """
    # No question needs more than its beginning; the cap is on what is read, not only on what is kept.
    words = list(dict.fromkeys(islice(_terms(text, asked=True), 100 * most)))
    telling = [word for word in words if word not in _STOPS]
    chosen = (telling or words)[:most]
    capitalized = (match[0] for match in islice(_CAPITALISED.finditer(text), most))
    names = dict.fromkeys([*chosen, *_terms(" ".join(capitalized))])
    return QuestionTerms(
        words=_hashed(chosen),
        telling=any(word not in _POLITE for word in telling),
        authors=_hashed([_AUTHOR + name for name in names][: 2 * most]),
        role=_hash(_ROLE + (Role.ASSISTANT if _ABOUT_THE_ASSISTANT.search(text) else Role.USER)),
    )


def asks(text: str) -> bool:
    """Whether a text has a question mark, of any script."""
    return _QUESTION_MARK.search(text) is not None


def topic(text: str, *, authors: Collection[int]) -> str:
    """The part of a question that goes to the embedder: the question without the names of authors (`authors` are those
    of its `QuestionTerms.authors` that some document has). Where it names no author, an English question loses the
    words inside it that look like names.

    In a vector that is a mean over words, a name drowns everything else. Empty if nothing is left but stop words and an
    author was named; if none was, a question that would be left empty stays as it is.
    """

    def kept(word: re.Match[str]) -> str:
        terms = _of_token(_folded(word[1]))
        return "" if terms and all(_hash(_AUTHOR + term) in authors for term in terms) else word[0]

    if authors:
        rest = _WORD.sub(kept, text)
    elif _ENGLISH.search(text):
        rest = _CAPITALISED.sub("", text)
    else:
        return text
    if any(term not in _STOPS for term in _terms(rest, asked=True)):
        return rest
    return "" if authors else text


_WORD = re.compile(r"(\w{1,64})(?:['’]s\b)?")
# A capitalized word inside a sentence is taken for a name, even "Will" and "May", which are stop words otherwise. Not
# in a language that capitalizes other nouns too, as German does; a question with one of these words is English.
_CAPITALISED = re.compile(r"(?<=[\w,;:] )[A-Z]\w{1,63}(?:['’]s\b)?")
_ENGLISH = re.compile(r"\b(?:the|what|when|where|which|who|whose|why|how|did|does)\b", re.IGNORECASE)
_QUESTION_MARK = re.compile("[?\uff1f\u061f\u055e\u1367]")
_AUTHOR, _ROLE = "\x01", "\x02"  # never part of a term of text
# "What did you recommend?", "the plan that you gave me", but not "can you tell me". English only: in other languages
# what the user said is preferred.
_ABOUT_THE_ASSISTANT = re.compile(
    r"\b(?:did|have|had|were) you\b|\byou (?:also )?(?:\w+ed|said|told|gave|wrote|made|found|had|taught)\b",
    re.IGNORECASE,
)

# Accents, vowel points and the tatweel, which people may leave out when typing; other scripts' marks are letters.
_POINTS = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\ufe00-\ufe0f\u200b-\u200f\u00ad\ufeff]+"
)
_APOSTROPHES = str.maketrans(dict.fromkeys("’‘ʼ＇`´", "'"))


def _folded(text: str) -> str:
    text = text[:MOST_CHARACTERS]
    if text.isascii():
        return text.lower()
    apart = normalized("NFKD", _POINTS.sub("", text.translate(_APOSTROPHES))).casefold()
    return normalized("NFC", _POINTS.sub("", apart))


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
_PART = re.compile(rf"[{_JOINT}_]+")
_LONGEST = 128
"""The most characters of a term. A longer word is cut; of a longer joined token only the parts are terms, not the
whole."""


def _terms(text: str, *, asked: bool = False) -> Iterator[str]:
    folded = _folded(text)
    if folded.isascii():
        for token in _ASCII.finditer(folded):
            yield from _of_token(token[0])
        return
    for token in _ANY.finditer(folded):
        found = token[0]
        start = 0
        for run in () if found.isascii() else _RUN.finditer(found):
            yield from _of_token(found[start : run.start()])
            yield from _of_run(run[0], asked=asked)
            start = run.end()
        yield from _of_token(found[start:])


def _of_run(run: str, *, asked: bool) -> Iterator[str]:
    """Every pair of neighboring characters; for a text, or a question's run of one character, also every character."""
    if len(run) == 1 or not asked:
        yield from run
    for place in range(len(run) - 1):
        yield run[place : place + 2]


def _of_token(token: str) -> Sequence[str]:
    """A word's stem; for a joined token ("order_id", "ORD-4711", an address), its parts and the whole."""
    return _known(token) if len(token) <= _LONGEST else _taken_apart(token)


def _taken_apart(token: str) -> tuple[str, ...]:
    if token.isalpha():
        return (_stem(token),)
    token = token.strip("_")
    whole, apostrophe, ending = token.rpartition("'")
    if apostrophe and ending in _CONTRACTED and whole.isalpha():
        return (_stem(whole + ending if ending == "t" else whole),)
    parts = [part for part in _PART.split(token) if part]
    if len(parts) <= 1:
        return tuple(_stem(part) for part in parts)
    if all(part.isdigit() for part in parts) and "," in token:
        token = token.replace(",", "")
    elif "'" in token:
        token = token.replace("'", "")
        parts = [part for part in parts if len(part) > 1]
    terms = [_stem(part) for part in parts]
    return (*terms, token) if len(token) <= _LONGEST else tuple(terms)


_known = lru_cache(maxsize=20_000)(_taken_apart)
_CONTRACTED = frozenset({"s", "m", "re", "ve", "ll", "d", "t"})
_ORDINAL = re.compile(r"([0-9]+)(?:st|nd|rd|th)")


class _PerThread(local):
    """Snowball's stemmers keep state while they work: each thread has its own."""

    def __init__(self) -> None:
        self.stem = cast("Callable[[str], str]", Stemmer.Stemmer("english").stemWord)


_snowball = _PerThread()


def _stem(word: str) -> str:
    """English endings taken off (Snowball); words of other letters and numbers stay as they are."""
    word = word[:_LONGEST]
    if not word.isascii():
        return word
    if not word.isalpha():
        ordinal = _ORDINAL.fullmatch(word)
        return ordinal[1] if ordinal else word
    return _snowball.stem(word)


_POLITE = frozenset(term for word in POLITE_WORDS for term in _of_token(word))
_STOPS = frozenset(term for word in STOP_WORDS for term in _of_token(word))


def _hashed(terms: Collection[str]) -> NDArray[np.int64]:
    return np.fromiter(map(_hash, terms), dtype=np.int64, count=len(terms))


@lru_cache(maxsize=50_000)
def _hash(term: str) -> int:
    encoded = term.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(encoded, digest_size=8).digest(), "big", signed=True)
