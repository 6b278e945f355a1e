"""Redaction: tool payloads go, and what is left is an item of the same kind that its API accepts."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from hitherto.core.log.message import ANTHROPIC, CHAT, RESPONSES, Kind, Message, Payload
from hitherto.wire import CODECS, codec, user
from tests.wire.items import ITEMS, PNG, any_message, names
from tests.wire.rules import assert_valid

WIRES = [CHAT, RESPONSES, ANTHROPIC]


def placeholder(name: str, _: str) -> str:
    return f"⟦removed: {name}⟧"


def redacted(message: Message, *, calls: bool = True) -> Message:
    return codec(message.wire).redacted(message, placeholder, calls=calls)


def accepted(wire: str, item: Payload) -> bool:
    """Whether the API's own types take the item; Anthropic's are not at hand."""
    try:
        assert_valid(wire, [item])
    except (ValidationError, AssertionError):
        return False
    return wire != ANTHROPIC


PAYLOADS = {"arguments", "input", "output", "result", "action", "operation"}


def frame(value: Any) -> Any:
    """An item without what its tools were told and answered."""
    if isinstance(value, list):
        return [frame(one) for one in value]
    if not isinstance(value, dict):
        return value
    answer = value.get("type") == "tool_result" or value.get("role") in ("tool", "function")
    return {
        key: None if key in PAYLOADS or (key == "content" and answer) else frame(inner) for key, inner in value.items()
    }


@pytest.mark.parametrize("wire", WIRES)
@given(data=st.data())
def test_what_is_left_is_the_same_kind_of_item(wire: str, data: st.DataObject) -> None:
    item = data.draw(ITEMS[wire])
    message = codec(wire).read(item)
    if message.answers and data.draw(st.booleans()):
        tools = data.draw(st.lists(names, min_size=len(message.answers), max_size=len(message.answers)))
        message = dataclasses.replace(message, tools=tuple(tools))
    message = message.with_metadata({"a": 1}).expiring(datetime(2040, 1, 1, tzinfo=UTC))
    calls = data.draw(st.booleans())
    left = redacted(message, calls=calls)

    read = codec(wire).read(left.payload)
    for field in ("raw", "wire", "role", "kind", "text", "calls", "answers"):
        assert getattr(left, field) == getattr(read, field)
    for field in ("role", "kind", "calls", "answers", "tools", "metadata", "expires_at"):
        assert getattr(left, field) == getattr(message, field)
    assert json.dumps(frame(left.payload)) == json.dumps(frame(item)), "all else stays, and in its order"
    assert accepted(wire, left.payload) >= accepted(wire, item)
    assert redacted(left, calls=calls) is left
    if not message.answers and not (calls and message.calls):
        assert left is message


@given(message=any_message, calls=st.booleans())
def test_none_leaves_it_as_it_is(message: Message, calls: bool) -> None:
    for at in CODECS.values():
        assert at.redacted(message, lambda _, __: None, calls=calls) is message


@given(message=any_message)
def test_any_codec_redacts_a_message_in_its_own_format(message: Message) -> None:
    left = {at.redacted(message, placeholder, calls=True).raw for at in CODECS.values()}
    assert left == {redacted(message).raw}


SECRET = "the whole quarterly report"
OUTCOME = {"type": "exit", "exit_code": 2}
SHELL = [{"stdout": "a", "stderr": "", "outcome": {"type": "timeout"}}, {"stdout": SECRET, "outcome": OUTCOME}]

RESULTS: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    (CHAT, {"role": "tool", "tool_call_id": "c", "content": SECRET}, {"content": "⟦removed: tool⟧"}, SECRET),
    (
        CHAT,
        {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": SECRET}]},
        {"content": "⟦removed: tool⟧"},
        SECRET,
    ),
    (CHAT, {"role": "function", "name": "add", "content": SECRET}, {"content": "⟦removed: add⟧"}, SECRET),
    (
        RESPONSES,
        {"type": "function_call_output", "id": "fo_1", "call_id": "c", "output": SECRET, "status": "completed"},
        {"output": "⟦removed: tool⟧"},
        SECRET,
    ),
    (
        RESPONSES,
        {
            "type": "function_call_output",
            "call_id": "c",
            "output": [{"type": "input_text", "text": SECRET}, {"type": "input_image", "image_url": PNG}],
        },
        {"output": "⟦removed: tool⟧"},
        f"{SECRET}\n[image]",
    ),
    (
        RESPONSES,
        {"type": "custom_tool_call_output", "call_id": "c", "name": "sh", "output": SECRET},
        {"output": "⟦removed: sh⟧"},
        SECRET,
    ),
    (
        RESPONSES,
        {"type": "shell_call_output", "call_id": "c", "output": SHELL, "max_output_length": 500},
        {"output": [{"stdout": "⟦removed: shell⟧", "stderr": "", "outcome": OUTCOME}]},
        json.dumps(SHELL, separators=(",", ":")),
    ),
    (
        RESPONSES,
        {"type": "local_shell_call_output", "id": "c", "output": SECRET},
        {"output": "⟦removed: local_shell⟧"},
        SECRET,
    ),
    (
        RESPONSES,
        {"type": "apply_patch_call_output", "call_id": "c", "status": "failed", "output": SECRET},
        {"output": "⟦removed: apply_patch⟧"},
        SECRET,
    ),
    (
        RESPONSES,
        {"type": "program_output", "id": "p", "call_id": "c", "result": SECRET, "status": "completed"},
        {"result": "⟦removed: program⟧"},
        SECRET,
    ),
    (
        RESPONSES,
        {"type": "some_future_call_output", "call_id": "c", "output": SECRET},
        {"output": "⟦removed: some_future⟧"},
        SECRET,
    ),
    (
        RESPONSES,
        {"type": "some_future_call_output", "call_id": "c", "output": {"rows": [SECRET]}},
        {"output": "⟦removed: some_future⟧"},
        json.dumps({"rows": [SECRET]}, separators=(",", ":")),
    ),
    (
        RESPONSES,
        {"type": "some_future_call_output", "call_id": "c", "output": "", "data": SECRET},
        {"output": "⟦removed: some_future⟧"},
        json.dumps({"data": SECRET}, separators=(",", ":")),
    ),
    (
        RESPONSES,
        {"type": "some_future_call_output", "call_id": "c", "data": SECRET},
        {"output": "⟦removed: some_future⟧"},
        json.dumps({"data": SECRET}, separators=(",", ":")),
    ),
]


@pytest.mark.parametrize(("wire", "item", "changed", "heard"), RESULTS)
def test_a_result_gives_way_to_the_placeholder(
    wire: str, item: dict[str, Any], changed: dict[str, Any], heard: str
) -> None:
    message = codec(wire).read(item)
    asked: list[tuple[str, str]] = []

    def replace(name: str, text: str) -> str:
        asked.append((name, text))
        return placeholder(name, text)

    left = codec(wire).redacted(message, replace, calls=False)
    assert left.payload == {key: value for key, value in item.items() if key != "data"} | changed
    assert [text for _, text in asked] == [heard]
    named = codec(wire).redacted(dataclasses.replace(message, tools=("report",)), placeholder, calls=False)
    assert "⟦removed: report⟧" in json.dumps(named.payload, ensure_ascii=False)
    assert "⟦removed:" in left.text


def test_a_screenshot_becomes_one_pixel() -> None:
    screen = {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{PNG * 1_000}"}
    item = {"type": "computer_call_output", "call_id": "c", "output": screen, "acknowledged_safety_checks": []}
    left = redacted(codec(RESPONSES).read(item))
    assert left.text == "[image]"
    assert len(left.raw) < 300
    assert left.payload["acknowledged_safety_checks"] == []
    assert_valid(RESPONSES, [left.payload])


CALLS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        RESPONSES,
        {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "add", "arguments": '{"a": 2}'},
        {"arguments": '{"removed":"⟦removed: add⟧"}'},
    ),
    (
        RESPONSES,
        {"type": "custom_tool_call", "call_id": "c", "name": "sh", "input": "ls"},
        {"input": "⟦removed: sh⟧"},
    ),
    (
        RESPONSES,
        {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls", "pwd"], "timeout_ms": 5}},
        {"action": {"commands": ["⟦removed: shell⟧"], "timeout_ms": 5}},
    ),
    (
        RESPONSES,
        {
            "type": "local_shell_call",
            "id": "ls_1",
            "call_id": "c",
            "status": "completed",
            "action": {"type": "exec", "command": ["ls"], "env": {"A": "1"}},
        },
        {"action": {"type": "exec", "command": ["⟦removed: local_shell⟧"], "env": {}}},
    ),
    (
        RESPONSES,
        {
            "type": "apply_patch_call",
            "call_id": "c",
            "status": "completed",
            "operation": {"type": "create_file", "path": "a", "diff": "+b"},
        },
        {"operation": {"type": "create_file", "path": "a", "diff": "⟦removed: apply_patch⟧"}},
    ),
    (
        RESPONSES,
        {"type": "tool_search_call", "call_id": "c", "arguments": {"query": "q"}, "execution": "client"},
        {"arguments": {"removed": "⟦removed: tool_search⟧"}},
    ),
    (CHAT, {"role": "assistant", "content": "Hm.", "tool_calls": []}, {}),
]


@pytest.mark.parametrize(("wire", "item", "changed"), CALLS)
def test_the_arguments_of_a_call_go_on_request(wire: str, item: dict[str, Any], changed: dict[str, Any]) -> None:
    message = codec(wire).read(item)
    assert redacted(message, calls=False) is message
    left = redacted(message)
    assert left.payload == {**item, **changed}
    assert_valid(wire, [left.payload])


def test_parallel_calls_of_chat_go_each_by_its_own_name() -> None:
    function = {"id": "a", "type": "function", "function": {"name": "add", "arguments": "{"}}
    custom = {"id": "b", "type": "custom", "custom": {"name": "sh", "input": "ls"}}
    legacy = {"name": "old", "arguments": "{}"}
    item = {"role": "assistant", "content": "Hm.", "tool_calls": [function, custom], "function_call": legacy}
    left = redacted(codec(CHAT).read(item)).payload
    assert left == {
        **item,
        "tool_calls": [
            {**function, "function": {"name": "add", "arguments": '{"removed":"⟦removed: add⟧"}'}},
            {**custom, "custom": {"name": "sh", "input": "⟦removed: sh⟧"}},
        ],
        "function_call": {"name": "old", "arguments": '{"removed":"⟦removed: old⟧"}'},
    }


def test_a_call_of_a_later_kind_becomes_a_functions_of_its_name() -> None:
    left = redacted(codec(RESPONSES).read({"type": "foo_call", "call_id": "c", "name": "rent", "plan": SECRET}))
    assert [one.name for one in codec(RESPONSES).calls(left)] == ["rent"]


@pytest.mark.parametrize(
    ("wire", "item"),
    [
        (RESPONSES, {"type": "_call", "call_id": "c", "plan": SECRET}),
        (CHAT, {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "", "plan": SECRET}]}),
    ],
)
def test_a_call_without_a_name_becomes_a_functions_that_has_one(wire: str, item: dict[str, Any]) -> None:
    left = redacted(codec(wire).read(item))
    assert [one.name for one in codec(wire).calls(left)] == ["tool"]
    assert_valid(wire, [left.payload])


def test_each_result_of_anthropic_goes_by_the_name_of_its_call() -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "tool_result", "tool_use_id": "a", "content": SECRET, "is_error": True},
        {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": SECRET}]},
        {"type": "tool_result", "tool_use_id": "c"},
        {"type": "text", "text": "And now?"},
    ]
    message = codec(ANTHROPIC).read({"role": "user", "content": blocks})
    message = dataclasses.replace(message, tools=("add", "read", "touch"))
    asked: dict[str, str] = {}

    def replace(name: str, text: str) -> str | None:
        asked[name] = text
        return None if name == "read" else placeholder(name, text)

    left = codec(ANTHROPIC).redacted(message, replace, calls=True)
    assert asked == {"add": SECRET, "read": SECRET}
    assert left.payload["content"] == [{**blocks[0], "content": "⟦removed: add⟧"}, *blocks[1:]]
    assert left.tools == ("add", "read", "touch")
    assert left.kind is Kind.TOOL_RESULT


def test_the_input_of_anthropics_calls_stays_an_object() -> None:
    said = [{"type": "thinking", "thinking": "Hm.", "signature": "s"}, {"type": "text", "text": "Let me see."}]
    call = {"type": "tool_use", "id": "a", "name": "add", "input": {"a": 2}, "cache_control": {"type": "ephemeral"}}
    left = redacted(codec(ANTHROPIC).read({"role": "assistant", "content": [*said, call]}))
    assert left.payload["content"] == [*said, {**call, "input": {"removed": "⟦removed: add⟧"}}]


KEPT: list[dict[str, Any]] = [
    {"type": "tool_search_output", "call_id": "c", "tools": [{"type": "function", "name": "f"}], "execution": "client"},
    {"type": "apply_patch_call_output", "call_id": "c", "status": "completed"},
    {"type": "program", "id": "p", "call_id": "c", "code": "1", "fingerprint": "seal"},
    {"type": "computer_call", "id": "cu", "call_id": "c", "action": {"type": "wait"}, "pending_safety_checks": []},
    {"type": "mcp_call", "id": "mcp_1", "name": "f", "server_label": "s", "arguments": "{}", "output": "4"},
]


@pytest.mark.parametrize("item", KEPT, ids=lambda item: item["type"])
def test_what_has_no_room_for_a_placeholder_stays(item: dict[str, Any]) -> None:
    message = codec(RESPONSES).read(item)
    assert redacted(message) is message


def test_hostile_names_and_texts_are_only_text() -> None:
    item = {"type": "function_call_output", "call_id": "c", "name": "a\0\ud800", "output": "\ud800<|endoftext|>\0"}
    heard: list[tuple[str, str]] = []

    def replace(name: str, text: str) -> str:
        heard.append((name, text))
        return "\0\udfff"

    left = codec(RESPONSES).redacted(codec(RESPONSES).read(item), replace, calls=False)
    assert heard == [("a\ufffd\ufffd", "\ufffd<|endoftext|>\ufffd")]
    assert left.payload["output"] == "\0\udfff"
    assert left.text == "\ufffd\ufffd"


def test_a_message_without_tools_is_the_same_object() -> None:
    message = user("hello")
    assert redacted(message) is message
