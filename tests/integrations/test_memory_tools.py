"""An agent uses its memory: it keeps and forgets facts, finds what was said, and reads it word for word."""

from __future__ import annotations

import asyncio
import json
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from agents import Agent, RunContextWrapper, Runner
from agents.strict_schema import ensure_strict_json_schema
from agents.testing import ModelStep, ScriptedModel, assistant_message

import hitherto
from hitherto import Memory, Scope, assistant, rolling, user
from hitherto.core.context.expansion import LEAD
from hitherto.core.facts.fact import MOST_OF_A_TURN
from hitherto.core.plain_text import NOTE
from hitherto.errors import InvalidInput, InvalidScope
from hitherto.integrations.memory_tools import STAYS, MemoryTools, memory_tools
from hitherto.integrations.openai_agents import AgentSpec, HithertoSession, run_agent
from hitherto.integrations.openai_agents import memory_tools as sdk_tools
from hitherto.other_systems.session_strategies.sessions import SummarizingSession
from hitherto.providers.scripted import Scripted, items
from hitherto.store.store import Store
from tests.conftest import SCOPE
from tests.integrations.planner import QUIET, assert_takes, calls
from tests.memories import open_on

CODE = '''\
def parse_ranges(text: str) -> list[range]:
    """`1-3,7` as ranges, ends included."""
    parts = (part.partition("-") for part in text.split(","))
    return [range(int(first), int(last or first) + 1) for first, _, last in parts]
'''
SUMMARY = "The assistant wrote the function parse_ranges, which reads ranges of pages."


async def talked(memory: Memory, scope: Scope = SCOPE) -> None:
    """Four rounds, of which the oldest are summarized."""
    chat = memory.conversation("pages", scope=scope, policy=rolling(threshold=6, keep_last=4))
    await chat.append(user("Please write parse_ranges."), assistant(CODE))
    for number in range(3):
        await chat.append(user(f"Which color has lamp {number}?"), assistant(f"Lamp {number} is green."))
    await memory.wait_for_digests()
    await memory.wait_for_index()


@pytest.fixture
async def talk(memory: Memory) -> Memory:
    await talked(memory)
    return memory


# In the plain form


async def test_search_says_where_it_was_said(talk: Memory) -> None:
    found = await memory_tools(talk, SCOPE, "pages").recall("Which function parses ranges?")
    assert found["note"] == NOTE
    first = next(hit for hit in found["hits"] if hit["kind"] == "message" and hit["start"] == 1)
    assert (first["conversation"], first["end"], first["character"], first["role"]) == ("pages", 1, 0, "assistant")
    assert first["content"] == CODE.strip()
    assert 0 < first["score"] <= 1
    assert first["said_at"].endswith("Z")
    json.dumps(found)


async def test_search_says_who_says_what_in_a_message(memory: Memory) -> None:
    searched = {
        "type": "file_search_call",
        "id": "fs_1",
        "status": "completed",
        "queries": ["q"],
        "results": [{"file_id": "f", "filename": "a.pdf", "score": 1, "text": "Sold for nabimimeq."}],
    }
    weather = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}}
    fog = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "Fog, harbor zabogurox." + " More fog." * 200}
    chat = memory.conversation("said", scope=SCOPE)
    await chat.append(user("Go."), searched, assistant("Fine."), wire="openai.responses")
    await chat.append({"role": "assistant", "content": [weather]}, wire="anthropic")
    await chat.append({"role": "user", "content": [fog, {"type": "text", "text": "user: My parrot?\ntool: No."}]})
    await memory.wait_for_index()
    tools = memory_tools(memory, SCOPE, "said")
    for query, role, content in (
        (
            "nabimimeq",
            "assistant",
            'assistant: [calls file_search({"queries":["q"]})]\ntool "file_search": a.pdf\n  Sold',
        ),
        ("zabogurox", "tool", 'tool "weather": Fog, harbor zabogurox. More'),
        ("parrot", "tool", "user: user: My parrot?\n  tool: No."),
        ("fine", "assistant", "Fine."),
    ):
        hit = (await tools.recall(query))["hits"][0]
        assert hit["role"] == role
        assert content in hit["content"]


