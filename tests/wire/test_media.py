"""Pictures and files within what an API takes in a request: the oldest give way, by a quarter of the bound at once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto import wire
from hitherto.core.log.message import Message, Wire
from hitherto.testing.requests import refusals
from hitherto.wire.media import within_limits
from tests.wire.conversations import WIRES

PIXEL = "iVBORw0KGgo="
MOST = {"openai.chat": 1_500, "openai.responses": 1_500, "anthropic": 100}


def picture(to: Wire, data: str = PIXEL) -> dict[str, Any]:
    match to:
        case "openai.chat":
            return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
        case "openai.responses":
            return {"type": "input_image", "image_url": f"data:image/png;base64,{data}"}
        case _:
            return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


def message(to: Wire, pictures: int, *, data: str = PIXEL) -> Message:
    text = {"type": "input_text" if to == "openai.responses" else "text", "text": "See:"}
    content = [text, *(picture(to, data) for _ in range(pictures))]
    return wire.read({"role": "user", "content": content}, wire=to)


def result(to: Wire, pictures: int) -> Message:
    """Pictures in a tool's result; chat completions have none there."""
    shown = [picture(to) for _ in range(pictures)]
    match to:
        case "openai.responses":
            return wire.read({"type": "function_call_output", "call_id": "c", "output": shown or "none"}, wire=to)
        case "anthropic":
            block = {"type": "tool_result", "tool_use_id": "c", "content": shown}
            return wire.read({"role": "user", "content": [block]}, wire=to)
        case _:
            return message(to, pictures)


def pictures(messages: list[Message]) -> list[int]:
    return [json.dumps(one.payload).count(PIXEL) for one in messages]


def limited(messages: list[Message], to: Wire) -> list[Message]:
    found = within_limits(messages, to)
    return [found.get(at, one) for at, one in enumerate(messages)]


@pytest.mark.parametrize("to", WIRES)
@given(sizes=st.lists(st.tuples(st.booleans(), st.integers(0, 60)), max_size=12), scale=st.sampled_from([1, 20]))
def test_the_oldest_give_way(to: Wire, sizes: list[tuple[bool, int]], scale: int) -> None:
    there = [result(to, size * scale) if of_tool else message(to, size * scale) for of_tool, size in sizes]
    before, after = pictures(there), pictures(left := limited(there, to))
    gone = sum(before) - sum(after)
    over = sum(before) - MOST[to]
    assert (gone == 0) == (over <= 0)
    assert max(over, 0) <= gone < max(over, 0) + MOST[to] // 4 or not gone
    for at, (was, now) in enumerate(zip(before, after, strict=True)):
        assert now in (was, 0) or not any(after[:at]), "the oldest of all, and of a message"
        assert json.dumps(left[at].payload).count("[image left out]") == was - now
        assert left[at].answers == there[at].answers


@pytest.mark.parametrize("to", WIRES)
def test_most_requests_begin_as_those_before(to: Wire) -> None:
    there = [message(to, MOST[to] // 20)] * 60
    left = [sum(pictures(limited(there[:end], to))) for end in range(61)]
    gone = [end * (MOST[to] // 20) - now for end, now in enumerate(left)]
    assert len({*gone}) == 1 + 2 * 4


def test_bytes_count_too() -> None:
    large = "A" * 1_300_000
    there = [message("anthropic", 1, data=large) for _ in range(60)]
    assert refusals({"messages": [one.payload for one in there]}, wire="anthropic")
    left = [one.payload for one in limited(there, "anthropic")]
    assert refusals({"messages": left}, wire="anthropic") == []
    assert sum(large in json.dumps(one) for one in left[-15:]) == 15, "the newest stay"


def test_files_and_screenshots() -> None:
    screenshot = {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{PIXEL}"}
    call = wire.read({"type": "computer_call_output", "call_id": "c", "output": screenshot})
    file = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PIXEL}}
    read = wire.read({"role": "user", "content": [file]}, wire="anthropic")
    later = wire.read({"type": "foo_call_output", "call_id": "c", "detail": {"seen": [picture("openai.responses")]}})
    (seen, *_) = limited([later, *(message("openai.responses", 1) for _ in range(1_500))], "openai.responses")
    assert seen.payload["detail"] == {"seen": [{"type": "input_text", "text": "[image left out]"}]}
    (seen, *_) = limited([call, *(message("openai.responses", 1) for _ in range(1_500))], "openai.responses")
    assert seen.payload["output"]["type"] == "computer_screenshot"
    assert PIXEL not in seen.payload["output"]["image_url"]
    (said, *_) = limited([read, *(message("anthropic", 1) for _ in range(100))], "anthropic")
    assert said.payload["content"] == [{"type": "text", "text": "[file left out]"}]
