"""What an endpoint receives when the official SDKs send a context's request: where the cache breakpoints stand."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from hitherto import Context, Conversation, Memory, Policy, assistant, sliding_window, summarize, token_threshold, user
from hitherto.core.context.recalled import LEAD
from hitherto.core.log.message import Wire
from hitherto.policies import LastMessages, Messages, Prefix, Stage, Summarize
from hitherto.providers.scripted.model import Scripted
from hitherto.store.store import Store
from tests.acceptance.dialogue import PLENTY, answers, asks, each, looked_up, opener, rounds, says_each
from tests.conftest import SCOPE
from tests.memories import open_on
from tests.providers.models.endpoint import Answer, Body, Endpoint, said

INSTRUCTIONS = "You answer with numbers."
MODELS: dict[Wire, str] = {"openai.chat": "gpt-5.6", "openai.responses": "gpt-5.6", "anthropic": "claude-opus-5"}
WIRES = list(MODELS)
TOOLS: dict[Wire, dict[str, Any]] = {
    "openai.chat": {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}},
    "openai.responses": {"type": "function", "name": "search", "parameters": {"type": "object"}, "strict": False},
    "anthropic": {"name": "search", "input_schema": {"type": "object"}},
}

_USAGE = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
_RESPONSE = {"id": "r", "object": "response", "created_at": 0, "model": "m", "output": [], "usage": _USAGE}
_MESSAGE = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": _USAGE}


async def received(context: Context, wire: Wire) -> Body:
    """The body that arrives when the API's own SDK sends the context's request."""
    answer = {"openai.chat": said("4"), "openai.responses": Answer(body=json.dumps(_RESPONSE))}
    with Endpoint(answer.get(wire, Answer(body=json.dumps(_MESSAGE))), path=None) as endpoint:
        if wire == "anthropic":
            async with AsyncAnthropic(base_url=endpoint.root, api_key="k", max_retries=0) as client:
                await client.messages.create(model=MODELS[wire], max_tokens=16, **context.request)
        else:
            async with AsyncOpenAI(base_url=endpoint.url, api_key="k", max_retries=0) as client:
                create: Any = client.chat.completions if wire == "openai.chat" else client.responses
                await create.create(model=MODELS[wire], **context.request)
    (body,) = endpoint.asked
    return body


def breakpoints(body: Body) -> list[str]:
    """The texts that end at a breakpoint, in order; of other parts their type."""
    system = body.get("system", [])
    parts: list[Any] = [] if isinstance(system, str) else list(system)
    for item in body["input"] if "input" in body else body["messages"]:
        content = item.get("output", item.get("content"))
        parts += content if isinstance(content, list) else []
    field, mark = "prompt_cache_breakpoint", {"mode": "explicit"}
    if "system" in body or "max_tokens" in body:
        field, mark = "cache_control", {"type": "ephemeral"}
    found = [part for part in parts if field in part]
    assert all(part[field] == mark for part in found)
    assert json.dumps(body).count(f'"{field}"') == len(found), "there are none elsewhere"
    return [part.get("text", part["type"]) for part in found]


@pytest.fixture
async def memory(store: Store) -> AsyncIterator[Memory]:
    async with open_on(store, model="extractive", policy="none") as opened:
        yield opened


async def spoken(memory: Memory, numbers: Sequence[int]) -> Conversation:
    chat = memory.conversation("conv_123", scope=SCOPE)
    for number in numbers:
        await chat.append(asks(number), answers(number))
    return chat


async def sent(chat: Conversation, wire: Wire, incoming: Any, **options: Any) -> Body:
    given: dict[str, Any] = {"budget": PLENTY, "instructions": INSTRUCTIONS, "model": MODELS[wire], **options}
    return await received(await chat.context(incoming, wire=wire, **given), wire)


@pytest.mark.parametrize("tools", [False, True])
@pytest.mark.parametrize(
    ("wire", "ends"),
    [
        ("openai.chat", [INSTRUCTIONS, "question 2", "question 3"]),
        ("openai.responses", ["question 2", "question 3"]),
        ("anthropic", [INSTRUCTIONS, "answer 2", "answer 3"]),
    ],
)
async def test_a_conversation(memory: Memory, wire: Wire, ends: list[str], tools: bool) -> None:
    """OpenAI takes no breakpoint in what an assistant says, nor in `instructions`."""
    chat = await spoken(memory, range(1, 4))
    body = await sent(chat, wire, asks(4), tools=[TOOLS[wire]] if tools else [])
    assert breakpoints(body) == ends
    assert ("tools" in body) is tools
    assert ("prompt_cache_key" in body) is (wire != "anthropic")


@pytest.mark.parametrize("wire", WIRES)
async def test_an_empty_conversation(memory: Memory, wire: Wire) -> None:
    chat = memory.conversation("new", scope=SCOPE)
    assert breakpoints(await sent(chat, wire, asks(1))) == ([INSTRUCTIONS] if wire != "openai.responses" else [])
    assert breakpoints(await sent(chat, wire, asks(1), instructions=None)) == []


@pytest.mark.parametrize("wire", WIRES)
async def test_the_newest_message_of_the_log_is_as_an_incoming_one(memory: Memory, wire: Wire) -> None:
    """Recalled text would stand ahead of it."""
    chat = await spoken(memory, range(1, 3))
    await chat.append(asks(3))
    given = breakpoints(await sent(chat, wire, None, instructions=None))
    assert given == (["answer 1", "answer 2"] if wire == "anthropic" else ["question 1", "question 2"])


@pytest.mark.parametrize(
    ("wire", "ends"),
    [
        ("openai.chat", [INSTRUCTIONS, "question 2", "question 3"]),
        ("openai.responses", ["question 2", "question 3"]),
        ("anthropic", [INSTRUCTIONS, "answer 2", "answer 3"]),
    ],
)
async def test_what_is_recalled_stands_behind_them(memory: Memory, wire: Wire, ends: list[str]) -> None:
    chat = memory.conversation("conv_123", scope=SCOPE)
    await chat.append(user("The heron lives in cage 7."), assistant("Noted."))
    for _ in range(10):
        await chat.append(user("What else is there to see? " * 8), assistant("Not much. " * 8))
    for number in range(1, 4):
        await chat.append(asks(number), answers(number))
    await memory.wait_for_index()
    body = await sent(chat, wire, user("Where does the heron live?"), recall=True, budget=600)
    items = body["input"] if "input" in body else body["messages"]
    assert items[-2]["content"].startswith(LEAD)
    assert "cage 7" in items[-2]["content"]
    assert breakpoints(body) == ends


@pytest.mark.parametrize("wire", WIRES)
async def test_a_digest_as_a_system_text(store: Store, wire: Wire) -> None:
    async with opener(store, token_threshold(40, 2))(Scripted(then=says_each)) as (memory, chat):
        await rounds(memory, chat, range(1, 5))
        (row, *_) = await chat.digests()
        digest = f"Summary of the conversation so far:\n{each(0, row.end)}"
        body = await sent(chat, wire, asks(5))
        match wire:
            case "anthropic":
                assert breakpoints(body)[0] == f"\n\n{digest}"
                assert body["system"][0] == {"type": "text", "text": INSTRUCTIONS}
            case "openai.chat":
                assert breakpoints(body)[0] == digest
                assert body["messages"][0] == {"role": "system", "content": INSTRUCTIONS}
            case _:
                assert body["instructions"] == f"{INSTRUCTIONS}\n\n{digest}"
                assert breakpoints(body)[-1] == "question 4"


@pytest.mark.parametrize(
    ("wire", "ends"),
    [
        ("openai.chat", [INSTRUCTIONS, "What have we talked about so far?", "question 6"]),
        ("openai.responses", ["What have we talked about so far?", "question 6"]),
        ("anthropic", [INSTRUCTIONS, each(0, 9), "answer 6"]),
    ],
)
async def test_a_digest_as_a_turn(store: Store, wire: Wire, ends: list[str]) -> None:
    async with opener(store, summarize(context_limit=6, keep_turns=1))(Scripted(then=says_each)) as (memory, chat):
        await rounds(memory, chat, range(1, 7))
        assert breakpoints(await sent(chat, wire, asks(7))) == ends


@pytest.mark.parametrize("wire", WIRES)
async def test_a_digest_in_front_of_the_incoming_message(store: Store, wire: Wire) -> None:
    async with opener(store, sliding_window())(Scripted(then=says_each)) as (memory, chat):
        await rounds(memory, chat, range(1, 4))
        body = await sent(chat, wire, asks(4))
        items = body["input"] if "input" in body else body["messages"]
        assert items[-1]["content"].startswith("[Previous context: ")
        assert breakpoints(body) == ([INSTRUCTIONS] if wire != "openai.responses" else [])


PREFIX = Stage(Messages(5), LastMessages(2), Summarize(), Prefix("[Previous context: {text}]\n\n"))


@pytest.mark.parametrize(
    ("wire", "ends"),
    [
        ("openai.chat", [INSTRUCTIONS, f"[Previous context: {each(0, 3)}]\n\nquestion 3"]),
        ("openai.responses", [f"[Previous context: {each(0, 3)}]\n\nquestion 3"]),
        ("anthropic", [INSTRUCTIONS, "answer 3"]),
    ],
)
async def test_a_digest_in_front_of_a_message_of_the_log(store: Store, wire: Wire, ends: list[str]) -> None:
    async with opener(store, Policy("prefix", (PREFIX,)))(Scripted(then=says_each)) as (memory, chat):
        await rounds(memory, chat, range(1, 4))
        assert breakpoints(await sent(chat, wire, asks(4))) == ends


@pytest.mark.parametrize(
    ("wire", "ends"),
    [
        ("openai.chat", [INSTRUCTIONS, "result 1: found", "result 2: found"]),
        ("openai.responses", ["result 1: found", "result 2: found"]),
        ("anthropic", [INSTRUCTIONS, "answer 1", "tool_result"]),
    ],
)
async def test_a_tools_result_at_the_end(memory: Memory, wire: Wire, ends: list[str]) -> None:
    chat = memory.conversation("conv_123", scope=SCOPE)
    await chat.append(*looked_up(1, words=1), *looked_up(2, words=1)[:3])
    found = breakpoints(await sent(chat, wire, asks(3)))
    assert [text.strip() for text in found] == ends


async def test_thinking_at_the_end(memory: Memory) -> None:
    chat = memory.conversation("conv_123", scope=SCOPE)
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    use = {"type": "tool_use", "id": "toolu_1", "name": "search", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "found"}]}
    spoken = {"type": "text", "text": "I think of it."}
    await chat.append(asks(1), {"role": "assistant", "content": [spoken, thought]}, asks(2))
    assert breakpoints(await sent(chat, "anthropic", asks(3))) == [INSTRUCTIONS, "I think of it.", "question 2"]
    await chat.append({"role": "assistant", "content": [thought, use]})
    await chat.append({"role": "user", "content": [result]}, {"role": "assistant", "content": [thought]})
    assert breakpoints(await sent(chat, "anthropic", asks(3))) == [INSTRUCTIONS, "I think of it.", "tool_result"]


async def test_what_opens_a_request_belongs_to_it(memory: Memory) -> None:
    """Anthropic wants a user's message first; one is put there."""
    chat = memory.conversation("conv_123", scope=SCOPE)
    await chat.append(assistant("How can I help?"), asks(1), answers(1))
    found = breakpoints(await sent(chat, "anthropic", asks(2)))
    assert found == [INSTRUCTIONS, "How can I help?", "answer 1"]


