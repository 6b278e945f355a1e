"""What becomes of facts when they are deleted, and when what they rest on goes."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime

import pytest

import hitherto
from hitherto import Facts, Memory, rolling, user
from hitherto.core.facts.fact import FactState
from hitherto.errors import NotFound
from hitherto.providers.scripted import Gate, Scripted, ScriptedFact, items
from hitherto.store.store import Store
from tests.acceptance.dialogue import PLENTY
from tests.acceptance.family import (
    ANA,
    BEN,
    ROSA,
    contents,
    dialogue,
    fact,
    listener,
    material,
    opened,
    redigested,
    sources,
)
from tests.engine.facts.reviewing import CELLO, one, two_turns
from tests.times import LATER_TODAY, time_of


class TestDeleting:
    async def test_nothing_of_it_is_left(self, memory: Memory, facts: Facts) -> None:
        chat = await dialogue(memory, "c", CELLO.text)
        found = await fact(memory, CELLO.content)
        await facts.edit(found.id, content="Played the violoncello.")
        await facts.delete(found.id)
        assert await facts.list() == []
        (gone,) = await facts.list(state="deleted")
        assert (gone.id, gone.content, gone.metadata, gone.evidence) == (found.id, "", {}, ())
        assert [event.content for event in await facts.history(found.id)] == [""] * 3
        for change in (facts.delete, facts.confirm, facts.unshare, facts.sources):
            with pytest.raises(NotFound):
                await change(found.id)
        await memory.wait_for_index()
        assert (await memory.recall("cello violoncello", scope=ANA, kinds=["fact"])).hits == ()
        context = await chat.context(user("What did she play?"), budget=PLENTY, recall=False)
        assert context.manifest.facts is None

    @pytest.mark.parametrize("policy", [None, rolling(threshold=4, keep_last=2, facts=True)], ids=["same", "another"])
    async def test_it_is_not_extracted_again_from_the_same_messages(
        self, store: Store, policy: hitherto.Policy | None
    ) -> None:
        """Whatever shows them to a model once more. What says it anew says it."""
        again = Gate(listener(CELLO))
        model = Scripted([listener(CELLO), again], then=listener(CELLO))
        async with opened(store, model=model) as memory:
            facts = memory.facts(ANA)
            talking = asyncio.create_task(redigested(memory, "c", CELLO.text, policy=policy))
            await again.reached()
            await facts.delete((await facts.list())[0].id)
            again.open()
            await talking
            assert CELLO.text in [one.get("text") for one in material(model.calls[-1])]
            assert await facts.list() == []
            await dialogue(memory, "d", CELLO.text)
            assert [sources(found) for found in await facts.list()] == [[("d", 0)]]

    async def test_while_a_digest_finds_it_again_elsewhere(self, store: Store) -> None:
        """It was known when the model was asked; then it is new, with the other source alone."""
        gate = Gate(listener(CELLO))
        async with opened(store, model=Scripted([listener(CELLO), gate])) as memory:
            facts = memory.facts(ANA)
            await dialogue(memory, "c", CELLO.text)
            await memory.conversation("d", scope=ANA, subject=ROSA).append(*two_turns(CELLO.text))
            await gate.reached()
            (number,) = [found.id for found in await facts.list()]
            await facts.delete(number)
            gate.open()
            await memory.wait_for_digests()
            (again,) = await facts.list()
            assert again.id != number
            assert sources(again) == [("d", 0)]

    async def test_while_a_digest_takes_something_else_for_the_same(self, store: Store) -> None:
        """Its words come from what the model was shown of the fact, and not from the messages that it was to read."""
        same = ScriptedFact("hobby", CELLO.content, [0], relation="repeats", known=1)
        gate = Gate(items("They talked.", facts=[same, ("hobby", "Sings.", [0])]))
        async with opened(store, model=Scripted([listener(CELLO), gate])) as memory:
            chat = await dialogue(memory, "c", CELLO.text)
            await memory.conversation("d", scope=ANA, subject=ROSA).append(*two_turns("As I told you."))
            await gate.reached()
            await chat.erase(0)
            gate.open()
            await memory.wait_for_digests()
            assert [one.content for one in await memory.facts(ANA).list()] == ["Sings."]

    async def test_while_a_digest_of_the_same_fact_is_edited(self, store: Store) -> None:
        """What a person wrote stands, whatever a model repeats of what it said before."""
        again = items("They talked.", facts=[ScriptedFact("hobby", CELLO.content, [0], relation="repeats", known=1)])
        gate = Gate(again)
        async with opened(store, model=Scripted([listener(CELLO), gate])) as memory:
            facts = memory.facts(ANA)
            await dialogue(memory, "c", CELLO.text)
            await memory.conversation("d", scope=ANA, subject=ROSA).append(*two_turns(CELLO.text))
            await gate.reached()
            (number,) = [found.id for found in await facts.list()]
            await facts.edit(number, content="Hated music.")
            gate.open()
            await memory.wait_for_digests()
            found = await one(facts, number)
            assert (found.content, found.confirmed, found.state) == ("Hated music.", True, FactState.CURRENT)


class TestWhatTheyRestOn:
    async def test_sources_open_the_messages(
        self, memory: Memory, facts: Facts, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await dialogue(memory, "c", "Hello.", CELLO.text)
        await dialogue(memory, "d", CELLO.text)
        number = (await fact(memory, CELLO.content)).id
        said = await facts.sources(number)
        assert [(name, one.seq, one.message.text) for name, one in said] == [("c", 2, CELLO.text), ("d", 0, CELLO.text)]
        assert said[0][1].created_at <= said[1][1].created_at
        monkeypatch.setattr("hitherto.engine.facts.facts.PAGE_SIZE", 1)
        assert await facts.sources(number) == said[:1], "the first of them, where they are large"

    async def test_what_has_expired_is_shown_to_nobody_before_it_is_swept(self, store: Store) -> None:
        """Expiry is honored on reading, also where another conversation or another user is shown a fact."""
        async with opened(store, CELLO) as memory:
            later = datetime.now(UTC) + LATER_TODAY
            chat = memory.conversation("c", scope=ANA, subject=ROSA)
            await chat.append(user(CELLO.text).expiring(later), *two_turns("x")[1:])
            await memory.wait_for_digests()
            facts = memory.facts(ANA)
            number = (await fact(memory, CELLO.content)).id
            await facts.share(number)
            await time_of(store).pass_days(1)
            for scope in (ANA, BEN):
                assert await contents(memory, scope) == []
                assert await memory.facts(scope).get(number) is None
                context = await memory.conversation("new", scope=scope, subject=ROSA).context(user("?"), budget=PLENTY)
                assert CELLO.content not in json.dumps(context.request)
            assert (await memory.recall("cello", scope=ANA)).hits == ()
            with pytest.raises(NotFound):
                await facts.sources(number)

    async def test_messages_that_expire_while_they_are_digested(self, store: Store) -> None:
        """The digest loses its claim, and nothing is learned of what is gone."""
        gate = Gate(listener(CELLO))
        async with opened(store, model=Scripted([gate], then=listener(CELLO))) as memory:
            later = datetime.now(UTC) + LATER_TODAY
            chat = memory.conversation("c", scope=ANA, subject=ROSA)
            await chat.append(user(CELLO.text).expiring(later), *two_turns("x")[1:])
            await gate.reached()
            await time_of(store).pass_days(1)
            await memory.purge_expired()
            gate.open()
            await memory.wait_for_digests()
            assert await memory.facts(ANA).list(state=None) == []

    @pytest.mark.parametrize("how", ["pop", "delete", "clear"])
    async def test_a_conversation_that_is_taken_away_while_it_is_digested(self, store: Store, how: str) -> None:
        gate = Gate(listener(CELLO))
        async with opened(store, model=Scripted([gate], then=listener(CELLO))) as memory:
            chat = memory.conversation("c", scope=ANA, subject=ROSA)
            await chat.append(*two_turns(CELLO.text))
            await gate.reached()
            match how:
                case "pop":
                    for _ in range(4):
                        await chat.pop()
                case "delete":
                    await chat.delete()
                case _:
                    await chat.clear()
            gate.open()
            await memory.wait_for_digests()
            assert await memory.facts(ANA).list(state=None) == []

    async def test_a_subject_that_is_changed_while_it_is_digested(self, store: Store) -> None:
        """What was found is of the subject that was asked for, and not kept as if it were of the other."""
        gate = Gate(listener(CELLO))
        async with opened(store, model=Scripted([gate], then=listener(CELLO))) as memory:
            chat = memory.conversation("c", scope=ANA, subject=ROSA)
            await chat.append(*two_turns(CELLO.text))
            await gate.reached()
            await chat.configure(subject="legacy-8", create=True)
            gate.open()
            await memory.wait_for_digests()
            assert await memory.facts(ANA, subject="legacy-8").list(state=None) == []
            assert [found.content for found in await memory.facts(ANA, subject=ROSA).list()] == [CELLO.content]
            assert [row.status.value for row in await chat.digests()] == ["completed"]
