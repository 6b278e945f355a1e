"""What the SDK's `Session` protocol promises, on a log that only grows; and the contexts that sessions keep."""

from __future__ import annotations

import asyncio
import inspect
import json
from typing import Any, cast

import pytest
from agents import Agent, OpenAIProvider, RunConfig, RunContextWrapper, Runner, SessionSettings, function_tool
from agents.memory import Session, is_openai_responses_compaction_aware_session

import hitherto
from hitherto import Memory
from hitherto.core.log.frontier import DigestAction
from hitherto.core.policy.span import Fate
from hitherto.errors import InvalidBatch, InvalidInput, InvalidMessage, InvalidPolicy, InvalidScope
from hitherto.integrations.openai_agents import HithertoSession
from hitherto.testing.requests import refusals
from tests.conftest import SCOPE
from tests.integrations.planner import Item, dialogue, payloads
from tests.integrations.test_budget import SESSIONS
from tests.providers.models.endpoint import Answer, Endpoint

ITEMS: list[Any] = [
    {"role": "user", "content": "Where to?"},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
    {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": '{"q": -0.0}'},
    {"type": "function_call", "id": "fc_2", "call_id": "c2", "name": "look", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c2", "output": "two"},
    {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "one \x00"}]},
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Lisbon.", "annotations": []}],
    },
]


@pytest.fixture
async def session(memory: Memory) -> HithertoSession:
    return HithertoSession("trip", memory, scope=SCOPE)


async def test_it_is_a_session_as_the_sdk_sees_one(session: HithertoSession) -> None:
    assert isinstance(session, Session)
    assert is_openai_responses_compaction_aware_session(session)
    for verb in (session.get_items, session.add_items, session.pop_item, session.clear_session, session.run_compaction):
        assert inspect.signature(verb).parameters["wrapper"].kind is inspect.Parameter.KEYWORD_ONLY


async def test_ids_of_items_are_not_those_of_messages(session: HithertoSession) -> None:
    """Models and servers give one to several."""
    await session.add_items(ITEMS)
    await session.add_items(ITEMS)
    log = await session.messages()
    assert len(log) == 2 * len(ITEMS)
    assert {one.message.id for one in log} == {None}
    assert [one.message.payload.get("id") for one in log[: len(ITEMS)]] == [item.get("id") for item in ITEMS]


async def test_items_come_back_as_they_were_given(session: HithertoSession) -> None:
    await session.add_items(ITEMS[:3])
    await session.add_items(ITEMS[3:])

    found = await session.get_items()

    assert found == ITEMS
    assert [list(item) for item in found] == [list(item) for item in ITEMS]
    assert payloads(await session.messages()) == ITEMS


@pytest.mark.parametrize("settings", [SessionSettings(limit=2), {"limit": 2}])
async def test_the_settings_limit_holds_where_the_call_names_none(memory: Memory, settings: Any) -> None:
    session = HithertoSession("trip", memory, scope=SCOPE, session_settings=settings)
    await session.add_items(ITEMS)
    assert await session.get_items() == ITEMS[-2:]
    assert await session.get_items(limit=3) == ITEMS[-3:]
    session.session_settings = None
    assert await session.get_items() == ITEMS


async def test_a_negative_settings_limit_is_refused_when_the_session_is_made(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="limit is -1"):
        HithertoSession("trip", memory, scope=SCOPE, session_settings={"limit": -1})


async def test_a_batch_with_an_unusable_item_is_not_written_at_all(session: HithertoSession) -> None:
    cases: list[tuple[Any, ...]] = [
        ({"type": "nonsense"}, InvalidMessage),
        ({"role": "wizard", "content": "?"}, InvalidMessage),
        ({"role": "user", "content": object()}, InvalidMessage),
        ("hello", InvalidMessage),
        (None, InvalidMessage),
        ({"type": "function_call_output", "call_id": "nobody", "output": "?"}, InvalidBatch),
    ]
    for bad, error in cases:
        with pytest.raises(error):
            await session.add_items([*ITEMS, bad])
        assert await session.get_items() == []
        assert await session.messages() == []


async def test_a_popped_item_stays_in_the_log(session: HithertoSession) -> None:
    await session.add_items(ITEMS[:1])
    await session.add_items([{"role": "user", "content": "No, wait."}])

    assert await session.pop_item() == {"role": "user", "content": "No, wait."}
    assert await session.get_items() == ITEMS[:1]
    log = await session.messages()
    assert payloads(log) == [ITEMS[0], {"role": "user", "content": "No, wait."}]
    assert [logged.retracted_rev is None for logged in log] == [True, False]

    await session.add_items([{"role": "user", "content": "Porto?"}])
    assert await session.pop_item() == {"role": "user", "content": "Porto?"}
    assert await session.pop_item() == ITEMS[0]
    assert await session.pop_item() is None
    assert await session.get_items() == []
    assert len(await session.messages()) == 3