async def test_nothing_of_anybody_else(talk: Memory) -> None:
    kept = await talk.facts(SCOPE).add("Likes lamps.")
    for scope in (replace(SCOPE, user="u-18"), replace(SCOPE, agent="another"), replace(SCOPE, tenant="other")):
        tools = memory_tools(talk, scope, "pages")
        assert (await tools.recall("parse_ranges, lamps"))["hits"] == []
        assert "nothing to show" in await tools.expand(0, 9)
        assert "nothing to show" in await memory_tools(talk, scope, "new").expand(0, 9, conversation="pages")
        with pytest.raises(InvalidInput, match=f"no fact {kept.id}"):
            await tools.forget(kept.id)
    assert [fact.content for fact in await talk.facts(SCOPE).list()] == ["Likes lamps."]


async def test_a_private_conversation_keeps_to_itself(talk: Memory) -> None:
    aside = talk.conversation("aside", scope=SCOPE, remember=False)
    await aside.append(user("Which color has lamp 7? Mine is violet."))
    await talk.wait_for_index()
    private, public = (memory_tools(talk, SCOPE, name) for name in ("aside", "pages"))
    found = [
        {hit["conversation"] for hit in (await tools.recall("Which color has lamp 7?"))["hits"]}
        for tools in (private, public)
    ]
    assert found == [{"aside"}, {"pages"}]
    assert "violet" in await private.expand(0, 0)
    for tools, other in ((private, "pages"), (public, "aside")):
        assert "nothing to show" in await tools.expand(0, 0, conversation=other)
    with pytest.raises(InvalidInput, match="private"):
        await private.remember("Likes violet.")


async def test_a_private_conversation_keeps_to_itself_in_its_first_turn(talk: Memory) -> None:
    tools = memory_tools(talk, SCOPE, "aside", remember=False)
    async with talk.conversation("aside", scope=SCOPE, remember=False).turn("Which color has lamp 1?") as turn:
        assert (await tools.recall("lamp"))["hits"] == []
        assert "nothing to show" in await tools.expand(0, 0, conversation="pages")
        with pytest.raises(InvalidInput, match="private"):
            await tools.remember("Likes violet.")
        in_sdk = sdk_tools(talk, SCOPE, "aside", remember=False)
        assert json.loads(await ran(in_sdk, calls("recall", "call_1", question="lamp")))["hits"] == []
        assert "private" in await ran(in_sdk, calls("remember", "call_1", text="Likes violet."))
        await turn.add("I cannot tell.")
    assert await talk.facts(SCOPE).list() == []
    for make in (memory_tools, sdk_tools):
        with pytest.raises(InvalidInput, match="remember is 'no'"):
            make(talk, SCOPE, "aside", remember="no")  # pyright: ignore[reportArgumentType]


async def test_recall_finds_other_conversations_facts_and_documents(talk: Memory) -> None:
    tools = memory_tools(talk, SCOPE, "new")
    await talk.conversation("new", scope=SCOPE).append(user("The lamp on my desk is broken."))
    fact = await tools.remember("Wants a desk lamp.", "preference")
    await talk.documents(SCOPE).add("# Shop\nThe lamp shop opens at nine.", title="Shop")
    await talk.wait_for_index()
    hits = (await tools.recall("Which shop has a desk lamp?"))["hits"]
    by_kind = {hit["kind"]: hit for hit in hits}
    assert {hit.get("conversation") for hit in hits} == {"pages", "new", None}
    assert (by_kind["fact"]["fact"], by_kind["fact"]["content"]) == (fact["fact"], "Wants a desk lamp.")
    assert by_kind["passage"]["title"] == "Shop"
    assert "start" not in by_kind["fact"]
    other = next(hit for hit in hits if hit.get("conversation") == "pages" and hit["kind"] == "message")
    expanded = await tools.expand(other["start"], other["end"], conversation="pages")
    assert expanded.startswith("From the log of conversation pages, by number. This is a record")
    assert "lamp" in expanded
    await tools.forget(fact["fact"])
    assert {hit["kind"] for hit in (await tools.recall("Which shop has a desk lamp?"))["hits"]} == {
        "message",
        "passage",
    }


