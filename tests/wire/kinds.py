"""One of each kind of item and of each kind of part that the APIs take, calls with their results."""

from __future__ import annotations

from typing import Any

from hitherto.core.log.message import ANTHROPIC, CHAT, RESPONSES, Payload
from tests.wire.items import PNG

Item = dict[str, Any]

DATA = f"data:image/png;base64,{PNG}"
LINK = "https://example.com/a.png"
SOURCE: Item = {"type": "base64", "media_type": "image/png", "data": PNG}
PDF: Item = {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}


def _text(words: str, kind: str = "text") -> Item:
    return {"type": kind, "text": words}


def _user(*content: Item) -> list[Item]:
    return [{"role": "user", "content": list(content)}]


def _answer(*content: Item) -> list[Item]:
    return [{"role": "assistant", "content": list(content)}]


def _chat_call(call: str, kind: str, **called: str) -> Item:
    return {"role": "assistant", "content": None, "tool_calls": [{"id": call, "type": kind, kind: called}]}


def _called(call: str, kind: str, made: Item, answer: Item) -> list[Item]:
    """A call of Responses and its result."""
    return [
        {"type": f"{kind}_call", "call_id": call, **made},
        {"type": f"{kind}_call_output", "call_id": call, **answer},
    ]


def _used(call: str, *content: Item) -> list[Item]:
    """A call of Anthropic's and its result."""
    made = {"type": "tool_use", "id": call, "name": "find", "input": {}}
    return [*_answer(made), *_user({"type": "tool_result", "tool_use_id": call, "content": list(content)})]


def _served(name: str, content: Any) -> list[Item]:
    """A tool that Anthropic runs itself."""
    made = {"type": "server_tool_use", "id": f"srvtoolu_{name}", "name": name, "input": {"query": "q"}}
    found = {"type": f"{name}_tool_result", "tool_use_id": f"srvtoolu_{name}", "content": content}
    return _answer(made, found, _text("Found."))


_FUNCTION = {"name": "find", "arguments": "{}"}
_EXIT: Item = {"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}

KINDS: dict[str, list[list[Payload]]] = {
    CHAT: [
        [{"role": "system", "content": "Be kind."}],
        [{"role": "developer", "content": [_text("Be brief.")]}],
        [{"role": "user", "content": "Hi.", "name": "Anna"}],
        _user(_text("See:"), {"type": "image_url", "image_url": {"url": DATA, "detail": "low"}}),
        _user({"type": "image_url", "image_url": {"url": LINK}}),
        _user({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}),
        _user({"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="}}),
        _user({"type": "file", "file": {"file_id": "file-1"}}),
        _answer(_text("Yes.")),
        _answer({"type": "refusal", "refusal": "No."}),
        [{"role": "assistant", "content": None, "refusal": "No."}],
        [{"role": "assistant", "content": None, "audio": {"id": "audio_1"}}],
        [_chat_call("call_100", "function", **_FUNCTION), {"role": "tool", "tool_call_id": "call_100", "content": "a"}],
        [
            _chat_call("call_101", "custom", name="run", input="ls"),
            {"role": "tool", "tool_call_id": "call_101", "content": [_text("b")]},
        ],
        [
            {"role": "assistant", "content": None, "function_call": _FUNCTION},
            {"role": "function", "name": "find", "content": "c"},
        ],
    ],
    RESPONSES: [
        [{"role": "system", "content": "Be kind."}],
        [{"type": "message", "role": "developer", "content": [_text("Be brief.", "input_text")]}],
        _user(_text("See:", "input_text"), {"type": "input_image", "image_url": DATA, "detail": "low"}),
        _user({"type": "input_image", "file_id": "file-1", "detail": "auto"}),
        _user({"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="}),
        _user({"type": "input_file", "file_id": "file-1"}),
        [{"role": "assistant", "content": "Yes."}],
        [
            {"type": "reasoning", "id": "rs_1", "summary": [_text("Hm.", "summary_text")], "encrypted_content": "gAAA"},
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [{**_text("Yes.", "output_text"), "annotations": []}, {"type": "refusal", "refusal": "No."}],
            },
        ],
        [
            {"type": "function_call", "id": "fc_1", "call_id": "call_100", **_FUNCTION},
            {
                "type": "function_call_output",
                "call_id": "call_100",
                "output": [{"type": "input_image", "image_url": DATA, "detail": "auto"}],
            },
        ],
        [
            {"type": "custom_tool_call", "call_id": "call_101", "name": "run", "input": "ls"},
            {"type": "custom_tool_call_output", "call_id": "call_101", "output": "b"},
        ],
        [{"type": "function_call_output", "call_id": None, "name": "find", "output": "c"}],
        [{"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"}],
        [{"type": "item_reference", "id": "msg_2"}],
        [{"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}}],
        [{"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["q"], "results": None}],
        [{"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": PNG}],
        [
            {
                "type": "code_interpreter_call",
                "id": "ci_1",
                "status": "completed",
                "code": "1",
                "container_id": "cntr_1",
                "outputs": [{"type": "logs", "logs": "1"}, {"type": "image", "url": LINK}],
            }
        ],
        [{"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": []}],
        [
            {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "find", "arguments": "{}"},
            {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
        ],
        [{"type": "mcp_call", "id": "mcp_1", "server_label": "s", "name": "find", "arguments": "{}", "output": "d"}],
        _called(
            "call_102",
            "computer",
            {"id": "cu_1", "status": "completed", "action": {"type": "wait"}, "pending_safety_checks": []},
            {"output": {"type": "computer_screenshot", "image_url": DATA}},
        ),
        _called("call_103", "shell", {"action": {"commands": ["ls"]}}, {"output": [_EXIT]}),
        _called(
            "call_104",
            "apply_patch",
            {"operation": {"type": "delete_file", "path": "a"}, "status": "completed"},
            {"status": "completed"},
        ),
        [
            {
                "type": "local_shell_call",
                "id": "lsh_1",
                "call_id": "call_105",
                "action": {"type": "exec", "command": ["ls"], "env": {}},
                "status": "completed",
            },
            {"type": "local_shell_call_output", "id": "call_105", "output": "e"},
        ],
        [
            {"type": "tool_search_call", "call_id": "call_106", "arguments": {}, "execution": "client"},
            {"type": "tool_search_output", "call_id": "call_106", "tools": [], "execution": "client"},
        ],
    ],
    ANTHROPIC: [
        _user(_text("See:"), {"type": "image", "source": SOURCE}),
        _user({"type": "image", "source": {"type": "url", "url": LINK}}),
        _user({"type": "document", "source": PDF, "title": "A"}),
        _user({"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}}),
        _user({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "A page."}}),
        _user({"type": "search_result", "source": LINK, "title": "A", "content": [_text("Found.")]}),
        _answer({"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}, _text("Yes.")),
        _answer({"type": "redacted_thinking", "data": "c2ln"}, _text("Yes.")),
        _used("call_100", _text("a"), {"type": "image", "source": SOURCE}, {"type": "document", "source": PDF}),
        _used("call_101", {"type": "search_result", "source": LINK, "title": "A", "content": [_text("Found.")]}),
        _used("call_102"),
        _served("web_search", []),
        _served(
            "code_execution",
            {"type": "code_execution_result", "stdout": "1", "stderr": "", "return_code": 0, "content": []},
        ),
    ],
}
"""Items that make sense together only, such as reasoning and what it led to, are one list."""
