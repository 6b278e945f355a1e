"""Who spoke: the name of an item is its author's, unless it is a tool's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hitherto.core.log.message import Message
from hitherto.core.log.speaker import speaker_of
from hitherto.wire import read

CALL = {"type": "function_call", "call_id": "c", "name": "weather", "arguments": "{}"}


def message(item: dict[str, Any], wire: str) -> Message:
    return read(json.loads(json.dumps(item)), wire)


@pytest.mark.parametrize(
    ("item", "wire", "speaker"),
    [
        ({"role": "user", "content": "Hello", "name": "ada"}, "openai.chat", "ada"),
        ({"role": "user", "content": "Hello", "name": " "}, "openai.chat", "user"),
        ({"role": "user", "content": "Hello"}, "openai.chat", "user"),
        (CALL, "openai.responses", "assistant"),
        ({"type": "message", "role": "user", "content": "Hello"}, "openai.responses", "user"),
    ],
)
def test_the_name_of_an_item_is_its_authors_unless_it_is_a_tools(item: dict[str, Any], wire: str, speaker: str) -> None:
    assert speaker_of(message(item, wire)) == speaker
