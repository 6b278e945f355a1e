"""What the tests of facts' verbs share."""

from __future__ import annotations

from typing import Any

import hitherto
from hitherto import Fact, Facts, assistant, user
from tests.acceptance.family import Says

CELLO = Says("Mum played the cello.", "hobby", "Played the cello.")
NURSE = Says("She was a nurse.", "occupation", "Was a nurse.")

CITIES: dict[str, Any] = {
    "fact_categories": ("hobby", "occupation", "current city"),
    "single_fact_categories": ("current city",),
}


async def added(facts: Facts, *contents: str, **given: Any) -> list[int]:
    return [(await facts.add(content, **given)).id for content in contents]


async def one(facts: Facts, id: int) -> Fact:
    found = await facts.get(id)
    assert found is not None
    return found


async def did(facts: Facts, id: int) -> list[str]:
    return [event.action.value for event in await facts.history(id)]


def two_turns(text: str) -> list[hitherto.Message]:
    """What makes a chunk of the first turn at once."""
    return [user(text), assistant("I see."), user("Well."), assistant("Yes.")]
