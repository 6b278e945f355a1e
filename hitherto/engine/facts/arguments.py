"""Checks of the arguments of `Facts`: each function returns the value to use, or raises InvalidFact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from hitherto.core.facts.fact import (
    LONGEST_FACT,
    OTHER,
    Fact,
    FactState,
    NewFact,
    category_of,
    fingerprint_of_fact,
)
from hitherto.core.log.message import storable
from hitherto.core.plain_text import has_visible_text, plain
from hitherto.engine.arguments import MOST
from hitherto.engine.services import Services
from hitherto.errors import InvalidFact


def content_of(given: object) -> str:
    """A fact's content as it is kept: one line. Raises InvalidFact for what is not text, says nothing
    (`has_visible_text`), or is too long."""
    if not isinstance(given, str):
        raise InvalidFact(f"the fact is {type(given).__name__}; give its content as text")
    if len(given) > 10 * LONGEST_FACT:
        raise _too_long(len(given))
    kept = plain(storable(given))
    if not has_visible_text(kept):
        raise InvalidFact("the fact says nothing: it has no visible text; give one sentence")
    if len(kept) > LONGEST_FACT:
        raise _too_long(len(kept))
    return kept


def new_fact(services: Services, content: object, category: object, *, confidence: float) -> NewFact:
    """The fact that these make. Raises InvalidFact."""
    said = content_of(content)
    kept, metadata = category_of_new(category, services.settings.fact_categories)
    return NewFact(
        category=kept,
        content=said,
        fingerprint=fingerprint_of_fact(said),
        tokens=services.canonical.count(said),
        confidence=confidence,
        metadata=metadata,
        single_valued=kept in services.settings.single_fact_categories,
    )


def _too_long(length: int) -> InvalidFact:
    return InvalidFact(
        f"the fact has {length:,} characters; at most {LONGEST_FACT} are kept: give one sentence, and longer texts to "
        "memory.documents(scope).add"
    )


def category_of_new(given: object, defined: tuple[str, ...]) -> tuple[str, Mapping[str, str]]:
    """The category of a fact that is added, and its metadata. None gives "other"; so does a category that is not
    defined, which is kept in the metadata then."""
    return (OTHER, {}) if given is None else category_of(_named(given, defined), defined)


def category_of_known(given: object, fact: Fact, defined: tuple[str, ...]) -> str:
    """The category of a fact that is edited: one that is defined, or the one it has, which another program may define.
    Any other is an error and not "other": the fact would lose its category by a typo."""
    kept, told = category_of(_named(given, defined), (fact.category, *defined))
    if told:
        raise InvalidFact(
            f"the category {given!r} is not defined, and fact {fact.id} stays in {fact.category!r}; there are "
            f"{', '.join(defined)}, and the setting fact_categories (HITHERTO_FACT_CATEGORIES) defines others"
        )
    return kept


def category_listed(given: object, defined: tuple[str, ...]) -> str:
    """The category to list by. One that is not defined is accepted: it may have been when facts were kept under it."""
    named = _named(given, defined)
    kept, told = category_of(named, defined)
    return named if told else kept


def _named(given: object, defined: tuple[str, ...]) -> str:
    if not isinstance(given, str) or not given.strip():
        raise InvalidFact(f"the category is {given!r}; give one of {', '.join(defined)}, or leave it out")
    return storable(plain(given))


def state_of(given: object) -> FactState | None:
    """The state to list by; None for all."""
    if given is None or given == "all":
        return None
    try:
        return FactState(cast(str, given))
    except ValueError:
        raise InvalidFact(f"state is {given!r}; a fact is {', '.join(FactState)} (None: any)") from None


def number_of(given: object, name: str = "id") -> int:
    """A fact's number, from the argument of this name."""
    return _whole(given, name, "the number of a fact, as `list` and `add` give it")


def number_before(given: object) -> int:
    """The number that a page begins after."""
    return _whole(given, "after", "the number of the last fact of the page before, or 0")


def version_of(given: object) -> int | None:
    """The version that was reviewed, None for any."""
    return None if given is None else _whole(given, "expect", "the version that was reviewed, as `fact.version` has it")


def _whole(given: object, name: str, what: str) -> int:
    if not isinstance(given, int) or isinstance(given, bool):
        raise InvalidFact(f"{name} is {given!r}; give a whole number, {what}")
    return given


def limit_of(given: object) -> int:
    """How many facts a page has at most."""
    if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given <= MOST:
        raise InvalidFact(f"limit is {given!r}; give a whole number from 1 to {MOST}")
    return given
