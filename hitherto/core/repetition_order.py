"""Whether two sentences of the same words have one structure: who does it to whom, what belongs to what.

Facts leave their subject out ("Plays the cello."), and the same words in another order are another fact: "Paid Ben
back." and "Ben paid back." So two sentences must have their words in one order and agree in the small words that build
them ("by", "or", "than"), but for what can move and say the same: when and where ("In Rome he met Ana."), the two sides
of an "is" ("Ana is his boss.", "His boss is Ana."), what may stand in front of a noun or behind it ("a peanut allergy",
"allergic to peanuts"), and the two of whom each is to the other what the other is to him ("Ana and Ben are engaged.").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hitherto.core import repetition_words as tables
from hitherto.core.repetition_reading import concepts
from hitherto.core.repetition_statement import MONTHS, TEMPORAL, Statement


def same_structure(one: Statement, other: Statement, shared: frozenset[str]) -> bool:
    """Whether the words that both have stand in the same places, as far as it changes who does what to whom."""
    mutual = _NONE
    if one.builders != other.builders:
        mutual = _MUTUAL & shared
        if not (_are_mutual(one, other, mutual) or _are_mutual(other, one, mutual)):
            return False
    if _subject_lost(one, other) or _subject_lost(other, one):
        return False
    agents = one.marked("agent") ^ other.marked("agent")
    first, second = (_Placed(each, shared - agents - mutual) for each in (one, other))
    if first.order == second.order:
        return not _led_otherwise(first, second)
    if len(first.order) > _MOST_PLACED or Counter(first.order) != Counter(second.order):
        return False
    return (
        _sides_changed(first, second)
        or _compound(first, second)
        or _compound(second, first)
        or _moved(first, second)
        or _moved(second, first)
    )


class _Placed:
    """The words of a sentence that have a place in it, and what leads each; what says when may stand anywhere."""

    def __init__(self, statement: Statement, placed: frozenset[str]) -> None:
        dated = not MONTHS.isdisjoint(statement.order)
        self.order: list[str] = []
        self.leads: list[tuple[str, ...]] = []
        self.active = statement.marked("active")
        lead: tuple[str, ...] = ()
        for at, (concept, led) in enumerate(zip(statement.order, statement.leads, strict=True)):
            last = concept in _LAST and not TEMPORAL.isdisjoint(statement.order[at + 1 : at + 2])
            if last or concept in TEMPORAL or (concept[-1].isdigit() and (dated or _is_year(concept))):
                lead = ()
            elif concept == _OWN and not _OWNED.isdisjoint(led):
                lead += led  # a studio of his own
            elif concept in placed:
                self.order.append(concept)
                self.leads.append(lead + led)
                lead = ()
            else:
                lead += led


def _is_year(concept: str) -> bool:
    return len(concept) == 4 and concept.isdigit() and concept[0] in "12"


def _are_mutual(one: Statement, other: Statement, mutual: frozenset[str]) -> bool:
    """Whether the one says "Ana and Ben are engaged" and the other "Ana is engaged to Ben"."""
    if Counter(one.builders) != Counter([*other.builders, "and"]):
        return False
    joined = next((at for at, lead in enumerate(one.leads) if "and" in lead), 0)
    partner = one.order[joined] if one.order else ""
    return any(
        0 < joined < one.order.index(word) and partner in other.order[other.order.index(word) :] for word in mutual
    )


def _subject_lost(one: Statement, other: Statement) -> bool:
    """Whether the one tells of the user ("Has Ben's car.") what the other tells of somebody else ("Ben has a car.").

    "Has a dog called Rex" and "The dog is called Rex" are one, and so are "Is married to Ben" and "Her husband is Ben".
    """
    if one.opening != "left out" or other.opening != "subject":
        return False
    named = one.marked("called") & other.marked("called")
    return not named and bool(one.marked("spouse")) == bool(other.marked("spouse"))


def _led_otherwise(one: _Placed, other: _Placed) -> bool:
    """Whether a word that has a preposition in the one has none in the other: believes Ben, believes in Ben."""
    for lead, there in zip(one.leads[1:], other.leads[1:], strict=True):
        if _LED.isdisjoint(lead) != _LED.isdisjoint(there) and not (_verbal(lead) or _verbal(there)):
            return True
        if ("of" in lead) != ("of" in there) and _OWNED.isdisjoint(lead) != _OWNED.isdisjoint(there):
            return True  # is proud of her son, is her proud son
    return False


def _sides_changed(one: _Placed, other: _Placed) -> bool:
    """Whether what stands before "is" in the one stands behind it in the other, and somebody's it is."""
    at, there = (next((at for at, lead in enumerate(each.leads) if "be" in lead), 0) for each in (one, other))
    if not at or not there or not any(not _OWNED.isdisjoint(lead) for each in (one, other) for lead in each.leads):
        return False
    return one.order[:at] == other.order[there:] and one.order[at:] == other.order[:there]