async def test_a_loop_of_tools(memory: Memory) -> None:
    """Each step's request has the breakpoint behind the step before, and one where the turn began."""
    chat = await spoken(memory, [1])
    await chat.append(asks(2))
    ends: list[list[str]] = []
    for at in range(3):
        use = {"type": "tool_use", "id": f"toolu_{at}", "name": "search", "input": {}}
        await chat.append({"role": "assistant", "content": [use]})
        result = {"type": "tool_result", "tool_use_id": use["id"], "content": f"result {at}"}
        step = {"role": "user", "content": [result]}
        ends.append(breakpoints(await sent(chat, "anthropic", step, instructions=None)))
        await chat.append(step)
    assert ends == [["answer 1", "question 2"], ["answer 1", "tool_result"], ["answer 1", "tool_result"]]


async def test_one_more_may_be_asked_for_in_the_call(memory: Memory) -> None:
    """Anthropic refuses more than four."""
    chat = await spoken(memory, range(1, 30))
    context = await chat.context(asks(30), budget=PLENTY, wire="anthropic", instructions=INSTRUCTIONS)
    assert len(breakpoints(await received(context, "anthropic"))) == 3


@pytest.mark.parametrize("wire", WIRES)
async def test_the_switch(store: Store, wire: Wire) -> None:
    async with open_on(store, model="extractive", policy="none", cache_breakpoints=False) as memory:
        body = await sent(await spoken(memory, range(1, 4)), wire, asks(4))
        assert breakpoints(body) == []
        assert "prompt_cache_key" not in body
        assert body.get("system", INSTRUCTIONS) == INSTRUCTIONS


async def test_from_other_conversations_a_text_stands_before_the_messages(memory: Memory) -> None:
    """They are stable no more; the instructions are."""
    other = memory.conversation("other", scope=SCOPE)
    await other.append(user("The heron lives in cage 7."), assistant("Noted."))
    await memory.wait_for_index()
    chat = await spoken(memory, range(1, 4))
    body = await sent(chat, "anthropic", user("Where does the heron live?"), cross_session="always")
    assert "cage 7" in body["system"][-1]["text"]
    assert breakpoints(body) == [INSTRUCTIONS]
