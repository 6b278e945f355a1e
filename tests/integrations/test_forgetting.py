"""What an agent forgets at the user's wish is gone everywhere, for good."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest

import hitherto
from hitherto import Memory, assistant, tool_result, user
from hitherto.core.facts.fact import MOST_OF_A_DAY, MOST_OF_A_TURN
from hitherto.core.prompt import Prompt
from hitherto.errors import InvalidFact, InvalidInput, NotFound
from hitherto.integrations.memory_tools import MENTIONED, memory_tools
from hitherto.policies import token_threshold
from hitherto.providers.scripted import Gate, Scripted
from hitherto.store.store import Store
from tests.acceptance.family import Says, listener
from tests.conftest import SCOPE
from tests.databases import OpenStore
from tests.integrations.planner import calls
from tests.integrations.test_memory_tools import ran, sdk_tools
from tests.memories import open_on
from tests.postgres.test_erasure_bytes import tables
from tests.times import time_of

NAME = "Rex"
FACT = "Has a dog called Rex."
WISH = "Please forget that my dog is called Rex."
ASKED = "What is the name of my dog?"

TOLD = (
    Says("My dog is called Rex.", "relationship", FACT),
    Says("Rex has a cold.", "relationship", FACT, again=FACT),
    Says("I live in Rome.", "other", "Lives in Rome."),
    Says(WISH, "relationship", FACT),
)

DAYS = (
    (user("My dog is called Rex.", at=datetime(2025, 3, 3, 9, tzinfo=UTC)), assistant("Rex, what a name!")),
    (user("Rex has a cold. I live in Rome."), assistant("Get well soon."), user("Is it hot there?"), assistant("Yes.")),
    (user("I row a boat."), assistant("On which lake?")),
)


def hears(prompt: Prompt) -> str:
    """A model that takes down the facts in `TOLD`, and sums up what users say."""
    answer = json.loads(listener(*TOLD)(prompt))
    return json.dumps({name: value for name, value in answer.items() if name in prompt.schema["properties"]})


@pytest.fixture
async def memory(store: Store) -> AsyncIterator[Memory]:
    async with open_on(store, model=Scripted(then=hears), keep_contexts=9) as opened:
        yield opened


async def three_days(memory: Memory) -> int:
    """Three chats, which end and are read for facts; the number of that on the dog."""
    for day, said in enumerate(DAYS):
        chat = memory.conversation(f"day {day}", scope=SCOPE)
        await chat.append(*said)
        await chat.finish()
        await memory.wait_for_digests()
    await memory.wait_for_index()
    return next(fact.id for fact in await memory.facts(SCOPE).list() if fact.content == FACT)


async def known(memory: Memory, name: str) -> dict[str, str]:
    """All that a conversation is shown, or can find."""
    chat, tools = memory.conversation(name, scope=SCOPE), memory_tools(memory, SCOPE, name)
    context = await chat.context(user(ASKED), budget=8_000, cross_session=["latest", "always"])
    return {
        "context": json.dumps(context.request),
        "profile": str([fact.content for fact in await memory.facts(SCOPE).list(state=None)]),
        "tool": json.dumps(await tools.recall(ASKED)),
        "search": repr((await memory.recall(f"{ASKED} {NAME}", scope=SCOPE, limit=50)).hits),
        "digests": repr([await memory.conversation(f"day {day}", scope=SCOPE).digests() for day in range(3)]),
    }


async def test_what_three_days_have_told_is_forgotten_on_the_fourth(memory: Memory) -> None:
    fact = await three_days(memory)
    assert {name for name, shown in (await known(memory, "day 3")).items() if NAME in shown} == {
        *("context", "profile", "tool", "search", "digests")
    }
    chat, tools = memory.conversation("day 3", scope=SCOPE), memory_tools(memory, SCOPE, "day 3")
    async with chat.turn(WISH) as turn:
        await turn.add(assistant(calls=[hitherto.Call(id="1", name="recall", arguments="{}")]))
        await turn.add(tool_result("1", json.dumps(await tools.recall("dog"))))
        gone = await tools.forget(fact)
        assert NAME in str(turn.request), "the turn goes on"
        await turn.add("I know no Rex any more.")
    assert gone["forgotten"] == "1 fact and 3 messages"
    await chat.append(user("Thanks."), assistant("Bye."))
    assert NAME in str((await chat.context("And?", recall="off")).request), "its own conversation has the turn"
    await chat.finish()
    for indexed in (False, True):
        if indexed:
            await memory.wait_for_digests()
            await memory.wait_for_index()
        assert {name: shown for name, shown in (await known(memory, "day 4")).items() if NAME in shown} == {}
    assert NAME not in repr(await chat.digests())
    assert [fact.content for fact in await memory.facts(SCOPE).list()] == ["Lives in Rome."]
    assert [one.message.text for one in await memory.conversation("day 1", scope=SCOPE).messages()] == [
        *("", "Get well soon.", "Is it hot there?", "Yes.")
    ]
    with pytest.raises(InvalidInput, match=f"no fact {fact}"):
        await tools.forget(fact)


@pytest.mark.parametrize("at_once", [True, False])
async def test_what_agents_have_repeated_goes_if_the_user_wants_it(memory: Memory, at_once: bool) -> None:
    fact = await three_days(memory)
    kept = assistant("Dogs like to be near people.")
    for name in ("day 3", "day 4"):
        chat, tools = memory.conversation(name, scope=SCOPE), memory_tools(memory, SCOPE, name)
        await chat.append(user("And dogs?"), kept, user("What is my dog called?"))
        await chat.append(assistant(calls=[hitherto.Call(id="1", name="recall", arguments="{}")]))
        await chat.append(
            tool_result("1", json.dumps(await tools.recall("dog"))), assistant("Rex is what your dog is called.")
        )
    await chat.append(user(WISH))
    tools = memory_tools(memory, SCOPE, "day 4")
    if at_once:
        assert (await tools.forget(fact, mentions=True))["forgotten"] == "1 fact and 9 messages"
    else:
        told = await tools.forget(fact)
        assert told["forgotten"] == "1 fact and 3 messages"
        named = {(one["conversation"], one["start"]) for one in told["mentions"]}
        assert named >= {("day 3", 4), ("day 3", 5), ("day 4", 4), ("day 4", 5)}
        assert (await tools.forget(fact, mentions=True))["forgotten"] == f"0 facts and {len(named)} messages"
    assert {name: shown for name, shown in (await known(memory, "day 5")).items() if NAME in shown} == {}
    assert len([1 for hit in (await memory.recall("dogs", scope=SCOPE)).hits if hit.text == kept.text]) == 2


async def test_what_may_be_about_something_else_stays_and_is_named(memory: Memory) -> None:
    """Of the running turn nothing is named."""
    told = {
        "Likes Rome": "The cheapest flight to Rome is LH 230, which you may like.",
        "Works in sales": "The sales report works again.",
        "Needs a wheelchair": "Your father needs a wheelchair.",
        "Wants to learn Spanish": "Ida wants to learn Spanish.",
        "Is gay": "You told me that you are gay.",
    }
    for number, answer in enumerate(told.values()):
        await memory.conversation(f"c{number}", scope=SCOPE).append(user("And so?"), assistant(answer))
    await memory.wait_for_index()
    for number, content in enumerate(told):
        fact = await memory.facts(SCOPE).add(content)
        chat = memory.conversation(f"d{number}", scope=SCOPE)
        await chat.append(user(f"Please forget: {content}"))
        gone = await chat.forget(fact.id)
        assert (gone.facts, gone.messages) == (1, 0)
        named = {(hit.conversation, hit.start) for hit in gone.mentions}
        assert (f"c{number}", 1) in named
        assert (chat.id, 0) not in named
    fact = await memory.facts(SCOPE).add("Likes Rome")
    tools = memory_tools(memory, SCOPE, "d")
    told = await tools.forget(fact.id)
    assert told["stays"].endswith(MENTIONED)
    (named,) = told["mentions"]
    assert "LH 230" in await tools.expand(named["start"], named["end"], conversation=named["conversation"])


async def test_another_call_erases_what_was_named_and_nothing_else(memory: Memory) -> None:
    """Facts that others deleted stay out of it, and so does what they had replaced; what was erased meanwhile changes
    nothing for the rest."""
    facts = memory.facts(SCOPE)
    old, new = (await facts.add("Lives in Paris.")).id, (await facts.add("Lives in Rome.")).id
    fact = (await facts.add(FACT)).id
    await facts.delete(new)
    for name in ("c0", "c1"):
        await memory.conversation(name, scope=SCOPE).append(user("So?"), assistant("Your dog is called Rex."))
    await memory.wait_for_index()
    chat = memory.conversation("d", scope=SCOPE)
    assert len((await chat.forget(fact)).mentions) == 2
    await memory.conversation("c0", scope=SCOPE).erase([1])
    with pytest.raises(NotFound):
        await chat.forget(fact)
    gone = await chat.forget(fact, mentions=True)
    assert (gone.facts, gone.messages, gone.mentions) == (0, 1, ())
    assert [one.id for one in await facts.list()] == [old]
    for given in ("false", 1):
        with pytest.raises(InvalidInput, match="mentions is"):
            await memory_tools(memory, SCOPE, "d").forget(old, cast(Any, given))


async def test_one_that_was_cut_off_is_done_by_another_call(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    fact = (await memory.facts(SCOPE).add(FACT)).id
    await memory.conversation("c", scope=SCOPE).append(user("So?"), assistant("Your dog is called Rex."))
    await memory.wait_for_index()
    chat, store = memory.conversation("d", scope=SCOPE), memory._services.store
    change = store.facts.change

    async def cut_off(*_: object, **__: object) -> None:
        raise asyncio.CancelledError

    monkeypatch.setattr(store.facts, "change", cut_off)
    with pytest.raises(asyncio.CancelledError):
        await chat.forget(fact)
    monkeypatch.setattr(store.facts, "change", change)
    assert [hit.conversation for hit in (await chat.forget(fact)).mentions] == ["c"]


async def test_a_private_conversation_names_no_other(memory: Memory) -> None:
    fact = (await memory.facts(SCOPE).add(FACT)).id
    await memory.conversation("c", scope=SCOPE).append(user("So?"), assistant("Your dog is called Rex."))
    await memory.wait_for_index()
    assert (await memory.conversation("p", scope=SCOPE, remember=False).forget(fact)).mentions == ()


async def test_what_says_another_fact_alone_is_no_mention(memory: Memory) -> None:
    """Else that fact would be left without its source. What says more than it is named."""
    chat = memory.conversation("c", scope=SCOPE)
    for said, fact in (
        ("Ann likes strong tea.", "Ann likes strong tea."),
        ("Ann likes strong coffee.", "Ann likes strong coffee"),
        ("Bring strong tea, Ann likes strong coffee.", "Ann likes strong coffee."),
    ):
        await chat.append(user(said))
        await chat.remember(fact)
        await chat.append(assistant("Noted."))
    await memory.wait_for_index()
    first, other = await memory.facts(SCOPE).list()
    assert [hit.start for hit in (await chat.forget(first.id)).mentions] == [4]
    await chat.forget(first.id, mentions=True)
    assert [logged.seq for _, logged in await memory.facts(SCOPE).sources(other.id)] == [2]


async def test_what_mentions_it_is_not_read_for_facts(store: Store) -> None:
    model = Scripted(then=listener(Says("What is a good vegetarian soup?", "preference", "Is a vegetarian.")))
    async with open_on(store, model=model) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user("I'm a vegetarian."))
        fact = await chat.remember("Is a vegetarian.")
        await chat.append(assistant("Noted."), user("What is a good vegetarian soup?"), assistant("Borscht."))
        await memory.wait_for_index()
        gone = await memory.conversation("d", scope=SCOPE).forget(fact.id)
        assert [(hit.conversation, hit.start) for hit in gone.mentions][:1] == [("c", 2)]
        await chat.finish()
        await memory.wait_for_digests()
        assert await memory.facts(SCOPE).list() == []


async def test_no_byte_of_it_is_left_beside_the_turn(memory: Memory, store: Store) -> None:
    assert isinstance(store, OpenStore)
    fact = await three_days(memory)
    chat = memory.conversation("day 3", scope=SCOPE)
    await chat.context(user(ASKED), budget=8_000)  # which is kept
    await chat.append(user(WISH))
    await memory_tools(memory, SCOPE, "day 3").forget(fact)
    await memory.wait_for_digests()
    await memory.wait_for_index()
    await memory.wait_for_erasure()
    left = {name: text for name, text in (await tables(store.owners_url)).items() if "rex" in text}
    assert [*left] == ["message"]
    assert left["message"].count("called rex") == 2, "its text and its payload"


@pytest.mark.parametrize("how", ["rewind", "pop", "clear"])
async def test_no_byte_of_what_was_taken_back_and_said_anew_is_left(memory: Memory, store: Store, how: str) -> None:
    """Neither of the messages nor of the fact that ended with them."""
    assert isinstance(store, OpenStore)
    chat = memory.conversation("c", scope=SCOPE)
    await chat.append(user("Call him Rex."))
    await chat.remember(FACT)
    await chat.append(assistant("I see, your dog is called Rex."))
    match how:
        case "rewind":
            await chat.rewind(to=-1)
        case "pop":
            while await chat.pop() is not None:
                pass
        case _:
            await chat.clear()
    await chat.append(user("It is Rex, my dog."))
    fact = (await chat.remember(FACT)).id
    await chat.append(assistant("I see."))
    gone = await memory.conversation("d", scope=SCOPE).forget(fact)
    assert (gone.facts, gone.messages) == (1 if how == "clear" else 2, 3)
    await memory.wait_for_erasure()
    assert {name: text for name, text in (await tables(store.owners_url)).items() if "rex" in text} == {}


async def test_of_private_conversations_the_one_in_which_it_is_asked(memory: Memory) -> None:
    fact = await memory.facts(SCOPE).add(FACT)
    chats = [memory.conversation(name, scope=SCOPE, remember=False) for name in ("c", "d")]
    for chat in chats:
        await chat.append(user(ASKED), assistant("Your dog is called Rex."))
    assert (await chats[0].forget(fact.id, mentions=True)).messages == 1
    assert [NAME in str(await chat.messages()) for chat in chats] == [False, True]


async def test_asked_before_anything_is_stored_of_a_private_conversation(memory: Memory) -> None:
    fact = await memory.facts(SCOPE).add(FACT)
    await memory.conversation("c", scope=SCOPE, remember=False).forget(fact.id)
    head = await memory.conversation("c", scope=SCOPE).head()
    assert head is not None
    assert head.private


async def test_what_is_no_number_is_named_as_it_was_given(memory: Memory) -> None:
    with pytest.raises(InvalidFact, match="fact is 'Rex'; give a whole number"):
        await memory.conversation("c", scope=SCOPE).forget(cast(Any, "Rex"))


async def test_what_it_had_replaced_goes_too(store: Store) -> None:
    async with open_on(store, fact_categories=("pet",), single_fact_categories=("pet",)) as memory:
        facts, ids = memory.facts(SCOPE), list[int]()
        for name in ("Bob", "Rex", "Max"):
            chat = memory.conversation(name, scope=SCOPE)
            await chat.append(user(f"My dog is called {name}."))
            ids.append((await chat.remember(f"Has a dog called {name}.", category="pet")).id)
            await chat.append(assistant("Noted."))
        assert [fact.state for fact in await facts.list(state=None)] == ["superseded", "superseded", "current"]
        told = await memory_tools(memory, SCOPE, "c").forget(ids[1])
        assert told["forgotten"] == "2 facts and 2 messages"
        assert [fact.content for fact in await facts.list(state=None)] == ["", "", "Has a dog called Max."]
        found = (await memory.recall("dog called", scope=SCOPE, kinds=["message"])).hits
        assert [hit.text for hit in found][:1] == ["My dog is called Max."]
        assert not any(name in hit.text for hit in found for name in ("Bob", "Rex"))


async def test_it_rests_on_more_messages_than_a_fact_names_and_one_that_is_to_come(
    store: Store, memory: Memory
) -> None:
    chat, fact = memory.conversation("c", scope=SCOPE), 0
    for _ in range(3):
        for number in range(45):
            await chat.append(user(f"My dog is called Rex, {number}."))
            fact = (await chat.remember(FACT)).id
            await chat.append(assistant("I see."))
        await time_of(store).begin_another_day()
    await memory.conversation("never", scope=SCOPE).remember(FACT)
    await chat.append(user(WISH))
    assert (await chat.remember(FACT)).id == fact
    told = await memory_tools(memory, SCOPE, "c").forget(fact)
    assert told["forgotten"] == "1 fact and 135 messages"
    assert NAME in str((await chat.context(recall="off")).request), "what waits for its answer"
    assert (await memory.recall(NAME, scope=SCOPE)).hits == ()


async def test_of_others_nothing(memory: Memory) -> None:
    await memory.configure_subject(tenant=SCOPE.tenant, subject="boat", members=[SCOPE.user, "ben"])
    ben = replace(SCOPE, user="ben")
    shared = await memory.facts(ben, subject="boat").add("The boat is blue.")
    await memory.facts(ben).share(shared.id)
    for scope in (SCOPE, replace(ben, agent="another"), replace(ben, tenant="other")):
        with pytest.raises(InvalidInput, match="can be forgotten"):
            await memory_tools(memory, scope, "c").forget(shared.id)
    assert (await memory.facts(ben).get(shared.id)) is not None


async def test_so_many_a_turn_and_a_day(memory: Memory, store: Store) -> None:
    facts = memory.facts(SCOPE)
    cats = [(await facts.add(f"Has cat {number}.")).id for number in range(MOST_OF_A_DAY + 2)]
    tools = [memory_tools(memory, SCOPE, f"c{number}") for number in range(20)]
    first = await asyncio.gather(*(tools[0].forget(cat) for cat in cats[:8]), return_exceptions=True)
    errors = [one for one in first if isinstance(one, InvalidInput)]
    assert len(errors) == 8 - MOST_OF_A_TURN
    assert "forgotten in this turn already" in str(errors[0])
    await memory.conversation("c0", scope=SCOPE).append(user("Forget them."), assistant("Done."), user("More."))
    left = [fact.id for fact in await facts.list()]
    for number, cat in enumerate(left[: MOST_OF_A_DAY - MOST_OF_A_TURN]):
        await tools[number % 20].forget(cat)
    with pytest.raises(InvalidInput, match="24 hours"):
        await tools[19].forget(left[-1])
    await time_of(store).begin_another_day()
    await tools[19].forget(left[-1])


async def test_a_turn_that_takes_the_place_of_the_wish_is_found(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    fact = await memory.facts(SCOPE).add(FACT)
    await chat.append(user(WISH))
    await chat.forget(fact.id)
    await chat.append(assistant("Done."))
    await chat.rewind(to=-1)
    await chat.append(user("My boat is blue."), assistant("I see."))
    hits = (await memory.recall("boat", scope=SCOPE)).hits
    assert [hit.text for hit in hits][:1] == ["My boat is blue."]


async def test_a_turn_that_comes_back_is_not_found_again(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    fact = await memory.facts(SCOPE).add(FACT)
    await chat.append(user(WISH))
    await chat.forget(fact.id)
    await chat.append(assistant("Done."))
    await chat.append(user("My boat is blue, Rex."), at=-1)
    assert [hit.text for hit in (await memory.recall("Rex", scope=SCOPE)).hits] == ["My boat is blue, Rex."]
    await chat.switch(0)
    await memory.wait_for_index()
    assert (await memory.recall("dog Rex", scope=SCOPE)).hits == ()


@pytest.mark.parametrize("stored", [True, False])
async def test_of_messages_that_get_one_answer_none_is_found(memory: Memory, stored: bool) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    fact = await memory.facts(SCOPE).add(FACT)
    await chat.append(user("I row a boat."), assistant("I see."))
    row = [user("And one thing more."), user(WISH), user("Please!")]
    if stored:
        await chat.append(*row)
    await chat.forget(fact.id)
    await chat.append(*(() if stored else row), assistant("Done, no Rex."))
    await chat.append(user("My boat is blue."), assistant("I see."))
    await chat.finish()
    await memory.wait_for_digests()
    assert await memory.facts(SCOPE).list() == []
    assert NAME not in repr(await chat.digests())
    hits = (await memory.recall("boat, dog Rex, please one thing more", scope=SCOPE, kinds=["message"])).hits
    assert {hit.text for hit in hits} - {"I see."} == {"I row a boat.", "My boat is blue."}


@pytest.mark.parametrize("ended", [True, False])
async def test_what_was_digested_of_the_turn_is_digested_anew(store: Store, ended: bool) -> None:
    gate = Gate(hears)
    policy = token_threshold(300, within_turn=True)
    async with open_on(store, model=Scripted(then=gate), policy=policy) as memory:
        fact = await memory.facts(SCOPE).add(FACT)
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user(WISH))
        for number in map(str, range(6)):
            call = assistant(calls=[hitherto.Call(id=number, name="recall", arguments="{}")])
            await chat.append(call, tool_result(number, "Dog: Rex. " + "word " * 100))
        if ended:
            gate.open()
            await memory.wait_for_digests()
            assert NAME in repr(await chat.digests())
        else:
            await gate.reached()
        await chat.forget(fact.id)
        gate.open()
        await memory.wait_for_digests()
        assert NAME not in repr(await chat.digests())
        assert NAME in str((await chat.context(budget=4_000, recall="off")).request)
        assert (await memory.recall("dog Rex", scope=SCOPE)).hits == ()


async def test_nothing_that_shows_other_conversations_shows_the_turn(memory: Memory) -> None:
    chat, fact = memory.conversation("c", scope=SCOPE), await memory.facts(SCOPE).add(FACT)
    await chat.append(user(WISH))
    await chat.forget(fact.id)
    await chat.append(assistant("No dog called Rex any more."))
    assert [one.title for one in (await memory.conversations(SCOPE)).conversations] == [""]
    await chat.append(user("My boat is blue."), assistant("I see."))
    tools, (boat, *_) = memory_tools(memory, SCOPE, "d"), (await memory.recall("blue boat", scope=SCOPE)).hits
    shown = {
        "around": [one.seq for one in await memory.around(boat, scope=SCOPE)],
        "tool": await tools.expand(0, 3, conversation="c"),
        "titles": [one.title for one in (await memory.conversations(SCOPE)).conversations],
        "expand": (await chat.expand((0, 3))).text,
    }
    assert NAME not in str(shown)
    assert shown["around"] == [2, 3]
    assert shown["titles"] == ["My boat is blue."]
    assert "boat" in shown["tool"]
    assert len(await chat.messages()) == len(await chat.items()) == 4


async def test_an_export_keeps_the_turn_from_being_found(memory: Memory) -> None:
    fact = await memory.facts(SCOPE).add(FACT)
    chat = memory.conversation("c", scope=SCOPE)
    await chat.append(user(WISH))
    await chat.forget(fact.id)
    await chat.append(assistant("Done."))
    file = io.BytesIO()
    await memory.export_to(file, tenant=SCOPE.tenant)
    async with hitherto.open("memory:", embedder="none") as other:
        await other.import_from(io.BytesIO(file.getvalue()))
        await other.wait_for_index()
        assert (await other.recall("dog Rex", scope=SCOPE)).hits == ()
        assert len(await other.conversation("c", scope=SCOPE).messages()) == 2


async def test_in_the_agents_sdk(memory: Memory) -> None:
    fact = await memory.facts(SCOPE).add(FACT)
    told = json.loads(await ran(sdk_tools(memory, SCOPE, "c"), calls("forget", "call_1", fact=fact.id)))
    assert told["forgotten"] == "1 fact and 0 messages"


async def test_a_fork_that_forgets_does_not_name_its_own_wish(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    fact = await memory.facts(SCOPE).add(FACT)
    await chat.append(user(WISH))
    await memory.wait_for_index()
    fork = await chat.fork()
    assert (await fork.forget(fact.id)).mentions == ()
