"""Cache breakpoints in the requests of all three formats: where they stand, and that nothing else changes."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.types import MessageParam
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter

from hitherto.core.context.request import StablePart, WireFormat
from hitherto.core.log.message import ANTHROPIC, CHAT, RESPONSES, Payload
from hitherto.core.model_family import takes_cache_breakpoints
from hitherto.wire import codec
from hitherto.wire.breakpoints import without_breakpoints
from tests.wire.conversations import WIRES, Conversation, conversations
from tests.wire.items import PNG, texts

MARK = {"cache_control": {"type": "ephemeral"}}
POINT = {"prompt_cache_breakpoint": {"mode": "explicit"}}
MARKS = (*MARK, *POINT)

CARRIERS = {
    CHAT: {"text", "image_url", "input_audio", "file"},
    RESPONSES: {"input_text", "input_image", "input_file"},
    ANTHROPIC: {"text", "image", "document", "search_result", "tool_use", "tool_result"},
}
"""The parts that each API takes a breakpoint in, by its documentation."""

TYPES = {
    CHAT: TypeAdapter[Any](list[ChatCompletionMessageParam]),
    RESPONSES: TypeAdapter[Any](list[ResponseInputItemParam]),
    ANTHROPIC: TypeAdapter[Any](list[MessageParam]),
}
"""The SDKs' own types."""

anthropic, chat, responses = codec(ANTHROPIC), codec(CHAT), codec(RESPONSES)
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}


def says(role: str, *parts: Payload) -> Payload:
    return {"role": role, "content": list(parts)}


def text(words: str) -> Payload:
    return {"type": "text", "text": words}


def plain(*said: str) -> list[Payload]:
    return [{"role": "assistant" if at % 2 else "user", "content": words} for at, words in enumerate(said)]


def marked(of: WireFormat, items: list[Payload], stable: int, *system: str, texts: int | None = None) -> dict[str, Any]:
    part = StablePart(len(system) if texts is None else texts, stable)
    return of.request(system=system, items=items, tools=[], stable=part, cache_key="k")


def items_of(request: dict[str, Any]) -> list[Payload]:
    return request["messages"] if "messages" in request else request["input"]


def places(request: dict[str, Any]) -> list[int]:
    """The places of the items that have a breakpoint."""
    return [at for at, item in enumerate(items_of(request)) if parts_with(item)]


def parts_with(value: Any) -> list[Payload]:
    """Every part with a breakpoint, however deep."""
    if isinstance(value, list):
        return [part for one in value for part in parts_with(one)]
    if not isinstance(value, dict):
        return []
    return [*([value] if any(name in value for name in MARKS) else []), *parts_with(list(value.values()))]


def bare(value: Any) -> Any:
    """The value without breakpoints and cache key; a list of one part that is only a text is that text."""
    if isinstance(value, list):
        inner = [bare(one) for one in value]
        only = inner[0] if len(inner) == 1 and isinstance(inner[0], dict) else {}
        return only["text"] if only.keys() == {"type", "text"} else inner
    if isinstance(value, dict):
        return {key: bare(one) for key, one in value.items() if key not in (*MARKS, "prompt_cache_key")}
    return value


def bare_request(request: dict[str, Any]) -> dict[str, Any]:
    system = request.get("system")
    joined = {"system": "".join(block["text"] for block in system)} if isinstance(system, list) else {}
    return bare({**request, **joined})


# Where they stand


def test_behind_the_instructions_before_the_last_turn_and_behind_the_stable_part() -> None:
    items = plain("one", "1", "two", "2", "three")
    request = marked(anthropic, items, 4, "Be brief.", "So far: nothing.")
    assert request["system"] == [text("Be brief."), text("\n\nSo far: nothing.") | MARK]
    assert request["messages"] == [
        items[0],
        says("assistant", text("1") | MARK),
        items[2],
        says("assistant", text("2") | MARK),
        items[4],
    ]


def test_openai_takes_none_in_what_an_assistant_says_nor_in_instructions() -> None:
    items = plain("one", "1", "two", "2", "three")
    assert marked(chat, items, 4, "Be brief.") == {
        "messages": [
            says("system", text("Be brief.") | POINT),
            says("user", text("one") | POINT),
            items[1],
            says("user", text("two") | POINT),
            *items[3:],
        ],
        "prompt_cache_key": "k",
    }
    in_input = {"type": "input_text", "text": "two"} | POINT
    request = marked(responses, items, 4, "Be brief.")
    assert request["instructions"] == "Be brief."
    assert request["input"][2] == says("user", in_input)
    assert (places(request), request["prompt_cache_key"]) == ([0, 2], "k")


def test_a_turn_longer_than_anthropics_look_back_has_one_at_either_end() -> None:
    calls = [says("assistant", {"type": "tool_use", "id": f"c{at}", "name": "add", "input": {}}) for at in range(30)]
    results = [says("user", {"type": "tool_result", "tool_use_id": f"c{at}", "content": "4"}) for at in range(30)]
    loop = [one for pair in zip(calls, results, strict=True) for one in pair]
    items = [*plain("one", "1", "two"), *loop, {"role": "assistant", "content": "Four."}, *plain("three")]
    request = marked(anthropic, items, len(items) - 1)
    assert places(request) == [1, len(items) - 2]
    assert parts_with(request["messages"][1]) == [text("1") | MARK]


