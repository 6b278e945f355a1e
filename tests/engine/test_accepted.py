"""Requests are accepted: whatever is in the log, no API has a reason to refuse what a context sends."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from hitherto import Call, Conversation, Memory, assistant, system, tool_result, user, wire
from hitherto.core.log.message import Kind, Message, Wire
from hitherto.errors import BudgetExceeded
from hitherto.policies import PRESETS
from hitherto.providers.scripted import Scripted
from hitherto.store.store import Store
from hitherto.testing.requests import refusals
from hitherto.tokens import counter_for
from hitherto.wire import codec
from tests.acceptance.dialogue import says_each
from tests.conftest import SCOPE, SHARED
from tests.engine.held import HeldCompactor
from tests.lengths import at_length, examples, lasting
from tests.memories import open_on
from tests.wire.conversations import WIRES
from tests.wire.odd import accepted, odd_logs

_names = count(1)
few = settings(
    max_examples=examples(8),
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture
async def memory(store: Store) -> AsyncIterator[Memory]:
    async with open_on(store, model=Scripted(then=says_each), compactor=HeldCompactor()) as opened:
        yield opened


async def filled(chat: Conversation, said: list[Message]) -> list[str]:
    """Append what the log takes of this; returns the calls without a result."""
    kept, waiting = accepted(said)
    for message in kept:
        await chat.append(message)
    return waiting


MODELS: dict[Wire, str] = {
    "openai.chat": "gpt-5.2",
    "openai.responses": "gpt-5.2",
    "anthropic": "claude-opus-4-5",
}


def refused(context: Any, to: Wire) -> list[str]:
    return refusals(context.request, wire=to, model=MODELS[to])


some_logs = odd_logs() | st.tuples(odd_logs(), odd_logs()).map(lambda two: two[0] + two[1])


def answered(request: Mapping[str, Any], to: Wire) -> dict[str, Any]:
    """The request with a result for each call that it ends with: an agent that sends it without one appends them."""
    key = "input" if to == "openai.responses" else "messages"
    items: list[dict[str, Any]] = request[key]
    last: list[Message] = []
    while len(last) < len(items) and (one := items[-1 - len(last)]).get("role") not in ("user", "system"):
        message = codec(to).read(one)
        if message.kind not in (Kind.TOOL_CALL, Kind.REASONING):
            break
        last.insert(0, message)
    waiting = [call for message in last for call in message.calls]
    return {**request, key: [*items[: len(items) - len(last)], *codec(to).write(last, unanswered=waiting)]}


@lasting
@few
@given(
    said=some_logs,
    policy=st.sampled_from(sorted(PRESETS)),
    budget=st.integers(400, 3_000),
    asks=st.sampled_from(["nothing", "words", "result"]),
    erased=st.integers(0, 4),
)
async def test_no_api_refuses_a_request(
    memory: Memory, said: list[Message], policy: str, budget: int, asks: str, erased: int
) -> None:
    """With the first messages erased, a log may begin with a tool's result."""
    chat = memory.conversation(f"c{next(_names)}", scope=SCOPE, policy=policy)
    waiting = await filled(chat, said)
    if asks != "result":
        await chat.erase(range(min(erased, len(await chat.messages()))))
    await memory.wait_for_digests()
    incoming: list[Message] = [] if asks == "nothing" else [user("Go on.")]
    if asks == "result" and waiting:
        incoming = [tool_result(waiting[-1], "")]
    for to in WIRES:
        try:
            context = await chat.context(incoming, wire=to, budget=budget)
        except BudgetExceeded:
            continue
        assert refusals(answered(context.request, to), wire=to, model=MODELS[to]) == []
        assert context.tokens <= budget


