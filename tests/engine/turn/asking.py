"""How a turn asks each API and breaks off, for the tests of turns."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import anthropic
import openai
import pytest

import hitherto
from hitherto import Conversation, Turn, assistant, tool_result
from hitherto.core.log.message import ANTHROPIC, CHAT, RESPONSES, Logged, Wire
from tests.engine.turn import streams
from tests.providers.models.endpoint import Answer

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


def texts(log: list[Logged]) -> list[str]:
    return [one.message.text for one in log]


async def shown(chat: Conversation) -> list[str]:
    """What is live of the log."""
    head = await chat.head()
    return [] if head is None else texts([one for one in await chat.messages() if one.live(head.rev)])


async def streamed(api: Api, turn: Turn, url: str) -> int:
    """Ask once, and stream the answer; how many events it had."""
    return len([event async for event in turn.stream(await api.ask(url, turn.request))])


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


def call(number: int) -> hitherto.Message:
    return assistant(f"I look {number}.", calls=[hitherto.Call(id=str(number), name="f")])


async def looked(turn: Turn, *numbers: int) -> None:
    """Steps of the turn: a call each, with its result."""
    for number in numbers:
        await turn.add(call(number))
        await turn.add(tool_result(str(number), f"found {number}"))


async def said_by(chat: Conversation) -> list[str]:
    """What is live of the log, a word for each message."""
    words = {"I look 0.\n[calls f({})]": "call 0", "I look 1.\n[calls f({})]": "call 1"}
    return [words.get(text, text) for text in await shown(chat)]