def test_nothing_stable_has_none() -> None:
    items = plain("one")
    assert marked(anthropic, items, 0) == {"messages": items}
    assert marked(anthropic, items, 0, "Found elsewhere: …", texts=0)["system"] == "Found elsewhere: …"
    assert marked(chat, [], 0) == {"messages": [], "prompt_cache_key": "k"}


def test_a_text_that_changes_stands_behind_the_breakpoint() -> None:
    request = marked(anthropic, plain("one"), 0, "Be brief.", "Found elsewhere: …", texts=1)
    assert request["system"] == [text("Be brief.") | MARK, text("\n\nFound elsewhere: …")]
    told = marked(chat, plain("one"), 0, "Be brief.", "Found elsewhere: …", texts=1)["messages"]
    assert told[:2] == [says("system", text("Be brief.") | POINT), {"role": "system", "content": "Found elsewhere: …"}]


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
USE = {"type": "tool_use", "id": "t", "name": "add", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t", "content": "4"}


@pytest.mark.parametrize(
    ("wire", "item", "carrier"),
    [
        (ANTHROPIC, says("assistant", THOUGHT, USE), USE),
        (ANTHROPIC, says("assistant", text("Four."), THOUGHT), text("Four.")),
        (ANTHROPIC, says("user", RESULT, text("And now?")), text("And now?")),
        (ANTHROPIC, says("user", RESULT), RESULT),
        (ANTHROPIC, says("user", text("See:"), IMAGE), IMAGE),
        (ANTHROPIC, says("user", text("See:"), text(" \n")), text("See:")),
        (ANTHROPIC, says("assistant", THOUGHT), None),
        (ANTHROPIC, says("assistant", {"type": "redacted_thinking", "data": "x"}), None),
        (ANTHROPIC, says("assistant", {"type": "compaction", "content": "So far."}), None),
        (ANTHROPIC, says("user", {**RESULT, "content": ""}), None),
        (ANTHROPIC, says("user", {**RESULT, "content": []}), None),
        (ANTHROPIC, {"role": "user", "content": " "}, None),
        (CHAT, {"role": "tool", "tool_call_id": "t", "content": "4"}, text("4")),
        (CHAT, says("user", text("See:"), {"type": "image_url", "image_url": {"url": "x"}}), "image_url"),
        (CHAT, {"role": "developer", "content": "Be brief."}, text("Be brief.")),
        (CHAT, {"role": "function", "name": "add", "content": "4"}, None),
        (CHAT, {"role": "user", "content": ""}, None),
        (CHAT, {"role": "assistant", "content": None, "tool_calls": []}, None),
        (RESPONSES, {"type": "function_call_output", "call_id": "t", "output": "4"}, "input_text"),
        (RESPONSES, {"type": "custom_tool_call_output", "call_id": "t", "output": "4"}, "input_text"),
        (RESPONSES, {"type": "computer_call_output", "call_id": "t", "output": {"type": "computer_screenshot"}}, None),
        (RESPONSES, {"type": "reasoning", "id": "r", "summary": []}, None),
        (RESPONSES, {"type": "compaction", "encrypted_content": "x"}, None),
        (RESPONSES, says("assistant", {"type": "output_text", "text": "Four.", "annotations": []}), None),
    ],
)
def test_what_carries_one(wire: str, item: Payload, carrier: Payload | str | None) -> None:
    """Where the last item cannot, the one before does."""
    request = marked(codec(wire), [*plain("one"), item, *plain("two")], 2)
    assert places(request)[-1] == (0 if carrier is None else 1)
    part = parts_with(items_of(request))[-1]
    if isinstance(carrier, str):
        assert part["type"] == carrier
    elif carrier is not None:
        assert bare(part) == carrier


def test_a_system_text_without_words_is_no_block() -> None:
    assert marked(anthropic, [], 0, "")["system"] == ""
    assert marked(anthropic, [], 0, "Be brief.", " ")["system"] == "Be brief.\n\n "
    assert marked(chat, [], 0, " ")["messages"] == [{"role": "system", "content": " "}]


@pytest.mark.parametrize("wire", WIRES)
def test_who_sets_breakpoints_is_left_alone(wire: str) -> None:
    """More than four would be refused, and so would some orders of their lifetimes."""
    of, point = codec(wire), MARK if wire == ANTHROPIC else POINT
    items: list[Payload] = [
        says("user", {"type": "input_text" if wire == RESPONSES else "text", "text": "one"} | point)
    ]
    tools: list[Payload] = [{"name": "add", "input_schema": {"type": "object"}, "type": "function"} | point]
    part = StablePart(1, 1)
    for said, having in ((items, []), (plain("one"), tools)):
        off = of.request(system=["Be brief."], items=said, tools=having)
        assert of.request(system=["Be brief."], items=said, tools=having, stable=part, cache_key="k") == off


def test_of_the_callers_own_the_newest_stay_that_the_api_takes() -> None:
    """Who marks the newest message of each request has marked all that are in the log."""
    items = [says("user", text(f"{at}") | MARK) for at in range(6)]
    document = {"type": "document", "source": {"type": "content", "content": [text("a") | MARK, text("b") | MARK]}}
    for stable in (None, StablePart(1, 6)):
        ask: Any = {"system": ["Be brief."], "stable": stable}
        request = anthropic.request(items=items, tools=[], **ask)
        assert (request["system"], places(request)) == ("Be brief.", [2, 3, 4, 5])
        assert bare(request["messages"]) == bare(items)
        request = anthropic.request(items=items, tools=[{"name": "add", "input_schema": {}} | MARK], **ask)
        assert places(request) == [3, 4, 5]
        request = anthropic.request(items=[says("user", document), *items[:3]], tools=[], **ask)
        assert parts_with(request) == [text("b") | MARK, *[text(f"{at}") | MARK for at in range(3)]]
    assert parts_with(items) == [text(f"{at}") | MARK for at in range(6)], "the caller's items are as they were"
    many = [says("user", text(f"{at}") | POINT) for at in range(6)]
    assert len(parts_with(chat.request(system=[], items=many, tools=[]))) == 6, "OpenAI takes the newest by itself"


def test_a_breakpoint_that_is_null_is_none() -> None:
    request = marked(anthropic, [says("user", text("one") | {"cache_control": None})], 1, "Be brief.")
    assert request["system"] == [text("Be brief.") | MARK]


def test_in_a_document_they_are_the_callers_too() -> None:
    document = {"type": "document", "source": {"type": "content", "content": [text("a") | MARK]}}
    assert marked(anthropic, [says("user", document)], 1, "Be brief.")["system"] == "Be brief."


def test_a_request_may_be_changed() -> None:
    """For a longer life in the cache, say."""
    for _ in range(2):
        request = marked(anthropic, plain("one"), 1, "Be brief.")
        assert request["system"][0]["cache_control"] == {"type": "ephemeral"}
        request["system"][0]["cache_control"]["ttl"] = "1h"
        assert parts_with(request["messages"]) == [text("one") | MARK]


def test_a_tool_may_have_a_parameter_of_that_name() -> None:
    tools: list[Payload] = [{"name": "add", "input_schema": {"properties": {"cache_control": {"type": "string"}}}}]
    request = anthropic.request(system=["Be brief."], items=plain("one"), tools=tools, stable=StablePart(1, 1))
    assert len(parts_with([request["system"], request["messages"]])) == 2


# In general


@st.composite
def asked(draw: st.DrawFn) -> tuple[Conversation, list[str], StablePart]:
    found = draw(conversations(turns=5))
    system = draw(st.lists(texts, max_size=3))
    stable = draw(st.integers(0, len(system)))
    return found, system, StablePart(stable, draw(st.integers(0, len(found.items))) if stable == len(system) else 0)


@given(asked())
def test_few_valid_and_never_behind_the_stable_part(given: tuple[Conversation, list[str], StablePart]) -> None:
    found, system, stable = given
    of, items = codec(found.wire), found.items
    off = of.request(system=system, items=items, tools=[])
    on = of.request(system=system, items=items, tools=[], stable=stable, cache_key="k")
    assert bare_request(on) == bare_request(off)
    assert [without_breakpoints(item) for item in items_of(on)] == [without_breakpoints(item) for item in items_of(off)]
    assert len(parts_with(on)) <= 3
    for part in parts_with(on):
        assert part["type"] in CARRIERS[found.wire]
        assert part["type"] not in ("text", "input_text") or part["text"].strip()
    first = len(items_of(on)) - len(items)
    assert all(at - first < stable.items for at in places(on) if at >= first)
    TYPES[found.wire].validate_python(items_of(on)[first:])


@pytest.mark.parametrize(
    ("model", "takes"),
    [
        ("gpt-5.6", True),
        ("gpt-5.6-sol", True),
        ("gpt-5.10", True),
        ("gpt-6-luna", True),
        ("openai/gpt-5.6-2026-07-09", True),
        ("ft:gpt-5.6:acme:support:a1", True),
        ("gpt-5.5", False),
        ("gpt-5-mini", False),
        ("gpt-5", False),
        ("gpt-4o", False),
        ("gpt-4.1-mini", False),
        ("gpt-35-turbo", False),
        ("gpt-oss-120b", False),
        ("openai/gpt-oss-120b", False),
        ("o3", False),
        ("o200k_base", False),
        ("llama3:8b", False),
        ("", False),
    ],
)
def test_the_models_of_openai_that_take_them(model: str, takes: bool) -> None:
    assert takes_cache_breakpoints(model) is takes
    assert chat.takes_breakpoints(model) is responses.takes_breakpoints(model) is takes
    assert anthropic.takes_breakpoints(model)
    assert not chat.takes_breakpoints(None), "another server may refuse what it does not know"
    assert anthropic.takes_breakpoints(None)
