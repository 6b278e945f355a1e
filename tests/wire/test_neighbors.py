"""Neighbors of one role in one chat message."""

from __future__ import annotations

from typing import Any

import pytest

from hitherto.testing.requests import refusals
from hitherto.wire import codec

Item = dict[str, Any]
CALL: Item = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
RESULT: Item = {"role": "tool", "tool_call_id": "c", "content": "4"}


def says(role: str, content: Any, **other: Any) -> Item:
    return {"role": role, "content": content, **other}


U, A, CALLS = says("user", "A"), says("assistant", "B"), says("assistant", None, tool_calls=[CALL])
IMAGE: Item = {"type": "image_url", "image_url": {"url": "https://e.example/a.png"}}


@pytest.mark.parametrize(
    ("items", "sent"),
    [
        ([U, A, U], [U, A, U]),
        ([U, U, A, A, U], [says("user", "A\n\nA"), says("assistant", "B\n\nB"), U]),
        ([U, says("user", [IMAGE])], [says("user", [{"type": "text", "text": "A"}, IMAGE])]),
        ([U, A, CALLS, RESULT, A], [U, {**CALLS, "content": "B"}, RESULT, A]),
        ([U, CALLS, RESULT, U], [U, CALLS, RESULT, says("assistant", "[no answer]"), U]),
        ([U, A, CALLS, RESULT, U], [U, {**CALLS, "content": "B"}, RESULT, says("assistant", "[no answer]"), U]),
        (
            [
                U,
                says("assistant", None, function_call={"name": "f", "arguments": "{}"}),
                says("function", "4", name="f"),
                A,
            ],
            [
                U,
                says("assistant", None, tool_calls=[{**CALL, "id": "function_1"}]),
                {**RESULT, "tool_call_id": "function_1"},
                A,
            ],
        ),
        (
            [says("user", "A", name="Ann Lee"), says("user", [IMAGE], name="Ben")],
            [says("user", [{"type": "text", "text": "Ann Lee: A"}, {"type": "text", "text": "Ben:"}, IMAGE])],
        ),
        ([says("user", "A", name="Ann"), A], [says("user", "Ann: A"), A]),
    ],
)
def test_what_is_joined(items: list[Item], sent: list[Item]) -> None:
    chat = codec("openai.chat").joining()
    items = chat.sendable(items)
    assert chat.joined(items) == sent
    assert chat.joined(sent) == sent
    request = chat.request(system=["Be kind.", says("system", "Be brief.")], items=items, tools=())
    assert request == {"messages": [says("system", "Be kind.\n\nBe brief."), *sent]}
    assert refusals(request, wire="openai.chat", alternate=True) == []
