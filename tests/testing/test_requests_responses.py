"""What OpenAI Responses takes, and of each rule the smallest request that breaks it."""

from __future__ import annotations

import pytest

from hitherto.core.log.message import RESPONSES
from hitherto.testing.requests import refusals
from tests.testing.requests import (
    CHARACTERS,
    HI,
    NO_CALL,
    NO_FIELD,
    OK,
    UNANSWERED,
    Case,
    Item,
    function_call,
    function_output,
    reasoning,
    responses,
)

ACCEPTED: list[Item] = [
    {"input": "Hi", "instructions": "Be brief.", "model": "gpt-5.2", "stream": False},
    {"previous_response_id": "resp_1", "input": [function_output()]},
    responses({"role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]}),
    responses({"id": "msg_1"}, OK, {"id": "msg_1"}),
    responses(
        reasoning(encrypted_content="e1"),
        function_call(id="fc_1", status="completed"),
        function_call("c2"),
        {"role": "user", "content": [{"type": "input_image", "image_url": "https://a.test/b.png"}]},
        function_output("c2", output=[{"type": "input_text", "text": "found"}]),
        function_output(),
        tools=[{"type": "function", "name": "find", "parameters": {"type": "object"}}, {"type": "web_search"}],
    ),
    responses(
        {
            "type": "local_shell_call",
            "id": "lsh_1",
            "call_id": "c1",
            "action": {"type": "exec", "command": ["ls"], "env": {}},
            "status": "completed",
        },
        {"type": "local_shell_call_output", "id": "c1", "output": "a"},
        reasoning(id="rs_2"),
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "a", "annotations": []}],
        },
    ),
]

REFUSED: list[Case] = [
    # Shapes, by the types of the SDK.
    (responses({"type": "thought"}), "input[1].type is 'thought'; it must be one that the SDK knows"),
    (responses({"type": "reasoning", "id": "rs_1"}, function_call(), function_output()), "input[1].summary is missing"),
    (responses(reasoning(status="completed"), OK), f"input[1].status {NO_FIELD}"),
    (responses(reasoning(content=None), OK), "input[1].content is null; it must be a list"),
    (responses(function_call(parsed_arguments={}), function_output()), f"input[1].parsed_arguments {NO_FIELD}"),
    (
        responses({"role": "assistant", "content": [{"type": "output_text", "text": "Hello", "parsed": {}}]}),
        f"input[1].content[0].parsed {NO_FIELD}",
    ),
    # Ids and names.
    (
        responses(function_call("c" * 65), function_output("c" * 65)),
        "input[1].call_id has 65 characters; at most 64 are accepted\n"
        "input[2].call_id has 65 characters; at most 64 are accepted",
    ),
    (responses(function_call(name="f g"), function_output()), f"input[1].name is 'f g'; {CHARACTERS}"),
    (
        responses(function_call(id="call_1"), function_output()),
        "input[1].id is 'call_1'; the id of a function_call begins with fc",
    ),
    (
        responses(
            {"type": "custom_tool_call", "id": "fc_1", "call_id": "c1", "name": "sql", "input": ""},
            {"type": "custom_tool_call_output", "call_id": "c1", "output": ""},
        ),
        "input[1].id is 'fc_1'; the id of a custom_tool_call begins with ctc",
    ),
    (responses(prompt_cache_key="k" * 65), "prompt_cache_key has 65 characters; at most 64 are accepted"),
    (responses(function_call(id="fc_1|a"), function_output()), f"input[1].id is 'fc_1|a'; {CHARACTERS}"),
    (responses(tools=[{"type": "function", "name": ""}]), "tools[0].name is empty"),
    # What is empty.
    ({"input": []}, "input is empty"),
    (
        responses(reasoning(content=[{"type": "reasoning_text", "text": "Hm."}]), OK),
        "input[1].content is not empty; reasoning goes back as encrypted_content",
    ),
    # Arguments.
    (
        responses(function_call(arguments="ls"), function_output()),
        "input[1].arguments is not JSON; servers that read arguments refuse it",
    ),
    # Open and repeated calls, results without one.
    (responses(function_call()), f"input[1] {UNANSWERED}"),
    (responses(function_output()), f"input[1] {NO_CALL}"),
    (responses(function_output(), function_call()), f"input[1] {NO_CALL}\ninput[2] {UNANSWERED}"),
    (responses(function_call(), function_output(), function_output()), "input[3] is the second result of its call"),
    (
        responses(function_call(), function_output(), function_call(), function_output()),
        "input[3].call_id is the call_id of another call",
    ),
    (
        responses({"type": "custom_tool_call", "call_id": "c1", "name": "sql", "input": ""}, function_output()),
        f"input[1] {UNANSWERED}\ninput[2] {NO_CALL}",
    ),
    (responses(reasoning(), OK, reasoning(), OK), "input[3].id is the id of another item"),
    # Order.
    (responses(reasoning()), "input[1] is reasoning without the message or call that it led to right after it"),
    (responses(reasoning(), HI), "input[1] is reasoning without the message or call that it led to right after it"),
    (
        responses({"role": "assistant", "content": [{"type": "input_text", "text": "Hello"}]}),
        "input[1].content[0].type is 'input_text'; an assistant's parts are output_text and refusal",
    ),
    # Sizes.
    (
        responses({"role": "user", "content": [{"type": "input_image", "image_url": "https://a.test"}] * 1501}),
        "the request has 1501 pictures; at most 1500 are accepted",
    ),
]


@pytest.mark.parametrize("request_", ACCEPTED)
def test_what_the_api_takes(request_: Item) -> None:
    assert refusals(request_, wire=RESPONSES) == []


@pytest.mark.parametrize(("request_", "reasons"), REFUSED)
def test_what_the_api_refuses(request_: Item, reasons: str) -> None:
    assert refusals(request_, wire=RESPONSES) == reasons.split("\n")
