"""Text analysis: the terms by which a message can be found, and those that a question asks for.

Terms are 64-bit hashes, so that an index holds only numbers and treats a word of any language, an emoji and an order
number alike. Messages and questions are taken apart the same way (`words.py`): width, case, accents, vowel points
and endings make no difference. Text is only ever data here: no character works as an operator.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache, lru_cache
from hashlib import blake2b
from itertools import chain, islice

from hitherto.arrays import NDArray, np
from hitherto.core.log.message import Role
from hitherto.core.recall.days import NamedDays, day_terms, named_days
from hitherto.core.recall.folding import lower
from hitherto.core.recall.languages import language_of
from hitherto.core.recall.stopwords import GREETINGS, POLITE_WORDS
from hitherto.core.recall.trigger_phrases import TRIGGERS, without
from hitherto.core.recall.words import PIECE, Word, says_nothing, words_of

MOST_QUESTION_TERMS = 64
"""The most distinct words of a question that are looked up: its first ones."""

MOST_CHARACTERS = 1_000_000
"""The most characters of a text that are analyzed; what follows cannot be found by its words."""


@dataclass(frozen=True, slots=True, eq=False)
class TermCounts:
    """The terms of one text: `hashes` ascending and distinct, `counts` beside them (1 to 255; 255 also stands for
    more). `length` is the number of words in the text, with repetitions and without the author's name."""

    hashes: NDArray[np.int64]
    counts: NDArray[np.uint8]
    length: int


@dataclass(frozen=True, slots=True, eq=False)
class QuestionTerms:
    """What to look up for a question. `words` are its distinct terms, in their order, those of one word beside each
    other. `authors` are possible names of authors: first each of `words` taken as a name, in the same order, then
    others. A document whose author the question names has one of `authors` among its hashes. Messages without an
    author's name have their role's among theirs; `role` is that of the role which most probably said what is asked for:
    the assistant's where the question is about what "you" said, else the user's."""

    words: NDArray[np.int64]
    authors: NDArray[np.int64]
    role: int
    begins: NDArray[np.int64]
    """Where the terms of each word begin in `words`: a word may be found by any of several."""

    days: tuple[tuple[tuple[int, ...], ...], ...] = ()
    """For each expression that names days, the terms of those that may be meant, as in `NamedDays.choices`."""

    of_days: NDArray[np.bool_] | None = None
    """Which of `words` stand in such expressions alone; None: there is no such expression."""

    beside_days: str = ""
    """The question without such expressions; empty if nothing but stop words is left."""

    telling: bool = True
    """Whether any of the words says what the question is about: none does in "thanks!", "yes, please" or "👍", for
    example."""

    of_assistant: bool = False
    """Whether `role` is the assistant's."""

    @property
    def hashes(self) -> NDArray[np.int64]:
        """`words`, `authors`, `role` and `days` together. A word and the same word as a name have different hashes."""
        days = dict.fromkeys(day for choices in self.days for choice in choices for day in choice)
        return np.concatenate([self.words, self.authors, [self.role], np.fromiter(days, np.int64, len(days))])


def analyzed(text: str, *, author: str | None = None, role: str | None = None, day: date | None = None) -> TermCounts:
    """The terms by which a text is found, with those of its author's name or, without one, of its role, and of the
    `day` on which it was said, which are hashed apart from words.

    Takes any string, in time linear in its length; empty text has no terms but these.
    """
    cased = lower(text[:MOST_CHARACTERS])
    words = [word.terms for word in words_of(cased, language_of(cased))]
    counts = Counter(chain.from_iterable(words))
    for name in _names(author or ""):
        counts[_AUTHOR + name] = 1
    if role is not None and not author:
        counts[_ROLE + role] = 1
    for term in () if day is None else day_terms(day):
        counts[_DAY + term] = 1
    hashes = _hashed(counts)
    order = np.argsort(hashes)
    capped = np.fromiter((min(count, 255) for count in counts.values()), dtype=np.uint8, count=len(counts))
    return TermCounts(hashes=hashes[order], counts=capped[order], length=len(words))


def question_ends(text: str, *, each: int = 20_000) -> str:
    """Of a question with more than twice so many characters, its beginning and its end: what is asked stands in front
    of pasted text, or behind it."""
    return text if len(text) <= 2 * each else f"{text[:each]}\n{text[-each:]}"


