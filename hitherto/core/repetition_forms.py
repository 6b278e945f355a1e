"""The plain form of an English word: "lives", "lived" and "living" are "live"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from hitherto.core import repetition_words as tables

Form = Literal["past", "participle", "ing", "plain", "none"]
"""What an ending tells; "none" where it tells that a word is no verb."""


def plain_form(word: str) -> tuple[str, Form]:
    """One form for all forms of a word, not always as it is spelt, and what the ending of this one tells.

    Only endings of number and time are taken off: a stemmer's would make "late" of "lately" and one of "position" and
    "positive". American and British spelling come to the same.
    """
    known = _IRREGULAR.get(word)
    if known is not None:
        return known
    if len(word) <= 3 or not (word.isascii() and word.isalpha()) or word in _AS_THEY_ARE:
        return word, "plain"
    if word[-1] == "s" and word[-2] not in "su":
        return _single(word)
    if len(word) > 5:
        word = _BRITISH.sub(lambda found: "or" if found[0] == "our" else "iz", word)
    if word.endswith("ied"):
        return word[:-3] + "y", "past"
    form: Form = "past" if word.endswith("ed") else "ing" if word.endswith("ing") else "plain"
    bare = word.removesuffix("ed") if form == "past" else word.removesuffix("ing")
    if form != "plain" and len(bare) > 1 and bare[-1] != "e" and _VOWEL.search(bare):
        stem = _ended(_restored(bare))
    else:
        stem, form = _ended(word), "none" if _NOUN.search(word) else "plain"
    return _IRREGULAR_OF_STEM.get(stem, stem), form


def listed(table: str) -> Iterator[str]:
    """The entries of a table, which commas part."""
    return map(str.strip, table.split(","))


def _irregular() -> dict[str, tuple[str, Form]]:
    found: dict[str, tuple[str, Form]] = {}
    for entry in listed(tables.IRREGULAR):
        before, _, others = entry.partition("/")
        plain, *past = before.split()
        for other in others.split():
            found[other] = (plain, "plain" if other[-1] == "s" or other in ("are", "am") else "participle")
        found.update(dict.fromkeys(past, (plain, "past")))
        found[plain] = (plain, "past" if plain in past else "plain")
    return found


_BRITISH = re.compile(r"(?<=[a-z]{2})our(?=$|ed$|ing$|it|able|hood)|(?<=[a-z]{3})is(?=e$|ed$|ing$|ation$)")
_NOUN = re.compile(r"(?:[eo]r|ion|ment|ness|ity|ism|ist|hood|ship|ian)$")
_VOWEL = re.compile("[aeiouy]")
_SHORT = re.compile("[^aeiou]*[aeiouy][^aeiouwxy]")
"""Such a word lost its "e" before an ending: "hope", "hoping"; without one it would have been "hopping"."""

_AS_THEY_ARE = frozenset(
    [
        "always",
        "ceiling",
        "clothing",
        "during",
        "evening",
        "filming",
        "morning",
        "news",
        "shopping",
        "sibling",
        "wedding",
    ]
)
_IN_IE = frozenset(["brownie", "calorie", "cookie", "hoodie", "movie", "selfie", "smoothie", "zombie"])


def _single(word: str) -> tuple[str, Form]:
    if word.endswith("ings") and len(word) > 5:
        return word[:-1], "none"  # paintings and buildings are things, not what somebody does
    if word[:-1] in _IN_IE:
        single = word[:-1]
    elif word.endswith("ies") and len(word) > 4:
        single = word[:-3] + "y"
    elif word.endswith(("ches", "shes", "sses", "xes", "zzes")) or (word.endswith("oes") and len(word) > 5):
        single = word[:-2]
    else:
        single = word[:-1]
    return plain_form(single)[0], "none" if _NOUN.search(single) else "plain"


def _restored(bare: str) -> str:
    """What is left of a word without "-ed" or "-ing", as it was before it took that on."""
    if bare[-1] == bare[-2] and len(bare) > 3 and (bare[-1] not in "lsz" or len(bare) > 5):
        return bare[:-1]
    return bare + "e" if _SHORT.fullmatch(bare) else bare


def _ended(word: str) -> str:
    if len(word) > 5 and word.endswith("ll"):
        return word[:-1]
    if len(word) > 3 and word[-1] == "e" and word[-2] != "e" and not _SHORT.fullmatch(word[:-1]):
        return word[:-1]
    return word


_IRREGULAR = _irregular()
_IRREGULAR_OF_STEM = {_ended(plain): plain for plain, _ in _IRREGULAR.values()}
