"""The language of a text, and stems of words in it, by Snowball."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from threading import local
from typing import cast

from hitherto.core.recall.stopwords import OF_LANGUAGES, STOP_WORDS

ENGLISH = "english"
UNKNOWN = ""

_READ = 1_000
"""Characters of a text that tell its language."""

_ENGLISH_TOO = "bet bye care come con die hi kit man men met mine need non per pro see son take thanks ve war ya"
"""Common words of English, most of them stop words of another language."""

_LETTERS = {
    "spanish": "áéíñóúü",
    "portuguese": "áâãàçéêíóôõú",
    "french": "àâæçéèêëîïôœùûüÿ",
    "german": "äöü",
    "turkish": "çğıöşüâî",
    "italian": "àèéìòù",
    "indonesian": "",
    "polish": "ąćęłńóśźż",
    "dutch": "éëïóöü",
    "romanian": "ăâîșşțţ",
    "swedish": "åäöé",
    "czech": "áčďéěíňóřšťúůýž",
    "hungarian": "áéíóöőúüű",
    "danish": "æøåé",
    "finnish": "äöå",
    "norwegian": "æøåé",
    "catalan": "àçèéíïòóúü",
    "lithuanian": "ąčęėįšųūž",
    "estonian": "äõöüšž",
}
"""The letters beyond a to z that languages have, in lower case, where ß is ss."""

_BEYOND = re.compile("[\u00df-\u00f6\u00f8-\u024f]")
_WORD = re.compile(r"[^\W\d_]{2,}")


def _languages_by_word() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = dict.fromkeys([*STOP_WORDS, *_ENGLISH_TOO.split()], (ENGLISH,))
    for language, words in OF_LANGUAGES.items():
        for word in words.split():
            found[word] = (*found.get(word, ()), language)
    return found


_LANGUAGES = _languages_by_word()
_OF_ENGLISH = frozenset(word for word, languages in _LANGUAGES.items() if ENGLISH in languages)
_OF_OTHERS = frozenset(word for word, languages in _LANGUAGES.items() if languages != (ENGLISH,))


def language_of(text: str) -> str:
    """The language of a text in Latin letters, if it has a stemmer, by its stop words and its letters; UNKNOWN where
    nothing tells it. `text` is in lower case, with its accents; its beginning is read."""
    text = text[:_READ]
    words = set(_WORD.findall(text))
    others, english = words & _OF_OTHERS, len(words & _OF_ENGLISH)
    if english and english > len(others):  # no other can have more votes
        return ENGLISH
    votes = Counter(language for word in others for language in _LANGUAGES[word])
    votes[ENGLISH] = english
    if beyond := set(_BEYOND.findall(text)):
        fitting = [language for language, letters in _LETTERS.items() if beyond.issubset(letters)]
        # One vote for the letters, if there are words too, or if no other language has them.
        voted = {one: votes[one] + 1 for one in fitting if votes[one] or len(fitting) == 1}
        votes = Counter({ENGLISH: english, **voted})
    best = max(votes.values(), default=0)
    return next(one for one in (ENGLISH, *OF_LANGUAGES) if votes[one] == best) if best else UNKNOWN


_OF_LETTERS = (
    (re.compile("[\u0400-\u04ff]"), "russian"),
    (re.compile("[\u0370-\u03ff\u1f00-\u1fff]"), "greek"),
    (re.compile("[\u0530-\u058f]"), "armenian"),
    (re.compile("[\u0620-\u06ff]"), "arabic"),
    (re.compile("[\u0900-\u097f]"), "hindi"),
    (re.compile("[\u0b80-\u0bff]"), "tamil"),
)


def stem(word: str, language: str = ENGLISH) -> str:
    """The stem of a word in lower case: in Latin letters that of `language` (of UNKNOWN, the English one), in others
    that of the language which most uses them. Where there is no stemmer, the word."""
    if not word.isascii():
        for letter, other in _OF_LETTERS:
            if letter.match(word):
                return _snowball.stem(word, other) or word
        if language in (ENGLISH, UNKNOWN):
            return word
    return _snowball.stem(word, language or ENGLISH)


class _PerThread(local):
    """Snowball's stemmers keep state while they work: each thread has its own."""

    def __init__(self) -> None:
        self._by_language: dict[str, Callable[[str], str]] = {}

    def stem(self, word: str, language: str) -> str:
        stemmer = self._by_language.get(language)
        if stemmer is None:
            import Stemmer

            stemmer = cast("Callable[[str], str]", Stemmer.Stemmer(language).stemWord)
            self._by_language[language] = stemmer
        return stemmer(word)


_snowball = _PerThread()
