"""`chat.turn`: question and answer, whole or streamed, over real HTTP; what is left of one that breaks off."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from hitherto import Conversation, Memory, assistant, tool_result, user
from hitherto.core.log.message import ANTHROPIC, CHAT, RESPONSES, Wire
from hitherto.errors import BudgetExceeded, InvalidInput, InvalidMessage
from hitherto.testing.requests import refusals
from tests.conftest import SCOPE
from tests.engine.turn import streams
from tests.engine.turn.asking import APIS, CALL, Api, broken_off, events, failed, piece, streamed, texts
from tests.providers.models.endpoint import Answer, Endpoint, said


async def test_a_streamed_answer_is_appended_with_its_question(chat: Conversation, api: Api) -> None:
    with Endpoint(api.streamed("It is ", "sunny."), path=api.path) as endpoint:
        async with chat.turn("What is the weather?", wire=api.wire, budget=2_000) as turn:
            assert not turn.done
            assert await streamed(api, turn, endpoint.root) > 2
            assert (turn.done, turn.partial, turn.text) == (True, False, "It is sunny.")
            assert turn.finish_reason in ("stop", "completed", "end_turn")
            assert await chat.messages() == [], "nothing is written before the end"
    assert texts(await chat.messages()) == ["What is the weather?", "It is sunny."]
    result = turn.result
    assert result is not None
    assert (result.start, result.end, result.replayed) == (0, 1, False)
    (_, answer) = await chat.messages()
    assert (answer.message.wire, answer.message.metadata) == (api.wire, {})
    # It can be sent back as it came.
    again = await chat.context("And tomorrow?", wire=api.wire, budget=2_000)
    assert "It is sunny." in json.dumps(again.request)


async def test_whole_answers(chat: Conversation) -> None:
    weather = {"name": "weather", "arguments": '{"city": "Lisbon"}'}
    calls = [{"id": "call_1", "type": "function", "function": weather}]
    with Endpoint(said(None, finish="tool_calls", tool_calls=calls), said("Sunny.")) as endpoint:
        async with chat.turn("What is the weather?", budget=2_000) as turn:
            while not turn.done:
                await turn.add(await APIS[0].ask(endpoint.root, turn.request, stream=False))
                assert turn.finish_reason == ("tool_calls" if turn.calls else "stop")
                for call in turn.calls:
                    await turn.add(tool_result(call.id, "22 degrees"))
    assert [one.message.role for one in await chat.messages()] == ["user", "assistant", "tool", "assistant"]


async def test_a_streamed_call_of_a_kind_that_is_not_known(chat: Conversation) -> None:
    """As the SDK's objects have it: what a call, or a piece of one, does not have is None."""
    begin = {"index": 0, "id": "c1", "type": "hologram", "function": None}
    more = {"index": 0, "id": None, "type": None, "function": None, "hologram": {"shows": "a kayak"}}

    async def pieces() -> AsyncIterator[dict[str, Any]]:
        for call in (begin, more):
            yield {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]}
        yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}

    async with chat.turn("What is it?", budget=2_000) as turn:
        async for _ in turn.stream(pieces()):
            pass
        assert [(one.id, one.name) for one in turn.calls] == [("c1", "hologram")]
        await turn.add(tool_result("c1", "A kayak."))
        await turn.add("It is a kayak.")
    assert "kayak" in (await chat.messages())[1].message.text


async def test_a_whole_call_of_a_kind_that_is_not_known(chat: Conversation) -> None:
    call: dict[str, Any] = {"id": "c1", "type": "hologram", "hologram": {"shows": "a kayak"}}
    answer = {"role": "assistant", "content": None, "tool_calls": [{**call, "function": None}]}
    async with chat.turn("What is it?") as turn:
        await turn.add({"choices": [{"message": answer}]})
        assert [(one.name, one.arguments) for one in turn.calls] == [("hologram", '{"hologram":{"shows":"a kayak"}}')]
        await turn.add(tool_result("c1", "A kayak."))
        assert turn.request["messages"][1]["tool_calls"] == [call]
        await turn.add("It is a kayak.")


