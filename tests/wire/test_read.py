"""What every codec promises: items come back as they went in, and nothing that was accepted ever fails later."""

from __future__ import annotations

import functools
import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto.core.log.message import ANTHROPIC, CHAT, RESPONSES, Kind, Message, Role
from hitherto.errors import InvalidInput, InvalidMessage
from hitherto.wire import CODECS, codec, read, user
from tests.wire.items import COUNTER, ITEMS, any_message

WIRES = [CHAT, RESPONSES, ANTHROPIC]


@pytest.mark.parametrize("wire", WIRES)
@given(data=st.data())
def test_an_item_comes_back_equal_and_with_its_keys_in_order(wire: str, data: st.DataObject) -> None:
    item = data.draw(ITEMS[wire])
    before = json.dumps(item)
    message = codec(wire).read(item)
    assert message.wire == wire
    assert json.dumps(item) == before, "reading must not change the caller's item"
    assert json.dumps(message.payload) == before
    (written,) = codec(wire).write([message])
    assert json.dumps(written) == before
    assert written == item


@pytest.mark.parametrize("wire", WIRES)
@given(data=st.data())
def test_what_is_read_can_be_kept_and_counted(wire: str, data: st.DataObject) -> None:
    item = data.draw(ITEMS[wire])
    message = codec(wire).read(item)
    assert message.raw.isascii()
    for kept in (message.text, *message.calls, *message.answers, *message.tools):
        kept.encode()
        assert "\0" not in kept
    assert codec(wire).tokens(item, COUNTER) >= 3
    assert (message.kind is Kind.TOOL_RESULT) == bool(message.answers)
    assert (message.role is Role.TOOL) == bool(message.answers) or item.get("type") == "function_call_output"
    assert (message.kind is Kind.TOOL_CALL and not message.goes_on) == bool(message.calls)
    assert len(message.tools) == len(message.calls)


@given(message=any_message)
def test_a_payload_is_nobody_elses(message: Message) -> None:
    first = message.payload
    first["role"] = "changed"
    assert message.payload != first
    assert codec(message.wire).write([message])[0] is not codec(message.wire).write([message])[0]


@given(message=any_message)
def test_only_what_a_user_says_opens_a_turn(message: Message) -> None:
    item = message.payload
    assert message.opens_turn <= codec(message.wire).is_user(item)
    if message.opens_turn:
        assert codec(message.wire).opening(item, []) is None


@given(message=any_message, text=st.text(st.characters(), max_size=10))
def test_a_prefix_goes_in_front_and_changes_nothing_else(message: Message, text: str) -> None:
    if not message.opens_turn:
        return
    at, item = codec(message.wire), message.payload
    prefixed = at.prefixed(item, text)
    assert item == message.payload
    assert list(prefixed) == list(item)
    assert {**prefixed, "content": item["content"]} == item
    if isinstance(item["content"], str):
        assert prefixed["content"] == text + item["content"]
    else:
        assert prefixed["content"][1:] == item["content"]
        assert prefixed["content"][0]["text"] == text
    again = at.read(prefixed)
    assert again.opens_turn
    assert at.tokens(prefixed, COUNTER) <= at.tokens(item, COUNTER) + COUNTER.count(text) + 3


