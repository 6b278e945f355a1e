"""Trigger phrases, with which somebody asks for what was said in another conversation."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hitherto.core.plain_text import normalized

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


def without(text: str, phrases: Sequence[str]) -> str:
    """`text` without the phrases, word for word: the question itself is left. Empty if nothing else is left."""
    for phrase in phrases:
        if words := _WORD.findall(phrase):
            pattern = r"\b" * (not _UNSPACED.search(phrase)) + r"\W+".join(map(re.escape, words))
            text = re.sub(pattern, " ", text, flags=re.I)
    return text if _WORD.search(text) else ""


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
