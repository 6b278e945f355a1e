"""OpenAI chat completions: what is read, what it costs, and how a group is laid out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto.core.log.message import CHAT, Kind, Payload, Role, Wire
from hitherto.errors import InvalidMessage
from hitherto.testing.requests import refusals
from hitherto.tokens import counter_for
from hitherto.wire import Call, ChatFormat, assistant, codec, read, system, tool_result, user
from tests.wire.conversations import WIRES
from tests.wire.items import COUNTER, PNG, names, texts, words
from tests.wire.rules import assert_paired

chat = ChatFormat()


def function(call: str, name: str = "add", arguments: str = "{}") -> dict[str, Any]:
    return {"id": call, "type": "function", "function": {"name": name, "arguments": arguments}}


READ: list[tuple[dict[str, Any], Role, Kind, str]] = [
    ({"role": "system", "content": "Be kind."}, Role.SYSTEM, Kind.TEXT, "Be kind."),
    ({"role": "developer", "content": "Be kind."}, Role.SYSTEM, Kind.TEXT, "Be kind."),
    ({"role": "user", "content": "A\0\ud800"}, Role.USER, Kind.TEXT, "A\ufffd\ufffd"),
    ({"role": "user", "content": [{"type": "text", "text": " "}]}, Role.USER, Kind.TEXT, " "),
    ({"role": "assistant", "content": "Four."}, Role.ASSISTANT, Kind.TEXT, "Four."),
    ({"role": "assistant", "content": None, "refusal": "I cannot."}, Role.ASSISTANT, Kind.TEXT, "I cannot."),
    ({"role": "assistant", "audio": {"id": "audio_1"}}, Role.ASSISTANT, Kind.TEXT, "[audio]"),
    (
        {"role": "assistant", "content": "Let me see.", "tool_calls": [function("c1", arguments='{"a": 2}')]},
        Role.ASSISTANT,
        Kind.TOOL_CALL,
        'Let me see.\n[calls add({"a": 2})]',
    ),
    (
        {"role": "assistant", "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "sh", "input": "ls"}}]},
        Role.ASSISTANT,
        Kind.TOOL_CALL,
        "[calls sh(ls)]",
    ),
    ({"role": "tool", "tool_call_id": "c1", "content": "4"}, Role.TOOL, Kind.TOOL_RESULT, "4"),
    ({"role": "function", "name": "add", "content": None}, Role.TOOL, Kind.TOOL_RESULT, ""),
    (
        {"role": "assistant", "content": "Four.", "reasoning_content": "Two\nand two."},
        Role.ASSISTANT,
        Kind.TEXT,
        "(thinking) Two\n(thinking) and two.\nFour.",
    ),
    ({"role": "assistant", "content": None, "reasoning": "Two."}, Role.ASSISTANT, Kind.TEXT, "(thinking) Two."),
]


@pytest.mark.parametrize(("item", "role", "kind", "text"), READ)
def test_what_is_read(item: dict[str, Any], role: Role, kind: Kind, text: str) -> None:
    message = read(item)
    assert (message.wire, message.role, message.kind, message.text) == (CHAT, role, kind, text)


def test_calls_and_answers_are_read_in_order() -> None:
    message = assistant(calls=[Call(id="c2", name="add"), Call(id="c1", name="mul")])
    assert (message.calls, message.tools) == (("c2", "c1"), ("add", "mul"))
    assert tool_result("c2", "4").answers == ("c2",)


def test_a_call_of_a_kind_that_is_not_known_is_sent_as_it_came() -> None:
    call = {"id": "c1", "type": "hologram", "hologram": {"shows": "a kayak"}}
    item = {"role": "assistant", "content": None, "tool_calls": [call]}
    assert chat.sendable(chat.write([read(item), tool_result("c1", "a")]))[0] == item
    (cut,) = chat.redacted(read(item), lambda _tool, _text: "gone", calls=True).payload["tool_calls"]
    function = {"name": "hologram", "arguments": '{"removed":"gone"}'}
    assert cut == {"id": "c1", "type": "function", "function": function}


def test_deprecated_function_calls_are_paired_by_name() -> None:
    call = read({"role": "assistant", "content": None, "function_call": {"name": "add", "arguments": "{}"}})
    result = read({"role": "function", "name": "add", "content": "4"})
    assert call.calls == result.answers == ("function-add",)
    placeholder = {"role": "function", "name": "add", "content": "[no result yet]"}
    assert chat.write([call], unanswered=call.calls) == [call.payload, placeholder]
    assert chat.write([call, result], unanswered=call.calls) == [call.payload, result.payload]


def test_the_constructors_make_chat_items() -> None:
    calls = [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a":2}'}}]
    parts = [{"type": "text", "text": "hello"}]
    assert user("hello").payload == {"role": "user", "content": "hello"}
    assert user(tuple(parts)).payload == {"role": "user", "content": parts}
    assert assistant("hi").payload == {"role": "assistant", "content": "hi"}
    made = assistant(calls=[Call(id="c1", name="add", arguments='{"a":2}')])
    assert made.payload == {"role": "assistant", "content": None, "tool_calls": calls}
    assert assistant("hi", calls=[Call(id="c1", name="add")]).text == "hi\n[calls add({})]"
    assert tool_result("c1", "4").payload == {"role": "tool", "tool_call_id": "c1", "content": "4"}
    assert system("Be kind.").payload == {"role": "system", "content": "Be kind."}
    with pytest.raises(InvalidMessage, match="needs content or calls"):
        assistant()


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"role": "assistant"}, "a chat assistant message needs content or tool_calls, and has neither"),
    ({"role": "assistant", "content": [], "tool_calls": [function("c")]}, "has an empty list as its content"),
    ({"role": "assistant", "tool_calls": "add"}, "needs tool_calls as a list, and has tool_calls='add'"),
    ({"role": "assistant", "tool_calls": ["add"]}, "has 'add' in its tool_calls"),
    (
        {"role": "assistant", "tool_calls": [{"id": 7}]},
        "a tool call needs id as a text that is not empty, and has id=7",
    ),
    ({"role": "assistant", "tool_calls": [{"id": "c"}]}, "a tool call needs function as an object, and has none"),
    ({"role": "assistant", "tool_calls": [function("c", name="")]}, "needs name as a text that is not empty"),
    (
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "add", "arguments": [2]}}]},
        r"needs arguments as an object, and has arguments=\[2\]",
    ),
    ({"role": "assistant", "tool_calls": [function("c"), function("c")]}, "makes the call 'c' twice"),
    ({"role": "assistant", "function_call": {"arguments": "{}"}}, "a function_call needs name"),
    ({"role": "assistant", "content": None, "refusal": 7}, "needs refusal as text, and has refusal=7"),
    ({"role": "tool", "tool_call_id": 7, "content": "4"}, "has tool_call_id=7"),
    ({"role": "tool", "tool_call_id": "c", "content": None}, "needs content as text or a list of parts"),
    ({"role": "function", "content": "4"}, "a chat function message needs name"),
    ({"role": "user", "content": [{"type": "image_url"}]}, "an image_url part of .* needs image_url as an object"),
    ({"role": "user", "content": [{"type": "image_url", "image_url": {}}]}, "needs url as text, and has none"),
    (
        {"role": "user", "content": [{"type": "tool_result"}]},
        "'tool_result', which only anthropic has; append it with wire=",
    ),
    ({"role": "user", "content": [{"type": "input_text"}]}, "'input_text', which only openai.responses has"),
]


@pytest.mark.parametrize(("item", "wrong"), WRONG)
def test_what_the_api_would_not_take_is_refused(item: dict[str, Any], wrong: str) -> None:
    with pytest.raises(InvalidMessage, match=wrong):
        chat.read(item)


def test_results_stand_behind_the_message_that_called() -> None:
    first, second = (
        assistant(calls=[Call(id="a", name="f"), Call(id="b", name="g")]),
        assistant(calls=[Call(id="c", name="h")]),
    )
    results = [tool_result(call, call) for call in ("c", "b")]
    items = chat.write([first, second, *results], unanswered=["a"])
    assert_paired(CHAT, items)
    placeholder = {"role": "tool", "tool_call_id": "a", "content": "[no result yet]"}
    assert items == [first.payload, results[1].payload, placeholder, second.payload, results[0].payload]


def test_a_result_without_its_call_is_written_as_it_is() -> None:
    assert chat.write([tool_result("gone", "4"), user("hello")]) == [
        {"role": "tool", "tool_call_id": "gone", "content": "4"},
        {"role": "user", "content": "hello"},
    ]


def test_several_groups_keep_their_order() -> None:
    call, result = assistant(calls=[Call(id="a", name="f")]), tool_result("a", "4")
    messages = [user("1"), call, result, assistant("2"), user("3")]
    assert chat.write(messages) == [message.payload for message in messages]
    assert chat.write([call, user("late?"), result]) == [call.payload, result.payload, user("late?").payload]


def test_an_id_used_again_belongs_to_the_newest_call() -> None:
    call, result = assistant(calls=[Call(id="a", name="f")]), tool_result("a", "4")
    again = assistant(calls=[Call(id="a", name="g")])
    assert chat.write([call, result, again, result]) == [message.payload for message in (call, result, again, result)]
    assert chat.write([call, again, result]) == [message.payload for message in (call, again, result)]


def test_a_second_result_for_a_call_is_left_apart() -> None:
    call, result = assistant(calls=[Call(id="a", name="f")]), tool_result("a", "4")
    hello = user("hello")
    assert chat.write([call, result, hello, result]) == [one.payload for one in (call, result, hello, result)]


def test_messages_that_say_something_with_their_calls_stay_apart() -> None:
    def says(text: str, call: str) -> dict[str, Any]:
        use = {"type": "tool_use", "id": call, "name": "f", "input": {}}
        return {"role": "assistant", "content": [{"type": "text", "text": text}, use]}

    written = chat.write([read(says("First.", "a")), read(says("Then.", "b")), tool_result("b", "4")])
    assert [item["content"] for item in written] == ["First.", "Then.", "4"]


def test_calls_that_were_items_become_one_message() -> None:
    items = [{"type": "function_call", "call_id": call, "name": "f", "arguments": "{}"} for call in ("a", "b")]
    (written,) = chat.write([read(item) for item in items])
    assert written == {"role": "assistant", "content": None, "tool_calls": [function("a", "f"), function("b", "f")]}


def test_a_function_call_is_answered_by_its_name() -> None:
    call = {"role": "assistant", "content": None, "function_call": {"name": "add", "arguments": "{}"}}
    asked = read(call)
    answer = {"role": "function", "name": "add", "content": "4"}
    assert chat.write([asked, tool_result(asked.calls[0], "4")]) == [call, answer]
    assert chat.write([asked], unanswered=asked.calls) == [call, {**answer, "content": "[no result yet]"}]


CALLS = [f"call_{number}" for number in range(300)]


@pytest.mark.parametrize(
    "made",
    [
        [{"role": "assistant", "content": "I look.", "tool_calls": [function(one) for one in CALLS]}],
        [{"type": "function_call", "call_id": one, "name": "add", "arguments": "{}"} for one in CALLS],
    ],
)
def test_more_calls_than_the_api_takes_in_a_message_become_several(made: list[Payload]) -> None:
    speakers = [read(item) for item in made]
    written = chat.write([*speakers, *(tool_result(one, "3") for one in CALLS)])
    assert refusals({"messages": written}, wire=CHAT) == []
    assert [len(item["tool_calls"]) for item in written if item["role"] == "assistant"] == [128, 128, 44]
    assert [item["tool_call_id"] for item in written if item["role"] == "tool"] == CALLS
    (waiting,) = chat.write(speakers)
    assert len(waiting["tool_calls"]) == 300, "their results go right after it"


def test_a_failed_tool_is_named_where_there_is_no_field_for_it() -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": "Out of range.", "is_error": True}
    message = read({"role": "user", "content": [result]})
    assert chat.write([message]) == [{"role": "tool", "tool_call_id": "t", "content": "[error] Out of range."}]


def formula(items: Sequence[Payload]) -> int:
    """OpenAI Cookbook, "How to count tokens with tiktoken", part 6, done with tokens instead of a model's name."""
    total = 3
    for item in items:
        total += 3 + sum(COUNTER.count(value) for value in item.values()) + ("name" in item)
    return total


