"""`chat.turn`: question and answer, whole or streamed, with tools, retried, broken off, over real HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import anthropic
import openai
import pytest

import hitherto
from hitherto import Conversation, Memory, Turn, assistant, tool_result, user
from hitherto.core.log.message import ANTHROPIC, CHAT, RESPONSES, Logged, Wire
from hitherto.engine.turn_retry import key_mark
from hitherto.errors import BudgetExceeded, IdempotencyKeyReused, InvalidInput, InvalidMessage, NotFound
from hitherto.store.store import Store
from hitherto.testing.requests import refusals
from tests.conftest import SCOPE
from tests.engine import streams
from tests.memories import open_on
from tests.providers.models.endpoint import Answer, Endpoint, said

CALL = ("call_1", "weather", '{"city": "Lisbon"}')


@dataclass(frozen=True)
class Api:
    """An API: how its endpoint answers in a stream, and how it is asked."""

    wire: Wire
    path: str
    streamed: Callable[..., Answer]

    async def ask(self, url: str, request: Any, *, stream: bool = True) -> Any:
        match self.wire:
            case "openai.chat":
                client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
                return await client.chat.completions.create(model="small", stream=stream, **request)
            case "openai.responses":
                client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
                return await client.responses.create(model="small", stream=stream, **request)
            case "anthropic":
                claude = anthropic.AsyncAnthropic(base_url=url, api_key="k", max_retries=0)
                return await claude.messages.create(model="small", max_tokens=99, stream=stream, **request)


APIS = [
    Api(CHAT, "/v1/chat/completions", streams.chat),
    Api(RESPONSES, "/v1/responses", streams.response),
    Api(ANTHROPIC, "/v1/messages", streams.message),
]


@pytest.fixture(params=APIS, ids=[one.wire for one in APIS])
def api(request: pytest.FixtureRequest) -> Api:
    return request.param


@pytest.fixture
async def memory(store: Store) -> AsyncIterator[Memory]:
    async with open_on(store, worker=False) as opened:
        yield opened


@pytest.fixture
def chat(memory: Memory) -> Conversation:
    return memory.conversation("c", scope=SCOPE)


def texts(log: list[Logged]) -> list[str]:
    return [one.message.text for one in log]


async def shown(chat: Conversation) -> list[str]:
    """What is live of the log."""
    head = await chat.head()
    return [] if head is None else texts([one for one in await chat.messages() if one.live(head.rev)])


async def streamed(api: Api, turn: Turn, url: str) -> int:
    """Ask once, and stream the answer; how many events it had."""
    return len([event async for event in turn.stream(await api.ask(url, turn.request))])


async def test_a_streamed_answer_is_appended_with_its_question(chat: Conversation, api: Api) -> None:
    with Endpoint(api.streamed("It is ", "sunny."), path=api.path) as endpoint:
        async with chat.turn("What is the weather?", wire=api.wire, budget=2_000) as turn:
            assert not turn.done
            assert await streamed(api, turn, endpoint.root) > 2
            assert (turn.done, turn.text) == (True, "It is sunny.")
            assert await chat.messages() == [], "nothing is written before the end"
    assert texts(await chat.messages()) == ["What is the weather?", "It is sunny."]
    result = turn.result
    assert result is not None
    assert (result.start, result.end, result.replayed) == (0, 1, False)
    (_, answer) = await chat.messages()
    assert (answer.message.wire, json.loads(answer.message.metadata)) == (api.wire, {})
    # It can be sent back as it came.
    again = await chat.context("And tomorrow?", wire=api.wire, budget=2_000)
    assert "It is sunny." in json.dumps(again.request)


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


async def test_whole_answers(chat: Conversation) -> None:
    weather = {"name": "weather", "arguments": '{"city": "Lisbon"}'}
    calls = [{"id": "call_1", "type": "function", "function": weather}]
    with Endpoint(said(None, finish="tool_calls", tool_calls=calls), said("Sunny.")) as endpoint:
        async with chat.turn("What is the weather?", budget=2_000) as turn:
            while not turn.done:
                await turn.add(await APIS[0].ask(endpoint.root, turn.request, stream=False))
                for call in turn.calls:
                    await turn.add(tool_result(call.id, "22 degrees"))
    assert [one.message.role for one in await chat.messages()] == ["user", "assistant", "tool", "assistant"]


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


async def test_a_retry_of_an_answered_key_asks_no_model(chat: Conversation, api: Api) -> None:
    with Endpoint(api.streamed("Sunny."), path=api.path) as endpoint:
        for attempt in range(3):
            async with chat.turn("What is the weather?", key="k", wire=api.wire) as turn:
                while not turn.done:
                    await streamed(api, turn, endpoint.root)
            assert (turn.text, turn.replayed) == ("Sunny.", attempt > 0)
            assert turn.result is not None
            assert (turn.result.start, turn.result.end) == (0, 1)
        assert len(endpoint.asked) == 1
    assert len(await chat.messages()) == 2
    with pytest.raises(IdempotencyKeyReused, match="another question"):
        async with chat.turn("And tomorrow?", key="k", wire=api.wire):
            pass


async def test_two_turns_with_one_key_at_once(chat: Conversation) -> None:
    """The first that is answered is kept, and the other one has that answer then."""
    async with chat.turn("Is it?", key="k") as one, chat.turn("Is it?", key="k") as two:
        await one.add("Yes.")
        await two.add("No.")
    assert texts(await chat.messages()) == ["Is it?", "No."]
    assert (one.text, one.replayed, two.replayed) == ("No.", True, False)


async def test_an_answer_that_was_erased_is_not_told_again(chat: Conversation) -> None:
    async with chat.turn("Is it?", key="k") as turn:
        await turn.add("Yes.")
    await chat.delete()
    with pytest.raises(NotFound, match="was erased since"):
        async with chat.turn("Is it?", key="k"):
            pass


async def test_a_stream_that_breaks_leaves_the_text_that_came(chat: Conversation, api: Api) -> None:
    whole = api.streamed("It is ", "sunny.", calls=[CALL])
    cut = len(whole.body) - 300 if api.wire != RESPONSES else whole.body.index("response.completed")
    broken = Endpoint(Answer(body=whole.body, headers=whole.headers, cut=cut), path=api.path)
    with broken as endpoint, pytest.raises(Exception, match=r"(?i)connection|incomplete|peer|closed"):
        async with chat.turn("What is the weather?", wire=api.wire) as turn:
            await streamed(api, turn, endpoint.root)
    assert texts(await chat.messages()) == ["What is the weather?", "It is sunny."]
    (_, answer) = await chat.messages()
    assert json.loads(answer.message.metadata) == {
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
    assert (answer.message.text, json.loads(answer.message.metadata)["partial"]) == ("It is su", True)
    assert len(endpoint.asked) == 1


async def events(*found: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    for one in found:
        yield one
    raise ConnectionResetError("the network is gone")


def piece(text: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}


async def broken_off(chat: Conversation, *pieces: str, **options: Any) -> Turn:
    """A turn whose stream breaks after these pieces."""
    turn = chat.turn("Is it?", **options)

    async def use() -> None:
        async with turn:
            async for _ in turn.stream(events(*map(piece, pieces))):
                pass

    with pytest.raises(ConnectionResetError):
        await use()
    return turn


async def failed(turn: Turn, *answers: Any) -> None:
    """A turn in which something fails after these answers."""

    async def use() -> None:
        async with turn:
            for answer in answers:
                await turn.add(answer)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await use()


@pytest.mark.parametrize("partial", ["keep", "drop"])
async def test_keep_or_drop(chat: Conversation, partial: Any) -> None:
    turn = await broken_off(chat, "Ye", partial=partial)
    assert texts(await chat.messages()) == (["Is it?", "Ye"] if partial == "keep" else [])
    assert (turn.result is None) == (partial == "drop")


async def test_an_error_before_the_first_byte_leaves_nothing(chat: Conversation, api: Api) -> None:
    errors = (openai.APIStatusError, anthropic.APIStatusError)
    with Endpoint(Answer(status=503, body="{}"), path=api.path) as endpoint, pytest.raises(errors):
        async with chat.turn("What is the weather?", wire=api.wire, key="k") as turn:
            await streamed(api, turn, endpoint.root)
    await broken_off(chat, key="k", wire=api.wire)
    assert await chat.head() is None


async def test_a_retry_takes_back_what_broke_off(chat: Conversation) -> None:
    await chat.append(user("Hello."), assistant("Hello."))
    for text in ("Ye", "Yes, it"):
        await broken_off(chat, text, key="k")
        assert await shown(chat) == ["Hello.", "Hello.", "Is it?", text]
    async with chat.turn("Is it?", key="k") as turn:
        assert "Yes, it" not in json.dumps(turn.request)
        await turn.add("Yes, it is.")
    assert await shown(chat) == ["Hello.", "Hello.", "Is it?", "Yes, it is."]
    assert len(await chat.messages()) == 8, "the log keeps everything"


async def test_a_rest_that_others_have_answered_stays(chat: Conversation) -> None:
    await broken_off(chat, "Ye", key="k")
    await chat.append(user("Go on."))
    async with chat.turn("Is it?", key="k") as turn:
        await turn.add("Yes.")
    assert await shown(chat) == ["Is it?", "Ye", "Go on.", "Is it?", "Yes."]


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


async def test_what_fails_after_the_answer_does_not_make_it_partial(chat: Conversation) -> None:
    await failed(chat.turn("Is it?", key="k"), "Yes.")
    (_, answer) = await chat.messages()
    assert json.loads(answer.message.metadata) == {}
    async with chat.turn("Is it?", key="k") as again:
        assert (again.done, again.text) == (True, "Yes.")


async def test_calls_may_wait_for_a_later_turn(chat: Conversation) -> None:
    """As for an approval by a person."""
    async with chat.turn("Pay it.") as turn:
        await turn.add(assistant(calls=[hitherto.Call(id="1", name="pay")]))
    async with chat.turn([tool_result("1", "paid")]) as turn:
        await turn.add("It is paid.")
    assert [one.message.role.value for one in await chat.messages()] == ["user", "assistant", "tool", "assistant"]


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


async def test_a_stream_of_another_format_is_told(chat: Conversation) -> None:
    """Else the answer would be lost without a word."""
    asked = {"messages": [{"role": "user", "content": "What is the weather?"}]}
    match = r"nothing in the format 'openai\.chat'.* wire="
    answering = Endpoint(streams.message("It is sunny."), path="/v1/messages")
    with answering as endpoint, pytest.raises(InvalidMessage, match=match):
        async with chat.turn("What is the weather?") as turn:
            _ = [event async for event in turn.stream(await APIS[2].ask(endpoint.root, asked))]
    assert await chat.messages() == []


async def test_a_turn_that_is_never_answered_leaves_nothing(chat: Conversation) -> None:
    async with chat.turn("Is it?") as turn:
        assert turn.context.tokens > 0
    assert (turn.result, await chat.messages()) == (None, [])


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
        assert (answer.message.text, json.loads(answer.message.metadata)) == ("Yes.", {})
        async with chat.turn("Is it?", key=key) as again:
            assert (again.replayed, again.text) == (True, "Yes.")


async def unbroken(*found: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    for one in found:
        yield one


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


async def test_a_result_that_is_too_long_is_cut_in_the_request_and_whole_in_the_log(chat: Conversation) -> None:
    async with chat.turn("Is it?") as turn:
        await turn.add(assistant(calls=[hitherto.Call(id="1", name="f")]))
        await turn.add(tool_result("1", f"first {'word ' * 50_000}last"))
        sent = turn.request["messages"][-1]["content"]
        assert sent.startswith("first")
        assert "characters left out" in sent
        assert sent.endswith("last")
        await turn.add("It is.")
    assert len((await chat.messages())[-2].message.text) > 250_000


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


async def test_a_call_that_is_too_long_is_cut_in_the_request_and_whole_in_the_log(chat: Conversation, api: Api) -> None:
    """As of an agent that writes a file."""
    arguments = json.dumps({"path": "report.md", "text": "first " + "word " * 20_000 + "last"})
    async with chat.turn("Write it.", wire=api.wire, budget=2_000) as turn:
        await turn.add(assistant(calls=[hitherto.Call(id="1", name="write", arguments=arguments)]))
        await turn.add(tool_result("1", "written"))
        assert refusals(turn.request, wire=api.wire) == []
        sent = json.dumps(turn.request, ensure_ascii=False)
        assert all(part in sent for part in ("Write it.", "report.md", "characters left out", "last", "written"))
        await turn.add("It is.")
    assert (await chat.messages())[1].message.raw.count("word") == 20_000


async def test_a_step_whose_next_request_does_not_fit_is_in_the_log(chat: Conversation) -> None:
    made = [hitherto.Call(id=str(number), name="f") for number in range(60)]
    answers = [assistant(calls=made), *(tool_result(one.id, "found " * 50) for one in made)]
    with pytest.raises(BudgetExceeded):
        async with chat.turn("Is it?", key="k", budget=1_000) as turn:
            await turn.add(*answers)
    assert len(await chat.messages()) == 62
    async with chat.turn("Is it?", key="k", budget=8_000) as turn:
        await turn.add("It is.")


def call(number: int) -> hitherto.Message:
    return assistant(f"I look {number}.", calls=[hitherto.Call(id=str(number), name="f")])


async def looked(turn: Turn, *numbers: int) -> None:
    """Steps of the turn: a call each, with its result."""
    for number in numbers:
        await turn.add(call(number))
        await turn.add(tool_result(str(number), f"found {number}"))


async def cut_off(turn: Turn, *numbers: int) -> None:
    """These steps, and then a stream that breaks."""

    async def use() -> None:
        async with turn:
            await looked(turn, *numbers)
            async for _ in turn.stream(events(piece("It"))):
                pass

    with pytest.raises(ConnectionResetError):
        await use()


async def said_by(chat: Conversation) -> list[str]:
    """What is live of the log, a word for each message."""
    words = {"I look 0.\n[calls f({})]": "call 0", "I look 1.\n[calls f({})]": "call 1"}
    return [words.get(text, text) for text in await shown(chat)]


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


@pytest.mark.parametrize("end", ["left", "failed", "killed", "cut off"])
async def test_a_retry_goes_on_from_the_steps(chat: Conversation, end: str) -> None:
    turn = chat.turn("Is it?", key="k")
    match end:
        case "left":
            async with turn:
                await looked(turn, 0, 1)
        case "failed":
            await failed(turn, call(0), tool_result("0", "found 0"), call(1), tool_result("1", "found 1"))
        case "killed":
            await turn.__aenter__()
            await looked(turn, 0, 1)
        case _:
            await cut_off(turn, 0, 1)
    rest = ["It"] if end == "cut off" else []
    assert await said_by(chat) == ["Is it?", "call 0", "found 0", "call 1", "found 1", *rest]
    async with chat.turn("Is it?", key="k") as again:
        assert (again.done, again.replayed, again.calls, len(again.messages)) == (False, False, (), 4)
        sent = [one["content"] for one in again.request["messages"][-5:]]
        assert sent == ["Is it?", "I look 0.", "found 0", "I look 1.", "found 1"]
        await looked(again, 2)
        await again.add("It is.")
    async with chat.turn("Is it?", key="k") as answered:
        assert (answered.done, answered.replayed) == (True, True)
        assert [one.raw for one in answered.messages] == [one.raw for one in again.messages]
    assert (await said_by(chat))[-2:] == ["found 2", "It is."]
    assert len(await shown(chat)) == 8
    with pytest.raises(IdempotencyKeyReused):
        async with chat.turn("Or not?", key="k"):
            pass


async def test_a_retry_asks_again_where_something_was_said_since(chat: Conversation) -> None:
    await failed(chat.turn("Is it?", key="k"), call(0), tool_result("0", "found 0"))
    await chat.append(user("Hello."), assistant("Hello."))
    async with chat.turn("Is it?", key="k") as again:
        assert [one["content"] for one in again.request["messages"]][-2:] == ["Hello.", "Is it?"]
        await looked(again, 1)
    await chat.append(user("Go on."))
    async with chat.turn("Is it?", key="k") as last:
        assert last.messages == ()
        await last.add("It is.")
    once = ["Is it?", "call 0", "found 0", "Hello.", "Hello.", "Is it?", "call 1", "found 1", "Go on."]
    assert await said_by(chat) == [*once, "Is it?", "It is."]
    async with chat.turn("Is it?", key="k") as answered:
        assert [one.text for one in answered.messages] == ["It is."]


async def test_steps_that_were_taken_back_are_not_gone_on_from(chat: Conversation) -> None:
    await failed(chat.turn("Is it?", key="k"), call(0), tool_result("0", "found 0"))
    await chat.rewind(to=-1)
    async with chat.turn("Is it?", key="k") as again:
        assert "found 0" not in json.dumps(again.request)
        await again.add("It is.")
    assert await shown(chat) == ["Is it?", "It is."]


async def test_two_turns_with_one_key_keep_the_steps_of_the_first(chat: Conversation) -> None:
    """The other one is told at once, so that it calls no more tools."""
    async with chat.turn("Is it?", key="k") as one:
        two = chat.turn("Is it?", key="k")
        await two.__aenter__()
        await looked(one, 0)
        await two.add(call(1))
        with pytest.raises(IdempotencyKeyReused, match="in progress"):
            await two.add(tool_result("1", "found 1"))
        await two.__aexit__(None, None, None)
        assert two.result is None
        await looked(one, 1)
        await one.add("It is.")
    assert await said_by(chat) == ["Is it?", "call 0", "found 0", "call 1", "found 1", "It is."]
    async with chat.turn("Is it?", key="k") as again:
        assert (again.text, again.replayed) == ("It is.", True)


TWINS: list[tuple[Wire, dict[str, Any]]] = [
    (
        CHAT,
        {
            "choices": [
                {
                    "message": {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": [
                            {"id": "c", "type": "function", "function": {"name": name, "arguments": "{}"}}
                            for name in ("f", "g")
                        ],
                    }
                }
            ]
        },
    ),
    (
        RESPONSES,
        {
            "object": "response",
            "status": "completed",
            "output": [
                {"type": "function_call", "call_id": "c", "name": name, "arguments": "{}"} for name in ("f", "g")
            ],
        },
    ),
    (
        ANTHROPIC,
        {
            "type": "message",
            "role": "assistant",
            "stop_reason": "tool_use",
            "content": [{"type": "tool_use", "id": "c", "name": name, "input": {}} for name in ("f", "g")],
        },
    ),
]


@pytest.mark.parametrize(("wire", "answer"), TWINS, ids=[wire for wire, _ in TWINS])
async def test_two_calls_with_one_id(chat: Conversation, wire: Wire, answer: Any) -> None:
    async with chat.turn("Is it?", wire=wire) as turn:
        await turn.add(answer)
        assert [(one.id, one.name) for one in turn.calls] == [("c", "f"), ("c_2", "g")]
        for one in turn.calls:
            await turn.add(tool_result(one.id, f"found by {one.name}"))
        assert refusals(turn.request, wire=wire) == []
        assert "no result yet" not in json.dumps(turn.request)
        await turn.add("It is.")


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
            assert refusals(turn.request, wire=CHAT) == []
    await failed(chat.turn("Is it?", key="k"), again)
    assert (await shown(chat))[-1] == "found 2", "the steps stay, and the open call does not"
    async with chat.turn("Is it?", key="k") as turn:
        await turn.add("It is.")
    assert len(await shown(chat)) == 8


async def test_a_key_without_an_answer_is_another_ones(chat: Conversation) -> None:
    await chat.append(user("Is it?"), key="asked")
    async with chat.turn([user("Is it?"), user("Or not?")], key="two") as turn:
        await turn.add("It is.")
    for key in ("asked", "two"):
        with pytest.raises(IdempotencyKeyReused, match="without an answer"):
            async with chat.turn("Is it?", key=key):
                pass


@pytest.mark.parametrize(
    "mark",
    [
        {"partial": True, "key": "k"},
        {"partial": True, "key": "k", "messages": 2},
        {"hitherto_turn": {"key": key_mark("k")}},
        {"hitherto_turn": {"key": key_mark("k"), "messages": "x"}},
        {"hitherto_turn": {"key": key_mark("k"), "messages": 3}},
        {"hitherto_turn": {"key": key_mark("k"), "messages": 10**9}},
        {"hitherto_turn": [key_mark("k"), 2]},
    ],
)
async def test_metadata_of_ones_own_takes_nothing_back(chat: Conversation, mark: Any) -> None:
    await chat.append(user("Old."), assistant("Yes."), user("Is it?").with_metadata(mark))
    async with chat.turn("Is it?", key="k") as turn:
        await turn.add("It is.")
    assert await shown(chat) == ["Old.", "Yes.", "Is it?", "Is it?", "It is."]


async def test_what_is_said_while_a_retry_begins_stays(chat: Conversation) -> None:
    for number in range(15):
        await broken_off(chat, "Ye", key=f"{number}")

        async def again(key: str) -> None:
            async with chat.turn("Is it?", key=key) as turn:
                if not turn.done:
                    await turn.add("It is.")

        said = f"Important {number}."
        await asyncio.gather(again(f"{number}"), chat.append(user(said)), again(f"{number}"))
        now = await shown(chat)
        assert said in now
        assert "It is." in now[-2:]


async def test_thinking_is_not_said(chat: Conversation) -> None:
    thought = {"type": "thinking", "thinking": "They want a yes.", "signature": "s"}
    content = [thought, {"type": "text", "text": "It is."}]
    async with chat.turn("Is it?", wire="anthropic") as turn:
        await turn.add({"type": "message", "role": "assistant", "stop_reason": "end_turn", "content": content})
    assert turn.text == "It is."
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]}
    await failed(chat.turn("And this?", wire="openai.responses"), reasoning)
    assert texts(await chat.messages())[-1] == "They want a yes.\nIt is.", "reasoning alone leaves nothing"


async def test_half_an_emoji(chat: Conversation) -> None:
    async with chat.turn("Is it?") as turn:
        await turn.add("Half: \ud83d")
    await broken_off(chat, "Ha\ud83d")
    assert [one.message.text for one in await chat.messages()][1::2] == ["Half: \ufffd", "Ha\ufffd"]
    assert (await chat.messages())[1].message.payload["content"] == "Half: \ud83d"


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


async def test_an_answer_of_another_api_is_told(chat: Conversation) -> None:
    async with chat.turn("Is it?") as turn:
        with pytest.raises(InvalidMessage, match="wire='anthropic'"):
            await turn.add({"type": "message", "role": "assistant", "stop_reason": "end_turn", "content": []})
        with pytest.raises(InvalidMessage, match=r"wire='openai\.responses'"):
            await turn.add({"object": "response", "output": [], "status": "completed"})
        with pytest.raises(InvalidMessage, match="with an error"):
            await turn.add({"error": {"message": "no"}})


async def test_two_tasks_cannot_share_a_turn(chat: Conversation) -> None:
    turn = chat.turn("Is it?")

    async def use() -> None:
        async with turn:
            await turn.add("Yes.")

    done = await asyncio.gather(use(), use(), return_exceptions=True)
    assert sorted(type(one).__name__ for one in done) == ["InvalidInput", "NoneType"]
    assert texts(await chat.messages()) == ["Is it?", "Yes."]


async def test_what_does_not_fit_is_told_before_the_model_is_asked(chat: Conversation) -> None:
    with pytest.raises(BudgetExceeded):
        async with chat.turn("word " * 1_000, budget=100):
            pass
    assert await chat.messages() == []


async def test_what_is_no_answer(chat: Conversation) -> None:
    cases: list[Any] = [7, None, object(), {"content": "x"}, [assistant("x")]]
    for answer in cases:
        with pytest.raises(InvalidMessage):
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
