"""An item of each kind that the APIs' SDKs know, and the words in it that a reader must find again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin

import typing_extensions
from anthropic.types.beta.beta_content_block_param import BetaContentBlockParam
from anthropic.types.tool_result_block_param import Content as AnthropicResult
from openai.types.chat.chat_completion_content_part_param import ChatCompletionContentPartParam
from openai.types.responses.response_input_content_param import ResponseInputContentParam
from openai.types.responses.response_input_item_param import ResponseInputItemParam
from openai.types.responses.response_output_message_param import Content as ResponsesAnswer
from pydantic import BaseModel

from hitherto.core.log.message import ANTHROPIC, CHAT, RESPONSES, Payload

PDF = "JVBERi0xLjQKJcfs"
PNG = "iVBORw0KGgo="


def known(wire: str) -> set[str]:
    """The kinds that the SDK's types name: of items, of parts, of blocks."""
    unions: dict[str, tuple[Any, ...]] = {
        CHAT: (ChatCompletionContentPartParam,),
        RESPONSES: (ResponseInputItemParam, ResponseInputContentParam, ResponsesAnswer),
        ANTHROPIC: (BetaContentBlockParam, AnthropicResult),
    }
    return {kind for union in unions[wire] for kind in _kinds(union)}


def _kinds(union: Any) -> Iterator[str]:
    for member in _members(union):
        if issubclass(member, BaseModel):
            kind: Any = member.model_fields["type"].annotation
        else:
            kind = typing_extensions.get_type_hints(member).get("type")
        while get_origin(kind) in (Required, NotRequired, Annotated, Union):
            kind = get_args(kind)[0]
        yield from get_args(kind) if get_origin(kind) is Literal else ()


def _members(union: Any) -> Iterator[Any]:
    if get_origin(union) is Annotated:
        yield from _members(get_args(union)[0])
    elif get_args(union):
        for member in get_args(union):
            yield from _members(member)
    else:
        yield union


def _user(*parts: Payload) -> list[Payload]:
    return [{"role": "user", "content": [*parts]}]


def _answer(*parts: Payload) -> list[Payload]:
    return [{"role": "assistant", "content": [*parts]}]


def _called(call: Payload, result: Payload) -> list[Payload]:
    return [call, result]


def _used(name: str, given: Payload, *content: Payload) -> list[Payload]:
    """A call for Anthropic with its result."""
    return [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": name, "input": given}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": [*content]}]},
    ]


def _ran(name: str, given: Payload, result: Payload, *, kind: str = "server_tool_use") -> list[Payload]:
    """A tool that ran at Anthropic, in the middle of an answer."""
    call = {"type": kind, "id": "srvtoolu_1", "name": name, "input": given}
    call |= {"server_name": "weather"} if kind == "mcp_tool_use" else {}
    return _answer(call, {"tool_use_id": "srvtoolu_1", **result}, {"type": "text", "text": "That is what I found."})


Sample = tuple[list[Payload], tuple[str, ...]]
"""The messages that an item comes in, and the words of it."""