plain = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "developer"]), "content": texts},
    optional={"name": names},
)


@given(items=st.lists(plain, max_size=4), instructions=st.lists(texts, max_size=2))
def test_text_costs_exactly_what_openai_documents(items: list[Payload], instructions: list[str]) -> None:
    request = chat.request(system=instructions, items=items, tools=[])
    counted = chat.framing + sum(chat.system_tokens(text, COUNTER) for text in instructions)
    counted += sum(chat.tokens(item, COUNTER) for item in items)
    assert counted == formula(request["messages"])


def test_the_cookbooks_own_example_costs_what_it_prints() -> None:
    examples = [
        ("You are a helpful, pattern-following assistant that translates corporate jargon into plain English.", None),
        ("New synergies will help drive top-line growth.", "example_user"),
    ]
    items = [{"role": "system", **({"name": name} if name else {}), "content": text} for text, name in examples]
    assert chat.tokens(items[0], COUNTER) == 3 + 1 + COUNTER.count(examples[0][0])
    assert chat.tokens(items[1], COUNTER) == 3 + 1 + COUNTER.count(examples[1][0]) + COUNTER.count("example_user") + 1


def test_an_image_costs_what_the_counter_says_and_not_its_bytes() -> None:
    def cost(**image: str) -> int:
        part = {"type": "image_url", "image_url": image}
        return chat.tokens({"role": "user", "content": [{"type": "text", "text": "What?"}, part]}, COUNTER)

    text = 3 + COUNTER.count("user") + COUNTER.count("What?")
    assert cost(url=f"data:image/png;base64,{PNG * 10_000}") == text + COUNTER.image_tokens
    assert cost(url="https://a.test/b.png", detail="high") == text + COUNTER.image_tokens
    assert cost(url="https://a.test/b.png", detail="low") == text + 85