@lasting
@few
@given(
    said=some_logs,
    policy=st.sampled_from(sorted(PRESETS)),
    budget=st.integers(400, 3_000),
)
async def test_no_template_refuses_a_request_with_neighbors_joined(
    memory: Memory, said: list[Message], policy: str, budget: int
) -> None:
    chat = memory.conversation(f"c{next(_names)}", scope=SCOPE, policy=policy)
    await filled(chat, said)
    await memory.wait_for_digests()
    try:
        context = await chat.context("Go on.", instructions="Be kind.", budget=budget, join_neighbors=True)
    except BudgetExceeded:
        return
    assert refusals(context.request, wire="openai.chat", alternate=True) == []
    chats, counter = codec("openai.chat"), counter_for("o200k_base")
    assert context.tokens == chats.framing + sum(chats.tokens(item, counter) for item in context.messages)
    assert context.tokens <= budget
    assert (await chat.rebuild(context.manifest)).request == context.request


@pytest.mark.parametrize("to", WIRES)
async def test_calls_of_another_run_have_a_placeholder(memory: Memory, to: Wire) -> None:
    chat = memory.conversation("c", scope=SCOPE, policy="none")
    await chat.append(user("A"), assistant(calls=[Call(id="a1", name="find")]))
    await chat.append(user("B"), assistant(calls=[Call(id="b1", name="find")]))
    context = await chat.context([tool_result("a1", "found")], wire=to)
    assert refused(context, to) == []
    assert json.dumps(context.request).count("[no result yet]") == 1


@pytest.mark.parametrize("to", WIRES)
@pytest.mark.parametrize("instructions", [None, "Be kind."])
@pytest.mark.parametrize("said", [[], [system("Rule.")], [system(" "), assistant("")]])
async def test_a_request_has_a_message(memory: Memory, to: Wire, instructions: str | None, said: list[Message]) -> None:
    chat = memory.conversation("c", scope=SCOPE, policy="none")
    if said:
        await chat.append(*said)
    context = await chat.context(wire=to, instructions=instructions)
    assert refused(context, to) == []
    with pytest.raises(BudgetExceeded) as raised:
        await chat.context(wire=to, instructions=instructions, budget=1)
    least = await chat.context(wire=to, instructions=instructions, budget=1 + raised.value.over_by)
    assert (least.tokens, refused(least, to)) == (1 + raised.value.over_by, [])
    assert (await chat.rebuild(context.manifest)).request == context.request


@pytest.mark.parametrize("to", WIRES)
async def test_an_id_is_used_again_before_its_result(memory: Memory, to: Wire) -> None:
    chat = memory.conversation("c", scope=SCOPE, policy="none")
    call = assistant(calls=[Call(id="c", name="find")])
    await chat.append(user("A"), call, call, tool_result("c", "found"))
    context = await chat.context("B", wire=to)
    assert refused(context, to) == []
    assert json.dumps(context.request).count("[no result yet]") == 1


@pytest.mark.parametrize("to", WIRES)
async def test_public_transcripts(memory: Memory, to: Wire) -> None:
    path = SHARED / "data" / "agents" / "airline.json"
    if not path.exists():
        pytest.skip("needs ../shared/data/agents beside the project")
    for transcript in json.loads(path.read_text())[: examples(4)]:
        chat = memory.conversation(f"c{next(_names)}", scope=SCOPE, policy="none")
        await chat.append(*(wire.read(item, wire="openai.chat") for item in transcript))
        context = await chat.context("And now?", wire=to, budget=100_000)
        assert refused(context, to) == []
        # What was sent is read again, and sent to the API it came from.
        other = memory.conversation(f"c{next(_names)}", scope=SCOPE, policy="none")
        await other.append(*(wire.read(item, wire=to) for item in context.messages))
        back = await other.context("And now?", budget=100_000)
        assert refused(back, "openai.chat") == []


@pytest.mark.parametrize("budget", [2_500, 4_000])
async def test_public_transcripts_that_are_cut(memory: Memory, budget: int) -> None:
    path = SHARED / "data" / "agents" / "airline.json"
    if not path.exists():
        pytest.skip("needs ../shared/data/agents beside the project")
    for transcript in json.loads(path.read_text())[:: 1 if at_length() else 3]:
        chat = memory.conversation(f"c{next(_names)}", scope=SCOPE, policy="balanced")
        await chat.append(*(wire.read(item, wire="openai.chat") for item in transcript))
        for to in WIRES:
            context = await chat.context("And now?", wire=to, budget=budget)
            assert refused(context, to) == []
            assert context.tokens <= budget


