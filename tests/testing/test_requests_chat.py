"""What OpenAI chat completions takes, and of each rule the smallest request that breaks it."""

from __future__ import annotations

import pytest

from hitherto.core.log.message import CHAT
from hitherto.testing.requests import refusals
from tests.testing.requests import (
    CHARACTERS,
    HI,
    MB,
    NO_FIELD,
    NOT_ANSWERED,
    OK,
    Case,
    Item,
    call,
    chat,
    picture,
    result,
    text,
)

CALLS = [one for number in range(129) for one in call(f"c{number}")["tool_calls"]]

ACCEPTED: list[Item] = [
    chat(model="gpt-5.2", stream=True, temperature=0.5),
    {"messages": [{"role": "developer", "content": "Be brief."}, HI, OK, HI, HI]},
    chat({"role": "user", "name": "ada", "content": [text(), picture("https://a.test/b.png")]}),
    chat(call(), {**result(), "name": "find"}, call(), result(content=[text("found")]), OK),
    chat({**call(arguments=""), "content": None, "refusal": None, "audio": None}, result()),
    chat({"role": "assistant", "content": None, "refusal": "No."}),
    chat(
        {"role": "assistant", "tool_calls": [*call()["tool_calls"], *call("c2")["tool_calls"]]},
        result("c2"),
        result("c1"),
    ),
    chat(
        {
            "role": "assistant",
            "tool_calls": [{"id": "c1", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}],
        },
        result(),
        tools=[{"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}],
        prompt_cache_key="k",
    ),
]

REFUSED: list[Case] = [
    # Shapes, by the types of the SDK.
    ({}, "messages is missing"),
    ({"messages": "Hi"}, "messages is 'Hi'; it must be a list"),
    ({"messages": [[HI]]}, "messages[0] is a list; it must be an object"),
    (chat({**call(), "refusal": {}}, result()), "messages[1].refusal is an object; it must be a text or null"),
    (
        chat({"role": "user", "content": [{**text(), "prompt_cache_breakpoint": {"mode": "auto"}}]}),
        "messages[1].content[0].prompt_cache_breakpoint.mode is 'auto'; it must be 'explicit'",
    ),
    (chat(top_k=1), f"top_k {NO_FIELD}"),
    (chat({"role": "user"}), "messages[1].content is missing"),
    (chat({"role": "user", "content": None}), "messages[1].content is null; it must be a text or a list"),
    (chat({**OK, "parsed": {}}), f"messages[1].parsed {NO_FIELD}"),
    (chat({**OK, "annotations": []}), f"messages[1].annotations {NO_FIELD}"),
    (chat({**OK, "tool_calls": None}), "messages[1].tool_calls is null; it must be a list"),
    (chat({**OK, "audio": {"id": "audio_1", "transcript": "Hello"}}), f"messages[1].audio.transcript {NO_FIELD}"),
    (
        chat({"role": "user", "content": [{"type": "txt", "text": "Hi"}]}),
        "messages[1].content[0].type is 'txt'; it must be 'file' or 'image_url' or 'input_audio' or 'text'",
    ),
    (chat(call(), result(content=[picture()])), "messages[2].content[0].type is 'image_url'; it must be 'text'"),
    (chat(temperature="hot"), "temperature is 'hot'; it must be a number or null"),
    (chat(n=1.5), "n is 1.5; it must be a whole number or null"),
    (chat(metadata={"team": 5}), "metadata.team is 5; it must be a text"),
    # Ids and names.
    (
        chat(call("c" * 41), result("c" * 41)),
        "messages[1].tool_calls[0].id has 41 characters; at most 40 are accepted\n"
        "messages[2].tool_call_id has 41 characters; at most 40 are accepted",
    ),
    (chat(call(""), result("")), "messages[1].tool_calls[0].id is empty\nmessages[2].tool_call_id is empty"),
    (chat(call(name="find it"), result()), f"messages[1].tool_calls[0].function.name is 'find it'; {CHARACTERS}"),
    (
        chat(call(name="f" * 65), result()),
        "messages[1].tool_calls[0].function.name has 65 characters; at most 64 are accepted",
    ),
    (chat(tools=[{"type": "function", "function": {"name": "f.g"}}]), f"tools[0].function.name is 'f.g'; {CHARACTERS}"),
    (chat({**HI, "name": ""}), "messages[1].name is empty"),
    (
        chat({**HI, "name": "Ada L"}),
        "messages[1].name is 'Ada L'; no white space and none of < | \\ / > is accepted",
    ),
    (
        chat(
            {"role": "assistant", "content": None, "function_call": {"name": "f.g", "arguments": "[]"}},
            {"role": "function", "name": "f.g", "content": "found"},
        ),
        f"messages[1].function_call.arguments is '[]'; servers that read arguments want a JSON object\n"
        f"messages[1].function_call.name is 'f.g'; {CHARACTERS}\nmessages[2].name is 'f.g'; {CHARACTERS}",
    ),
    (chat(prompt_cache_key="k" * 65), "prompt_cache_key has 65 characters; at most 64 are accepted"),
    # What is empty.
    ({"messages": []}, "messages is an empty list"),
    (chat(tools=[]), "tools is an empty list"),
    (chat({"role": "user", "content": []}), "messages[1].content is an empty list"),
    (chat({**OK, "tool_calls": []}), "messages[1].tool_calls is an empty list"),
    (
        chat({"role": "assistant", "content": None}),
        "messages[1].content is missing, and the message has no tool_calls in place of it",
    ),
    # Arguments.
    (
        chat(call(arguments='{"a": '), result()),
        "messages[1].tool_calls[0].function.arguments is not JSON; servers that read arguments refuse it",
    ),
    (
        chat(call(arguments="[]"), result()),
        "messages[1].tool_calls[0].function.arguments is '[]'; servers that read arguments want a JSON object",
    ),
    # Open and repeated calls, results without one.
    (chat(call()), f"messages[1].tool_calls[0] {NOT_ANSWERED}"),
    (
        chat(call(), HI, result()),
        f"messages[1].tool_calls[0] {NOT_ANSWERED}\n"
        "messages[3] is the result of no call in the assistant message before it",
    ),
    (chat(result()), "messages[1] is the result of no call in the assistant message before it"),
    (chat(call(), result(), result()), "messages[3] is the second result of its call"),
    (
        chat({"role": "assistant", "tool_calls": call()["tool_calls"] * 2}, result()),
        "messages[1].tool_calls[1].id is the id of another call of the message",
    ),
    # Sizes.
    (
        chat({"role": "assistant", "tool_calls": CALLS}, *(result(one["id"]) for one in CALLS)),
        "messages[1].tool_calls has 129 elements; at most 128 are accepted",
    ),
    (
        chat(tools=[{"type": "function", "function": {"name": f"f{number}"}} for number in range(129)]),
        "tools has 129 elements; at most 128 are accepted",
    ),
    (
        chat({"role": "user", "content": "a" * 10485761}),
        "messages[1].content has 10485761 characters; at most 10485760 are accepted",
    ),
    (chat({"role": "user", "content": [picture()] * 1501}), "the request has 1501 pictures; at most 1500 are accepted"),
    (
        chat({"role": "user", "content": [picture("data:image/png;base64," + "a" * MB)] * 512}),
        f"the request has {512 * (MB + 31) + 10} bytes of text and pictures; at most {512 * MB} are accepted",
    ),
    (
        chat({"role": "user", "content": "\ud83d"}),
        "messages[1].content has half of a character (a lone surrogate), which JSON in UTF-8 cannot say",
    ),
]


@pytest.mark.parametrize("request_", ACCEPTED)
def test_what_the_api_takes(request_: Item) -> None:
    assert refusals(request_, wire=CHAT) == []


@pytest.mark.parametrize(("request_", "reasons"), REFUSED)
def test_what_the_api_refuses(request_: Item, reasons: str) -> None:
    assert refusals(request_, wire=CHAT) == reasons.split("\n")
