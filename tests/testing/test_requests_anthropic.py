"""What Anthropic takes, and of each rule the smallest request that breaks it."""

from __future__ import annotations

import pytest

from hitherto.core.log.message import ANTHROPIC
from hitherto.testing.requests import refusals
from tests.testing.requests import (
    CHARACTERS,
    EPHEMERAL,
    HI,
    MB,
    NO_FIELD,
    OK,
    Case,
    Item,
    answered,
    anthropic,
    image,
    said,
    text,
    thinking,
    tool_result,
    tool_use,
)

ACCEPTED: list[Item] = [
    anthropic(model="claude-opus-4-8", max_tokens=100, system="Be brief."),
    anthropic(HI, OK, HI, {"role": "assistant", "content": "The answer is ("}),
    anthropic({"role": "system", "content": "Be brief."}, OK, HI),
    anthropic(
        answered(thinking(), text(), tool_use(), tool_use("t2")),
        said(tool_result("t2", content=[text("found"), image()]), tool_result(is_error=True), text()),
        system=[text("Be brief.", **EPHEMERAL)],
        tools=[{"name": "find", "input_schema": {"type": "object", "additionalProperties": False}, **EPHEMERAL}],
        thinking={"type": "enabled", "budget_tokens": 1024},
    ),
    anthropic(
        answered(tool_use()), said(tool_result()), said(text()), answered(tool_use("t2")), said(tool_result("t2"))
    ),
    anthropic(
        answered(
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
        ),
        {"role": "system", "content": "Be brief."},
    ),
]

