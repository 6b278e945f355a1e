"""Topics and names of texts, by how often words occur: how `extractive` fills an archive."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice, pairwise

from hitherto.core.recall.stopwords import STOP_WORDS
from hitherto.providers.extractive.sentences import sentences

_MOST = 6
_TWICE = 2
_LONGEST = 60
"""Characters of a word that still passes for one."""

_WORD = re.compile(r"[^\W\d_](?:[\w'’-]*\w)?")


def topics(texts: Iterable[str]) -> list[str]:
    """The most frequent words of more than three letters, at least twice each; words of the same count in the order in
    which they first occur. Names and English stop words are left out."""
    counted: Counter[str] = Counter()
    named: set[str] = set()
    for words in _sentences(texts):
        named.update(word.casefold() for word in _capitals(words))
        counted.update(word.casefold() for word in words if len(word) > 3)
    frequent = (word for word, times in counted.most_common() if times >= _TWICE)
    return list(islice((word for word in frequent if not _is_common(word) and word not in named), _MOST))


def names(texts: Iterable[str]) -> list[str]:
    """The most frequent runs of capitalized words that do not begin a sentence, at least twice each."""
    counted: Counter[str] = Counter()
    for words in _sentences(texts):
        counted.update(_runs(words))
    return [name for name, times in counted.most_common() if times >= _TWICE][:_MOST]


def _sentences(texts: Iterable[str]) -> Iterable[Sequence[str]]:
    for text in texts:
        for sentence in sentences(text):
            yield [word for word in _WORD.findall(sentence) if len(word) <= _LONGEST]


def _capitals(words: Sequence[str]) -> list[str]:
    """Capitalized words that do not begin a sentence. In German these are all nouns, not only names."""
    return [word for _, word in pairwise(words) if word[0].isupper() and not _is_common(word.casefold())]


def _runs(words: Sequence[str]) -> list[str]:
    found: list[list[str]] = []
    running = False
    for at, word in enumerate(words):
        is_name = at > 0 and word[0].isupper() and not _is_common(word.casefold())
        if is_name and running:
            found[-1].append(word)
        elif is_name:
            found.append([word])
        running = is_name
    return [" ".join(run) for run in found]


def _is_common(word: str) -> bool:
    return re.sub(r"['’]", "", word) in STOP_WORDS