async def test_a_cleared_session_starts_anew_and_the_log_says_so(session: HithertoSession) -> None:
    await session.add_items(ITEMS)
    await session.clear_session()
    assert await session.get_items() == []
    assert await session.pop_item() is None

    await session.add_items(ITEMS[:1])

    assert await session.get_items() == ITEMS[:1]
    assert payloads(await session.messages()) == [*ITEMS, ITEMS[0]]
    [cleared] = await session.digests()
    assert (cleared.action, cleared.start, cleared.end) == (DigestAction.CLEAR, 0, len(ITEMS) - 1)


async def test_a_cancelled_add_is_settled_when_the_caller_learns_of_it(session: HithertoSession) -> None:
    """The SDK restores a session after a cancellation: it must know what there is."""
    adding = asyncio.create_task(session.add_items(ITEMS))
    await asyncio.sleep(0)
    adding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await adding
    before = await session.get_items()
    await asyncio.sleep(0.05)
    assert await session.get_items() == before
    assert before in ([], ITEMS)


async def test_a_closed_session_refuses_everything(memory: Memory, session: HithertoSession) -> None:
    session.close()
    session.close()
    for verb in (session.get_items(), session.add_items([]), session.pop_item(), session.clear_session()):
        with pytest.raises(InvalidInput, match="'trip' is closed"):
            await verb
    assert (await memory.conversations(SCOPE)).conversations == ()  # the memory is not the session's to close


async def test_a_session_that_could_not_work_is_not_made(memory: Memory) -> None:
    cases: list[tuple[Any, ...]] = [
        ({"scope": None}, InvalidScope, "scope is None"),
        ({"scope": "acme"}, InvalidScope, "scope is 'acme'"),
        ({"policy": "nonsense"}, InvalidPolicy, "nonsense"),
        ({"memory": None}, InvalidInput, "memory is None"),
        ({"wait": -1}, InvalidInput, "wait is -1"),
        ({"wait": "soon"}, InvalidInput, "wait is 'soon'"),
        ({"wait": float("inf")}, InvalidInput, "wait is inf"),
        ({"wait": 10**400}, InvalidInput, "wait is 1000"),
        ({"session_id": ""}, InvalidScope, "session_id is ''"),
    ]
    for options, error, says in cases:
        arguments: Item = {"session_id": "trip", "memory": memory, "scope": SCOPE, **options}
        with pytest.raises(error, match=says):
            HithertoSession(**arguments)


async def test_items_that_the_sdk_sealed_come_back_as_they_were(session: HithertoSession) -> None:
    sealed = cast(Any, {"__enc__": 1, "v": 1, "kid": "hkdf-v1", "payload": "gAAAAABo"})
    await session.add_items([sealed, sealed])
    assert await session.get_items() == [sealed, sealed]
    assert await session.pop_item() == sealed
    assert [logged.message.kind for logged in await session.messages()] == ["reasoning", "reasoning"]


def test_without_a_loop_an_open_memory_is_refused_with_the_way_out() -> None:
    memory = asyncio.run(hitherto.open("memory:").__aenter__())
    with pytest.raises(InvalidInput, match=r"give it hitherto\.open"):
        HithertoSession("trip", memory, scope=SCOPE)
    with hitherto.open_sync("memory:") as shared:
        HithertoSession("trip", shared, scope=SCOPE)


