"""Facts: what takes the place of others, and what is added by hand."""

from __future__ import annotations

from dataclasses import replace

from hitherto.core.fact import HIMSELF, Did, FactState, Repeated
from hitherto.ports.facts import AddedFact
from hitherto.ports.store import Store
from hitherto.testing.material import SCOPE, talk, user, write
from hitherto.testing.material_facts import (
    MUM,
    SHARED,
    all_told,
    booked,
    did,
    fact_of,
    known,
    learn,
    learnt,
    listed,
    new,
    said,
)


class ReplacedFactCases:
    async def test_a_fact_takes_the_place_of_others(self, store: Store) -> None:
        rome, milan, other = await learnt(store, "Lives in Rome.", "Lives in Milan.", "Has a cat.")
        book = await store.facts.book(SCOPE, HIMSELF)
        await write(store, "d", user("I have moved to Bari."))
        (bari,) = await learn(store, "d", new("Lives in Bari.", 0, supersedes=(rome, milan)))
        now = await fact_of(store, bari)
        for made, content in ((rome, "Lives in Rome."), (milan, "Lives in Milan.")):
            old = await fact_of(store, made)
            assert (old.state, old.content, old.superseded_by) == (FactState.SUPERSEDED, content, bari)
            assert old.ended_at is not None
            assert old.extracted_at < old.ended_at <= old.updated_at
            assert abs(old.ended_at - now.extracted_at).total_seconds() < 1
            assert (old.version, old.confidence, len(old.evidence)) == (1, 0.5, 1)
            events = await store.facts.history(SCOPE, made)
            assert [(one.did, one.by, one.version, one.content) for one in events] == [
                (Did.EXTRACTED, None, 1, content),
                (Did.SUPERSEDED, None, 1, content),
            ]
        assert await booked(store) == await known(store) == await listed(store) == ["Has a cat.", "Lives in Bari."]
        assert (await fact_of(store, other)).superseded_by is None
        assert (await store.facts.book(SCOPE, HIMSELF)).rev > book.rev
        again = await learn(store, "d", new("Lives in Rome.", 0, supersedes=(bari,)))
        assert again > [bari], "what once held can hold anew"
        assert await booked(store) == ["Has a cat.", "Lives in Rome."]

    async def test_a_repetition_ends_what_it_replaces(self, store: Store) -> None:
        rome, milan = await learnt(store, "Lives in Rome.", "Lives in Milan.")
        await write(store, "d", *talk(1))
        assert await learn(store, "d", new("Lives in Rome.", 0, supersedes=(milan, rome))) == []
        assert await booked(store) == ["Lives in Rome."]
        assert (await fact_of(store, milan)).superseded_by == rome

    async def test_only_current_facts_about_the_subject_are_repeated_or_replaced(self, store: Store) -> None:
        """Numbers that a model makes up are no way to anything else."""
        (mine,) = await learnt(store, "Mine.")
        (old,) = await learnt(store, "Old.")
        await learnt(store, "New.", supersedes=(old,))
        elsewhere = {
            "user": replace(SCOPE, user="another"),
            "agent": replace(SCOPE, agent="another"),
            "tenant": replace(SCOPE, tenant="another"),
        }
        (dads,) = await learnt(store, "Dad's.", name="dad", subject="dad")
        theirs = [(await learnt(store, "Theirs.", scope=scope))[0] for scope in elsewhere.values()]
        before = [await all_told(store, scope, "dad") for scope in elsewhere.values()]
        standing = await fact_of(store, old), await fact_of(store, dads)
        await write(store, "d", *talk(1))
        numbers = (old, dads, *theirs, 0, -1, 2**62)
        repeated = [Repeated(fact=number, seqs=(0,), confidence=0.1) for number in numbers]
        await learn(store, "d", new("Latest.", 0, supersedes=numbers), repeated=repeated)
        assert (await store.facts.add(SCOPE, HIMSELF, new("By hand.", supersedes=numbers))).new
        assert [await all_told(store, scope, "dad") for scope in elsewhere.values()] == before
        assert (await fact_of(store, old), await fact_of(store, dads)) == standing
        assert await booked(store) == ["Mine.", "New.", "Latest.", "By hand."]
        assert (await fact_of(store, mine)).repeated == 0

    async def test_a_fact_added_by_hand_is_confirmed(self, store: Store) -> None:
        await write(store, "c", *talk(1))
        given = new("Fences.", 0, category="habit", confidence=0.2, metadata='{"a": 1}', visibility=SHARED)
        added = await store.facts.add(SCOPE, MUM.id, given)
        assert added == AddedFact(added.id, new=True)
        found = await fact_of(store, added.id)
        assert (found.confirmed, found.confidence, found.evidence, found.version) == (True, 1.0, (), 1)
        assert (found.subject, found.category, found.metadata) == (MUM.id, "habit", '{"a": 1}')
        assert (found.visibility, found.state, found.ended_at) == (SHARED, FactState.CURRENT, None)
        (event,) = await store.facts.history(SCOPE, added.id)
        assert (event.did, event.by, event.content, event.visibility) == (Did.ADDED, SCOPE.user, "Fences.", SHARED)
        assert await booked(store, MUM.id) == ["Fences."]

    async def test_what_is_known_already_is_not_added(self, store: Store) -> None:
        first, other = await learnt(store, "Swims.", "Fences.")
        before = await all_told(store, SCOPE)
        given = new("Swims.", supersedes=(other,), visibility=SHARED)
        assert await store.facts.add(SCOPE, HIMSELF, given) == AddedFact(first, new=False)
        assert await all_told(store, SCOPE) == before
        assert (await store.facts.add(SCOPE, "dad", given)).new

    async def test_a_fact_added_by_hand_takes_the_place_of_others(self, store: Store) -> None:
        (rome,) = await learnt(store, "Lives in Rome.")
        added = await store.facts.add(SCOPE, HIMSELF, new("Lives in Bari.", supersedes=(rome,)))
        old = await fact_of(store, rome)
        assert (old.state, old.superseded_by, old.ended_at is not None) == (FactState.SUPERSEDED, added.id, True)
        event = (await store.facts.history(SCOPE, rome))[-1]
        assert (event.did, event.by, event.content) == (Did.SUPERSEDED, SCOPE.user, "Lives in Rome.")
        assert await booked(store) == ["Lives in Bari."]

    async def test_what_is_said_again_keeps_what_was_added_by_hand(self, store: Store) -> None:
        added = await store.facts.add(SCOPE, HIMSELF, new("Swims."))
        assert await learnt(store, "Swims.") == []
        found = await fact_of(store, added.id)
        assert (found.confirmed, found.confidence, found.repeated) == (True, 1.0, 1)
        assert await said(store, added.id) == [("c", 0)]
        assert await did(store, added.id) == [Did.ADDED, Did.REPEATED]

    async def test_the_book_counts_every_change(self, store: Store) -> None:
        rev = (await store.facts.book(SCOPE, HIMSELF)).rev
        other = (await store.facts.book(SCOPE, "dad")).rev
        for n in range(3):
            await store.facts.add(SCOPE, HIMSELF, new(f"{n}"))
            after = (await store.facts.book(SCOPE, HIMSELF)).rev
            assert after > rev
            rev = after
        await store.facts.add(SCOPE, HIMSELF, new("2"))
        assert (await store.facts.book(SCOPE, HIMSELF)).rev == rev
        assert (await store.facts.book(SCOPE, "dad")).rev == other