THOUGHT: dict[str, Any] = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
SEALED: dict[Wire, list[dict[str, Any]]] = {
    "openai.responses": [
        {
            "object": "response",
            "status": "completed",
            "output": [
                THOUGHT,
                {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "find", "arguments": "{}"},
            ],
        },
        {
            "object": "response",
            "status": "completed",
            "output": [
                {**THOUGHT, "id": "rs_2"},
                {
                    "type": "message",
                    "id": "msg_1",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": "It is."}],
                },
            ],
        },
    ],
    "anthropic": [
        {
            "type": "message",
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "gAAA"},
                {"type": "redacted_thinking", "data": "gAAA"},
                {"type": "tool_use", "id": "c", "name": "find", "input": {}},
            ],
        },
        {
            "type": "message",
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "gAAA"},
                {"type": "text", "text": "It is."},
            ],
        },
    ],
}


@pytest.mark.parametrize("told", ["by the API", "by the turn"])
@pytest.mark.parametrize("to", sorted(SEALED))
async def test_what_another_model_sealed_is_left_out(memory: Memory, to: Wire, told: str) -> None:
    mine, snapshot, other = (
        ("claude-opus-4-5", "claude-opus-4-5-20251101", "claude-haiku-4-5")
        if to == "anthropic"
        else ("gpt-5.2", "gpt-5.2-2025-12-11", "gpt-5.2-mini")
    )
    chat = memory.conversation("c", scope=SCOPE, policy="none")
    async with chat.turn("Is it?", wire=to, model=mine if told == "by the turn" else None) as turn:
        for answer in SEALED[to]:
            await turn.add({**answer, **({"model": snapshot} if told == "by the API" else {})})
            if turn.calls:
                await turn.add(tool_result("c", "found"))
    for model, sees in ((mine, True), (snapshot, True), (None, True), (other, False)):
        context = await chat.context("And now?", wire=to, model=model)
        assert ("gAAA" in json.dumps(context.request)) == sees
        assert refusals(context.request, wire=to, model=model, sealed={"gAAA": mine}) == []
        assert "It is." in json.dumps(context.request)
        assert (await chat.rebuild(context.manifest)).request == context.request
    assert "_1" not in json.dumps(context.request), "with its id the API asks for the reasoning"
    assert "gAAA" in (await chat.messages())[1].message.raw


@pytest.mark.parametrize("to", WIRES)
async def test_pictures_are_within_what_the_api_takes(memory: Memory, to: Wire) -> None:
    chat = memory.conversation("c", scope=SCOPE, policy="none")
    pixel = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    for number in range(20):
        shown = {"role": "user", "content": [{"type": "text", "text": f"See {number}:"}, *[pixel] * 15]}
        await chat.append(shown, assistant("I see."), wire="anthropic")
    context = await chat.context("And now?", wire=to, budget=1_000_000)
    assert refused(context, to) == []
    gone = json.dumps(context.request).count("[image left out]")
    cut = [(one.start, one.end) for one in context.manifest.fates if one.fate == "shortened"]
    assert (gone, cut) == ((200, [(seq, seq) for seq in range(0, 28, 2)]) if to == "anthropic" else (0, []))
    assert (await chat.rebuild(context.manifest)).request == context.request


@pytest.mark.parametrize("to", WIRES)
@pytest.mark.parametrize("content", ["Sure. \n", [{"type": "text", "text": "Sure. \n"}]])
async def test_the_assistants_words_at_the_end(memory: Memory, to: Wire, content: Any) -> None:
    """Anthropic refuses white space behind them."""
    chat = memory.conversation("c", scope=SCOPE, policy="none")
    await chat.append(user("Is it?"), {"role": "assistant", "content": content})
    context = await chat.context(wire=to)
    assert refused(context, to) == []
    assert "Sure." in json.dumps(context.request)
    assert (await chat.rebuild(context.manifest)).request == context.request
