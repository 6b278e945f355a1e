"""A fact's sentence taken apart: the words that tell something, how often it denies, and who stands where."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

from hitherto.core import repetition_words as tables
from hitherto.core.repetition_forms import listed, plain_form
from hitherto.core.repetition_reading import Sentence, Word, concepts, read
from hitherto.core.repetition_spelling import level
from hitherto.core.repetition_subject import Opening

_LONGEST = 1_000
"""Characters of a sentence whose words are read."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A fact's sentence, taken apart once; cheap to compare.

    `folded` is the text in one case and width, `concepts` the words that tell something, those of one meaning under one
    name, and `order` the same as they follow each other. `unspaced` is what is written without spaces between words.
    `leads` has for each word of `order` the light ones between it and the word before. `marks` says of single words in
    what part they stand: after "from", before "'s", in the past. `builders` are the words that build the sentence
    ("or", "by"; "him", with the words before it), sorted, and `opening` says how it begins. Only if `whole` has all of
    the text been read.
    """

    folded: str
    concepts: frozenset[str]
    order: tuple[str, ...]
    leads: tuple[tuple[str, ...], ...]
    negations: int
    unspaced: str
    marks: tuple[tuple[str, str], ...]
    builders: tuple[str, ...]
    opening: Opening
    whole: bool

    def marked(self, mark: str) -> frozenset[str]:
        """The words that stand in this part."""
        return frozenset(concept for each, concept in self.marks if each == mark)


def statement(text: str) -> Statement:
    """Take a fact's sentence apart. Takes any string; of one above 1,000 characters, only the beginning is read.

    It takes 40 microseconds for a sentence of seven words and up to 100 for one of fifteen: what is compared more than
    once is worth keeping.
    """
    levelled = level(text)
    sentence = read(levelled[:_LONGEST])
    gathered = _Gathered(sentence)
    same, denials = _same_unspaced(sentence.unspaced) if sentence.unspaced else ("", 0)
    return Statement(
        folded=_folded(levelled),
        concepts=frozenset(gathered.order) | frozenset(same),
        order=tuple(gathered.order),
        leads=tuple(gathered.leads),
        negations=gathered.negations + denials,
        unspaced=same,
        marks=tuple(gathered.marks),
        builders=tuple(sorted(gathered.builders)),
        opening=sentence.opening,
        whole=len(levelled) <= _LONGEST,
    )


def fingerprint_of_fact(text: str) -> str:
    """SHA-256, in hex, of the text without what makes no difference to a reader: case, width, spacing, invisible
    characters, the kind of quotation marks and dashes, and stops at the end."""
    return sha256(_folded(level(text)).encode("utf-8", "surrogatepass")).hexdigest()


def _folded(levelled: str) -> str:
    return " ".join(levelled.casefold().split()).rstrip(" .!,;:…。")


AGREEING = frozenset({"subject", "gender", "spouse"})
"""Marks of the whole sentence: who it is about, as far as a pronoun or a husband tells."""

OPPOSED = (
    *(("past", "plain"), ("perfect", "past"), ("passive", "active"), ("doing", "thing")),
    *(("one", "many"), ("is", "has"), ("aimed", "doing")),
)
"""Marks that no word has one of here and one of there: lived and lives, was hired and hired, fishing and a fish; is a
friend and has a friend, stopped to smoke and stopped smoking."""

_PERSONS: dict[str, list[tuple[str, str]]] = {}
for _name, *_told in map(str.split, listed(tables.PERSONS)):
    _PERSONS[_name] = [(kind, value) for kind, _, value in (one.partition(":") for one in _told)]
_NEGATIONS = frozenset(tables.NEGATIONS.split())
_NEGATIONS_FOREIGN = frozenset(tables.NEGATIONS_FOREIGN.split())
_DIRECTIONS = frozenset(tables.DIRECTIONS.split())
_TIMELESS_AFTER = frozenset(tables.TIMELESS_AFTER.split())
_AUXILIARIES = frozenset({"be", "have", "get"})
_SUBJECTS = frozenset({"he", "she", "i", "we", "they", "you", "who", "which", "that"})
_THAN = {"to": "than", "over": "than"}
"""To prefer tea to coffee, or over coffee, is to like it better than coffee."""

_PLACES = {"in": "at", "on": "at"}
TEMPORAL = concepts(f"{tables.PERIODS} {tables.MONTHS} {tables.WEEKDAYS} every time")
"""What says when, which may stand anywhere in a sentence."""

MONTHS = concepts(tables.MONTHS)
_VERBS = concepts(tables.VERBS)
(_WORK,) = concepts("work")
(_FREELANCE,) = concepts("freelance")
(_PREFER,) = concepts("prefer")
(_EVERY,) = concepts("every")
_BUILDERS = frozenset(tables.BUILDERS.split())
_TO_OR_NOT = concepts(tables.TO_OR_NOT)
_REFLEXIVE = frozenset(plain_form(word)[0] for word in tables.REFLEXIVE.split())
_HABIT = concepts("every always usually")


class _Gathered:
    """What the words of a sentence come to, one after the other."""

    def __init__(self, sentence: Sentence) -> None:
        self.order: list[str] = []
        self.leads: list[tuple[str, ...]] = []
        self.builders: list[str] = []
        self._lead: list[str] = []
        """The light words since the last of the others."""
        self.negations = 0
        self.marks: list[tuple[str, str]] = []
        self._waiting: list[str] = []
        """What marks the next word that tells something."""
        self._helpers: tuple[str, ...] = ()
        """The auxiliaries just before."""
        self._owner = ""
        """The word just before, if it may own something."""
        self._verb = False
        """Whether the verb has come: what ends in "s" before it is taken for it, and after it for many things."""
        self._was = False
        self._subject = False
        """Whether the word just before was "he" or the like."""
        self._denied = 0
        """How many of the next words are denied."""
        self._denying = _NEGATIONS if sentence.english else _NEGATIONS_FOREIGN
        for word in sentence.words:
            self._add(word)
        if "would" in self.order and not _HABIT.isdisjoint(self.order):
            self._remove("would")  # "would play every Sunday" is "played every Sunday"
        if not any(mark == "for" and word[-1].isdigit() for mark, word in self.marks) and "since" not in self.order:
            # "Has opened" is "opened", but who has lived there for two years still does.
            self.marks = [("past" if mark == "perfect" else mark, word) for mark, word in self.marks]

    def _add(self, word: Word) -> None:
        lemma, concept = word.lemma, word.concept
        if lemma == "'s":
            if self._owner:
                self.marks.append(("'s", self._owner))
            self._lead.append(lemma)
            return
        self._owner = "" if word.light else concept
        if lemma in self._denying:
            self.negations += 1
            self._denied = 2 if lemma in ("not", "never") else 1  # eats no meat, does not eat meat
            return
        self._mark(word)
        preferring = _PREFER in self.order
        if word.light or (preferring and lemma == "over"):
            self._waiting = [mark for mark in self._waiting if not mark[-1].isdigit()]
            if lemma in _DIRECTIONS or lemma == "called" or not word.light:
                self._waiting.append(_THAN.get(lemma, lemma) if preferring else _PLACES.get(lemma, lemma))
            elif lemma == "as" and _WORK in self.order:
                self._remove(_WORK)  # works at Acme as a nurse
                return
            meant = _THAN.get(lemma, lemma) if preferring else lemma
            self._build(word, meant)
            self._lead.append(meant)
            return
        dated = bool(self.order) and self.order[-1] in MONTHS
        self._place(word)
        if self._denied:
            self.marks.append(("not", concept))
            self._denied -= 1
        if concept != _EVERY:
            digits = concept[-1].isdigit()
            loose = digits or concept in TEMPORAL
            self.marks.extend(
                (mark, concept)
                for mark in self._waiting
                if not (digits and mark[-1].isdigit()) and not (loose and mark == "at")
            )
            self._waiting = [concept] if digits and not dated else []

    def _place(self, word: Word) -> None:
        """Note what leads a word that tells something."""
        lead = self._lead
        auxiliary = next((one for one in reversed(lead) if one in ("be", "have")), "")
        if auxiliary and not self._denied and word.form in ("plain", "none"):
            self.marks.append(("is" if auxiliary == "be" else "has", word.lemma))
        if self.order and self.order[-1] in _TO_OR_NOT and word.form == "plain" and "to" in lead:
            self.marks.append(("aimed", word.lemma))
        self.order.append(word.concept)
        self.leads.append(tuple(lead))
        self._lead = []

    def _build(self, word: Word, lemma: str) -> None:
        """Note a light word if it builds the sentence."""
        led = next((one for one in reversed(self._lead) if one in _DIRECTIONS), "")
        if word.number == "object" or (lemma in _REFLEXIVE and (led or not self._lead)):
            kind = "self" if lemma in _REFLEXIVE else "them"
            self.builders.append(f"{kind} {led} {''.join(self.order[-1:])}")
        elif lemma in _BUILDERS and not (lemma == "as" and _FREELANCE in self.order):
            self.builders.append(lemma)

    def _remove(self, concept: str) -> None:
        at = self.order.index(concept)
        del self.order[at]
        lead = self.leads.pop(at)
        if at < len(self.leads):
            self.leads[at] = lead + self.leads[at]
        else:
            self._lead[:0] = lead

    def _mark(self, word: Word) -> None:
        """What the form of a word and the auxiliaries before it say."""
        lemma, concept, form, number = word.lemma, word.concept, word.form, word.number
        helpers = self._helpers
        counted = bool(self.order) and self.order[-1][-1].isdigit()
        timeless = not _TIMELESS_AFTER.isdisjoint(helpers)  # "likes to read" is not "read"
        done = (form == "past" and not timeless) or (form == "participle" and "have" in helpers)
        if form in ("past", "participle") and ("be" in helpers or "get" in helpers):
            self.marks.append(("passive", concept))
        elif done or (form == "plain" and number == "many" and not self._verb and not counted):
            time = "perfect" if "have" in helpers else "past" if done else "plain"
            self.marks += [(time, concept), ("active", concept), ("doing", lemma)]
            self._was = self._was or (done and lemma == "be")
        elif form == "plain" and not timeless:
            self.marks.append(("plain", concept))
            if self._verb and not word.light:
                self.marks.append(("thing", lemma))
        elif form == "ing":
            self.marks.append(("doing", lemma))
            if "be" in helpers and "have" not in helpers:
                self.marks.append(("past" if self._was else "plain", concept))
        if number == "one" or (number == "many" and self._verb):
            self.marks.append((number, lemma))
        elif number == "agent":
            self.marks.append((number, concept))
        self.marks += _PERSONS.get(lemma, ())
        if lemma in _SUBJECTS:
            self._verb = False
        elif form == "past" or number == "many" or lemma in _AUXILIARIES:
            self._verb = True
        elif form == "plain" and not word.light:
            self._verb = self._verb or self._subject or concept in _VERBS or timeless
        self._subject = lemma in _SUBJECTS
        self._helpers = (*helpers, lemma) if lemma in _AUXILIARIES or lemma in _TIMELESS_AFTER else ()


_SAME_UNSPACED = [entry.split() for entry in listed(tables.UNSPACED)]
_LEFT_OUT_UNSPACED = str.maketrans(dict.fromkeys(tables.UNSPACED_LIGHT + tables.UNSPACED_NEGATIONS, ""))


def _same_unspaced(text: str) -> tuple[str, int]:
    """What is written without spaces, words of one meaning in one form and light ones left out; how often it denies."""
    for said, meant in _SAME_UNSPACED:
        text = text.replace(said, meant)
    return text.casefold().translate(_LEFT_OUT_UNSPACED), sum(map(text.count, tables.UNSPACED_NEGATIONS))
