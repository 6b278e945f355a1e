"""What an endpoint receives when the official SDKs send a context's request: where the cache breakpoints stand."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from hitherto import Context, Conversation, Memory
from hitherto.core.log.message import Wire
from hitherto.policies import LastMessages, Messages, Prefix, Stage, Summarize
from hitherto.store.store import Store
from tests.acceptance.dialogue import PLENTY, answers, asks
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


PREFIX = Stage(Messages(5), LastMessages(2), Summarize(), Prefix("[Previous context: {text}]\n\n"))


async def test_a_loop_of_tools(memory: Memory) -> None:
    """Each step's request has a breakpoint at its end, and one where the turn began."""
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
    assert ends == 3 * [["answer 1", "tool_result"]]


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
