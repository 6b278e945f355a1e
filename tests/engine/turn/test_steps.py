"""`chat.turn` with tools: each step of calls and results is appended before the next request."""

from __future__ import annotations

import json
from typing import Any

import pytest

import hitherto
from hitherto import Conversation, Turn, assistant, tool_result
from hitherto.core.log.message import Wire
from hitherto.errors import BudgetExceeded, InvalidInput, InvalidMessage
from hitherto.testing.requests import refusals
from tests.engine.turn.asking import CALL, Api, call, failed, looked, said_by, shown, streamed, texts
from tests.providers.models.endpoint import Endpoint


async def test_tools_and_the_request_made_anew(chat: Conversation, api: Api) -> None:
    with Endpoint(api.streamed("Let me see.", calls=[CALL]), api.streamed("Sunny."), path=api.path) as endpoint:
        async with chat.turn("What is the weather in Lisbon?", wire=api.wire, budget=2_000) as turn:
            while not turn.done:
                await streamed(api, turn, endpoint.root)
                for call in turn.calls:
                    with pytest.raises(InvalidInput, match="call_1 wait for their results"):
                        _ = turn.request
                    assert (call.name, json.loads(call.arguments)) == ("weather", {"city": "Lisbon"})
                    await turn.add(tool_result(call.id, "22 degrees"))
            assert turn.text == "Sunny."
            with pytest.raises(InvalidInput, match="the turn has its answer"):
                _ = turn.request
        second = json.dumps(endpoint.asked[1])
    assert "22 degrees" in second
    assert "What is the weather in Lisbon?" in second
    kinds = [one.message.kind.value for one in await chat.messages()]
    assert kinds[0] == "text"
    assert kinds[-3:] == ["tool_call", "tool_result", "text"]


async def test_a_step_is_in_the_log_before_the_next_request(chat: Conversation) -> None:
    """So that what tools have done is not lost with the process, stages act on it, and it is not counted again."""
    async with chat.turn("Is it?") as turn:
        await looked(turn, 0)
        assert await said_by(chat) == ["Is it?", "call 0", "found 0"]
        first = turn.context.manifest.sections["incoming"]
        for number in range(1, 40):
            await turn.add(call(number))
            await turn.add(tool_result(str(number), f"found {number} {'of many words ' * 100}"))
            assert len(await chat.messages()) == 3 + 2 * number
        await looked(turn, 40)
        assert turn.context.manifest.sections["incoming"] < first, "the newest step alone"
        assert len(await chat.digests()) > 0, "old results are shortened within the turn"
        assert turn.result is not None
        assert turn.result.end == 82
        await turn.add("It is.")
    assert turn.result.start == turn.result.end == 83


async def test_calls_may_wait_for_a_later_turn(chat: Conversation) -> None:
    """As for an approval by a person."""
    async with chat.turn("Pay it.") as turn:
        await turn.add(assistant(calls=[hitherto.Call(id="1", name="pay")]))
    async with chat.turn([tool_result("1", "paid")]) as turn:
        await turn.add("It is paid.")
    assert [one.message.role.value for one in await chat.messages()] == ["user", "assistant", "tool", "assistant"]


async def test_a_tool_that_fails_leaves_what_is_complete(chat: Conversation) -> None:
    one, two = hitherto.Call(id="1", name="f"), hitherto.Call(id="2", name="g")
    looked = [assistant("I look.", calls=[one]), tool_result("1", "found"), assistant("And again.", calls=[two])]
    await failed(chat.turn("Is it?"), *looked)
    kept = await chat.messages()
    assert [one.message.role.value for one in kept] == ["user", "assistant", "tool", "assistant"]
    assert (kept[-1].message.text, kept[-1].message.calls) == ("And again.", ()), "the words without the call"
    async with chat.turn("And now?") as turn:
        assert "found" in json.dumps(turn.request)
        await turn.add("It is.")
    await failed(chat.turn("Is it still?"), assistant(calls=[one]))
    assert texts(await chat.messages())[-1] == "It is.", "a call alone leaves nothing"


async def test_what_is_refused_is_not_added(chat: Conversation) -> None:
    async with chat.turn("Is it?") as turn:
        await turn.add(assistant(calls=[hitherto.Call(id="1", name="f"), hitherto.Call(id="2", name="g")]))
        for wrong in (
            [tool_result("9", "x")],
            [tool_result("1", "x"), tool_result("1", "y")],
            [tool_result("1", "x"), 7],
        ):
            with pytest.raises(InvalidMessage):
                await turn.add(*wrong)  # pyright: ignore[reportArgumentType] — as a caller may
        await turn.add(tool_result("1", "found"))
        with pytest.raises(InvalidMessage, match="those that do: 2"):
            await turn.add(tool_result("1", "again"))
        assert [call.id for call in turn.calls] == ["2"], "the caller may give a right one"
        await turn.add(tool_result("2", "found too"))
        await turn.add("It is.")
    assert texts(await chat.messages())[-2:] == ["found too", "It is."]


async def test_a_step_that_is_too_long_is_cut_in_the_request_and_whole_in_the_log(chat: Conversation, api: Api) -> None:
    """As of an agent that writes a file, and reads one."""
    arguments = json.dumps({"path": "report.md", "text": f"first {'word ' * 20_000}last"})
    async with chat.turn("Write it.", wire=api.wire, budget=2_000) as turn:
        await turn.add(assistant(calls=[hitherto.Call(id="1", name="write", arguments=arguments)]))
        await turn.add(tool_result("1", f"It reads: {'so ' * 20_000}to its end."))
        assert refusals(turn.request, wire=api.wire) == []
        sent = json.dumps(turn.request, ensure_ascii=False)
        assert sent.count("characters left out") == 2
        assert all(part in sent for part in ("Write it.", "report.md", "last", "It reads:", "to its end."))
        await turn.add("It is.")
    (_, made, result, _) = await chat.messages()
    assert (made.message.raw.count("word"), result.message.raw.count("so ")) == (20_000, 20_000)