@pytest.mark.parametrize(
    ("wire", "answer"),
    [
        (CHAT, {"choices": [{"message": {"role": "assistant", "content": "Yes.", "refusal": None}}]}),
        (CHAT, {"role": "assistant", "content": "Yes."}),
        (CHAT, assistant("Yes.")),
        (CHAT, "Yes."),
        (
            RESPONSES,
            {
                "object": "response",
                "output": [
                    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": None},
                    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]},
                ],
            },
        ),
        (
            ANTHROPIC,
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "text", "text": "Yes.", "citations": None}],
                "stop_reason": "end_turn",
            },
        ),
    ],
)
async def test_what_counts_as_an_answer(chat: Conversation, wire: Wire, answer: Any) -> None:
    async with chat.turn([user("Is it?")], wire=wire) as turn:
        await turn.add(answer)
        assert (turn.done, turn.text) == (True, "Yes.")
    assert texts(await chat.messages())[-1] == "Yes."


THOUGHT: dict[str, Any] = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}


SIGNED: dict[str, Any] = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}


@pytest.mark.parametrize(
    ("wire", "answer"),
    [
        (CHAT, {"choices": [{"message": {"role": "assistant", "content": None, "refusal": None}}]}),
        (CHAT, {"choices": [{"message": {"role": "assistant"}}]}),
        (CHAT, {"choices": [{"message": {"role": "assistant", "content": ""}}]}),
        (CHAT, {"role": "assistant", "content": None, "tool_calls": []}),
        (RESPONSES, {"object": "response", "status": "incomplete", "output": [THOUGHT]}),
        (RESPONSES, {"object": "response", "status": "completed", "output": []}),
        (ANTHROPIC, {"type": "message", "role": "assistant", "stop_reason": "end_turn", "content": []}),
        (ANTHROPIC, {"type": "message", "role": "assistant", "stop_reason": "max_tokens", "content": [SIGNED]}),
    ],
)
async def test_an_answer_of_nothing_ends_the_turn(chat: Conversation, wire: Wire, answer: Any) -> None:
    """However often; the question is kept, and what was not said is not sent again."""
    for number in range(10):
        async with chat.turn(f"Is it? {number}", wire=wire) as turn:
            assert refusals(turn.request, wire=wire, model="claude-opus-4-8") == []
            assert len(turn.context.messages) == number + 1
            await turn.add(answer)
            assert (turn.done, turn.text) == (True, "")
    said = [one.message.text for one in await chat.messages() if one.message.role == "user"]
    assert said == [f"Is it? {number}" for number in range(10)]


async def test_a_stream_of_nothing_ends_the_turn(chat: Conversation, api: Api) -> None:
    with Endpoint(api.streamed(""), path=api.path) as endpoint:
        async with chat.turn("Is it?", wire=api.wire) as turn:
            async for _ in turn.stream(await api.ask(endpoint.root, turn.request)):
                pass
            assert (turn.done, turn.text) == (True, "")
    assert [one.message.text for one in await chat.messages()] == ["Is it?", ""]


async def test_thinking_is_not_said(chat: Conversation) -> None:
    thought = {"type": "thinking", "thinking": "They want a yes.", "signature": "s"}
    content = [thought, {"type": "text", "text": "It is."}]
    async with chat.turn("Is it?", wire="anthropic") as turn:
        await turn.add({"type": "message", "role": "assistant", "stop_reason": "end_turn", "content": content})
    assert turn.text == "It is."
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]}
    await failed(chat.turn("And this?", wire="openai.responses"), reasoning)
    assert texts(await chat.messages())[-1] == "(thinking) They want a yes.\nIt is.", "reasoning alone leaves nothing"


async def test_half_an_emoji(chat: Conversation) -> None:
    async with chat.turn("Is it?") as turn:
        await turn.add("Half: \ud83d")
    await broken_off(chat, "Ha\ud83d")
    assert [one.message.text for one in await chat.messages()][1::2] == ["Half: \ufffd", "Ha\ufffd"]
    assert (await chat.messages())[1].message.payload["content"] == "Half: \ud83d"


