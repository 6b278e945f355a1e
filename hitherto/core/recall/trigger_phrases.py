"""Trigger phrases, with which somebody asks for what was said in another conversation."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hitherto.core.normalization import normalized

TRIGGERS = (
    "what did we discuss",
    "previous conversation",
    "last time",
    "remind me",
    "we mentioned",
    "earlier you said",
)
"""The default of the setting `search_triggers`."""

_WORD = re.compile(r"[^\W_]+")


def triggered(text: str, phrases: Sequence[str]) -> str | None:
    """The first of `phrases` that occurs in `text` word for word, whatever the case and the punctuation; None if none
    does. A phrase without any word never occurs.

    Where words are not separated by spaces, as in Chinese, a phrase may occur anywhere in a word.
    """
    said = _words(text)
    return next((phrase for phrase in phrases if _is_in(_words(phrase), said)), None)


def without(text: str, phrase: str) -> str:
    """`text` without the first occurrence of `phrase`, word for word: the question itself is left. All of `text` if
    nothing else is left."""
    words = _WORD.findall(phrase)
    if not words:
        return text
    left = re.sub(
        r"\b" * (not _UNSPACED.search(phrase)) + r"\W+".join(map(re.escape, words)), " ", text, count=1, flags=re.I
    )
    return left if _WORD.search(left) else text


def _words(text: str) -> str:
    """The words of a text, each between two spaces."""
    folded = normalized("NFKC", text).casefold().replace("’", "'").replace("'", "")
    return f" {' '.join(_WORD.findall(folded))} "


def _is_in(phrase: str, said: str) -> bool:
    wanted = phrase.strip()
    if not wanted:
        return False
    return wanted in said if _UNSPACED.search(wanted) else phrase in said


_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
"""Thai, Lao, Burmese, Khmer, kana and Han."""
