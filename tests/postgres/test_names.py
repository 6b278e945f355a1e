"""Names: the longest that are taken find room in every index."""

from __future__ import annotations

import pytest

import hitherto
from hitherto import Scope, user
from hitherto.errors import InvalidScope


@pytest.mark.parametrize("letter", ["n", "é", "語"])
async def test_the_longest_names_are_stored(database: str, letter: str) -> None:
    name = letter * 200
    scope = Scope(tenant=name, user=name, agent=name)
    async with hitherto.open(database, keep_contexts=1) as memory:
        chat = memory.conversation(name, scope=scope, subject=name)
        await chat.append(user("Hello."))
        await chat.context("And?")
        await memory.facts(scope).add("Sails.")
        await memory.documents(scope).add("# Boats\n\nA text.")
        await memory.wait_for_index()
        assert len((await memory.conversations(scope)).conversations) == 1


def test_longer_ones_are_refused() -> None:
    with pytest.raises(InvalidScope, match="201 characters"):
        Scope(tenant="n" * 201, user="u", agent="a")
    with pytest.raises(InvalidScope, match="800 bytes"):
        Scope(tenant="🦊" * 200, user="u", agent="a")
    assert Scope(tenant="🦊" * 150, user="u", agent="a")