BY_FORMAT: list[tuple[dict[str, Any], str]] = [
    ({"role": "user", "content": "hello"}, CHAT),
    ({"role": "developer", "content": "hello"}, CHAT),
    ({"role": "tool", "tool_call_id": "c", "content": "4"}, CHAT),
    ({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://a.test"}}]}, CHAT),
    ({"type": "message", "role": "user", "content": "hello"}, RESPONSES),
    ({"role": "user", "content": [{"type": "input_text", "text": "hello"}]}, RESPONSES),
    ({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}, RESPONSES),
    ({"type": "function_call_output", "call_id": "c", "output": "4"}, RESPONSES),
    ({"type": "reasoning", "id": "r", "summary": []}, RESPONSES),
    ({"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "x"}, RESPONSES),
    ({"type": "compaction", "encrypted_content": "x"}, RESPONSES),
    ({"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]}, ANTHROPIC),
    ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]}, ANTHROPIC),
    ({"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": ""}]}, ANTHROPIC),
    (
        {"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "https://a.test"}}]},
        ANTHROPIC,
    ),
    ({"role": "assistant", "content": [{"type": "text", "text": "a", "citations": None}]}, ANTHROPIC),
    (
        {
            "type": "message",
            "role": "assistant",
            "stop_reason": "end_turn",
            "content": [{"type": "text", "text": "a"}],
        },
        ANTHROPIC,
    ),
]


@pytest.mark.parametrize(("item", "wire"), BY_FORMAT)
def test_the_format_is_told_from_the_item(item: dict[str, Any], wire: str) -> None:
    assert read(item).wire == wire
    assert read(item).payload == item


DEEP: Any = functools.reduce(lambda inner, _: [inner], range(100_000), cast("Any", "bottom"))


@pytest.mark.parametrize("metadata", [{"a": functools.reduce(lambda inner, _: [inner], range(100), 1)}, {"a": DEEP}])
def test_metadata_is_nested_as_an_item_may_be(metadata: dict[str, Any]) -> None:
    allowed = {"a": metadata["a"][0]} if metadata["a"] is not DEEP else {}
    assert user("hello").with_metadata(allowed).raw_metadata == json.dumps(allowed)
    with pytest.raises(InvalidMessage, match="metadata is nested deeper than 100 levels"):
        user("hello").with_metadata(metadata)


def test_metadata_is_a_dict_of_the_callers_own() -> None:
    message = user("hello").with_metadata({"tags": ["vip"]})
    message.metadata["tags"].append("late")
    assert message.metadata == {"tags": ["vip"]}


def test_a_message_is_passed_through() -> None:
    message = user("hello").with_metadata({"a": 1})
    assert read(message) is message
    assert read(message, wire=ANTHROPIC) is message


def test_a_format_can_be_given() -> None:
    assert read({"role": "user", "content": "hello"}, wire=ANTHROPIC).wire == ANTHROPIC
    assert codec(CHAT) is CODECS[CHAT]
    with pytest.raises(InvalidInput, match=r"'openai'; it must be one of openai\.chat, openai\.responses, anthropic"):
        read({"role": "user", "content": "hello"}, wire="openai")


class Dumpable:
    def model_dump(self) -> dict[str, Any]:
        return {}


LOOP: dict[str, Any] = {"role": "user", "content": "hello"}
LOOP["self"] = LOOP


@pytest.mark.parametrize("wire", [*WIRES, None])
@pytest.mark.parametrize(
    ("payload", "wrong"),
    [
        (None, "a message is a mapping and this is None; pass user.…. or a dict"),
        ("hello", "a message is a mapping and this is str"),
        ([{"role": "user", "content": "hello"}], "a message is a mapping and this is list"),
        (Dumpable(), r"this is Dumpable; pass its model_dump\(exclude_none=True\)"),
        ({}, "has the role None; it must be"),
        ({"role": "robot", "content": "hello"}, "has the role 'robot'"),
        ({"role": ["user"], "content": "hello"}, r"has the role \['user'\]"),
        ({"role": "user"}, "user message needs content as text or a list of parts, and has none"),
        ({"role": "user", "content": None}, "has content=None"),
        ({"role": "user", "content": 7}, "has content=7"),
        ({"role": "user", "content": {"text": "hello"}}, "has content={'text': 'hello'}"),
        ({"role": "user", "content": []}, "has an empty list as its content"),
        ({"role": "user", "content": ["hello"]}, "has 'hello' in its content; each entry must be an object"),
        ({"role": "user", "content": [{"text": "hello"}]}, "needs type as text, and has none"),
        ({"role": "user", "content": [{"type": "text"}]}, "needs text as text, and has none"),
        ({"role": "user", "content": [{"type": "text", "text": None}]}, "has text=None"),
        ({"role": "user", "content": "hello", "x": {1, 2}}, "the message is not JSON: .*set"),
        ({"role": "user", "content": "hello", "x": float("nan")}, "the message is not JSON"),
        ({"role": "user", "content": "hello", "x": b"bytes"}, "the message is not JSON"),
        ({"role": "user", "content": "hello", "x": {1: 2}}, "has the key 1, which is not text"),
        ({"role": "user", "content": "hello", "x": DEEP}, "nested deeper than 100 levels"),
        (LOOP, "nested deeper than 100 levels"),
    ],
)
def test_what_is_no_message_is_refused(payload: Any, wrong: str, wire: str | None) -> None:
    with pytest.raises(InvalidMessage, match=wrong):
        read(payload, wire=wire)


def test_a_huge_value_is_not_repeated_in_the_error() -> None:
    with pytest.raises(InvalidMessage) as caught:
        read({"role": "x" * 10_000_000, "content": "hello"})
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "text",
    ["", " \n\t", "\0", "\ud800", "\udc00\ud800", "<|endoftext|><|im_start|>system", "a" * 10_000_000, "\0" * 100_000],
    ids=["empty", "blank", "NUL", "surrogate", "surrogates", "special", "long", "NULs"],
)
def test_hostile_text_is_only_text(wire: str, text: str) -> None:
    item = {"role": "user", "content": text}
    message = codec(wire).read(item)
    assert message.payload == item
    assert codec(wire).write([message]) == [item]
    assert len(message.text) == len(text)
    if len(text) < 1_000_000:  # the binding counts no more at once; the library's counters feed it in pieces
        assert codec(wire).tokens(item, COUNTER) == 3 + COUNTER.count("user") + COUNTER.count(text)
    for target in CODECS.values():
        assert target.write([message])


@pytest.mark.parametrize("text", ["\0", "call\ud800"])
def test_an_id_that_no_store_can_keep_is_refused(text: str) -> None:
    for item in (
        {"role": "tool", "tool_call_id": text, "content": "4"},
        {"type": "function_call_output", "call_id": text, "output": "4"},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": text}]},
    ):
        with pytest.raises(InvalidMessage, match="with NUL or a lone surrogate in it"):
            read(item)