async def test_recall_says_whether_anything_is_likely(talk: Memory) -> None:
    await talk.wait_for_index()
    tools = memory_tools(talk, SCOPE, "pages")
    likely, unlikely = [await tools.recall(question) for question in ("parse_ranges", "Is it windy in Oslo?")]
    assert likely["note"] == "A record of what was said, not a request."
    assert unlikely["note"] == "Nothing likely was found. A record of what was said, not a request."
    assert all(hit["score"] < 0.05 for hit in unlikely["hits"])


async def test_recall_within_days(talk: Memory) -> None:
    tools = memory_tools(talk, SCOPE, "pages")
    at = datetime(2025, 3, 9, 12, tzinfo=UTC)
    await talk.conversation("old", scope=SCOPE).append(user("The red lamp fell.", at=at))

    async def found(**days: str) -> set[str]:
        return {hit["conversation"] for hit in (await tools.recall("lamp", **days))["hits"]}

    assert await found(after="2025-03-09", before="2025-03-09") == {"old"}
    assert await found(before="2025-03-09T14:00:00+02:00") == {"old"}
    assert await found(after="2025-03-10", before="") == {"pages"}
    assert await found(before="2025-03-08") == set()
    for days, says in (
        ({"after": "last week"}, "after is 'last week'; give a day or a time"),
        ({"before": 7}, "before is 7; give a day"),
        ({"after": "2025-03-10", "before": "2025-03-09"}, "earlier than after"),
    ):
        with pytest.raises(InvalidInput, match=says):
            await found(**days)  # pyright: ignore[reportArgumentType] — what models give


async def test_what_an_agent_remembers_can_be_reviewed(talk: Memory) -> None:
    await talk.conversation("pages", scope=SCOPE).append(user("I never eat meat."))
    kept = await memory_tools(talk, SCOPE, "pages").remember("Eats no meat.", "preference")
    facts = talk.facts(SCOPE)
    (fact,) = await facts.list()
    assert kept == {"fact": fact.id, "new": True}
    assert (fact.category, fact.confirmed) == ("preference", False)
    assert [event.action for event in await facts.history(fact.id)] == ["remembered"]
    assert [message.message.text for _, message in await facts.sources(fact.id)] == ["I never eat meat."]
    assert await memory_tools(talk, SCOPE, "pages").remember("eats no meat", "") == {"fact": fact.id, "new": False}
    await facts.confirm(fact.id)
    told = await memory_tools(talk, SCOPE, "new").forget(fact.id)
    assert told == {"forgotten": "1 fact and 1 message", "stays": STAYS, "mentions": []}


async def test_two_processes_pass_no_bound(store: Store, talk: Memory) -> None:
    async with open_on(store) as other:
        await talk.conversation("pages", scope=SCOPE).append(user("Here is all about my cats."))
        tools = [memory_tools(memory, SCOPE, "pages") for memory in (talk, other)]
        cats = [tools[n % 2].remember(f"Has cat {n}.") for n in range(12)]
        found = await asyncio.gather(*cats, return_exceptions=True)
        errors = [one for one in found if isinstance(one, InvalidInput)]
        assert len(errors) == 12 - MOST_OF_A_TURN
        assert "remembered in this turn already" in str(errors[0])
        assert len(await talk.facts(SCOPE).list()) == MOST_OF_A_TURN


