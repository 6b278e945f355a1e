"""Whether a sentence leaves out whom it is about, and whether something is done to whom a pronoun in it means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from hitherto.core import repetition_words as tables
from hitherto.core.repetition_forms import plain_form

Opening = Literal["left out", "subject", ""]
"""Whether a sentence begins as one that leaves its subject out, or calls it "she" or "the user", and goes on with "is"
or "has"; with another subject; or otherwise."""


def opening(surfaces: Sequence[str]) -> Opening:
    """How a sentence of these words begins."""
    words = [word for word in surfaces[:4] if word not in _ARTICLES]
    if words and words[0] in _SUBJECTS and words[1:2] != ["'s"]:
        return "left out" if plain_form("".join(words[1:2]))[0] in _AUXILIARIES else ""
    if not words or plain_form(words[0])[0] in _AUXILIARIES:
        return "left out" if words else ""
    if words[0] in _OWNERS or words[0] in _USER:
        return "subject"
    return "" if words[0] in _LIGHT or _is_verbal(words[0]) or words[0] in _WHEN else "subject"


def is_object(surfaces: Sequence[str], at: int) -> bool:
    """Whether something is done to whom the word at this place means, if it is a pronoun or the user."""
    word = surfaces[at]
    if word in _OBJECTS:
        return True
    if word not in _USER and word != "her":
        return False
    if word in _USER and (at < 2 or "of" in surfaces[at - 2 : at]):
        return False
    return at + 1 == len(surfaces) or surfaces[at + 1] in _BEHIND_OBJECT


def has_verb(surfaces: Sequence[str]) -> bool:
    """Whether one of the words may be a verb: "has a cat called Ana" has one before "called", "the cat called" none."""
    return any(plain_form(word)[0] in _AUXILIARIES or _is_verbal(word) for word in surfaces)


def _is_verbal(word: str) -> bool:
    lemma, form = plain_form(word)
    return form in ("past", "ing") or (word[-1] == "s" and lemma != word and form != "none") or lemma in _VERBS


_ARTICLES = frozenset({"a", "an", "the"})
_USER = frozenset({"user", "users"})
_SUBJECTS = frozenset({"he", "she", "i", "we", "they", "you"}) | _USER
_OWNERS = frozenset({"his", "her", "my", "their", "our", "your"})
_OBJECTS = frozenset({"him", "them", "me", "us"})
_AUXILIARIES = frozenset({"be", "have", "do", "get"})
_LIGHT = frozenset(tables.LIGHT.split())
_VERBS = frozenset(tables.VERBS.split())
_WHEN = frozenset(f"{tables.PERIODS} {tables.MONTHS} {tables.WEEKDAYS} {tables.CARDINALS} every last".split())
_BEHIND_OBJECT = _ARTICLES | frozenset(tables.BEHIND_OBJECT.split())