async def test_what_outgrows_the_budget_gives_way_the_oldest_first(chat: Conversation, api: Api) -> None:
    async with chat.turn("Is it?", wire=api.wire, budget=1_000) as turn:
        for number in range(30):
            await turn.add(assistant(calls=[hitherto.Call(id=f"{number}", name="f")]))
            await turn.add(tool_result(f"{number}", f"found {number}: {'word ' * 50}"))
            sent = json.dumps(turn.request)
            assert turn.context.tokens <= 1_000
            assert refusals(turn.request, wire=api.wire) == []
            assert "Is it?" in sent
            assert f"found {number}:" in sent
        assert "found 0:" not in json.dumps(turn.request)
        await turn.add("It is.")
    assert len(await chat.messages()) == 62


async def test_a_step_whose_next_request_does_not_fit_is_in_the_log(chat: Conversation) -> None:
    made = [hitherto.Call(id=str(number), name="f") for number in range(60)]
    answers = [assistant(calls=made), *(tool_result(one.id, "found " * 50) for one in made)]
    with pytest.raises(BudgetExceeded):
        async with chat.turn("Is it?", key="k", budget=1_000) as turn:
            await turn.add(*answers)
    assert len(await chat.messages()) == 62
    async with chat.turn("Is it?", key="k", budget=8_000) as turn:
        await turn.add("It is.")


NAMES = ("f", "g")
TWINS: list[tuple[Wire, dict[str, Any]]] = [
    (
        "openai.chat",
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": name, "arguments": "{}"}} for name in NAMES
            ],
        },
    ),
    (
        "openai.responses",
        {
            "object": "response",
            "output": [{"type": "function_call", "call_id": "c", "name": name, "arguments": "{}"} for name in NAMES],
        },
    ),
    (
        "anthropic",
        {
            "type": "message",
            "content": [{"type": "tool_use", "id": "c", "name": name, "input": {}} for name in NAMES],
        },
    ),
]


async def answered(turn: Turn, wire: Wire) -> None:
    """Each call gets its result, and the request with them is accepted."""
    for one in turn.calls:
        await turn.add(tool_result(one.id, f"found by {one.name}"))
    assert refusals(turn.request, wire=wire) == []
    assert "no result yet" not in json.dumps(turn.request)
    await turn.add("It is.")


@pytest.mark.parametrize(("wire", "answer"), TWINS, ids=[wire for wire, _ in TWINS])
async def test_two_calls_with_one_id(chat: Conversation, wire: Wire, answer: Any) -> None:
    async with chat.turn("Is it?", wire=wire) as turn:
        await turn.add(answer)
        assert [(one.id, one.name) for one in turn.calls] == [("c", "f"), ("c_2", "g")]
        await answered(turn, wire)


@pytest.mark.parametrize(("wire", "answer"), TWINS, ids=[wire for wire, _ in TWINS])
async def test_calls_without_an_id_and_arguments_in_another_form(chat: Conversation, wire: Wire, answer: Any) -> None:
    bare = json.dumps(answer).replace('"call_id": "c", ', "").replace('"id": "c"', '"id": null')
    bare = bare.replace('"input": {}', '"input": "{}"').replace('"arguments": "{}"', '"arguments": {}')
    async with chat.turn("Is it?", wire=wire) as turn:
        await turn.add(json.loads(bare))
        assert [(one.name, one.arguments) for one in turn.calls] == [("f", "{}"), ("g", "{}")]
        await answered(turn, wire)


@pytest.mark.parametrize(("wire", "answer"), TWINS, ids=[wire for wire, _ in TWINS])
async def test_a_result_stays_though_the_block_fails_before_the_others(
    chat: Conversation, wire: Wire, answer: Any
) -> None:
    await failed(chat.turn("Is it?", wire=wire, key="k"), answer, tool_result("c", "paid 77"))
    assert [one.message.text for one in await chat.messages()][-1] == "paid 77"
    async with chat.turn("Is it?", wire=wire, key="k") as again:
        assert again.calls == ()
        sent = json.dumps(again.request)
        assert ("paid 77" in sent, sent.count("no result yet")) == (True, 1)
        assert refusals(again.request, wire=wire) == []
        await again.add("It is.")
    assert [one.message.text for one in await chat.messages()][-2:] == ["paid 77", "It is."]
    async with chat.turn("And now?", wire=wire) as following:
        assert refusals(following.request, wire=wire) == []
        await following.add("It is still.")


async def test_an_id_that_is_used_again(chat: Conversation) -> None:
    """Some servers begin with `call_0` at each step."""
    again = assistant(calls=[hitherto.Call(id="c", name="f")])
    async with chat.turn("Is it?", key="k") as turn:
        for number in range(3):
            await turn.add(again)
            assert ([one.id for one in turn.calls], turn.done) == (["c"], False)
            with pytest.raises(InvalidMessage, match="no call 'd' waits"):
                await turn.add(tool_result("d", "x"))
            await turn.add(tool_result("c", f"found {number}"))
            assert "no result yet" not in json.dumps(turn.request)
            assert refusals(turn.request, wire="openai.chat") == []
    await failed(chat.turn("Is it?", key="k"), again)
    assert (await shown(chat))[-1] == "found 2", "the steps stay, and the open call does not"
    async with chat.turn("Is it?", key="k") as turn:
        await turn.add("It is.")
    assert len(await shown(chat)) == 8
