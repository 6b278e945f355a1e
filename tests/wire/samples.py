"""Each kind of item and of part that the APIs take, and the words in it that a reader must find again."""

from __future__ import annotations

from typing import Any

from hitherto.core.log.message import ANTHROPIC, CHAT, RESPONSES, Payload
from tests.wire.items import PNG

Sample = tuple[list[Payload], str]
"""Items that make sense together only, such as a call and its result, and their words."""

DATA = f"data:image/png;base64,{PNG}"
LINK = "https://kayak.example"
IMAGE = {"type": "base64", "media_type": "image/png", "data": PNG}
PDF = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjQKJcfs"}
NAMED_PDF = {"filename": "kayak.pdf", "file_data": f"data:application/pdf;base64,{PDF['data']}"}
SOUND = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
GIVEN = '{"what": "kayak"}'


def _of(kind: str, **fields: Any) -> Payload:
    return {"type": kind, **fields}


def _text(words: str, kind: str = "text", **fields: Any) -> Payload:
    return _of(kind, text=words, **fields)


def _user(*content: Payload) -> list[Payload]:
    return [{"role": "user", "content": [*content]}]


def _answer(*content: Payload) -> list[Payload]:
    return [{"role": "assistant", "content": [*content]}]


def _chat(**fields: Any) -> Payload:
    """The assistant's message of chat, without content."""
    return {"role": "assistant", "content": None, **fields}


def _done(kind: str, id: str, **fields: Any) -> Payload:
    """A tool that ran at OpenAI, with what came of it."""
    return _of(kind, id=id, status="completed", **fields)


def _called(kind: str, call: str, made: Payload, **answer: Any) -> list[Payload]:
    """A call of Responses and its result."""
    return [_of(f"{kind}_call", call_id=call, **made), _of(f"{kind}_call_output", call_id=call, **answer)]


def _used(call: str, *content: Payload) -> list[Payload]:
    """A call of Anthropic's and its result."""
    made = _of("tool_use", id=call, name="rent", input={"what": "kayak"})
    return [*_answer(made), *_user(_of("tool_result", tool_use_id=call, content=[*content]))]


def _ran(name: str, given: Payload, content: Any, *, result: str = "") -> list[Payload]:
    """A tool that ran at Anthropic, in the middle of an answer."""
    call = f"srvtoolu_{name}"
    made = _of("server_tool_use", id=call, name=name, input=given)
    found = _of(result or f"{name}_tool_result", tool_use_id=call, content=content)
    return _answer(made, found, _text("That is what I found."))


_CITED = {"title": "Kayaking", "url": LINK}
_FUNCTION = {"name": "rent", "arguments": GIVEN}
_PRINTED = {"stdout": "paddle", "stderr": "", "return_code": 0, "content": []}
_LORE = _of("search_result", source=LINK, title="Kayaking", content=[_text("Kayaks float.")])
_TOOLS = [{"name": "rent", "description": "Rents a boat.", "input_schema": {"type": "object"}}]
_EXIT = {"stdout": "paddle", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}

