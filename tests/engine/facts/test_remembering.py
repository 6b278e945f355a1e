"""Facts that an agent remembers by itself: they rest on the user's message of the turn, and are so many."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from io import BytesIO

import pytest

import hitherto
from hitherto import Conversation, Memory, assistant, user
from hitherto.core.facts.fact import MOST_OF_A_DAY, MOST_OF_A_TURN, FactState
from hitherto.errors import InvalidFact
from hitherto.store.store import Store
from tests.acceptance.family import ANA, ROSA, Says, opened
from tests.engine.facts.reviewing import CITIES, did, one, two_turns
from tests.times import LATER_TODAY, time_of

SAID = "By the way, I am allergic to peanuts."
FACT = "Is allergic to peanuts."


@pytest.fixture
async def chat(memory: Memory) -> Conversation:
    """A round, and a question that waits for its answer."""
    made = memory.conversation("c", scope=ANA)
    await made.append(user("Hello."), assistant("Hello, Ana."), user(SAID))
    return made


async def test_it_rests_on_the_users_message(memory: Memory, chat: Conversation) -> None:
    added = await chat.remember(FACT, category="Preference")
    facts = memory.facts(ANA)
    found = await one(facts, added.id)
    assert added.new
    assert (found.content, found.category, found.subject) == (FACT, "preference", "")
    assert (found.confirmed, found.visibility, found.state) == (False, "private", "current")
    assert [(where, message.message.text) for where, message in await facts.sources(added.id)] == [("c", SAID)]
    (event,) = await facts.history(added.id)
    assert (event.action, event.by) == ("remembered", None)
    assert FACT in (await chat.known() or "")


async def test_in_a_turn_it_rests_on_the_question_that_is_appended_with_its_step(memory: Memory) -> None:
    for name in ("new", "c"):
        chat = memory.conversation(name, scope=ANA)
        async with chat.turn(SAID) as turn:
            added = await chat.remember(f"{FACT} {name}")
            await turn.add("Noted.")
        ((where, message),) = await memory.facts(ANA).sources(added.id)
        assert (where, message.message.text) == (name, SAID)
        again = await chat.remember("Has a cat.")
        assert await memory.facts(ANA).sources(again.id) == [], "of a turn that is to come"


async def test_the_answer_does_not_belong_to_it(memory: Memory, chat: Conversation) -> None:
    await chat.append({"role": "assistant", "tool_calls": [_call("call_1")], "content": None})
    await chat.append({"role": "tool", "tool_call_id": "call_1", "content": "Peanuts are legumes."})
    added = await chat.remember(FACT)
    assert [message.seq for _, message in await memory.facts(ANA).sources(added.id)] == [2]


def _call(id: str) -> dict[str, object]:
    return {"id": id, "type": "function", "function": {"name": "look_up", "arguments": "{}"}}


@pytest.mark.parametrize("how", ["erased", "expired", "deleted"])
async def test_it_goes_with_the_message(store: Store, memory: Memory, chat: Conversation, how: str) -> None:
    if how == "expired":
        await chat.append(user("To nuts too.").expiring(datetime.now(UTC) + LATER_TODAY))
    added = await chat.remember(FACT)
    facts = memory.facts(ANA)
    match how:
        case "erased":
            await chat.erase(2)
        case "expired":
            await time_of(store).pass_days(1)
        case _:
            await chat.delete(facts=True)
    assert await facts.get(added.id) is None


async def test_what_was_to_rest_on_a_message_that_never_came_goes_with_its_conversation(memory: Memory) -> None:
    chat = memory.conversation("c", scope=ANA)
    added = await chat.remember(FACT)
    await chat.delete(facts=True)
    assert await memory.facts(ANA).get(added.id) is None


async def test_it_is_withdrawn_with_the_message(memory: Memory, chat: Conversation) -> None:
    added = await chat.remember(FACT)
    await chat.rewind(to=1)
    assert (await one(memory.facts(ANA), added.id)).state is FactState.WITHDRAWN


async def test_what_a_person_has_added_stays(memory: Memory, chat: Conversation) -> None:
    added = await chat.remember(FACT)
    await memory.facts(ANA).add(FACT)
    await chat.erase(2)
    assert (await one(memory.facts(ANA), added.id)).evidence == ()


async def test_the_same_statement_is_the_same_fact(memory: Memory, chat: Conversation) -> None:
    facts = memory.facts(ANA)
    by_hand = await facts.add(FACT, category="habit")
    for _ in range(2):
        again = await chat.remember("is allergic to PEANUTS", category="hobby")
        assert (again.id, again.new) == (by_hand.id, False)
    found = await one(facts, by_hand.id)
    assert (found.category, found.confirmed, found.repeated, len(found.evidence)) == ("habit", True, 1, 1)
    assert await did(facts, by_hand.id) == ["added", "remembered"]


async def test_it_is_about_the_conversations_subject(memory: Memory) -> None:
    chat = memory.conversation("c", scope=ANA, subject=ROSA)
    await chat.append(user("Mum is allergic to peanuts."))
    added = await chat.remember(FACT)
    assert (await one(memory.facts(ANA), added.id)).subject == ROSA


async def test_a_category_that_holds_one_value_has_the_latest(store: Store) -> None:
    async with opened(store, **CITIES) as memory:
        chat = memory.conversation("c", scope=ANA)
        await chat.append(user("I moved to Rome."))
        before = await memory.facts(ANA).add("Lives in Lyon.", category="current city")
        after = await chat.remember("Lives in Rome.", category="current city")
        found = await one(memory.facts(ANA), before.id)
        assert (found.state, found.superseded_by) == (FactState.SUPERSEDED, after.id)


async def test_what_was_forgotten_is_not_found_by_the_digest_that_comes_after(store: Store) -> None:
    async with opened(store, Says(SAID, "other", FACT)) as memory:
        facts, forgotten = memory.facts(ANA), []
        for name in ("c", "turn"):
            chat = memory.conversation(name, scope=ANA)
            if name == "turn":
                forgotten.append((await chat.remember(FACT)).id)
            await chat.append(user(SAID))
            if name == "c":
                forgotten.append((await chat.remember(FACT)).id)
            await facts.delete(forgotten[-1])
            await chat.append(assistant("Forgotten."), *two_turns("Thanks."))
            await memory.wait_for_digests()
            assert await facts.list() == [], name
        await memory.conversation("d", scope=ANA).append(*two_turns(SAID))
        await memory.wait_for_digests()
        assert [fact.content for fact in await facts.list()] == [FACT]
        assert (await one(facts, forgotten[0])).evidence == ()


async def test_an_export_keeps_the_message_that_is_to_come(memory: Memory) -> None:
    await memory.conversation("c", scope=ANA).remember(FACT)
    file = BytesIO()
    await memory.export_to(file, tenant=ANA.tenant)
    async with hitherto.open("memory:", embedder="none") as other:
        await other.import_from(BytesIO(file.getvalue()))
        (fact,) = await other.facts(ANA).list()
        assert [(said.conversation, said.seq) for said in fact.evidence] == [("c", 0)]


async def test_nothing_is_remembered_of_an_erased_message(memory: Memory, chat: Conversation) -> None:
    await chat.erase(2)
    with pytest.raises(InvalidFact, match="erased"):
        await chat.remember(FACT)


async def test_a_fact_without_words_is_refused(memory: Memory, chat: Conversation) -> None:
    with pytest.raises(InvalidFact, match="says nothing"):
        await chat.remember("...")
    assert await memory.facts(ANA).list(state=None) == []


async def refused(chat: Conversation, *contents: str) -> int:
    """How many of these an agent that remembers all at once is refused."""
    found = await asyncio.gather(*(chat.remember(one) for one in contents), return_exceptions=True)
    errors = [one for one in found if isinstance(one, BaseException)]
    assert all(isinstance(one, InvalidFact) for one in errors), errors
    return len(errors)


async def test_a_turn_brings_so_many(memory: Memory, chat: Conversation) -> None:
    assert await refused(chat, *(f"Has cat {n}." for n in range(MOST_OF_A_TURN + 3))) == 3
    await chat.append(assistant("Noted."), user("And a dog."))
    await chat.remember("Has a dog.")


async def test_a_day_brings_so_many_whatever_the_conversation(store: Store, memory: Memory) -> None:
    chats = [memory.conversation(f"c{n}", scope=ANA, subject=ROSA if n % 2 else None) for n in range(12)]
    for chat in chats:
        await chat.append(user("I have cats."))
    wanted = [refused(chat, *(f"Has cat {chat.id}-{n}." for n in range(MOST_OF_A_TURN))) for chat in chats]
    assert sum(await asyncio.gather(*wanted)) == len(chats) * MOST_OF_A_TURN - MOST_OF_A_DAY
    last = (await memory.facts(ANA).list())[-1]
    await memory.facts(ANA).delete(last.id)
    last_chat = memory.conversation("last", scope=ANA)
    await last_chat.append(user("A dog too."))
    with pytest.raises(InvalidFact, match=f"{MOST_OF_A_DAY} facts .* 24 hours"):
        await last_chat.remember("Has a dog.")
    other = memory.conversation("last", scope=replace(ANA, user="zoe"))
    await other.append(user("A dog."))
    await other.remember("Has a dog.")
    await time_of(store).begin_another_day()
    await last_chat.remember("Has a dog.")