def _compound(one: _Placed, other: _Placed) -> bool:
    """Whether what the one has behind a word ("allergic to peanuts") stands right in front of it in the other."""
    for at, lead in enumerate(one.leads):
        if at and len(lead) == 1 and lead[0] in _COMPOUNDING:
            for end in range(at + 1, len(one.order) + 1):
                if end < len(one.order) and not one.leads[end]:
                    continue  # the memory of a bad school is no bad memory of school
                modifier = one.order[at:end]
                head = one.order[at - 1]
                if [*one.order[: at - 1], *modifier, head, *one.order[end:]] != other.order:
                    continue
                behind = at - 1 + len(modifier)
                led = (set(lead) & _COMPOUNDING for lead in (one.leads[at - 1], other.leads[at - 1]))
                if len({*map(frozenset, led)}) > 1:
                    return False  # wants Ben to leave, wants to leave Ben
                noun = head not in other.active or "'s" in other.leads[behind]
                return noun and all(lead in _TOGETHER for lead in other.leads[at : behind + 1])
    return False


def _moved(one: _Placed, other: _Placed) -> bool:
    """Whether a single phrase such as "in Rome" stands elsewhere, over more than other such phrases."""
    for start in range(len(one.order)):
        if not _at(one.leads[start]):
            continue
        for end in range(start + 1, len(one.order) + 1):
            phrase = one.order[start:end]
            there = next((at for at in range(len(other.order)) if other.order[at : at + len(phrase)] == phrase), None)
            if there is None or any(_at(lead) or _verbal(lead) for lead in one.leads[start + 1 : end]):
                break
            if not (_at(one.leads[start]) & _at(other.leads[there])) or any(
                _attached(each, at, at + len(phrase)) for each, at in ((one, start), (other, there))
            ):
                continue
            rest = _without(one, start, end)
            over = range(min(start, there), max(start, there))
            if rest == _without(other, there, there + len(phrase)) and any(
                not _at(one.leads[at + len(phrase) * (start < there)]) for at in over
            ):
                return True
    return False


def _without(placed: _Placed, start: int, end: int) -> list[tuple[str, set[str]]]:
    rest = [(concept, _at(lead)) for concept, lead in zip(placed.order, placed.leads, strict=True)]
    return rest[:start] + rest[end:]


def _attached(placed: _Placed, start: int, end: int) -> bool:
    """Whether a phrase stands between a subject and its verb: "her uncle in Berlin was"."""
    if not start or end == len(placed.order):
        return False
    return _verbal(placed.leads[end]) or placed.order[end] in placed.active


def _at(lead: Sequence[str]) -> set[str]:
    return {_SAME_PLACE.get(word, word) for word in lead if word in _MOVING}


def _verbal(lead: Sequence[str]) -> bool:
    return "be" in lead or "have" in lead


_MOST_PLACED = 40
"""Of so many words it is still looked for what moved; the time that takes grows with their third power."""

_NONE: frozenset[str] = frozenset()
_MUTUAL = concepts(tables.MUTUAL)
_MOVING = frozenset(tables.MOVING.split())
_SAME_PLACE: dict[str, str] = dict.fromkeys(tables.SAME_PLACE.split(), "at")
_LED = _MOVING | {"into", "onto"}
_LAST = frozenset({"last", "next"})
(_OWN,) = concepts("own")
_COMPOUNDING = frozenset({"to", "for", "at", "in", "on", "of", "from", "about"})
_OWNED = frozenset({"'s", "his", "her", "my", "their", "our", "your"})
_TOGETHER = ((), ("'s",))