SAMPLES: dict[str, dict[str, Sample]] = {
    CHAT: {
        "system": ([{"role": "system", "content": "Be kind."}], ""),
        "developer": ([{"role": "developer", "content": [_text("Be brief.")]}], ""),
        "name": ([{"role": "user", "name": "Ilsabet", "content": "What do I bring?"}], "Ilsabet bring"),
        "text": (_user(_text("The kayak is teal.")), "kayak teal"),
        "image_url": (
            _user(_text("My kayak."), _of("image_url", image_url={"url": DATA, "detail": "low"})),
            "kayak",
        ),
        "image_url, a link": (_user(_of("image_url", image_url={"url": LINK})), ""),
        "input_audio": (
            _user(_text("Listen to the kayak."), SOUND),
            "kayak [audio]",
        ),
        "file": (_user(_of("file", file=NAMED_PDF)), "kayak"),
        "file, an id": (_user(_of("file", file={"file_id": "file-1"})), ""),
        "answer": (_answer(_text("A teal kayak.")), "kayak"),
        "refusal": (_answer(_of("refusal", refusal="No kayak, sorry.")), "kayak"),
        "refusal, a field": ([_chat(refusal="No kayak, sorry.")], "kayak"),
        "audio": ([_chat(audio={"id": "audio_1", "transcript": "The kayak left."})], "kayak"),
        "annotations": (
            [
                {
                    "role": "assistant",
                    "content": "See there.",
                    "annotations": [_of("url_citation", url_citation={**_CITED, "start_index": 0, "end_index": 9})],
                }
            ],
            f"Kayaking {LINK}",
        ),
        "function": (
            [
                _chat(tool_calls=[_of("function", id="call_100", function=_FUNCTION)]),
                {"role": "tool", "tool_call_id": "call_100", "content": "a paddle"},
            ],
            "rent kayak paddle",
        ),
        "custom": (
            [
                _chat(tool_calls=[_of("custom", id="call_101", custom={"name": "rent", "input": "kayak"})]),
                {"role": "tool", "tool_call_id": "call_101", "content": [_text("a paddle")]},
            ],
            "rent kayak paddle",
        ),
        "function_call": (
            [_chat(function_call=_FUNCTION), {"role": "function", "name": "rent", "content": "a paddle"}],
            "rent kayak paddle",
        ),
        "later part": (_user(_of("hologram", hologram={"shows": "a kayak"})), "kayak"),
        "later call": (
            [
                _chat(tool_calls=[_of("hologram", id="call_102", hologram={"shows": "a kayak"})]),
                {"role": "tool", "tool_call_id": "call_102", "content": "a paddle"},
            ],
            "hologram kayak paddle",
        ),
    },
    RESPONSES: {
        "later part": (_user(_of("input_hologram", hologram={"shows": "a kayak"})), "kayak"),
        "later call": (
            _called("hologram", "call_103", {"shows": "a kayak"}, output="a paddle"),
            "hologram kayak paddle",
        ),
        "later tool": ([_of("hologram", id="hg_1", shows={"what": "a kayak"})], "kayak"),
        "system": ([{"role": "system", "content": "Be kind."}], ""),
        "developer": ([_of("message", role="developer", content=[_text("Be brief.", "input_text")])], ""),
        "message": ([_of("message", role="user", content="The kayak.")], "kayak"),
        "input_text": (_user(_text("The kayak.", "input_text")), "kayak"),
        "input_image": (
            _user(_text("The kayak.", "input_text"), _of("input_image", detail="low", image_url=DATA)),
            "kayak",
        ),
        "input_image, an id": (_user(_of("input_image", detail="auto", file_id="file-1")), ""),
        "input_audio": (_user(_text("Listen to the kayak.", "input_text"), SOUND), "kayak [audio]"),
        "function_call, a sound": (_called("function", "call_109", _FUNCTION, output=[SOUND]), "rent kayak [audio]"),
        "input_file": (_user(_of("input_file", **NAMED_PDF)), "kayak"),
        "input_file, an id": (_user(_of("input_file", file_id="file-1")), ""),
        "answer": ([{"role": "assistant", "content": "A teal kayak."}], "kayak"),
        "output_text": (
            _answer(
                _text(
                    "See there.", "output_text", annotations=[_of("url_citation", **_CITED, start_index=0, end_index=9)]
                )
            ),
            f"Kayaking {LINK}",
        ),
        "refusal": (_answer(_of("refusal", refusal="No kayak.")), "kayak"),
        "reasoning": (
            [
                _of("reasoning", id="rs_1", summary=[_text("The heron?", "summary_text")], encrypted_content="gAAA"),
                _done(
                    "message",
                    "msg_1",
                    role="assistant",
                    content=[
                        _text("A teal kayak.", "output_text", annotations=[]),
                        _of("refusal", refusal="No paddle."),
                    ],
                ),
            ],
            "kayak paddle",
        ),
        "function_call": (
            _called("function", "call_100", {"id": "fc_1", **_FUNCTION}, output="a paddle"),
            "rent kayak paddle",
        ),
        "function_call, an image": (
            _called("function", "call_101", _FUNCTION, output=[_of("input_image", image_url=DATA, detail="auto")]),
            "rent kayak",
        ),
        "function_call_output": ([_of("function_call_output", call_id=None, name="rent", output="a paddle")], "paddle"),
        "custom_tool_call": (
            _called("custom_tool", "call_102", {"name": "rent", "input": "kayak"}, output="a paddle"),
            "rent kayak paddle",
        ),
        "computer_call": (
            _called(
                "computer",
                "call_103",
                {
                    "id": "cu_1",
                    "status": "completed",
                    "action": {"type": "type", "text": "kayak"},
                    "pending_safety_checks": [],
                },
                output={"type": "computer_screenshot", "image_url": DATA},
            ),
            "kayak",
        ),
        "shell_call": (
            _called("shell", "call_104", {"action": {"commands": ["ls kayak"]}}, output=[_EXIT]),
            "kayak paddle",
        ),
        "local_shell_call": (
            [
                _done(
                    "local_shell_call",
                    "lsh_1",
                    call_id="call_105",
                    action={"type": "exec", "command": ["ls", "kayak"], "env": {}},
                ),
                _of("local_shell_call_output", id="call_105", output="paddle"),
            ],
            "kayak paddle",
        ),
        "apply_patch_call": (
            _called(
                "apply_patch",
                "call_106",
                {
                    "operation": {"type": "create_file", "path": "kayak.py", "diff": "+paddle"},
                    "status": "completed",
                },
                status="completed",
                output="steered",
            ),
            "kayak.py paddle steered",
        ),
        "program": (
            [
                _of("program", id="p_1", call_id="call_107", code="kayak()", fingerprint="x"),
                _done("program_output", "p_2", call_id="call_107", result="paddle"),
            ],
            "kayak paddle",
        ),
        "file_search_call": (
            [
                _done(
                    "file_search_call",
                    "fs_1",
                    queries=["kayak"],
                    results=[
                        {
                            "file_id": "f_1",
                            "filename": "boats.md",
                            "text": "A paddle each.",
                            "score": 0.5,
                            "attributes": {"id": "b-7", "type": "list", "draft": True, "year": 2026},
                        }
                    ],
                )
            ],
            "kayak boats.md paddle b-7 list draft 2026",
        ),
        "web_search_call": (
            [
                _done(
                    "web_search_call",
                    "ws_1",
                    action={"type": "search", "query": "kayak", "sources": [{"type": "url", "url": LINK}]},
                )
            ],
            f"kayak {LINK}",
        ),
        "code_interpreter_call": (
            [
                _done(
                    "code_interpreter_call",
                    "ci_1",
                    container_id="ct_1",
                    code="print(kayak)",
                    outputs=[{"type": "logs", "logs": "paddle"}, {"type": "image", "url": DATA}],
                )
            ],
            "kayak paddle [image]",
        ),
        "image_generation_call": (
            [_done("image_generation_call", "ig_1", result=PNG * 30, revised_prompt="a kayak")],
            "kayak [image]",
        ),
        "mcp_call": (
            [_of("mcp_call", id="mcp_1", server_label="boats", **_FUNCTION, output="a paddle")],
            "boats rent kayak paddle",
        ),
        "mcp_list_tools": ([_of("mcp_list_tools", id="mcpl_1", server_label="boats", tools=_TOOLS)], "boats rent"),
        "mcp_approval_request": (
            [
                _of("mcp_approval_request", id="mcpr_1", server_label="boats", **_FUNCTION),
                _of("mcp_approval_response", approval_request_id="mcpr_1", approve=False, reason="Get a paddle."),
            ],
            "boats rent kayak denies paddle",
        ),
        "tool_search_call": (
            [
                _done("tool_search_call", "ts_1", call_id=None, execution="server", arguments={"query": "kayak"}),
                _of("tool_search_output", call_id=None, execution="server", tools=[]),
            ],
            "kayak",
        ),
        "tool_search_output": (
            [
                _of("tool_search_call", call_id="call_108", execution="client", arguments={"query": "kayak"}),
                _of("tool_search_output", call_id="call_108", execution="client", tools=[]),
            ],
            "kayak",
        ),
        "compaction": ([_of("compaction", id="cmp_1", encrypted_content="gAAA")], ""),
        "compaction_trigger": ([_of("compaction_trigger")], ""),
        "item_reference": ([_of("item_reference", id="msg_2")], ""),
        "additional_tools": ([_of("additional_tools", role="developer", tools=[])], ""),
        "configuration_update": ([_of("configuration_update", reasoning={"effort": "low"})], ""),
    },
    ANTHROPIC: {
        "later part": (_user(_of("hologram", shows={"what": "a kayak"})), "kayak"),
        "later tool": (_ran("hologram", {"what": "a kayak"}, {"shows": "a paddle"}), "hologram kayak paddle"),
        "text": (
            _answer(
                _text(
                    "See there.",
                    citations=[
                        _of("web_search_result_location", **_CITED, cited_text="Kayaks float.", encrypted_index="x")
                    ],
                )
            ),
            f"Kayaking {LINK} float",
        ),
        "image": (_user(_text("The kayak."), _of("image", source=IMAGE)), "kayak"),
        "image, a link": (_user(_of("image", source=_of("url", url=LINK))), ""),
        "document": (_user(_of("document", title="Kayaking", source=PDF)), "Kayaking"),
        "document, a link": (_user(_of("document", source=_of("url", url=LINK))), LINK),
        "document, a text": (
            _user(_of("document", source=_of("text", media_type="text/plain", data="The kayak."))),
            "kayak",
        ),
        "search_result": (_user(_LORE), f"Kayaking {LINK} float"),
        "container_upload": (_user(_of("container_upload", file_id="file_1")), ""),
        "thinking": (
            _answer(_of("thinking", thinking="The heron?", signature="c2ln"), _text("A teal kayak.")),
            "kayak",
        ),
        "redacted_thinking": (_answer(_of("redacted_thinking", data="c2ln"), _text("A teal kayak.")), "kayak"),
        "compaction, a beta": (_answer(_of("compaction", content="We rowed."), _text("A teal kayak.")), "kayak"),
        "fallback": (
            _answer(
                {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}, "trigger": {}},
                _text("A teal kayak."),
            ),
            "kayak",
        ),
        "tool_addition": (
            _answer(_of("tool_addition", tool=_of("tool_reference", tool_name="rent"))),
            "",
        ),
        "tool_removal": (
            _answer(_of("tool_removal", tool=_of("tool_reference", tool_name="rent"))),
            "",
        ),
        "mcp_tool_listing": (_answer(_of("mcp_tool_listing", mcp_server_name="boats", tools=_TOOLS)), "boats rent"),
        "tool_use": (
            _used("call_100", _text("a paddle"), _of("image", source=IMAGE), _of("document", source=PDF)),
            "rent kayak paddle",
        ),
        "tool_use, no result": (_used("call_101"), "rent kayak"),
        "tool_use, a search": (_used("call_102", _LORE), f"rent kayak Kayaking {LINK} float"),
        "browser_state": (
            _used("call_103", _of("browser_state", tabs=[{"title": "Paddles", "url": "u", "tab_id": "t"}])),
            "Paddles",
        ),
        "tool_reference": (_used("call_104", _of("tool_reference", tool_name="paddle")), "paddle"),
        "web_search_tool_result": (
            _ran(
                "web_search",
                {"query": "kayak"},
                [_of("web_search_result", title="Paddles", url=LINK, encrypted_content="x")],
            ),
            f"kayak Paddles {LINK}",
        ),
        "web_search_tool_result, nothing": (_ran("web_search", {"query": "kayak"}, []), "kayak"),
        "web_fetch_tool_result": (
            _ran(
                "web_fetch",
                {"url": LINK},
                _of(
                    "web_fetch_result",
                    url=LINK,
                    content=_of("document", title="Lore", source=_of("text", media_type="text/plain", data="a paddle")),
                ),
            ),
            f"{LINK} Lore paddle",
        ),
        "code_execution_tool_result": (
            _ran("code_execution", {"code": "kayak()"}, _of("code_execution_result", **_PRINTED)),
            "kayak paddle",
        ),
        "bash_code_execution_tool_result": (
            _ran("bash_code_execution", {"command": "kayak"}, _of("bash_code_execution_result", **_PRINTED)),
            "kayak paddle",
        ),
        "text_editor_code_execution_tool_result": (
            _ran(
                "text_editor_code_execution",
                {"command": "view", "path": "kayak.txt"},
                _of("text_editor_code_execution_view_result", file_type="text", content="paddle"),
            ),
            "kayak.txt paddle",
        ),
        "tool_search_tool_result": (
            _ran(
                "tool_search_tool_bm25",
                {"query": "kayak"},
                _of("tool_search_tool_search_result", tool_references=[_of("tool_reference", tool_name="paddle")]),
                result="tool_search_tool_result",
            ),
            "kayak paddle",
        ),
        "advisor_tool_result": (
            _ran("advisor", {"question": "kayak"}, _of("advisor_result", text="paddle")),
            "kayak paddle",
        ),
        "mcp_tool_result": (
            _answer(
                _of("mcp_tool_use", id="mcptoolu_1", name="rent", input={"what": "kayak"}, server_name="boats"),
                _of("mcp_tool_result", tool_use_id="mcptoolu_1", is_error=False, content=[_text("a paddle")]),
                _text("That is what I found."),
            ),
            "boats rent kayak paddle",
        ),
    },
}

UNREAD = {
    *("later part", "later call", "later tool"),
    *("compaction, a beta", "fallback", "tool_addition", "tool_removal", "mcp_tool_listing"),
    *("advisor_tool_result", "mcp_tool_result"),
}
"""Samples that the strict reader does not know: of a later API, and what Anthropic takes only behind a beta."""
