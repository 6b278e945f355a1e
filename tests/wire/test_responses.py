"""OpenAI responses: typed items, reasoning and the API's own tools."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto.core.log.message import RESPONSES, Kind, Role
from hitherto.errors import InvalidMessage
from hitherto.wire import Call, ResponsesFormat, assistant, codec, tool_result
from tests.wire.items import COUNTER, PNG, fixed, responses_items, responses_parts, some, texts
from tests.wire.rules import assert_paired, assert_valid

responses = ResponsesFormat()
SUMMARY = [{"type": "summary_text", "text": "First."}, {"type": "summary_text", "text": "Then."}]
SHELL = [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]
SCREEN = {"type": "computer_screenshot", "image_url": "https://a.test/b.png"}

THOUGHT = "(thinking) First.\n(thinking) Then."
ASKED = {"type": "mcp_approval_request", "id": "m", "server_label": "boats", "name": "rent", "arguments": "{}"}
LISTED = {
    "type": "mcp_list_tools",
    "id": "m",
    "server_label": "boats",
    "tools": [{"name": "rent", "description": "Rents.", "input_schema": {}}, {"name": "row"}],
}
DECIDED = {"type": "mcp_approval_response", "approval_request_id": "m"}

READ: list[tuple[dict[str, Any], Role, Kind, str]] = [
    ({"role": "user", "content": "hello"}, Role.USER, Kind.TEXT, "hello"),
    ({"type": "message", "role": "developer", "content": "Be kind."}, Role.SYSTEM, Kind.TEXT, "Be kind."),
    (
        {
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Four."}, {"type": "refusal", "refusal": "No."}],
        },
        Role.ASSISTANT,
        Kind.TEXT,
        "Four.\nNo.",
    ),
    (
        {"type": "function_call", "call_id": "c", "name": "add", "arguments": '{"a": 2}'},
        Role.ASSISTANT,
        Kind.TOOL_CALL,
        '[calls add({"a": 2})]',
    ),
    (
        {"type": "custom_tool_call", "call_id": "c", "name": "sh", "input": "ls"},
        Role.ASSISTANT,
        Kind.TOOL_CALL,
        "[calls sh(ls)]",
    ),
    (
        {"type": "shell_call", "id": "sh_1", "call_id": "c", "action": {"commands": ["ls"]}, "status": "completed"},
        Role.ASSISTANT,
        Kind.TOOL_CALL,
        '[calls shell({"action":{"commands":["ls"]}})]',
    ),
    ({"type": "some_future_call", "call_id": "c"}, Role.ASSISTANT, Kind.TOOL_CALL, "[calls some_future({})]"),
    ({"type": "function_call_output", "call_id": "c", "output": "4"}, Role.TOOL, Kind.TOOL_RESULT, "4"),
    ({"type": "computer_call_output", "call_id": "c", "output": SCREEN}, Role.TOOL, Kind.TOOL_RESULT, "[image]"),
    ({"type": "some_future_call_output", "call_id": "c"}, Role.TOOL, Kind.TOOL_RESULT, ""),
    ({"type": "reasoning", "id": "rs_1", "summary": SUMMARY}, Role.ASSISTANT, Kind.REASONING, THOUGHT),
    ({"type": "compaction", "encrypted_content": "gAAAA"}, Role.ASSISTANT, Kind.COMPACTION, ""),
    ({"type": "web_search_call", "id": "ws_1"}, Role.ASSISTANT, Kind.TOOL_CALL, "[calls web_search({})]"),
    ({"type": "new_one", "id": "n_1", "x": "Hi."}, Role.ASSISTANT, Kind.TOOL_CALL, '[calls new_one({"x":"Hi."})]'),
    (ASKED, Role.ASSISTANT, Kind.TOOL_CALL, "[asks to call boats.rent({})]"),
    ({**DECIDED, "approve": True}, Role.USER, Kind.TOOL_CALL, "[approves the call]"),
    ({**DECIDED, "approve": False, "reason": "Dear."}, Role.USER, Kind.TOOL_CALL, "[denies the call: Dear.]"),
    (
        {**ASKED, "type": "mcp_call", "error": {"type": "http_error", "code": 503, "message": "Sunk."}},
        Role.ASSISTANT,
        Kind.TOOL_CALL,
        "[calls boats.rent({})]\n[error] 503\nSunk.",
    ),
    (LISTED, Role.ASSISTANT, Kind.TOOL_CALL, "[calls boats.list_tools({})]\nrent\nrow"),
    (
        {**LISTED, "error": "Sunk."},
        Role.ASSISTANT,
        Kind.TOOL_CALL,
        "[calls boats.list_tools({})]\n[error] Sunk.\nrent\nrow",
    ),
    (
        {"type": "foo_call", "call_id": "c", "name": "rent", "x": "Hi."},
        Role.ASSISTANT,
        Kind.TOOL_CALL,
        '[calls rent({"x":"Hi."})]',
    ),
    (
        {"type": "file_search_call", "id": "f", "status": "failed", "queries": ["q"], "results": None},
        Role.ASSISTANT,
        Kind.TOOL_CALL,
        '[calls file_search({"queries":["q"]})]\n[error]',
    ),
    (
        {"type": "web_search_call", "id": "w", "action": {"query": "q", "sources": [{"type": "url", "url": "u"}]}},
        Role.ASSISTANT,
        Kind.TOOL_CALL,
        '[calls web_search({"action":{"query":"q"}})]\nu',
    ),
    ({"type": "message", "id": "msg_1", "role": "assistant", "content": []}, Role.ASSISTANT, Kind.TEXT, ""),
    ({"type": "function_call_output", "name": "clock", "output": "noon"}, Role.TOOL, Kind.TEXT, "noon"),
    ({"type": "item_reference", "id": "msg_1"}, Role.ASSISTANT, Kind.REASONING, "[item_reference]"),
    ({"id": "msg_1"}, Role.ASSISTANT, Kind.REASONING, "[item_reference]"),
    ({"type": "compaction_trigger"}, Role.SYSTEM, Kind.REASONING, "[compaction_trigger]"),
]


@pytest.mark.parametrize(("item", "role", "kind", "text"), READ)
def test_what_is_read(item: dict[str, Any], role: Role, kind: Kind, text: str) -> None:
    message = responses.read(item)
    assert (message.role, message.kind, message.text) == (role, kind, text)
    assert message.counts == (kind is Kind.TEXT and role in (Role.USER, Role.ASSISTANT))


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"type": 7}, "has the type 7; it must be a text"),
    ({"type": "input_text", "text": "hello"}, "has the unknown type 'input_text'"),
    ({"type": "new_one"}, "has the unknown type 'new_one' and no id"),
    ({"type": "massage", "role": "user", "content": "hello"}, "has the unknown type 'massage'"),
    ({"id": "msg_1", "content": "hello"}, "has the role None; it must be one of"),
    (
        {"type": "message", "content": "hello"},
        "has the role None; it must be one of user, assistant, system, developer",
    ),
    ({"type": "message", "role": "tool", "content": "hello"}, "has the role 'tool'"),
    ({"type": "message", "role": "user", "content": []}, "has an empty list as its content"),
    ({"type": "function_call", "call_id": "c", "arguments": "{}"}, "needs name as a text that is not empty"),
    ({"type": "function_call", "call_id": "c", "name": "f", "arguments": []}, "needs arguments as an object"),
    ({"type": "custom_tool_call", "call_id": "c", "name": "f"}, "needs input as text, and has none"),
    ({"type": "function_call_output", "call_id": "c", "output": None}, "needs output as text or a list of parts"),
    ({"type": "shell_call_output", "output": []}, "needs call_id as a text"),
    ({"type": "shell_call", "call_id": 7}, "has call_id=7"),
    ({"type": "reasoning", "id": "r"}, "needs summary as a list, and has none"),
    ({"type": "reasoning", "summary": [{"type": "summary_text"}]}, "needs text as text, and has none"),
    ({"type": "compaction"}, "needs encrypted_content as text, and has none"),
    ({"role": "user", "content": [{"type": "image_url"}]}, "'image_url', which only openai.chat has"),
]


@pytest.mark.parametrize(("item", "wrong"), WRONG)
def test_what_the_api_would_not_take_is_refused(item: dict[str, Any], wrong: str) -> None:
    with pytest.raises(InvalidMessage, match=wrong):
        responses.read(item)


def test_a_response_with_parallel_calls_keeps_its_order() -> None:
    items: list[dict[str, Any]] = [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "b", "name": "g", "input": "x"},
        {"type": "custom_tool_call_output", "call_id": "b", "output": "2"},
    ]
    group = [responses.read(item) for item in items]
    assert responses.write(group) == items
    written = responses.write(group, unanswered=["a", "b"])
    assert written == [*items, {"type": "function_call_output", "call_id": "a", "output": "[no result yet]"}]


def test_reasoning_behind_a_call_stays_with_what_follows_it() -> None:
    call: dict[str, Any] = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
    said: list[dict[str, Any]] = [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"},
        {"type": "message", "role": "assistant", "content": "I did not wait."},
    ]
    written = responses.write([responses.read(item) for item in (call, *said)], unanswered=["a"])
    assert written == [call, {"type": "function_call_output", "call_id": "a", "output": "[no result yet]"}, *said]


PLACEHOLDERS: list[dict[str, Any]] = [
    {"type": "function_call", "name": "f", "arguments": "{}"},
    {"type": "custom_tool_call", "name": "f", "input": "x"},
    {
        "type": "computer_call",
        "id": "cu_1",
        "action": {"type": "wait"},
        "pending_safety_checks": [],
        "status": "completed",
    },
    {"type": "shell_call", "action": {"commands": ["ls"]}},
    {
        "type": "local_shell_call",
        "id": "ls_1",
        "action": {"type": "exec", "command": [], "env": {}},
        "status": "completed",
    },
    {"type": "apply_patch_call", "operation": {"type": "delete_file", "path": "a"}, "status": "completed"},
    {"type": "tool_search_call", "arguments": {}, "execution": "client"},
    {"type": "program", "id": "p_1", "code": "1", "fingerprint": "x"},
]


@pytest.mark.parametrize("call", PLACEHOLDERS, ids=lambda call: call["type"])
def test_each_tool_of_the_api_gets_a_placeholder_it_accepts(call: dict[str, Any]) -> None:
    item = {**call, "call_id": "c"}
    written = responses.write([responses.read(item)], unanswered=["c"])
    assert written[0] == item
    assert_valid(RESPONSES, written)
    assert responses.read(written[1]).answers == ("c",)
    assert len(written) == 2


def test_custom_calls_of_chat_are_answered_as_custom() -> None:
    custom = {"id": "c", "type": "custom", "custom": {"name": "sh", "input": "ls"}}
    call = codec("openai.chat").read({"role": "assistant", "content": None, "tool_calls": [custom]})
    written = responses.write([call, tool_result("c", "a b")])
    assert_paired(RESPONSES, written)
    assert written[1] == {"type": "custom_tool_call_output", "call_id": "c", "output": "a b"}


@pytest.mark.parametrize("call", PLACEHOLDERS, ids=lambda call: call["type"])
def test_each_tool_of_the_api_can_be_answered_in_another_format(call: dict[str, Any]) -> None:
    written = responses.write([responses.read({**call, "call_id": "c"}), tool_result("c", "a b")])
    assert_valid(RESPONSES, written)
    answer = responses.read(written[1])
    assert answer.answers == ("c",)
    assert answer.text == {"computer_call": "[image]", "tool_search_call": ""}.get(call["type"]) or "a b" in answer.text


def test_text_before_calls_is_a_message_before_them() -> None:
    message = assistant("Let me see.", calls=[Call(id="c", name="add")])
    assert responses.write([message]) == [
        {"role": "assistant", "content": "Let me see."},
        {"type": "function_call", "call_id": "c", "name": "add", "arguments": "{}"},
    ]


@given(item=responses_items)
def test_a_plain_message_costs_what_it_costs_in_chat_and_others_at_least_their_text(item: dict[str, Any]) -> None:
    counted = responses.tokens(item, COUNTER)
    if set(item) == {"role", "content"}:
        assert counted == 3 + COUNTER.count(item["role"]) + COUNTER.count(item["content"])
    opaque = item.get("encrypted_content")
    assert opaque is None or counted >= 3 + len(opaque) // 100


def test_an_opaque_item_is_counted_as_its_text() -> None:
    secret = "gAAAAABo" * 500
    item: dict[str, Any] = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": secret}
    assert responses.tokens(item, COUNTER) >= 3 + COUNTER.count(secret)


@given(parts=some(responses_parts), more=texts)
def test_bookkeeping_costs_nothing(parts: list[dict[str, Any]], more: str) -> None:
    item = {"role": "user", "content": parts}
    kept = {"type": "message", "id": "msg_1", "status": "completed", **item}
    assert responses.tokens(kept, COUNTER) == responses.tokens(item, COUNTER)
    text = {"type": "output_text", "text": more}
    said = {"role": "assistant", "content": [{**text, "annotations": [], "logprobs": [{"token": "a" * 100}]}]}
    assert responses.tokens(said, COUNTER) == responses.tokens({"role": "assistant", "content": [text]}, COUNTER)


@pytest.mark.parametrize(
    "item",
    [
        {"role": "user", "content": [{"type": "input_image", "image_url": f"data:image/png;base64,{PNG * 10_000}"}]},
        {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": PNG * 10_000},
        {"type": "computer_call_output", "call_id": "c", "output": {**SCREEN, "image_url": PNG * 10_000}},
        {
            "type": "function_call_output",
            "call_id": "c",
            "output": [{"type": "input_image", "image_url": PNG * 10_000}],
        },
        {
            "type": "some_future_call_output",
            "call_id": "c",
            "detail": {"parts": [{"type": "input_image", "image_url": PNG * 10_000}]},
        },
    ],
)
def test_an_image_costs_what_the_counter_says_and_not_its_bytes(item: dict[str, Any]) -> None:
    assert COUNTER.image_tokens <= responses.tokens(item, COUNTER) <= COUNTER.image_tokens + 60


def test_what_shell_commands_print_is_counted() -> None:
    printed = "total 48 " * 1_000
    item = {"type": "shell_call_output", "call_id": "c", "output": [{**SHELL[0], "stdout": printed}]}
    assert responses.tokens(item, COUNTER) >= COUNTER.count(printed)


def test_ids_and_truth_values_that_a_tool_at_the_provider_gave_are_words() -> None:
    given: dict[str, Any] = {"id": "inv-7", "status": "open", "paid": False, "file_id": "f_1"}
    item = {"type": "billing_call", "id": "b_1", "output": given}
    assert responses.read(item).text.splitlines()[1:] == ["inv-7", "open", "paid: false"]


@given(instructions=st.lists(texts, max_size=3))
def test_instructions_cost_no_more_than_was_counted(instructions: list[str]) -> None:
    request = responses.request(system=instructions, items=[], tools=[])
    counted = sum(responses.system_tokens(text, COUNTER) for text in instructions)
    assert ("instructions" in request) == bool(instructions)
    assert COUNTER.count(request.get("instructions", "")) <= counted


@pytest.mark.parametrize("count", [1, 20])
def test_the_smallest_tools_cost_no_less_than_openais_formula(count: int) -> None:
    tools = [{"type": "function", "name": "f"}] * count
    assert responses.tools_tokens(tools, COUNTER) >= 12 + count * (10 + COUNTER.count("f:"))


def test_the_request_has_what_there_is() -> None:
    items = [{"role": "user", "content": "hello"}]
    tools: list[dict[str, Any]] = [{"type": "function", "name": "add", "parameters": {}}]
    assert responses.request(system=[], items=items, tools=[]) == {"input": items}
    assert responses.request(system=["A", "B"], items=items, tools=tools) == {
        "instructions": "A\n\nB",
        "input": items,
        "tools": tools,
    }
    assert responses.opening({"type": "reasoning"}, []) is None
    assert not responses.is_user({"type": "mcp_approval_response", "role": "user"})


@given(item=fixed(role=st.just("user"), content=some(responses_parts)))
def test_chat_can_say_what_a_user_of_responses_says(item: dict[str, Any]) -> None:
    assert_valid("openai.chat", codec("openai.chat").write([responses.read(item)]))