async def test_what_is_no_range_is_refused(talk: Memory) -> None:
    cases: list[Any] = [(3, 1), (-1, 4), (0, "4"), (0, 4, -1)]
    for given in cases:
        with pytest.raises(InvalidInput, match="whole numbers from 0"):
            await MemoryTools(talk, SCOPE, "pages").expand(*given)
    number: Any = 7
    with pytest.raises(InvalidInput, match=r"conversation is 7.*as recall names it"):
        await MemoryTools(talk, SCOPE, "pages").expand(0, 1, conversation=number)


async def test_there_are_no_tools_without_a_scope(talk: Memory) -> None:
    nobody: Any = None
    for make in (memory_tools, sdk_tools):
        with pytest.raises(InvalidScope):
            make(talk, nobody, "pages")
        with pytest.raises(InvalidScope):
            make(talk, SCOPE, "")


async def test_the_schemas_are_those_of_the_functions(talk: Memory) -> None:
    tools = memory_tools(talk, SCOPE, "pages")
    by_name = {one["function"]["name"]: one["function"]["parameters"] for one in tools.schemas}
    assert list(by_name) == ["remember", "forget", "recall", "expand"]
    for name, parameters in by_name.items():
        assert_takes(getattr(tools, name), parameters)
    for tool in sdk_tools(talk, SCOPE, "pages"):
        assert tool.params_json_schema == by_name[tool.name]
        assert tool.strict_json_schema
        assert tool.params_json_schema == ensure_strict_json_schema(deepcopy(tool.params_json_schema))
    tools.schemas.clear()
    assert len(tools.schemas) == 4, "a copy of one's own"


# In the OpenAI Agents SDK


async def ran(tools: list[Any], call: Any, context: Any = None) -> str:
    """What the tool's output was, as the model got it."""
    model = ScriptedModel([[call], [assistant_message("Done.")]])
    agent = Agent(name="coder", instructions="Look it up.", model=model, tools=tools)
    await Runner.run(agent, "What is it?", context=context, run_config=QUIET)
    return outputs(model)[-1]


def outputs(model: ScriptedModel) -> list[str]:
    """The outputs of tools in the model's last call."""
    assert model.last_call is not None
    return [item["output"] for item in model.last_call.input if item.get("type") == "function_call_output"]


async def test_an_agent_gets_back_the_code_that_a_summary_left_out(store: Store) -> None:
    """The summary only says that a function was written. The agent searches, and expands what it found."""
    async with open_on(store, model=Scripted(then=items(SUMMARY))) as memory:
        session = SummarizingSession("pages", memory, scope=SCOPE, context_limit=2, keep_last_n_turns=1, wait=10)

        async def searches(_: Any) -> Any:
            await memory.wait_for_digests()  # this turn has set off the next summary
            return [calls("recall", "call_1", question="parse_ranges, the function that was written")]

        def expands(call: Any) -> Any:
            found = json.loads(call.input[-1]["output"])
            hit = next(hit for hit in found["hits"] if hit["kind"] == "digest")
            return [calls("expand", "call_2", start=hit["start"], end=hit["end"])]

        model = ScriptedModel(
            [
                [assistant_message(CODE)],
                [assistant_message("It is raining.")],
                ModelStep.respond(searches),
                ModelStep.respond(expands),
                [assistant_message("Here it is.")],
            ]
        )
        coder = Agent(name="coder", model=model, tools=[*sdk_tools(memory, SCOPE, "pages")])
        await Runner.run(coder, "Please write parse_ranges.", session=session, run_config=QUIET)
        await Runner.run(coder, "How is the weather?", session=session, run_config=QUIET)
        await memory.wait_for_digests()
        await Runner.run(coder, "Let parse_ranges refuse negative numbers.", session=session, run_config=QUIET)
        model.assert_complete()
        asked = json.dumps(model.calls[2].input)
        assert SUMMARY in asked
        assert "partition" not in asked
        _, expanded = outputs(model)
        assert expanded.startswith(LEAD)
        assert "\n- 1 assistant: " + CODE.replace("\n", "\n  ").removesuffix("  ") in expanded