SAMPLES: dict[str, dict[str, Sample]] = {
    CHAT: {
        "text": (_user({"type": "text", "text": "The kayak is teal."}), ("kayak", "teal")),
        "image_url": (
            _user(
                {"type": "text", "text": "My kayak."},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
            ),
            ("kayak",),
        ),
        "input_audio": (
            _user(
                {"type": "text", "text": "Listen to the kayak."},
                {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
            ),
            ("kayak",),
        ),
        "file": (
            _user(
                {"type": "file", "file": {"filename": "kayak.pdf", "file_data": f"data:application/pdf;base64,{PDF}"}}
            ),
            ("kayak",),
        ),
        "refusal": ([{"role": "assistant", "content": None, "refusal": "No kayak, sorry."}], ("kayak",)),
        "audio": (
            [{"role": "assistant", "content": None, "audio": {"id": "audio_1", "transcript": "The kayak left."}}],
            ("kayak",),
        ),
        "name": ([{"role": "user", "name": "Ilsabet", "content": "What do I bring?"}], ("Ilsabet", "bring")),
        "annotations": (
            [
                {
                    "role": "assistant",
                    "content": "See there.",
                    "annotations": [
                        {
                            "type": "url_citation",
                            "url_citation": {"title": "Kayak lore", "url": "https://kayak.example", "start_index": 0},
                        }
                    ],
                }
            ],
            ("Kayak lore", "https://kayak.example"),
        ),
    },
    RESPONSES: {
        "message": ([{"type": "message", "role": "user", "content": "The kayak."}], ("kayak",)),
        "input_text": (_user({"type": "input_text", "text": "The kayak."}), ("kayak",)),
        "input_image": (
            _user(
                {"type": "input_text", "text": "The kayak."},
                {"type": "input_image", "detail": "auto", "image_url": f"data:image/png;base64,{PNG}"},
            ),
            ("kayak",),
        ),
        "input_file": (
            _user({"type": "input_file", "filename": "kayak.pdf", "file_data": f"data:application/pdf;base64,{PDF}"}),
            ("kayak",),
        ),
        "output_text": (
            _answer(
                {
                    "type": "output_text",
                    "text": "See there.",
                    "annotations": [
                        {
                            "type": "url_citation",
                            "title": "Kayak lore",
                            "url": "https://kayak.example",
                            "start_index": 0,
                        }
                    ],
                }
            ),
            ("Kayak lore", "https://kayak.example"),
        ),
        "refusal": (_answer({"type": "refusal", "refusal": "No kayak."}), ("kayak",)),
        "function_call": (
            _called(
                {"type": "function_call", "call_id": "c1", "name": "rent", "arguments": '{"what": "kayak"}'},
                {"type": "function_call_output", "call_id": "c1", "output": "a paddle"},
            ),
            ("rent", "kayak", "paddle"),
        ),
        "custom_tool_call": (
            _called(
                {"type": "custom_tool_call", "call_id": "c1", "name": "rent", "input": "kayak"},
                {"type": "custom_tool_call_output", "call_id": "c1", "output": "a paddle"},
            ),
            ("rent", "kayak", "paddle"),
        ),
        "computer_call": (
            _called(
                {
                    "type": "computer_call",
                    "call_id": "c1",
                    "id": "cu_1",
                    "action": {"type": "type", "text": "kayak"},
                    "pending_safety_checks": [],
                    "status": "completed",
                },
                {
                    "type": "computer_call_output",
                    "call_id": "c1",
                    "output": {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{PNG}"},
                },
            ),
            ("kayak",),
        ),
        "shell_call": (
            _called(
                {"type": "shell_call", "call_id": "c1", "action": {"commands": ["ls kayak"]}},
                {
                    "type": "shell_call_output",
                    "call_id": "c1",
                    "output": [{"stdout": "paddle", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
                },
            ),
            ("kayak", "paddle"),
        ),
        "local_shell_call": (
            _called(
                {
                    "type": "local_shell_call",
                    "id": "ls_1",
                    "call_id": "c1",
                    "action": {"type": "exec", "command": ["ls", "kayak"], "env": {}},
                    "status": "completed",
                },
                {"type": "local_shell_call_output", "id": "c1", "output": "paddle"},
            ),
            ("kayak", "paddle"),
        ),
        "apply_patch_call": (
            _called(
                {
                    "type": "apply_patch_call",
                    "call_id": "c1",
                    "operation": {"type": "create_file", "path": "kayak.py", "diff": "+paddle"},
                    "status": "completed",
                },
                {"type": "apply_patch_call_output", "call_id": "c1", "status": "completed", "output": "steered"},
            ),
            ("kayak.py", "paddle", "steered"),
        ),
        "program": (
            _called(
                {"type": "program", "id": "p_1", "call_id": "c1", "code": "kayak()", "fingerprint": "x"},
                {
                    "type": "program_output",
                    "id": "p_2",
                    "call_id": "c1",
                    "result": "paddle",
                    "status": "completed",
                },
            ),
            ("kayak", "paddle"),
        ),
        "file_search_call": (
            [
                {
                    "type": "file_search_call",
                    "id": "fs_1",
                    "queries": ["kayak"],
                    "results": [{"file_id": "f_1", "filename": "boats.md", "text": "A paddle each.", "score": 0.5}],
                    "status": "completed",
                }
            ],
            ("kayak", "boats.md", "paddle"),
        ),
        "web_search_call": (
            [
                {
                    "type": "web_search_call",
                    "id": "ws_1",
                    "action": {
                        "type": "search",
                        "query": "kayak",
                        "sources": [{"type": "url", "url": "https://paddle.example"}],
                    },
                    "status": "completed",
                }
            ],
            ("kayak", "https://paddle.example"),
        ),
        "code_interpreter_call": (
            [
                {
                    "type": "code_interpreter_call",
                    "id": "ci_1",
                    "container_id": "ct_1",
                    "code": "print(kayak)",
                    "outputs": [{"type": "logs", "logs": "paddle"}],
                    "status": "completed",
                }
            ],
            ("kayak", "paddle"),
        ),
        "image_generation_call": (
            [
                {
                    "type": "image_generation_call",
                    "id": "ig_1",
                    "result": PNG * 30,
                    "revised_prompt": "a kayak",
                    "status": "completed",
                }
            ],
            ("kayak",),
        ),
        "mcp_call": (
            [
                {
                    "type": "mcp_call",
                    "id": "mcp_1",
                    "server_label": "boats",
                    "name": "rent",
                    "arguments": '{"what": "kayak"}',
                    "output": "a paddle",
                }
            ],
            ("rent", "kayak", "paddle"),
        ),
        "tool_search_call": (
            [
                {
                    "type": "tool_search_call",
                    "id": "ts_1",
                    "call_id": None,
                    "execution": "server",
                    "arguments": {"query": "kayak"},
                    "status": "completed",
                }
            ],
            ("kayak",),
        ),
    },
    ANTHROPIC: {
        "text": (
            _answer(
                {
                    "type": "text",
                    "text": "See there.",
                    "citations": [
                        {
                            "type": "web_search_result_location",
                            "title": "Kayak lore",
                            "url": "https://kayak.example",
                            "cited_text": "Kayaks float.",
                            "encrypted_index": "x",
                        }
                    ],
                }
            ),
            ("Kayak lore", "https://kayak.example", "Kayaks float."),
        ),
        "image": (
            _user(
                {"type": "text", "text": "The kayak."},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
            ),
            ("kayak",),
        ),
        "document": (
            _user(
                {
                    "type": "document",
                    "title": "Kayak manual",
                    "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
                }
            ),
            ("Kayak manual",),
        ),
        "search_result": (
            _user(
                {
                    "type": "search_result",
                    "source": "https://kayak.example",
                    "title": "Kayak lore",
                    "content": [{"type": "text", "text": "Kayaks float."}],
                }
            ),
            ("Kayak lore", "https://kayak.example", "Kayaks float."),
        ),
        "tool_use": (
            _used("rent", {"what": "kayak"}, {"type": "text", "text": "a paddle"}),
            ("rent", "kayak", "paddle"),
        ),
        "browser_state": (
            _used("browse", {"what": "kayak"}, {"type": "browser_state", "tabs": [{"title": "Paddles", "url": "u"}]}),
            ("kayak", "Paddles"),
        ),
        "tool_reference": (
            _used("find", {"what": "kayak"}, {"type": "tool_reference", "tool_name": "paddle"}),
            ("kayak", "paddle"),
        ),
        "web_search_tool_result": (
            _ran(
                "web_search",
                {"query": "kayak"},
                {
                    "type": "web_search_tool_result",
                    "content": [
                        {
                            "type": "web_search_result",
                            "title": "Paddles",
                            "url": "https://p.example",
                            "encrypted_content": "x",
                        }
                    ],
                },
            ),
            ("kayak", "Paddles", "https://p.example"),
        ),
        "web_fetch_tool_result": (
            _ran(
                "web_fetch",
                {"url": "https://kayak.example"},
                {
                    "type": "web_fetch_tool_result",
                    "content": {
                        "type": "web_fetch_result",
                        "url": "https://kayak.example",
                        "content": {
                            "type": "document",
                            "title": "Lore",
                            "source": {"type": "text", "media_type": "text/plain", "data": "a paddle"},
                        },
                    },
                },
            ),
            ("https://kayak.example", "Lore", "paddle"),
        ),
        "code_execution_tool_result": (
            _ran(
                "code_execution",
                {"code": "kayak()"},
                {
                    "type": "code_execution_tool_result",
                    "content": {
                        "type": "code_execution_result",
                        "stdout": "paddle",
                        "stderr": "",
                        "return_code": 0,
                        "content": [],
                    },
                },
            ),
            ("kayak", "paddle"),
        ),
        "bash_code_execution_tool_result": (
            _ran(
                "bash_code_execution",
                {"command": "kayak"},
                {
                    "type": "bash_code_execution_tool_result",
                    "content": {
                        "type": "bash_code_execution_result",
                        "stdout": "paddle",
                        "stderr": "",
                        "return_code": 0,
                        "content": [],
                    },
                },
            ),
            ("kayak", "paddle"),
        ),
        "text_editor_code_execution_tool_result": (
            _ran(
                "text_editor_code_execution",
                {"command": "view", "path": "kayak.txt"},
                {
                    "type": "text_editor_code_execution_tool_result",
                    "content": {
                        "type": "text_editor_code_execution_view_result",
                        "file_type": "text",
                        "content": "paddle",
                    },
                },
            ),
            ("kayak.txt", "paddle"),
        ),
        "tool_search_tool_result": (
            _ran(
                "tool_search_tool_bm25",
                {"query": "kayak"},
                {
                    "type": "tool_search_tool_result",
                    "content": {
                        "type": "tool_search_tool_search_result",
                        "tool_references": [{"type": "tool_reference", "tool_name": "paddle"}],
                    },
                },
            ),
            ("kayak", "paddle"),
        ),
        "advisor_tool_result": (
            _ran(
                "advisor",
                {"question": "kayak"},
                {"type": "advisor_tool_result", "content": {"type": "advisor_result", "text": "paddle"}},
            ),
            ("kayak", "paddle"),
        ),
        "mcp_tool_result": (
            _ran(
                "rent",
                {"what": "kayak"},
                {"type": "mcp_tool_result", "is_error": False, "content": [{"type": "text", "text": "a paddle"}]},
                kind="mcp_tool_use",
            ),
            ("rent", "kayak", "paddle"),
        ),
    },
}

BESIDE: dict[str, set[str]] = {
    CHAT: set(),
    RESPONSES: {
        *("function_call_output", "custom_tool_call_output", "computer_call_output", "shell_call_output"),
        *("local_shell_call_output", "apply_patch_call_output", "program_output"),
    },
    ANTHROPIC: {"tool_result", "server_tool_use", "mcp_tool_use"},
}
"""Kinds that stand in the samples of others."""

SILENT: dict[str, set[str]] = {
    CHAT: set(),
    RESPONSES: {
        *("reasoning", "compaction", "compaction_trigger", "item_reference", "additional_tools"),
        *("configuration_update", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response"),
        "tool_search_output",
    },
    ANTHROPIC: {
        *("thinking", "redacted_thinking", "compaction", "container_upload", "fallback"),
        *("tool_addition", "tool_removal", "mcp_tool_listing"),
    },
}
"""Kinds without words of the conversation: thoughts, bookkeeping, and what only its API can read."""