def question_terms(text: str, *, most: int = MOST_QUESTION_TERMS, today: date | None = None) -> QuestionTerms:
    """What to look up for a question, at most `most` words. Words that carry no meaning ("what", "the") are left out,
    unless all do, and so are greetings, and phrases that ask for what was said before (`TRIGGERS`), unless they are all
    that is left. With `today`, the day on which it is asked, the days that it names are looked up too.

    Takes any string; an empty one, or one of nothing but punctuation, has no terms.
    """
    # No question needs more than its beginning; the cap is on what is read, not only on what is kept.
    cased = lower(text[:MOST_CHARACTERS])
    language = language_of(cased)
    words = list(islice(words_of(without(cased, TRIGGERS) or cased, language, asked=True), 100 * most))
    telling = [word for word in words if not says_nothing(word, language)]
    beside_greetings = [word for word in telling if word.terms[0] not in _stems(GREETINGS)]
    chosen = dict.fromkeys([word.terms for word in beside_greetings or telling or words])
    terms: dict[str, int] = {}
    for number, forms in enumerate(islice(chosen, most)):
        for form in forms:
            terms.setdefault(form, number)
    capitalized = (match[0] for match in islice(_CAPITALISED.finditer(text), most))
    names = dict.fromkeys([*terms, *_names(" ".join(capitalized))])
    of_assistant = _ABOUT_THE_ASSISTANT.search(text) is not None
    days = () if today is None else named_days(text, today)
    beside = _beside(text, days)
    others: set[str] = set()
    if days:
        left = list(islice(words_of(lower(beside), language, asked=True), 100 * most))
        others.update(*(word.terms for word in left))
        beside = "" if all(says_nothing(word, language) for word in left) else beside
    return QuestionTerms(
        words=_hashed(terms),
        begins=np.flatnonzero(np.diff([*terms.values()], prepend=-1)),
        telling=any(_tells(word, language) for word in words),
        of_assistant=of_assistant,
        authors=_hashed([_AUTHOR + name for name in names][: len(terms) + most]),
        days=tuple(
            tuple(tuple(_hash(_DAY + term) for term in choice) for choice in expression.choices) for expression in days
        ),
        of_days=np.array([form not in others for form in terms], np.bool_) if days else None,
        beside_days=beside,
        role=_hash(_ROLE + (Role.ASSISTANT if of_assistant else Role.USER)),
    )


def telling_words(text: str, *, most: int) -> int:
    """How many words of a text say what it is about, at most `most`: none does in "Got it." or in "👍", one in "Nice to
    meet you." """
    cased = lower(text[:MOST_CHARACTERS])
    language = language_of(cased)
    telling = (word for word in words_of(cased, language, asked=True) if _tells(word, language))
    return sum(1 for _ in islice(telling, most))


def _tells(word: Word, language: str) -> bool:
    """Whether a word says what a text is about: no stop word does, no word of courtesy, and no sign."""
    return (
        not says_nothing(word, language)
        and word.terms[0] not in _stems(POLITE_WORDS)
        and any(character.isalnum() for character in word.text)
    )


def _beside(text: str, days: Sequence[NamedDays]) -> str:
    """The text without these expressions."""
    ends, starts = [0, *(one.end for one in days)], [*(one.start for one in days), len(text)]
    return "".join(text[end:start] for end, start in zip(ends, starts, strict=True))


def asks(text: str) -> bool:
    """Whether a text has a question mark, of any script, outside of addresses and paths."""
    return _QUESTION_MARK.search(_ADDRESS.sub("", text)) is not None


def topic(text: str, *, authors: Collection[int]) -> str:
    """The part of a question that goes to the embedder: the question without the names of authors (`authors` are those
    of its `QuestionTerms.authors` that some document has). Where it names no author, an English question loses the
    words inside it that look like names.

    In a vector that is a mean over words, a name drowns everything else. Empty if nothing is left but stop words and an
    author was named; if none was, a question that would be left empty stays as it is.
    """

    def kept(word: re.Match[str]) -> str:
        names = _names(word[1])
        return "" if names and all(_hash(_AUTHOR + name) in authors for name in names) else word[0]

    if authors:
        rest = _WORD.sub(kept, text)
    elif _ENGLISH.search(text):
        rest = _CAPITALISED.sub("", text)
    else:
        return text
    language = language_of(lower(text))
    if any(not says_nothing(word, language) for word in words_of(lower(rest), language, asked=True)):
        return rest
    return "" if authors else text


def _names(text: str) -> list[str]:
    """The terms of names."""
    return [word.terms[0] for word in words_of(lower(text[:MOST_CHARACTERS])) if not word.terms[0].startswith(PIECE)]


_WORD = re.compile(r"(\w{1,64})(?:['’]s\b)?")
# A capitalized word inside a sentence is taken for a name, even "Will" and "May", which are stop words otherwise. Not
# in a language that capitalizes other nouns too, as German does; a question with one of these words is English.
_CAPITALISED = re.compile(r"(?<=[\w,;:] )[A-Z]\w{1,63}(?:['’]s\b)?")
_ENGLISH = re.compile(r"\b(?:the|what|when|where|which|who|whose|why|how|did|does)\b", re.IGNORECASE)
# From its first slash to its last letter or digit. It matches at every slash, which keeps time linear.
_ADDRESS = re.compile(r"/(?:[\w.~:/?#@!$&*+,;=%-]*[\w/=])?", re.ASCII)
_QUESTION_MARK = re.compile("[?\uff1f\u061f\u055e\u1367]")
_AUTHOR, _ROLE, _DAY = "\x01", "\x02", "\x03"  # never part of a term of text
# "What did you recommend?", "the plan that you gave me", but not "can you tell me". English only: in other languages
# what the user said is preferred.
_ABOUT_THE_ASSISTANT = re.compile(
    r"\b(?:did|have|had|were) you\b|\byou (?:also )?(?:\w+ed|said|told|gave|wrote|made|found|had|taught)\b",
    re.IGNORECASE,
)


@cache
def _stems(those: frozenset[str]) -> frozenset[str]:
    return frozenset(word.terms[0] for word in words_of(" ".join(sorted(those))))


def _hashed(terms: Collection[str]) -> NDArray[np.int64]:
    return np.fromiter(map(_hash, terms), dtype=np.int64, count=len(terms))


@lru_cache(maxsize=50_000)
def _hash(term: str) -> int:
    encoded = term.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(encoded, digest_size=8).digest(), "big", signed=True)