@pytest.mark.parametrize("budget", [None, 400])
@pytest.mark.parametrize("name", [name for name in SESSIONS if name != "tracking"])
async def test_what_a_run_was_shown_is_kept(database: str, name: str, budget: int | None) -> None:
    async with hitherto.open(database, keep_contexts=50) as memory:
        session = SESSIONS[name](memory, budget=budget)
        await dialogue(session, 6, tools=True)
        await memory.wait_for_digests()
        await session.get_items()  # nobody's run
        wrapper = RunContextWrapper(None)
        shown: list[Any] = await session.get_items(wrapper=wrapper)
        newest: list[Any] = await session.get_items(2, wrapper=wrapper)
        chat = memory.conversation("trip", scope=SCOPE)
        kept = await chat.contexts(limit=50)
        assert len(kept) == 6 + 2
        assert (await chat.rebuild(kept[0].manifest)).request == {"input": newest}
        visible = [span for span in kept[0].manifest.fates if span.fate in (Fate.IN, Fate.REDACTED)]
        assert 1 <= sum(span.end - span.start + 1 for span in visible) <= 2, "a digest may be one"
        assert kept[0].manifest.total == sum(kept[0].manifest.sections.values()) < kept[1].manifest.total
        rebuilt = await chat.rebuild(kept[1].manifest)
        assert rebuilt.request == {"input": shown}
        assert rebuilt.manifest.fates[-1].end == rebuilt.manifest.next_seq - 1
        for one in kept[2:]:
            assert (await chat.rebuild(one.manifest)).messages is not None
        assert {one.manifest.budget >= one.manifest.total for one in kept} == {True}


async def test_what_the_api_would_refuse_is_mended_for_the_run_and_not_in_the_log(session: HithertoSession) -> None:
    call: Item = {"type": "function_call", "call_id": "c", "name": "look at", "arguments": ""}
    result: Item = {"type": "function_call_output", "call_id": "c", "output": "one \ud800"}
    given: list[Any] = [{"role": "user", "content": "A"}, call, result, call, result]
    await session.add_items(given)
    shown: list[Any] = await session.get_items()
    mended: Item = {**call, "name": "look_at", "arguments": "{}"}
    assert shown[1:3] == [mended, {**result, "output": "one \ufffd"}]
    assert [item.get("call_id") for item in shown] == [None, "c", "c", "c_2", "c_2"]
    assert payloads(await session.messages())[1:3] == [call, result]


class _Answers:
    """Answers as the Responses API does: the first request with a call, others with words."""

    def __init__(self) -> None:
        self.refused: list[str] = []

    def __call__(self, body: Item) -> Answer:
        self.refused += refusals(body, wire="openai.responses")
        called: Item = {"type": "function_call", "id": "fc_9", "call_id": "call_9", "name": "look", "arguments": "{}"}
        words: Item = {"type": "output_text", "text": "Lisbon.", "annotations": []}
        spoken: Item = {"type": "message", "id": "msg_9", "role": "assistant", "content": [words]}
        answers = any(one.get("call_id") == "call_9" for one in body["input"])
        output = {**(spoken if answers else called), "status": "completed"}
        response: Item = {"id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-5.2", "output": [output]}
        response |= {"status": "completed", "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
        return Answer(body=json.dumps(response))


@pytest.mark.parametrize("limit", [None, 3, 5, 7])
@pytest.mark.parametrize("budget", [None, 400])
async def test_the_api_accepts_what_a_run_sends(memory: Memory, limit: int | None, budget: int | None) -> None:
    """Of a log with a run that died in a call, a call id that was used again, and an answer that says nothing; with
    a limit also results whose calls it has cut off."""
    session = HithertoSession("trip", memory, scope=SCOPE, budget=budget, session_settings={"limit": limit})
    thought: Item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
    call: Item = {"type": "function_call", "call_id": "call_0", "name": "look", "arguments": "{"}
    result: Item = {"type": "function_call_output", "call_id": "call_0", "output": "one"}
    dead: Item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": "{}"}
    nothing: Item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "incomplete", "content": []}
    for items in ([thought, dead], [call, result, nothing], [call, result]):
        given: list[Any] = [{"role": "user", "content": "Where to?"}, *items]
        await session.add_items(given)
    answers = _Answers()
    with Endpoint(answers, path="/v1/responses") as endpoint:
        provider = OpenAIProvider(base_url=endpoint.url, api_key="none", use_responses=True)
        config = RunConfig(tracing_disabled=True, model_provider=provider)
        look = function_tool(lambda: "here", name_override="look", description_override="Looks.")
        agent = Agent(name="planner", model="gpt-5.2", tools=[look])
        result_of_run = await Runner.run(agent, "And now?", session=session, run_config=config)
        await provider.aclose()
    assert result_of_run.final_output == "Lisbon."
    assert len(endpoint.asked) == 2
    assert answers.refused == []


async def test_it_has_nothing_of_other_conversations(memory: Memory, session: HithertoSession) -> None:
    """Whatever contexts recall by default."""
    await memory.conversation("home", scope=SCOPE).append(hitherto.user("Where to? To Lisbon."))
    await session.add_items(ITEMS[:1])
    assert await session.get_items() == ITEMS[:1]
    assert await session.get_items(limit=5) == ITEMS[:1]