def test_calls_cost_at_least_what_they_say() -> None:
    said = assistant(calls=[Call(id="call_1", name="add", arguments='{"a": 2, "b": 2}')])
    counted = chat.tokens(said.payload, COUNTER)
    assert counted >= 3 + sum(COUNTER.count(text) for text in ("assistant", "add", '{"a": 2, "b": 2}'))
    empty = chat.tokens({"role": "assistant", "content": "Four."}, COUNTER)
    fields: Payload = {"refusal": None, "annotations": [], "audio": None, "function_call": None, "tool_calls": None}
    assert chat.tokens({"role": "assistant", "content": "Four.", **fields}, COUNTER) == empty


@st.composite
def functions(draw: st.DrawFn) -> Payload:
    properties: Payload = {}
    for name in draw(st.lists(names, max_size=4, unique=True)):
        enum = draw(st.lists(words, max_size=20))
        properties[name] = {"type": "string", "description": draw(words), **({"enum": enum} if enum else {})}
    parameters = {"type": "object", "properties": properties}
    return {"name": draw(names), "description": draw(words), "parameters": parameters}


def tools_formula(tools: Sequence[Payload]) -> int:
    """The same page, part 7, with the figures that are highest among the models it lists."""
    total = 12
    for tool in tools:
        total += 10 + COUNTER.count(f"{tool['name']}:{tool['description'].removesuffix('.')}")
        for name, one in tool["parameters"]["properties"].items():
            enum = one.get("enum", [])
            total += 3 + COUNTER.count(f"{name}:string:{one['description'].removesuffix('.')}")
            total += sum(3 + COUNTER.count(value) for value in enum) - (3 if enum else 0)
        total += 3 if tool["parameters"]["properties"] else 0
    return total


