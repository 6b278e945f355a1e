"""Who is shown a fact, and who may do something to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import hitherto
from hitherto import Fact, Facts, Memory
from hitherto.core.facts.fact import Visibility
from hitherto.errors import InvalidFact, NotFound
from tests.acceptance.family import (
    ANA,
    BEN,
    CAT,
    ROSA,
    dialogue,
    fact,
)
from tests.engine.facts.reviewing import CELLO, added, did, one


def what_it_says(found: Fact) -> tuple[object, ...]:
    """What others are shown of a fact."""
    whose = (found.id, found.user, found.agent, found.subject)
    return (*whose, found.category, found.content, found.visibility, found.state, found.version)


class TestSharing:
    async def test_there_and_back(self, facts: Facts) -> None:
        (number,) = await added(facts, "Played the cello.")
        assert (await facts.share(number)).visibility is Visibility.SHARED
        assert (await facts.share(number)).version == 2, "what is shared already"
        assert (await facts.set_visibility(number, Visibility.PRIVATE)).visibility is Visibility.PRIVATE
        assert (await facts.unshare(number)).version == 3
        assert await did(facts, number) == ["added", "shared", "unshared"]

    async def test_a_visibility_that_does_not_exist(self, facts: Facts) -> None:
        cases: list[Any] = ["public", "Shared", "", None, 0, ["shared"]]
        for visibility in cases:
            (number,) = await added(facts, "Played the cello.")
            with pytest.raises(InvalidFact, match="'private' or 'shared'"):
                await facts.set_visibility(number, visibility)
            assert (await one(facts, number)).version == 1

    @pytest.mark.parametrize("scope", [CAT, replace(ANA, tenant="other")])
    async def test_who_is_no_member_cannot_share(self, memory: Memory, scope: hitherto.Scope) -> None:
        facts = memory.facts(scope, subject=ROSA)
        (number,) = await added(facts, "Played the cello.")
        with pytest.raises(InvalidFact, match=r"no member.*configure_subject"):
            await facts.share(number)
        assert (await one(facts, number)).visibility is Visibility.PRIVATE


class TestNobodyElses:
    """Promise 12: not found, not forbidden."""

    @pytest.mark.parametrize("other", [{"user": "ben"}, {"user": "cat"}, {"agent": "spy"}, {"tenant": "evil"}])
    @pytest.mark.parametrize("shared", [False, True])
    async def test_no_verb_finds_it(self, memory: Memory, facts: Facts, other: dict[str, str], shared: bool) -> None:
        await dialogue(memory, "c", CELLO.text)
        number = (await fact(memory, CELLO.content)).id
        if shared:
            await facts.share(number)
        before, history = await one(facts, number), await facts.history(number)
        theirs = memory.facts(replace(ANA, **other))
        verbs: list[Callable[[], Any]] = [
            lambda: theirs.edit(number, content="Was a spy."),
            lambda: theirs.edit(number, category="other"),
            lambda: theirs.confirm(number),
            lambda: theirs.share(number),
            lambda: theirs.unshare(number),
            lambda: theirs.restore(number),
            lambda: theirs.set_visibility(number, "private"),
            lambda: theirs.delete(number),
            lambda: theirs.history(number),
            lambda: theirs.sources(number),
            lambda: theirs.delete(number, expect=99),
        ]
        for verb in verbs:
            with pytest.raises(NotFound) as raised:
                await verb()
            assert "cello" not in str(raised.value)
        seen = await theirs.get(number)
        assert (seen is not None) == (shared and other == {"user": "ben"})
        assert [found.id for found in await theirs.list(state=None)] == ([] if seen is None else [number])
        assert (await one(facts, number), await facts.history(number)) == (before, history)
        if seen is not None:
            assert what_it_says(seen) == what_it_says(before)
            assert (seen.evidence, seen.metadata) == ((), {})
            assert (seen.confidence, seen.confirmed, seen.repeated) == (None,) * 3, "how sure it is, is its owner's"
            assert seen.updated_at == seen.extracted_at, "and so is when it was said again"

    async def test_what_is_no_number(self, facts: Facts) -> None:
        cases: list[Any] = ["1", 1.0, None, True, b"1"]
        for number in cases:
            for verb in (facts.get, facts.confirm, facts.delete, facts.history, facts.sources, facts.share):
                with pytest.raises(InvalidFact, match="the number of a fact"):
                    await verb(number)


class TestSubjects:
    async def test_what_is_not_given_stays(self, memory: Memory) -> None:
        made = await memory.configure_subject(tenant=ANA.tenant, subject=ROSA, name="Rosalind")
        assert (made.id, made.name, made.members) == (ROSA, "Rosalind", (ANA.user, BEN.user))
        made = await memory.configure_subject(tenant=ANA.tenant, subject=ROSA, members=["cat", "ana", "cat"])
        assert (made.name, made.members) == ("Rosalind", ("cat", "ana"))
        new = await memory.configure_subject(tenant=ANA.tenant, subject="legacy-8")
        assert (new.name, new.members) == ("legacy-8", ())
        assert await memory.subjects(tenant=ANA.tenant) == [made, new]
        assert await memory.subjects(tenant="other") == []
