"""Evidence: what becomes of a fact when its messages are erased, taken back or deleted."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from hitherto.core.facts.fact import FactAction, FactState, RepeatedFact
from hitherto.core.facts.queries import FactChange
from hitherto.core.scope import THE_USER
from hitherto.store.store import Store
from tests.store.digests.stage_samples import take_back
from tests.store.facts.samples import (
    CONFIRM,
    DELETE,
    EVERYTHING,
    MUM,
    actions_of,
    current_contents,
    edit,
    fact_of,
    facts_snapshot,
    known,
    learn,
    learned,
    listed,
    new,
    said,
    version_of,
)
from tests.store.samples import SCOPE, clear, dialogue, user, write


async def delete(store: Store, name: str = "c", *, facts: bool = False) -> None:
    async with store.write(SCOPE, name) as unit:
        await unit.delete(facts=facts)


async def told_of(store: Store) -> str:
    """Everything the store returns about facts, as one text to look for what must not be in it."""
    return repr(await facts_snapshot(store, SCOPE, MUM.id))


class TestFactEvidence:
    async def test_evidence_comes_in_the_order_of_its_time(self, store: Store) -> None:
        for _ in range(2):
            await write(store, "d", user("I swim."))
            await write(store, "c", user("I swim."))
        (made,) = await learn(store, "c", new("Swims.", 1, 0))
        await learn(store, "d", repeated=[RepeatedFact(fact=made, seqs=(1,), confidence=0.6)])
        await learn(store, "d", repeated=[RepeatedFact(fact=made, seqs=(0,), confidence=0.7)])
        assert await said(store, made) == [("d", 0), ("c", 0), ("d", 1), ("c", 1)]
        times = [one.said_at for one in (await fact_of(store, made)).evidence]
        assert times == sorted(times)

    async def test_evidence_tells_when_it_was_said(self, store: Store) -> None:
        """Not when it was appended: an import has its dates."""
        june, may = (datetime(2023, month, 1, tzinfo=UTC) for month in (6, 5))
        for name, at in (("c", june), ("d", may)):
            await write(store, name, replace(user("I swim."), said_at=at))
        (made,) = await learn(store, "c", new("Swims.", 0))
        await learn(store, "d", repeated=[RepeatedFact(fact=made, seqs=(0,), confidence=0.6)])
        assert [one.said_at for one in (await fact_of(store, made)).evidence] == [may, june]

    async def test_what_rests_on_erased_messages_alone_is_erased(self, store: Store) -> None:
        secret, both, kept = await learned(store, "A secret.", "Swims.", "Fences.")
        await learn(store, "c", repeated=[RepeatedFact(fact=both, seqs=(2,), confidence=0.7)])
        await write(store, "c", erase=((0, 1),))
        assert await store.facts.fact(SCOPE, secret) is None
        assert await store.facts.history(SCOPE, secret) == ()
        assert await version_of(store, secret, 1) is None
        assert (
            await current_contents(store)
            == await known(store)
            == await listed(store, state=None)
            == ["Swims.", "Fences."]
        )
        assert (await said(store, both), await said(store, kept)) == ([("c", 2)], [("c", 2)])
        assert "secret" not in await told_of(store)
        assert (await store.facts.add(SCOPE, THE_USER, new("A secret."))).id > kept, "no number comes twice"

    async def test_what_rests_on_what_was_taken_back_alone_is_withdrawn(self, store: Store) -> None:
        kept, both, gone = await learned(store, "Fences.", "Swims.", "Sings.")
        await learn(store, "c", repeated=[RepeatedFact(fact=both, seqs=(0,), confidence=0.7)])
        before = await fact_of(store, gone)
        await take_back(store, "c", 2)
        after = await fact_of(store, gone)
        assert after.ended_at is not None
        changes = {"state": FactState.WITHDRAWN, "ended_at": after.ended_at, "updated_at": after.updated_at}
        assert after == replace(before, evidence=(), **changes)
        assert after.extracted_at < after.ended_at <= after.updated_at
        assert await actions_of(store, gone) == [FactAction.EXTRACTED, FactAction.WITHDRAWN]
        event = (await store.facts.history(SCOPE, gone))[-1]
        assert (event.by, event.version, event.content) == (None, 1, "Sings.")
        assert await current_contents(store) == await known(store) == await listed(store) == ["Fences.", "Swims."]
        assert await listed(store, state=FactState.WITHDRAWN) == ["Sings."]
        assert (await said(store, both), await said(store, kept)) == ([("c", 0)], [("c", 0)])
        assert await actions_of(store, both) == [FactAction.EXTRACTED, FactAction.REPEATED]

    @pytest.mark.parametrize("change", [CONFIRM, edit("Swims in lakes.")], ids=["confirmed", "edited"])
    @pytest.mark.parametrize("way", ["erased", "taken back"])
    async def test_what_a_person_stands_for_stays(self, store: Store, way: str, change: FactChange) -> None:
        made, plain = await learned(store, "Swims.", "Fences.")
        before = await store.facts.change(SCOPE, made, change)
        if way == "erased":
            await write(store, "c", erase=((0, 1),))
            assert await store.facts.fact(SCOPE, plain) is None
        else:
            await take_back(store, "c", 2)
            assert (await fact_of(store, plain)).state is FactState.WITHDRAWN
        after = await fact_of(store, made)
        assert (after.state, after.content, after.version) == (FactState.CURRENT, before.content, 2)
        assert (after.evidence, after.confirmed) == ((), True)
        assert await current_contents(store) == [before.content]

    async def test_what_was_added_by_hand_needs_no_evidence(self, store: Store) -> None:
        added = await store.facts.add(SCOPE, THE_USER, new("Swims."))
        await learned(store, "Swims.")
        await write(store, "c", erase=((0, 0),))
        assert await said(store, added.id) == []
        assert await current_contents(store) == ["Swims."]

    async def test_two_conversations_say_the_same(self, store: Store) -> None:
        (made,) = await learned(store, "Swims.")
        await learned(store, "Swims.", name="d")
        await take_back(store, "c", 1)
        assert await said(store, made) == [("d", 0)]
        assert await current_contents(store) == ["Swims."]
        await write(store, "d", erase=((0, 0),))
        assert await store.facts.fact(SCOPE, made) is None, "one taken back, one erased: nobody says it any more"

    async def test_what_was_taken_back_is_forgotten_when_it_is_erased(self, store: Store) -> None:
        """A fact that was withdrawn, or replaced, goes with the messages it came from."""
        old, gone = await learned(store, "An old secret.", "A secret.")
        await write(store, "d", *dialogue(1))
        await learn(store, "d", new("Fences.", 0, supersedes=(old,)))
        await take_back(store, "c", 2)
        assert (await fact_of(store, old)).state is FactState.SUPERSEDED
        assert (await fact_of(store, gone)).state is FactState.WITHDRAWN
        await write(store, "c", erase=((0, 1),))
        assert await listed(store, state=None) == ["Fences."]
        assert "secret" not in await told_of(store)

    async def test_an_erased_message_is_evidence_no_more(self, store: Store) -> None:
        (made,) = await learned(store, "Swims.")
        await write(store, "c", user("As I said: I swim."))
        await learn(store, "c", repeated=[RepeatedFact(fact=made, seqs=(1,), confidence=0.6)])
        await write(store, "c", erase=((1, 1),))
        assert await said(store, made) == [("c", 0)]
        after = await fact_of(store, made)
        assert (after.repeated, after.confidence, after.version) == (1, 0.6, 1)

    async def test_nothing_happens_to_facts_of_others(self, store: Store) -> None:
        elsewhere = {
            "user": replace(SCOPE, user="another"),
            "agent": replace(SCOPE, agent="another"),
            "tenant": replace(SCOPE, tenant="another"),
        }
        for scope in elsewhere.values():
            await learned(store, "Swims.", "Sings.", scope=scope)
        before = [await facts_snapshot(store, scope) for scope in elsewhere.values()]
        await learned(store, "Swims.", "Sings.")
        await take_back(store, "c", 1)
        await write(store, "c", erase=((0, 0),))
        await delete(store, facts=True)
        await learned(store, "Fences.")
        await delete(store)
        assert [await facts_snapshot(store, scope) for scope in elsewhere.values()] == before

    async def test_a_clear_leaves_facts(self, store: Store) -> None:
        await learned(store, "Swims.", "Sings.")
        before = await facts_snapshot(store, SCOPE)
        await clear(store, "c")
        assert await facts_snapshot(store, SCOPE) == before

    async def test_a_deleted_conversation_leaves_its_facts_without_a_source(self, store: Store) -> None:
        one, both, sure = await learned(store, "Swims.", "Sings.", "Fences.")
        await learned(store, "Sings.", name="d")
        await store.facts.change(SCOPE, sure, CONFIRM)
        before = {made: await fact_of(store, made) for made in (one, both, sure)}
        await delete(store)
        assert [await said(store, made) for made in (one, both, sure)] == [[], [("d", 0)], []]
        for made, fact in before.items():
            after = await fact_of(store, made)
            assert after == replace(fact, evidence=after.evidence, updated_at=after.updated_at)
        assert await current_contents(store) == ["Swims.", "Sings.", "Fences."]
        assert await listed(store, conversation="c") == []
        await learned(store, "Swims.")
        assert await said(store, one) == [("c", 0)], "another conversation of the same name"
        await write(store, "c", *dialogue(1))
        assert (await fact_of(store, one)).repeated == 1

    async def test_facts_go_with_their_conversation_where_that_is_asked_for(self, store: Store) -> None:
        await learned(
            store, "A secret.", "Sings.", "A sure secret.", "A deleted secret.", "An old secret.", "A wrong secret."
        )
        one, both, sure, deleted, old, _ = [fact.id for fact in await store.facts.facts(SCOPE, EVERYTHING)]
        await learned(store, "Sings.", name="d")
        await learned(store, "New.", name="d", supersedes=(old,))
        added = await store.facts.add(SCOPE, THE_USER, new("By hand."))
        await store.facts.change(SCOPE, sure, CONFIRM)
        await store.facts.change(SCOPE, deleted, DELETE)
        await take_back(store, "c", 1)
        await delete(store, facts=True)
        assert await current_contents(store) == await known(store) == ["Sings.", "New.", "By hand."]
        assert [await store.facts.fact(SCOPE, made) for made in (one, sure, old)] == [None] * 3
        assert (await said(store, both), await said(store, added.id)) == ([("d", 0)], [])
        assert (await fact_of(store, deleted)).content == ""
        assert "secret" not in await told_of(store)

    async def test_what_a_person_added_stays_though_a_conversation_says_it_too(self, store: Store) -> None:
        added = await store.facts.add(SCOPE, THE_USER, new("Swims."))
        await learned(store, "Swims.")
        assert await said(store, added.id) == [("c", 0)]
        await delete(store, facts=True)
        assert (await current_contents(store), await said(store, added.id)) == (["Swims."], [])

    async def test_no_fact_names_a_successor_that_is_gone(self, store: Store) -> None:
        (rome,) = await learned(store, "Rome.", name="d")
        (milan,) = await learned(store, "Milan.", supersedes=(rome,))
        assert (await fact_of(store, rome)).superseded_by == milan
        await delete(store, facts=True)
        after = await fact_of(store, rome)
        assert (after.state, after.superseded_by) == (FactState.SUPERSEDED, None)

    async def test_what_was_taken_back_elsewhere_keeps_no_fact(self, store: Store) -> None:
        (made,) = await learned(store, "A secret.")
        await learned(store, "A secret.", name="d")
        await take_back(store, "d", 1)
        assert await said(store, made) == [("c", 0)]
        await delete(store, facts=True)
        assert await listed(store, state=None) == []

    async def test_evidence_of_what_was_deleted_comes_to_nothing(self, store: Store) -> None:
        """Whatever becomes of the messages, a fact that a person deleted stays deleted."""
        made, other = await learned(store, "Swims.", "Sings.")
        for number in (made, other):
            await store.facts.change(SCOPE, number, DELETE)
        before = await facts_snapshot(store, SCOPE)
        await take_back(store, "c", 1)
        await write(store, "c", erase=((0, 0),))
        await delete(store, facts=True)
        assert await facts_snapshot(store, SCOPE) == before

    async def test_facts_about_several_subjects_go_with_their_messages(self, store: Store) -> None:
        """A conversation can change its subject; what was learned before stays where it is."""
        await learned(store, "Swims.")
        (mums,) = await learned(store, "Sings.", subject=MUM.id)
        assert (await current_contents(store), await current_contents(store, MUM.id)) == (["Swims."], ["Sings."])
        await take_back(store, "c", 2)
        assert (await current_contents(store), await current_contents(store, MUM.id)) == ([], [])
        assert (await fact_of(store, mums)).subject == MUM.id

    @pytest.mark.parametrize("now", [THE_USER, "dad"], ids=["himself", "another"])
    async def test_facts_are_about_the_subject_that_they_were_asked_for(self, store: Store, now: str) -> None:
        """Even if the conversation is about another subject by the time they come."""
        await write(store, "c", user("She swims."), subject=MUM.id)
        await write(store, "c", user("Now to something else."), subject=now)
        (known_before,) = await learned(store, "Swims.", name="d", subject=now)
        before = await fact_of(store, known_before)
        (made,) = await learn(store, "c", new("Swims.", 0), subject=MUM.id)
        assert ((await fact_of(store, made)).subject, await said(store, made)) == (MUM.id, [("c", 0)])
        assert (await current_contents(store, MUM.id), await current_contents(store, now)) == (["Swims."], ["Swims."])
        assert await fact_of(store, known_before) == before
        repeated = [RepeatedFact(fact=one, seqs=(1,), confidence=0.9) for one in (made, known_before)]
        fences = new("Fences.", 1, supersedes=(known_before,), single_valued=True)
        await learn(store, "c", fences, repeated=repeated, subject=MUM.id)
        assert await fact_of(store, known_before) == before
        assert await current_contents(store, MUM.id) == ["Fences."]
        await write(store, "c", erase=((0, 1),))
        assert await current_contents(store, MUM.id) == []
