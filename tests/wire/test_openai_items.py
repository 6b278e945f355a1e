"""Every item that OpenAI's API accepts, by its SDK's own types, is read and comes back equal: an agent's session may
be handed any of them."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import pytest
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter

from hitherto.core.log.message import ANTHROPIC, CHAT, RESPONSES
from hitherto.wire import codec

HELLO = [
    {"type": "input_text", "text": "hello"},
    {"type": "input_image", "image_url": "https://a.test", "detail": "low"},
]
TEXT = {"type": "output_text", "text": "Four.", "annotations": [], "logprobs": []}
CALLED: dict[str, Any] = {"id": "it_1", "call_id": "call_1", "status": "completed"}
ANSWERED: dict[str, Any] = {"call_id": "call_1", "status": "completed"}
BY_PROGRAM = {"caller": {"type": "program", "caller_id": "call_0"}}

ITEMS: list[dict[str, Any]] = [
    {"role": "user", "content": "hello"},
    {"role": "assistant", "content": "Four.", "phase": "final_answer"},
    {"role": "developer", "content": "Be kind."},
    {"type": "message", "role": "system", "content": HELLO, "status": "completed"},
    {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [TEXT]},
    {"type": "message", "id": "msg_1", "role": "assistant", "status": "incomplete", "content": []},
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "refusal", "refusal": "No."}],
    },
    {"type": "file_search_call", "id": "fs_1", "queries": ["q"], "status": "completed", "results": None},
    {"type": "computer_call", **CALLED, "action": {"type": "wait"}, "pending_safety_checks": []},
    {"type": "computer_call", **CALLED, "actions": [{"type": "wait"}], "pending_safety_checks": []},
    {
        "type": "computer_call_output",
        **ANSWERED,
        "output": {"type": "computer_screenshot", "file_id": "file_1"},
        "acknowledged_safety_checks": [{"id": "cu_sc_1", "code": "malicious_instructions", "message": "?"}],
    },
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
    {"type": "function_call", **CALLED, "name": "add", "namespace": "sums", "arguments": "{}", **BY_PROGRAM},
    {"type": "function_call_output", **ANSWERED, "output": "4", **BY_PROGRAM},
    {"type": "function_call_output", **ANSWERED, "output": HELLO},
    {"type": "function_call_output", "id": "fo_1", "name": "clock", "output": "noon"},
    {"type": "tool_search_call", **CALLED, "arguments": {"query": "q"}, "execution": "client"},
    {"type": "tool_search_call", "id": "ts_1", "call_id": None, "arguments": {"paths": ["crm"]}, "execution": "server"},
    {"type": "tool_search_output", **ANSWERED, "execution": "client", "tools": []},
    {"type": "tool_search_output", "call_id": None, "execution": "server", "tools": []},
    {"type": "additional_tools", "role": "developer", "tools": []},
    {"type": "configuration_update", "reasoning": {"effort": "low"}},
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]},
    {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "Hm."}],
        "encrypted_content": "gAAAA",
    },
    {"type": "compaction", "encrypted_content": "gAAAA"},
    {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA", "created_by": "someone"},
    {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "iVBORw0KGgo="},
    {
        "type": "code_interpreter_call",
        "id": "ci_1",
        "status": "completed",
        "code": "1",
        "container_id": "cntr_1",
        "outputs": [{"type": "logs", "logs": "1"}],
    },
    {"type": "local_shell_call", **CALLED, "action": {"type": "exec", "command": ["ls"], "env": {}}},
    {"type": "local_shell_call_output", "id": "call_1", "output": '{"stdout": "a"}'},
    {"type": "shell_call", **CALLED, "action": {"commands": ["ls"]}, "environment": {"type": "local"}},
    {
        "type": "shell_call_output",
        **ANSWERED,
        "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
        "max_output_length": 100,
    },
    {"type": "apply_patch_call", **CALLED, "operation": {"type": "create_file", "path": "a", "diff": "+b"}},
    {"type": "apply_patch_call_output", **ANSWERED, "output": "done"},
    {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": [{"name": "f", "input_schema": {}}]},
    {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "f", "arguments": "{}"},
    {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
    {"type": "mcp_call", "id": "mcp_1", "server_label": "s", "name": "f", "arguments": "{}", "output": "4"},
    {"type": "custom_tool_call", "call_id": "call_1", "name": "sh", "input": "ls"},
    {"type": "custom_tool_call_output", "call_id": "call_1", "output": "a"},
    {"type": "compaction_trigger"},
    {"type": "item_reference", "id": "msg_1"},
    {"id": "msg_1"},
    {"type": "program", "id": "p_1", "call_id": "call_1", "code": "1", "fingerprint": "seal"},
    {"type": "program_output", "id": "po_1", "call_id": "call_1", "result": "1", "status": "completed"},
]


def types_of(kind: Any) -> set[str | None]:
    """The values that an item's type declares for `type`; None where it may be left out."""
    declared = get_type_hints(kind)["type"]
    literals = [get_args(part) for part in (declared, *get_args(declared))]
    given: set[str | None] = {value for values in literals for value in values if isinstance(value, str)}
    return given if "type" in kind.__required_keys__ else {*given, None}


def test_there_is_an_item_of_every_type() -> None:
    declared = {name for kind in get_args(ResponseInputItemParam) for name in types_of(kind)}
    assert {item.get("type") for item in ITEMS} == declared


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.get("type", "untyped"))
def test_it_is_read_and_comes_back_equal(item: dict[str, Any]) -> None:
    TypeAdapter[Any](ResponseInputItemParam).validate_python(item)
    message = codec(RESPONSES).read(item)
    assert codec(RESPONSES).write([message]) == [item]
    assert message.payload == item


@pytest.mark.parametrize("wire", [CHAT, ANTHROPIC])
@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.get("type", "untyped"))
def test_other_apis_hear_of_it_what_they_can(item: dict[str, Any], wire: str) -> None:
    message = codec(RESPONSES).read(item)
    written = codec(wire).sendable(codec(wire).write([message], unanswered=message.calls))
    again = [codec(wire).read(one) for one in written]
    assert {call for one in again for call in one.calls} == set(message.calls)
    assert {call for one in again for call in one.answers} == {*message.calls, *message.answers}
