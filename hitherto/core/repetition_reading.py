"""The words of a fact's sentence, each by what it means: endings, phrases and ways to count make no difference."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

from hitherto.core import repetition_words as tables
from hitherto.core.repetition_forms import Form, listed, plain_form
from hitherto.core.repetition_spelling import CHUNK, LONGEST, UNSPACED, digest, parts
from hitherto.core.repetition_subject import Opening, has_verb, is_object, opening

Number = Literal["", "one", "many", "agent", "object"]
"""One thing or many, where that can be seen; somebody called after what he does, or "by car" after how; or a pronoun
for him to whom something is done."""


class Word(NamedTuple):
    """One word: its plain form, the name of all words that mean the same, what its ending says of time, and whether it
    says so little that it may be missing."""

    lemma: str
    concept: str
    form: Form
    light: bool
    number: Number = ""


class Sentence(NamedTuple):
    """The words of a text in their order; what is written without spaces between words; whether it is English; and how
    it begins."""

    words: list[Word]
    unspaced: str
    english: bool
    opening: Opening


def concepts(words: str) -> frozenset[str]:
    """The concepts of single words, written in a row."""
    return frozenset(_word(word).concept for word in words.split())


def read(text: str) -> Sentence:
    """The words of a levelled text. Takes any, in time linear in its length."""
    chunks = CHUNK.findall(text)
    titled = len(chunks) > 2 and sum(chunk[0].isupper() for chunk in chunks) > 0.7 * len(chunks)
    unspaced: list[str] = []
    written: list[_Written] = []
    initial = True
    for raw in chunks:
        chunk = raw.rstrip(".:'*-") if raw[0] == "-" and raw[1:2].isdigit() else raw.strip(".:'*-")
        if not chunk.isascii() and UNSPACED.search(chunk):
            unspaced.append(chunk)
        elif chunk:
            first, *others = parts(chunk.casefold()) if len(chunk) <= LONGEST else (digest(chunk),)
            large = chunk[0].isupper()
            written.append(_Written(first, large, capital=large and not initial and not titled))
            written.extend(_Written(part, large=False, capital=False) for part in others)
        initial = raw[-1] in ".:"
    small = [one.surface for one in written]
    english = sum(word in _ENGLISH for word in small) >= sum(word in _FOREIGN for word in small)
    words = _phrased(_counted(_meant(written))) if english else [_foreign_word(word) for word in small]
    return Sentence(words, "".join(unspaced), english, opening(small) if english else "")


# --- from a word as it stands to what it means

_GROUPS: dict[str, str] = {}
_GROUP_OF_LEMMA: dict[str, str] = {}
for _group in map(str.split, listed(tables.GROUPS)):
    for _one in _group:
        _GROUPS[_one] = f"{_group[0]}~"
        _GROUP_OF_LEMMA.setdefault(plain_form(_one)[0], _GROUPS[_one])
_LIGHT = frozenset(tables.LIGHT.split())
_LIGHT_FOREIGN = frozenset(tables.LIGHT_FOREIGN.split())
_ENGLISH = frozenset(tables.ENGLISH.split())
_FOREIGN = frozenset(tables.FOREIGN.split())


@lru_cache(maxsize=20_000)
def _word(surface: str) -> Word:
    lemma, form = plain_form(surface)
    concept = _GROUPS.get(surface) or _GROUP_OF_LEMMA.get(lemma, lemma)
    many = surface[-1:] == "s" and lemma != surface
    return Word(lemma, concept, form, surface in _LIGHT, "many" if many else "")


def _foreign_word(surface: str) -> Word:
    return Word(surface, _GROUPS.get(surface, surface), "none", surface in _LIGHT_FOREIGN)


def _made(concept: str) -> Word:
    return Word(concept, concept, "none", light=False)


# --- from a text to its words


class _Written(NamedTuple):
    surface: str
    large: bool
    """Whether it has a capital."""
    capital: bool
    """Whether it has one though it does not start a sentence: a name, mostly."""


_NUMBERS = {
    **{word: str(number) for number, word in enumerate(tables.CARDINALS.split())},
    **{word: str(10 * number) for number, word in enumerate(tables.TENS.split(), 2)},
    **{word: f"#{number}" for number, word in enumerate(tables.ORDINALS.split())},
}
_TENFOLD = frozenset(_NUMBERS[word] for word in tables.TENS.split())
_MONTHS = frozenset(plain_form(word)[0] for word in tables.MONTHS.split())
_PERIODS = frozenset(plain_form(word)[0] for word in tables.PERIODS.split())
_IN_PLURAL = {f"{word}s": word for word in (*tables.WEEKDAYS.split(), "morning", "evening", "night", "weekend")}
_HABITUAL = {"daily": "day", "weekly": "week", "monthly": "month", "yearly": "year", "annually": "year"}
_PREPOSITIONS = frozenset(
    {"by", "in", "for", "within", "on", "of", "at", "about", "with", "from", "to", "before", "after"}
)
_EVERY = _word("every")
WEAK = concepts(tables.WEAK)
"""Concepts that one of two sentences may have beyond the other, if the whole is alike enough."""


def _meant(written: list[_Written]) -> Iterator[Word]:
    """The words, where it takes their neighbours to tell what they mean."""
    predicate = False
    surfaces = [one.surface for one in written]
    for at, (surface, _, capital) in enumerate(written):
        before = written[at - 1] if at else _NOTHING
        named = at + 1 < len(written) and written[at + 1].capital
        word = _word(surface)
        if not at and written[0].large and word.concept == word.lemma:
            word = word._replace(number="")  # "Nils" is a name and no verb
        special = _told_apart(written, surfaces, at)
        if surface in _IN_PLURAL or surface in _HABITUAL:
            if not (before.surface in _NUMBERS or before.surface.isdigit() or before.surface in _EACH):
                yield _EVERY
            yield _word(_IN_PLURAL.get(surface) or _HABITUAL[surface])
        elif special is not None:
            yield special
        elif capital and surface not in ("i", "user", "users"):
            hidden = word.light or word.concept in WEAK
            number = "" if surface[-1] == "s" else "one"
            yield Word(word.lemma, f"^{word.concept}" if hidden else word.concept, "none", light=False, number=number)
        elif named and word.concept == _LIKE and word.lemma == "love":
            yield word._replace(concept="love")  # to love somebody is more than to like him
        elif surface.endswith("ing") and before.surface in ("a", "an", "another") and word.form == "ing":
            yield Word(word.lemma, surface, "none", light=False)  # "a painting" is no painting
        elif surface in _AGENTS and predicate:
            yield _word(_AGENTS[surface])._replace(form="none", number="agent")
        else:
            yield word
        predicate = word.lemma == "be" or surface == "as" or (predicate and surface not in _NO_PREDICATE)


def _told_apart(written: list[_Written], surfaces: list[str], at: int) -> Word | None:
    """What a small word means whose neighbours make it another than it is by itself."""
    surface, word = surfaces[at], _word(surfaces[at])
    before = written[at - 1] if at else _NOTHING
    after = written[at + 1] if at + 1 < len(written) else _NOTHING
    if surface in ("called", "named") and _gives_name(before, after) and has_verb(surfaces[:at]):
        return _NAMING
    if surface in ("few", "little") and before.surface not in _SOME:
        return Word(surface, f"{surface}-", "none", light=False)  # "few" is hardly any, "a few" are some
    if surface == "only" and after.surface in ("a", "an"):
        return word._replace(concept="merely")  # "the only doctor" is not "only a doctor"
    if surface == "too" and after is not _NOTHING:
        return word._replace(light=False)  # "too much" is more than much
    if is_object(surfaces, at):
        return word._replace(number="object")
    return None


_NOTHING = _Written("", large=False, capital=False)
_NAMING = Word("called", "called", "none", light=True)
_SOME = frozenset({"a", "the", "his", "her", "my", "their", "our", "your", "'s", "last", "next", "first", "past"})
_LIKE = _word("like").concept
_EACH = frozenset({"every", "each", "per"})
_AGENTS = {name: verb for name, _, verb in (entry.partition(" ") for entry in listed(tables.AGENTS))}
_NO_PREDICATE = _PREPOSITIONS | {"his", "her", "my", "their", "our", "your", "'s", "that", "who", "and"}


def _gives_name(before: _Written, after: _Written) -> bool:
    """Whether "called" stands as in "is called Rex" or "a dog called Rex", and not as in "he called Rex"."""
    if plain_form(before.surface)[0] == "be":
        return after.capital or after.surface in ("a", "the")
    return after.capital and not before.large and bool(before.surface) and before.surface not in _LIGHT


def _counted(meant: Iterator[Word]) -> list[Word]:
    """Numbers in one form, and "each", "per" and "a" day as "every" day; articles are left out."""
    words = list(meant)
    dated = any(word.lemma in _MONTHS for word in words)
    counted = False
    found: list[Word] = []
    for at, word in enumerate(words):
        lemma = word.lemma
        number = _NUMBERS_OF_LEMMAS.get(lemma)
        if number is not None:
            if found and found[-1].lemma in _TENFOLD and len(number.lstrip("#")) == 1:
                tens = int(found.pop().lemma)
                number = f"{'#' * (number[0] == '#')}{tens + int(number.lstrip('#'))}"
            counted = counted or number != "1"
            found.append(word if number == "1" else _made(number))
        elif lemma in _TIMES:
            found += [*_TIMES[lemma], _word("time")]
            counted = True
        elif lemma[0] == "#" and dated:
            found.append(_made(lemma[1:]))
        elif lemma in _EACH_LEMMAS:
            after = words[at + 1].lemma if at + 1 < len(words) else ""
            found.append(_made("each") if after in _NUMBERS_OF_LEMMAS or after[:1].isdigit() else _EVERY)
        elif lemma in ("a", "an", "the"):
            after = words[at + 1].lemma if at + 1 < len(words) else ""
            if counted and lemma != "the" and after in _PERIODS and words[at - 1].lemma not in _PREPOSITIONS:
                found.append(_EVERY)
        else:
            counted = counted or lemma[0].isdigit()
            last = at + 1 == len(words) or words[at + 1].light
            single = last and not word.number and at and words[at - 1].lemma in _OF_ONE
            found.append(word._replace(number="one") if single else word)
    return found


_OF_ONE = frozenset({"a", "an", "one", "another", "his", "her", "my", "their", "our", "your", "'s"})
_TIMES = {plain_form("once")[0]: [], plain_form("twice")[0]: [_made("2")]}
_NUMBERS_OF_LEMMAS = {plain_form(word)[0]: number for word, number in _NUMBERS.items()}
_EACH_LEMMAS = frozenset(plain_form(word)[0] for word in _EACH)

_Phrase = tuple[tuple[str, ...], tuple[Word, ...]]


def _phrases() -> dict[str, list[_Phrase]]:
    found: dict[str, list[_Phrase]] = {}
    for line in listed(tables.PHRASES):
        said, _, meant = line.partition("=")
        lemmas = tuple(plain_form(word)[0] for word in said.split())
        found.setdefault(lemmas[0], []).append((lemmas, tuple(_word(word) for word in meant.split())))
    for those in found.values():
        those.sort(key=lambda phrase: -len(phrase[0]))
    return found


_PHRASES = _phrases()


def _phrased(words: list[Word]) -> list[Word]:
    found: list[Word] = []
    at = 0
    while at < len(words):
        word = words[at]
        for said, meant in _PHRASES.get(word.lemma, ()):
            if tuple(one.lemma for one in words[at : at + len(said)]) == said:
                found.extend(_inflected(meant, words[at : at + len(said)]))
                at += len(said)
                break
        else:
            found.append(word)
            at += 1
    return found


def _inflected(meant: tuple[Word, ...], said: list[Word]) -> list[Word]:
    """What a phrase means, its verb in the form of the verb that was said."""
    verb = next((word for word in said if word.form in ("past", "ing")), said[0])
    form = "none" if said[0].lemma in _PREPOSITIONS else verb.form
    number = "agent" if said[0].lemma == "by" else "many" if verb.number == "many" else ""  # goes to work by car
    place = next((at for at, word in enumerate(meant) if word.lemma != "not" and word.form != "none"), -1)
    return [word._replace(form=form, number=number) if at == place else word for at, word in enumerate(meant)]