async def test_a_stream_of_another_format_is_told(chat: Conversation) -> None:
    """Else the answer would be lost without a word."""
    asked = {"messages": [{"role": "user", "content": "What is the weather?"}]}
    match = r"nothing in the format 'openai\.chat'.* wire="
    answering = Endpoint(streams.message("It is sunny."), path="/v1/messages")
    with answering as endpoint, pytest.raises(InvalidMessage, match=match):
        async with chat.turn("What is the weather?") as turn:
            _ = [event async for event in turn.stream(await APIS[2].ask(endpoint.root, asked))]
    assert await chat.messages() == []


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (7, "an answer is 7"),
        (None, "an answer is None"),
        (object(), "an answer is <object"),
        ([assistant("x")], r"an answer is \[Message"),
        ({"content": "x"}, "has the role None"),
        ({"role": "assistant", "content": "x", "at": "2026-01-01T00:00:00Z"}, "has `at`, which no API takes"),
        ({"type": "message", "role": "assistant", "stop_reason": "end_turn", "content": []}, "wire='anthropic'"),
        ({"object": "response", "output": [], "status": "completed"}, r"wire='openai\.responses'"),
        ({"error": {"message": "no"}}, "with an error"),
    ],
)
async def test_what_is_no_answer(chat: Conversation, answer: Any, told: str) -> None:
    with pytest.raises(InvalidMessage, match=told):
        async with chat.turn("Is it?") as turn:
            await turn.add(answer)
    assert await chat.messages() == []


async def test_what_no_turn_takes(chat: Conversation) -> None:
    cases: list[Any] = [{"partial": "both"}, {"key": ""}, {"wire": "x"}]
    for given in cases:
        with pytest.raises(InvalidInput):
            chat.turn("Is it?", **given)
        with pytest.raises(InvalidInput, match="no question"):
            chat.turn([])


async def test_what_does_not_fit_is_told_before_the_model_is_asked(chat: Conversation) -> None:
    with pytest.raises(BudgetExceeded):
        async with chat.turn("word " * 1_000, budget=100):
            pass
    assert await chat.messages() == []


async def test_a_turn_is_used_once(chat: Conversation) -> None:
    turn = chat.turn("Is it?")
    with pytest.raises(InvalidInput, match="has not begun"):
        _ = turn.request
    async with turn:
        with pytest.raises(InvalidInput, match="used already"):
            async with turn:
                pass
        await turn.add("Yes.")
        with pytest.raises(InvalidInput, match="its answer already"):
            await turn.add("No.")
        with pytest.raises(InvalidInput, match="has its answer already"):
            async for _ in turn.stream(events()):
                pass
    with pytest.raises(InvalidInput, match="used already"):
        async with turn:
            pass
    with pytest.raises(InvalidInput):
        await turn.add("No.")
    assert texts(await chat.messages()) == ["Is it?", "Yes."]


async def test_two_tasks_cannot_share_a_turn(chat: Conversation) -> None:
    turn = chat.turn("Is it?")

    async def use() -> None:
        async with turn:
            await turn.add("Yes.")

    done = await asyncio.gather(use(), use(), return_exceptions=True)
    assert sorted(type(one).__name__ for one in done) == ["InvalidInput", "NoneType"]
    assert texts(await chat.messages()) == ["Is it?", "Yes."]


async def test_a_stream_that_breaks_leaves_the_text_that_came(chat: Conversation, api: Api) -> None:
    whole = api.streamed("It is ", "sunny.", calls=[CALL])
    cut = len(whole.body) - 300 if api.wire != RESPONSES else whole.body.index("response.completed")
    broken = Endpoint(Answer(body=whole.body, headers=whole.headers, cut=cut), path=api.path)
    with broken as endpoint, pytest.raises(Exception, match=r"(?i)connection|incomplete|peer|closed"):
        async with chat.turn("What is the weather?", wire=api.wire) as turn:
            await streamed(api, turn, endpoint.root)
    assert texts(await chat.messages()) == ["What is the weather?", "It is sunny."]
    (_, answer) = await chat.messages()
    assert answer.message.metadata == {
        "partial": True,
        "hitherto_turn": {"key": None, "messages": 2},
    }
    assert not answer.message.calls


async def test_a_stream_that_ends_too_early_is_partial_too(chat: Conversation, api: Api) -> None:
    """Some proxies end a broken stream as if it were whole: the API's own end is missing."""
    cut = {"finish": None} if api.wire == CHAT else {"finish": False}
    with Endpoint(api.streamed("It is ", "su", **cut), path=api.path) as endpoint:
        async with chat.turn("What is the weather?", wire=api.wire) as turn:
            while not turn.done:
                await streamed(api, turn, endpoint.root)
    (_, answer) = await chat.messages()
    assert (answer.message.text, answer.message.metadata["partial"]) == ("It is su", True)
    assert len(endpoint.asked) == 1


