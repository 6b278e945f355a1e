"""Reading the facts in a model's answer: a malformed answer is an error, an odd one is put right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from hitherto.core.answers import numbers
from hitherto.core.facts.fact import LONGEST_FACT, OTHER, ExtractedFact, KnownFact, category_of, fingerprint_of_fact
from hitherto.core.log.message import Role, storable
from hitherto.core.plain_text import has_visible_text, plain
from hitherto.core.prompt import PromptLine
from hitherto.errors import InvalidModelAnswer

MOST_FACTS = 50
"""The most facts of one answer that are read."""

UNSURE = 0.5
"""The confidence of a fact for which the model gave none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsTask:
    """Find what the messages say of a subject, given by its display name.

    A fact's category is one of `categories` or "other"; in those of `single` (e.g. "current city") the subject has one
    fact at a time. `known` are known facts that bear on the messages, those first that matter most; they are shown
    with numbers from 1. `about_user`: the subject is the user.
    """

    subject: str
    categories: tuple[str, ...]
    single: tuple[str, ...] = ()
    known: tuple[KnownFact, ...] = ()
    about_user: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """The facts of one answer. `left_out` counts those that are too long, that no user's message is a source of, and
    those after the first MOST_FACTS."""

    facts: tuple[ExtractedFact, ...]
    left_out: int = 0


def extraction(found: Mapping[str, Any], task: FactsTask, lines: Sequence[PromptLine]) -> Extraction | None:
    """The facts in the JSON `found` of an answer to `task`, for which `lines` (at least one) were shown; None where it
    has no "facts".

    A fact that says nothing (`has_visible_text`) is skipped. A fact without a user's message among its sources is left
    out: what an assistant or a tool says is not a fact until a user says so. The rest is put right: an unknown category
    becomes "other", with the given one in the metadata; a fact without sources that were shown rests on all messages of
    users; a confidence is bounded to 0 and 1, and is 0.5 where none is given; a relation to a fact that was not shown
    is ignored; white space of any kind becomes one space. Facts that say the same become one, with the sources of both.
    Raises InvalidModelAnswer for facts that are not a list, an entry that is not an object, and content that is not
    text.
    """
    if "facts" not in found:
        return None
    listed = found["facts"]
    if not isinstance(listed, list):
        raise InvalidModelAnswer(f"the model's JSON has 'facts' as {type(listed).__name__}, not as a list")
    facts: list[ExtractedFact] = []
    left_out = 0
    shown = {line.seq for line in lines}
    users = {line.seq for line in lines if line.role == Role.USER}
    for entry in cast(list[object], listed):
        if len(facts) == MOST_FACTS:
            left_out += 1
            continue
        if not isinstance(entry, dict):
            raise InvalidModelAnswer(f"the model's JSON has {type(entry).__name__} in 'facts', not an object")
        given = cast(dict[str, object], entry)
        content = _content(given)
        if not has_visible_text(content):
            continue
        seqs = set(numbers(given.get("sources"), shown)) or users
        if len(content) > LONGEST_FACT or not seqs & users:
            left_out += 1
        else:
            facts.append(_fact(given, content, task, seqs))
    return Extraction(facts=once_each(facts), left_out=left_out)


def once_each(facts: Iterable[ExtractedFact]) -> tuple[ExtractedFact, ...]:
    """The facts in their order, each statement once. Facts say the same if they have the same `fingerprint_of_fact`;
    the first is taken, with the sources of all, their greatest confidence and the first relation."""
    found: dict[str, ExtractedFact] = {}
    for fact in facts:
        said = fingerprint_of_fact(fact.content)
        found[said] = _both(found[said], fact) if said in found else fact
    return tuple(found.values())


def _both(one: ExtractedFact, other: ExtractedFact) -> ExtractedFact:
    related = other if one.repeats is None and one.replaces is None else one
    return replace(
        one,
        seqs=tuple(sorted({*one.seqs, *other.seqs})),
        confidence=max(one.confidence, other.confidence),
        repeats=related.repeats,
        replaces=related.replaces,
    )


def _fact(given: Mapping[str, object], content: str, task: FactsTask, seqs: set[int]) -> ExtractedFact:
    category, metadata = _category(given.get("category"), task.categories)
    relation, known = given.get("relation"), _known(given.get("known"), task)
    related = relation.strip().casefold() if isinstance(relation, str) else ""
    return ExtractedFact(
        category=category,
        content=content,
        seqs=tuple(sorted(seqs)),
        confidence=_confidence(given.get("confidence")),
        repeats=known if related == "repeats" else None,
        replaces=known if related == "replaces" else None,
        metadata=metadata,
    )


def _content(given: Mapping[str, object]) -> str:
    content = given.get("content")
    if not isinstance(content, str):
        raise InvalidModelAnswer(f"the model's JSON has a fact without content (it is {type(content).__name__})")
    return _one_line(content)


def _category(given: object, categories: tuple[str, ...]) -> tuple[str, Mapping[str, str]]:
    named = _one_line(given) if isinstance(given, str) else ""
    return category_of(named, categories) if named else (OTHER, {})


def _confidence(given: object) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or given != given:  # noqa: PLR0124 (NaN)
        return UNSURE
    return float(min(max(0, given), 1))


def _known(given: object, task: FactsTask) -> int | None:
    """The id of the known fact with that number; None where none was shown with it."""
    return task.known[given - 1].id if type(given) is int and 1 <= given <= len(task.known) else None


def _one_line(text: str) -> str:
    return plain(storable(text))