@given(tools=st.lists(functions(), min_size=1, max_size=3))
def test_tools_cost_no_less_than_openais_formula(tools: list[Payload]) -> None:
    counted = chat.tools_tokens([{"type": "function", "function": tool} for tool in tools], COUNTER)
    assert counted >= tools_formula(tools)


@pytest.mark.parametrize("to", WIRES)
def test_without_a_tokenizer_tools_cost_as_chat_templates_print_them(to: Wire) -> None:
    fields = {f"field_{at}": {"type": "string", "enum": ["a", "b"]} for at in range(20)}
    tool = {"name": "add", "parameters": {"type": "object", "properties": fields}}
    unknown = counter_for("llama-3.1-8b")
    assert codec(to).tools_tokens([tool], unknown) >= unknown.count(json.dumps(tool, indent=4))


def test_the_request_has_what_there_is() -> None:
    items = [{"role": "user", "content": "hello"}]
    tools = [{"type": "function", "function": {"name": "add"}}]
    assert chat.request(system=[], items=items, tools=[]) == {"messages": items}
    assert chat.request(system=["A", "B"], items=items, tools=tools) == {
        "messages": [{"role": "system", "content": "A"}, {"role": "system", "content": "B"}, *items],
        "tools": tools,
    }
    assert chat.tools_tokens([], COUNTER) == 0