async def test_the_text_that_came_can_be_dropped(chat: Conversation) -> None:
    turn = await broken_off(chat, "Ye", partial="drop")
    assert (turn.result, await chat.messages()) == (None, [])


async def test_a_turn_without_an_answer_leaves_nothing(chat: Conversation) -> None:
    async with chat.turn("Is it?", key="k"):
        pass
    await failed(chat.turn("Is it?", key="k"))
    turn = await broken_off(chat, key="k")
    assert (turn.result, await chat.head()) == (None, None)


async def test_a_partial_answer_sets_off_nothing(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE, policy="rolling:threshold=2,keep_last=1")
    await chat.append(user("Hello."), assistant("Hello."))
    turn = await broken_off(chat, "Ye")
    assert turn.result is not None
    assert (turn.result.fired, await chat.digests()) == ((), [])
    async with chat.turn("Is it?") as turn:
        await turn.add("Yes.")
    assert turn.result is not None
    assert len(turn.result.fired) == 1


async def test_what_fails_after_the_answer_does_not_make_it_partial(chat: Conversation) -> None:
    await failed(chat.turn("Is it?", key="k"), "Yes.")
    (_, answer) = await chat.messages()
    assert answer.message.metadata == {}
    async with chat.turn("Is it?", key="k") as again:
        assert (again.done, again.text) == (True, "Yes.")


async def test_a_client_that_goes_away_leaves_the_text_that_came(chat: Conversation) -> None:
    """As a server's task is cancelled while it streams: the append is finished all the same."""
    begun = asyncio.Event()

    async def endless() -> AsyncIterator[dict[str, Any]]:
        yield piece("Ye")
        begun.set()
        await asyncio.Event().wait()

    async def serve() -> None:
        async with chat.turn("Is it?") as turn:
            async for _ in turn.stream(endless()):
                pass

    task = asyncio.create_task(serve())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert texts(await chat.messages()) == ["Is it?", "Ye"]


async def unbroken(*found: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    for one in found:
        yield one


async def test_a_stream_that_broke_can_be_asked_for_again_in_the_block(chat: Conversation) -> None:
    for stream in (False, True):
        key = f"k{stream}"
        async with chat.turn("Is it?", key=key) as turn:
            with pytest.raises(ConnectionResetError):
                async for _ in turn.stream(events(piece("No, that"))):
                    pass
            assert (turn.done, turn.text) == (False, "")
            assert turn.request
            if stream:
                whole = [piece("Yes."), {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]
                async for _ in turn.stream(unbroken(*whole)):
                    pass
            else:
                await turn.add("Yes.")
        assert turn.text == "Yes."
        (*_, answer) = await chat.messages()
        assert (answer.message.text, answer.message.metadata) == ("Yes.", {})
        async with chat.turn("Is it?", key=key) as again:
            assert (again.replayed, again.text) == (True, "Yes.")


@pytest.mark.parametrize(
    "usage", [None, -5, "91", [91], {"input_tokens": -5, "prompt_tokens": "91", "total_tokens": {}}]
)
async def test_usage_that_is_nonsense_is_nothing_to_a_turn(chat: Conversation, api: Api, usage: object) -> None:
    part = {"type": "output_text", "text": "Yes.", "annotations": []}
    wholes: dict[str, dict[str, Any]] = {
        CHAT: json.loads(said("Yes.").body),
        RESPONSES: {"object": "response", "output": [{"type": "message", "role": "assistant", "content": [part]}]},
        ANTHROPIC: {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "Yes."}]},
    }
    answer = Answer(body=json.dumps({**wholes[api.wire], "usage": usage}))
    with Endpoint(answer, path=api.path) as endpoint:
        async with chat.turn("Is it?", wire=api.wire, budget=2_000) as turn:
            await turn.add(await api.ask(endpoint.root, turn.request, stream=False))
            assert (turn.done, turn.text) == (True, "Yes.")
    assert texts(await chat.messages()) == ["Is it?", "Yes."]