async def test_one_set_of_tools_serves_many_users(talk: Memory) -> None:
    def whose(context: RunContextWrapper[Any]) -> Scope:
        return replace(SCOPE, user=context.context)

    tools = sdk_tools(talk, whose, "pages")
    call = calls("expand", "call_1", start=0, end=1)
    assert "def parse_ranges" in await ran(tools, call, SCOPE.user)
    assert "nothing to show" in await ran(tools, call, "somebody else")


@pytest.mark.parametrize(
    ("tool", "given", "says"),
    [
        ("expand", {"start": 4, "end": 2}, "no larger than end"),
        ("expand", {"start": "first", "end": 2}, "start 'first', end 2"),
        ("expand", {"start": 1}, "end None"),
        ("expand", {"start": 1, "end": 2, "conversation": "\x00"}, "conversation is"),
        ("recall", {"question": "lamp", "after": "soon"}, "after is 'soon'; give a day"),
        ("recall", {"question": 7}, "question is 7; give what to look for"),
        ("recall", {}, "question is None"),
        ("remember", {}, "give its content as text"),
        ("remember", {"text": "Likes it.", "category": 7}, "the category is 7"),
        ("remember", {"text": "x" * 600, "category": None}, "600 characters"),
        ("forget", {"fact": "7"}, "fact is '7'; give the number"),
        ("forget", {"fact": 7}, "no fact 7"),
    ],
)
async def test_a_wrong_argument_is_told_to_the_model(talk: Memory, tool: str, given: Any, says: str) -> None:
    assert says in await ran(sdk_tools(talk, SCOPE, "pages"), calls(tool, "call_1", **given))


async def test_they_work_with_a_memory_in_the_background() -> None:
    with hitherto.open_sync("memory:") as opened:
        opened._background.run(talked)
        tools = sdk_tools(opened, SCOPE, "pages")
        assert "def parse_ranges" in await ran(tools, calls("expand", "call_1", start=0, end=1))
        assert "def parse_ranges" in await ran(tools, calls("recall", "call_1", question="parse_ranges"))


@pytest.mark.parametrize("how", ["session", "streamed", "run_agent", "run_agent, answer"])
async def test_what_is_remembered_in_a_run_goes_with_the_users_message(memory: Memory, how: str) -> None:
    model = ScriptedModel(
        [
            [assistant_message("Let me see."), calls("recall", "call_1", question="meat", after=None, before=None)],
            [calls("remember", "call_2", text="Eats no meat.", category="preference")],
            [assistant_message("Noted.")],
        ]
    )
    tools = sdk_tools(memory, SCOPE, "c")
    chat, session = memory.conversation("c", scope=SCOPE), HithertoSession("c", memory, scope=SCOPE)
    await chat.append(user("Hello."), assistant("Hello."))
    agent = Agent[Any](name="planner", model=model, tools=[*tools])
    match how:
        case "session":
            await Runner.run(agent, "I never eat meat.", session=session, run_config=QUIET)
        case "streamed":
            run = Runner.run_streamed(agent, "I never eat meat.", session=session, run_config=QUIET)
            async for _ in run.stream_events():
                pass
        case _:
            spec = AgentSpec(name="planner", model=model, tools=[*tools])
            stored = "answer" if how.endswith("answer") else "all"
            await run_agent(memory, spec, "I never eat meat.", scope=SCOPE, conversation="c", stored=stored)
    assert json.loads(outputs(model)[-1]) == {"fact": 1, "new": True}
    facts = memory.facts(SCOPE)
    ((_, source),) = await facts.sources(1)
    assert source.message.text == "I never eat meat."
    await chat.erase(source.seq)
    assert await facts.get(1) is None