REFUSED: list[Case] = [
    # Shapes, by the types of the SDK.
    (
        anthropic({"role": "tool", "content": "found"}),
        "messages[1].role is 'tool'; it must be 'assistant' or 'system' or 'user'",
    ),
    (
        anthropic(answered(tool_use(input="{}")), said(tool_result())),
        "messages[1].content[0].input is '{}'; it must be an object",
    ),
    (
        anthropic(answered({"type": "thinking", "thinking": "Hm."}, text())),
        "messages[1].content[0].signature is missing",
    ),
    (anthropic(answered({**thinking(), **EPHEMERAL}, text())), f"messages[1].content[0].cache_control {NO_FIELD}"),
    (anthropic(answered(text(parsed_output={}))), f"messages[1].content[0].parsed_output {NO_FIELD}"),
    # Ids and names.
    (
        anthropic(answered(tool_use("a:1")), said(tool_result("a:1"))),
        f"messages[1].content[0].id is 'a:1'; {CHARACTERS}\nmessages[2].content[0].tool_use_id is 'a:1'; {CHARACTERS}",
    ),
    (
        anthropic(answered(tool_use(name="f" * 201)), said(tool_result())),
        "messages[1].content[0].name has 201 characters; at most 200 are accepted",
    ),
    (
        anthropic(answered({"type": "server_tool_use", "id": "t1", "name": "web_search", "input": {}}, text())),
        "messages[1].content[0].id does not begin with srvtoolu_",
    ),
    (
        anthropic(tools=[{"name": "f" * 129, "input_schema": {"type": "object"}}]),
        "tools[0].name has 129 characters; at most 128 are accepted",
    ),
    (
        anthropic(tools=[{"name": "find", "input_schema": {"type": "object"}}] * 2),
        "tools[1].name is the name of another tool",
    ),
    # What is empty.
    ({"messages": []}, "messages is empty"),
    (anthropic({"role": "assistant", "content": ""}, HI), "messages[1].content is empty"),
    (anthropic(said()), "messages[1].content is empty"),
    (anthropic(said(text("")), OK), "messages[1].content[0] is an empty text"),
    (anthropic({"role": "user", "content": " \n"}), "messages[1].content is a text of nothing but white space"),
    (anthropic(system=[text("")]), "system[0] is an empty text"),
    (
        anthropic(answered(tool_use()), said(tool_result(content=[text("")]))),
        "messages[2].content[0].content[0] is an empty text",
    ),
    (
        anthropic(answered(tool_use()), said(tool_result(content="", is_error=True))),
        "messages[2].content[0] is an error without content",
    ),
    (anthropic(answered(thinking(""), text())), "messages[1].content[0].signature is empty"),
    # Open and repeated calls, results without one.
    (anthropic(answered(tool_use())), "messages[1].content[0] has no result in the next message"),
    (
        anthropic(answered(tool_use()), HI, OK, said(tool_result())),
        "messages[1].content[0] has no result in the next message\n"
        "messages[4].content[0] is the result of no call in the assistant's turn before it",
    ),
    (
        anthropic(answered(tool_use()), said(tool_result(), tool_result())),
        "messages[2].content[1] is the second result of its call",
    ),
    (
        anthropic(answered(tool_use()), said(tool_result()), answered(tool_use()), said(tool_result())),
        "messages[3].content[0].id is the id of another call",
    ),
    (
        anthropic(answered({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}, text())),
        "messages[1].content[0] is the result of no server_tool_use before it",
    ),
    # Order.
    ({"messages": [OK, HI]}, "messages[0] is of the assistant; the first message must be of the user"),
    (
        anthropic(answered(tool_use()), said(text(), tool_result())),
        "messages[2].content[1] follows other content; results come first",
    ),
    (
        anthropic(answered(text(), thinking())),
        "messages[1].content[1] is thinking, which cannot be the last block of an assistant's turn",
    ),
    (
        anthropic(said(tool_use())),
        "messages[1].content[0] is a tool_use block, which can only be in messages of the assistant",
    ),
    (anthropic({"role": "assistant", "content": "So: "}), "messages[1].content ends in white space"),
    (
        anthropic(OK, model="claude-opus-4-6-20260101"),
        "messages[1].content ends the request with words of the assistant, which the model does not continue",
    ),
    (
        anthropic(OK, {"role": "system", "content": "Be brief."}),
        "messages[2] is a system message that does not follow a message of the user",
    ),
    (
        anthropic({"role": "system", "content": "Be brief."}, HI),
        "messages[2] is of the user and follows a system message; the assistant must be next",
    ),
    (
        anthropic({"role": "system", "content": "Be brief."}, model="claude-sonnet-4-5"),
        "messages[1] is a system message, which Claude takes among the messages from 4.8 on",
    ),
    (
        anthropic(answered(tool_use()), said(tool_result()), thinking={"type": "enabled", "budget_tokens": 1024}),
        "messages[1].content[0] does not begin with thinking, as the last calls must with thinking enabled",
    ),
    # Sizes.
    (anthropic(said(*[image()] * 101)), "the request has 101 pictures; at most 100 are accepted"),
    (
        anthropic(said(*[image()] * 601), model="claude-opus-5"),
        "the request has 601 pictures; at most 600 are accepted",
    ),
    (
        anthropic(said(image("a" * (10 * MB + 1)))),
        "messages[1].content[0].source.data has 10485761 characters; at most 10485760 are accepted",
    ),
    (
        anthropic(said(*[text("é" * MB)] * 17)),
        f"the request has {34 * MB + 17 * 4 + 10} bytes of text and pictures; at most {32 * MB} are accepted",
    ),
    (anthropic(said(*[text(**EPHEMERAL)] * 5)), "the request has 5 blocks with cache_control; at most 4 are accepted"),
    (
        anthropic(answered(tool_use(input={"a": [float("nan")]})), said(tool_result())),
        "messages[1].content[0].input.a[0] is nan, which JSON cannot say",
    ),
]


@pytest.mark.parametrize("request_", ACCEPTED)
def test_what_the_api_takes(request_: Item) -> None:
    assert refusals(request_, wire=ANTHROPIC) == []


@pytest.mark.parametrize(("request_", "reasons"), REFUSED)
def test_what_the_api_refuses(request_: Item, reasons: str) -> None:
    assert refusals(request_, wire=ANTHROPIC) == reasons.split("\n")
