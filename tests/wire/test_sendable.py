"""What is sent of items that an API sent, or took from somebody else, and refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from hitherto.core.log.message import ANTHROPIC, CHAT, RESPONSES, Payload, Wire
from hitherto.testing.requests import refusals
from hitherto.wire import codec, read, user
from hitherto.wire.sendable import safe_id
from tests.wire.conversations import Conversation, conversations
from tests.wire.items import ODD_ARGUMENTS

Item = dict[str, Any]
CITED: Item = {
    "type": "char_location",
    "cited_text": "Hi",
    "document_index": 0,
    "document_title": "A",
    "start_char_index": 0,
    "end_char_index": 2,
}
HI: Item = {"role": "user", "content": "Hi"}
HELLO: Item = {"role": "assistant", "content": "Hi"}
LONG = "call_" + "x" * 100


def call(wire: str, id: str, name: str = "find", arguments: str = "{}", **other: Any) -> Item:
    match wire:
        case "openai.chat":
            function = {"name": name, "arguments": arguments}
            return {"role": "assistant", "tool_calls": [{"id": id, "type": "function", "function": function, **other}]}
        case "anthropic":
            given = {"type": "tool_use", "id": id, "name": name, "input": {}, **other}
            return {"role": "assistant", "content": [given]}
        case _:
            return {"type": "function_call", "call_id": id, "name": name, "arguments": arguments, **other}


def result(wire: str, id: str) -> Item:
    match wire:
        case "openai.chat":
            return {"role": "tool", "tool_call_id": id, "content": "found"}
        case "anthropic":
            return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "found"}]}
        case _:
            return {"type": "function_call_output", "call_id": id, "output": "found"}


def request(wire: str, items: list[Item]) -> Item:
    return {"input" if wire == RESPONSES else "messages": [HI, *items]}


def said(*content: Item, role: str = "assistant", **other: Any) -> Item:
    return {"role": role, "content": list(content), **other}


def text(words: str, **other: Any) -> Item:
    return {"type": "text", "text": words, **other}


def output(words: str, **other: Any) -> Item:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": words, **other}]}


def searched(id: str) -> Item:
    return {"type": "web_search_call", "id": id, "status": "completed", "action": {"type": "search", "query": "q"}}


def custom(**other: Any) -> list[Item]:
    made = {"type": "custom_tool_call", "call_id": "c", "name": "run", "input": "ls", **other}
    return [made, {"type": "custom_tool_call_output", "call_id": "c", "output": "found"}]


def local_shell(id: str) -> list[Item]:
    action = {"type": "exec", "command": ["ls"], "env": {}}
    made = {"type": "local_shell_call", "id": "lsh_1", "call_id": id, "action": action, "status": "completed"}
    return [made, {"type": "local_shell_call_output", "id": id, "output": "found"}]


FUNCTION: Item = {"role": "assistant", "content": None, "function_call": {"name": "find", "arguments": "{}"}}
THOUGHT: Item = {"type": "reasoning", "id": "rs_1", "summary": []}
SIGNED: Item = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}

MENDED: list[tuple[Wire, list[Item], list[Item]]] = [
    (
        CHAT,
        [{"role": "assistant", "content": "Hi", "refusal": None, "annotations": [], "parsed": {"a": 1}}],
        [{"role": "assistant", "content": "Hi"}],
    ),
    (
        CHAT,
        [{"role": "assistant", "content": None, "audio": {"id": "a", "data": "AAAA", "expires_at": 1}}],
        [{"role": "assistant", "content": None, "audio": {"id": "a"}}],
    ),
    (CHAT, [{"role": "assistant", "content": None, "audio": {"id": "a", "transcript": "Hi"}}], [HELLO]),
    (CHAT, [said(text("Yes."), audio={"id": "a", "transcript": "Hi"})], [said(text("Yes."), text("Hi"))]),
    (CHAT, [{"role": "assistant", "content": None}, HI], [HI]),
    (CHAT, [said(text(""), text("Yes."))], [said(text("Yes."))]),
    (CHAT, [said(text(""), role="user")], [{"role": "user", "content": ""}]),
    (CHAT, [{**HI, "name": "Anna Maria"}], [{**HI, "name": "Anna_Maria"}]),
    (CHAT, [{**HI, "name": ""}], [HI]),
    (CHAT, [{**HI, "content": "half \ud83d"}], [{**HI, "content": "half \ufffd"}]),
    (CHAT, [call(CHAT, "c", index=0), result(CHAT, "c")], [call(CHAT, "c"), result(CHAT, "c")]),
    (
        CHAT,
        [FUNCTION, {"role": "function", "name": "find", "content": [text("a"), text("b")]}],
        [FUNCTION, {"role": "function", "name": "find", "content": "a\nb"}],
    ),
    (RESPONSES, custom(id="fc_1"), custom(id="ctc_fc_1")),
    (RESPONSES, [searched("call_1")], [searched("ws_call_1")]),
    (RESPONSES, local_shell(LONG), local_shell(safe_id(LONG, RESPONSES))),
    (RESPONSES, local_shell("a b"), local_shell("a_20_b")),
    (RESPONSES, [output("Hi", parsed={"a": 1}, logprobs=None)], [output("Hi")]),
    (RESPONSES, [{**output("Hi"), "id": "__fake_id__"}], [{**output("Hi"), "id": "msg___fake_id__"}]),
    (RESPONSES, [{**THOUGHT, "status": None, "content": None}, output("Hi")], [THOUGHT, output("Hi")]),
    (RESPONSES, [THOUGHT, said(type="message"), HI], [HI]),
    (ANTHROPIC, [{**HI, "name": "Anna Maria"}], [{**HI, "content": f"Anna Maria: {HI['content']}"}]),
    (ANTHROPIC, [{**said(text("Hi"), role="user"), "name": "Anna"}], [said(text("Anna: Hi"), role="user")]),
    (RESPONSES, [{**HI, "name": "Anna Maria"}], [{**HI, "content": f"Anna Maria: {HI['content']}"}]),
    (
        RESPONSES,
        [{**said({"type": "input_text", "text": "Hi"}, role="user"), "name": "Anna"}],
        [said({"type": "input_text", "text": "Anna: Hi"}, role="user")],
    ),
    (RESPONSES, [said(text("Hi"), role="user")], [said({"type": "input_text", "text": "Hi"}, role="user")]),
    (
        RESPONSES,
        [call(RESPONSES, "c", parsed_arguments={}), result(RESPONSES, "c")],
        [call(RESPONSES, "c"), result(RESPONSES, "c")],
    ),
    (ANTHROPIC, [said(text("Hi", parsed_output=None), id="msg_1", stop_reason="end_turn")], [said(text("Hi"))]),
    (ANTHROPIC, [said(text("Hi", citations=[{**CITED, "file_id": None}]))], [said(text("Hi", citations=[CITED]))]),
    (ANTHROPIC, [said(text(" "), text("Hi"))], [said(text("Hi"))]),
    (ANTHROPIC, [said(), HI], [HI]),
    (ANTHROPIC, [{"role": "user", "content": " \n"}], [{"role": "user", "content": "[empty message]"}]),
    (ANTHROPIC, [said(text("Hi"), SIGNED), HI], [said(text("Hi")), HI]),
    (ANTHROPIC, [said({**SIGNED, "signature": ""}, text("Hi"))], [said(text("Hi"))]),
    (
        ANTHROPIC,
        [call(ANTHROPIC, "c"), said(text("Look:"), *result(ANTHROPIC, "c")["content"], role="user")],
        [call(ANTHROPIC, "c"), said(*result(ANTHROPIC, "c")["content"], text("Look:"), role="user")],
    ),
    (
        ANTHROPIC,
        [call(ANTHROPIC, "c"), said({"type": "tool_result", "tool_use_id": "c", "is_error": True}, role="user")],
        [
            call(ANTHROPIC, "c"),
            said({"type": "tool_result", "tool_use_id": "c", "is_error": True, "content": "[error]"}, role="user"),
        ],
    ),
]


@pytest.mark.parametrize(("wire", "items", "sent"), MENDED)
def test_what_is_sent(wire: Wire, items: list[Payload], sent: list[Payload]) -> None:
    assert codec(wire).sendable(items) == sent
    assert refusals(request(wire, sent), wire=wire) == []


@pytest.mark.parametrize("wire", [CHAT, RESPONSES])
@pytest.mark.parametrize("given", ODD_ARGUMENTS)
def test_arguments_are_an_object(wire: Wire, given: str) -> None:
    items = codec(wire).sendable([call(wire, "c", arguments=given), result(wire, "c")])
    written = items[0] if wire == RESPONSES else items[0]["tool_calls"][0]["function"]
    assert refusals(request(wire, items), wire=wire) == []
    object_given = given in ("{}", '{"a": 1}')
    expected = json.loads(given) if object_given else {"arguments": given} if given.strip() else {}
    assert json.loads(written["arguments"]) == expected
    assert not object_given or written["arguments"] == given


BARE: list[tuple[Wire, list[Item]]] = [
    (
        CHAT,
        [
            {"role": "assistant", "tool_calls": [{"function": {"name": "find", "arguments": {"a": 1}}}]},
            {"role": "tool", "content": "found"},
        ],
    ),
    (
        RESPONSES,
        [
            {"type": "function_call", "name": "find", "arguments": {"a": 1}},
            {"type": "function_call_output", "output": "found"},
        ],
    ),
    (
        ANTHROPIC,
        [
            said({"type": "tool_use", "id": None, "name": "find", "input": '{"a": 1}'}),
            said({"type": "tool_result", "tool_use_id": "", "content": "found"}, role="user"),
        ],
    ),
]
"""A call without an id, its arguments in the form of another API, and its result."""


@pytest.mark.parametrize("to", [CHAT, RESPONSES, ANTHROPIC])
@pytest.mark.parametrize(("wire", "items"), BARE)
def test_a_call_without_an_id_and_arguments_in_another_form(wire: Wire, items: list[Item], to: Wire) -> None:
    logged = [codec(wire).read(item) for item in items]
    assert [one.payload for one in logged] == items
    used: dict[tuple[str, str], int] = {}
    sent = [one for _ in range(2) for one in codec(to).distinct(codec(to).sendable(codec(to).write(logged)), used)]
    assert refusals(request(to, sent), wire=to) == []
    assert json.dumps(sent).replace("\\", "").count('{"a":') == 2


@pytest.mark.parametrize("wire", [CHAT, RESPONSES, ANTHROPIC])
@pytest.mark.parametrize("id", [LONG, "call_" + "y" * 100, "functions.find:0", "a b", "é"])
def test_ids_and_names_are_what_the_api_takes(wire: Wire, id: str) -> None:
    items = codec(wire).sendable([call(wire, id, "search the.web" * 15), result(wire, id)])
    assert refusals(request(wire, items), wire=wire) == []
    others = codec(wire).sendable([call(wire, f"{id}z"), result(wire, f"{id}z")])
    assert refusals(request(wire, [*items, *others]), wire=wire) == [], "another id stays another"


@pytest.mark.parametrize("wire", [CHAT, RESPONSES, ANTHROPIC])
@pytest.mark.parametrize("id", ["call_0", "x" * 40])
def test_an_id_that_was_used_before_in_the_request_gets_a_number(wire: Wire, id: str) -> None:
    used: dict[tuple[str, str], int] = {}
    sent: list[Payload] = []
    for _ in range(3):
        sent += codec(wire).distinct([call(wire, id), call(wire, "b"), result(wire, "b"), result(wire, id)], used)
    for turn, number in enumerate(("", "_2", "_3")):
        made, other, answered, first = sent[4 * turn : 4 * turn + 4]
        assert (other, answered) == (call(wire, f"b{number}"), result(wire, f"b{number}"))
        own = f"{id[: 40 - len(number)] if wire == CHAT else id}{number}"
        assert (made, first) == (call(wire, own), result(wire, own))
    untouched = [call(wire, "other"), result(wire, "other")]
    assert codec(wire).distinct(untouched, used) is untouched


def test_an_item_of_responses_that_is_there_twice_has_not_the_id_of_the_first() -> None:
    search: Item = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    items = [THOUGHT, search, {**output("Hi"), "id": "msg_1"}]
    used: dict[tuple[str, str], int] = {}
    sent = [one for _ in range(3) for one in codec(RESPONSES).distinct(items, used)]
    assert [one.get("id") for one in sent] == [
        "rs_1",
        "ws_1",
        "msg_1",
        None,
        "ws_1_2",
        "msg_1_2",
        None,
        "ws_1_3",
        "msg_1_3",
    ]


@given(conversation=conversations())
def test_what_needs_no_mending_is_the_same(conversation: Conversation) -> None:
    for item in conversation.items:
        follows = [output("Yes.")] if item.get("type") == "reasoning" else []
        assert codec(conversation.wire).sendable([item, *follows])[0] is item


@pytest.mark.parametrize(
    ("wire", "item"),
    [
        (RESPONSES, {"type": "a_call_output", "call_id": "c", "output": {"type": ["string", "null"], "kind": "file"}}),
        (ANTHROPIC, {"role": "assistant", "content": [{"type": "text", "text": "See.", "citations": [0, "", "x"]}]}),
        (
            ANTHROPIC,
            {
                "role": "user",
                "content": [{"type": "image", "source": {"type": "url", "url": "https://x"}, "text": {"a": 1}}],
            },
        ),
    ],
)
def test_what_is_taken_can_be_sent(wire: Wire, item: Payload) -> None:
    message = read(item, wire)
    for to in (CHAT, RESPONSES, ANTHROPIC):
        codec(to).within_limits([message])
        codec(to).sendable(codec(to).write([user("Go on."), message]))
