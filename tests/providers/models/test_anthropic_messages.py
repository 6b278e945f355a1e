"""What only Anthropic's adapter does; the rest is in test_providers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from hitherto.errors import InvalidModelAnswer, ModelRateLimited, ModelRejected
from hitherto.providers.anthropic import Anthropic
from hitherto.providers.scripted import items
from tests.providers.models.digests import digested, prompt, spoken
from tests.providers.models.endpoint import Answer, Body, Endpoint
from tests.providers.models.providers import KEY, MODEL, AnthropicApi, message

API = AnthropicApi()
CHANGES = items(("Friday is at the Granary", [0]))

Connect = Callable[[Endpoint], Anthropic]


def answering(*answers: Answer | Callable[[Body], Answer]) -> Endpoint:
    return Endpoint(*answers, path="/v1/messages")


@pytest.fixture
async def at() -> AsyncIterator[Connect]:
    """Makes models at an endpoint, and closes them."""
    models: list[Anthropic] = []

    def connect(endpoint: Endpoint) -> Anthropic:
        models.append(Anthropic(model=MODEL, base_url=endpoint.root, api_key=KEY, timeout=5))
        return models[-1]

    yield connect
    for model in models:
        await model.aclose()


def invalid(says: str) -> Answer:
    return API.failed(400, says, "invalid_request_error", None)


def text(said: str) -> Body:
    return {"type": "text", "text": said}


def called(**changed: Any) -> Body:
    return {"type": "tool_use", "id": "toolu_1", "name": "digest_changes", "input": json.loads(CHANGES), **changed}


def no_format(body: Body) -> Answer:
    """An older model, which writes JSON only as the input of a tool."""
    if "output_config" in body:
        return invalid("'small' does not support output format.")
    return message(called(), stop_reason="tool_use") if "tools" in body else API.said(CHANGES)


def no_tools(body: Body) -> Answer:
    return invalid("tools: this server has none") if "tools" in body else no_format(body)


async def test_a_request_has_what_the_api_needs_and_nothing_else(at: Connect):
    with answering(API.said(CHANGES)) as endpoint:
        await at(endpoint).complete(prompt())
    [body] = endpoint.asked
    assert set(body) == {"model", "system", "messages", "max_tokens", "thinking", "output_config"}
    assert body["thinking"] == {"type": "disabled"}
    assert "anthropic-version" in endpoint.headers[0]


async def test_an_address_may_end_in_v1():
    with answering(API.said(CHANGES)) as endpoint:
        model = Anthropic(model=MODEL, base_url=f"{endpoint.root}/v1/", api_key=KEY)
        assert (await model.complete(prompt())).text == CHANGES
        await model.aclose()


# What a model cannot do


async def test_a_model_without_formats_is_made_to_call_a_tool_and_that_is_remembered(at: Connect):
    asked = prompt()
    with answering(no_format) as endpoint:
        model = at(endpoint)
        for _ in range(2):
            assert json.loads((await model.complete(asked)).text) == json.loads(CHANGES)
    assert ["output_config" in body for body in endpoint.asked] == [True, False, False]
    [tool] = endpoint.asked[1]["tools"]
    assert (tool["name"], tool["input_schema"]) == ("digest_changes", asked.schema)
    assert endpoint.asked[1]["tool_choice"] == {"type": "tool", "name": "digest_changes"}


async def test_the_core_makes_a_digest_of_a_tools_input(at: Connect):
    with answering(no_format) as endpoint:
        made = await digested(at(endpoint), spoken("Let's take the Granary for Friday."))
    assert made.text == "Friday is at the Granary"


async def test_a_model_without_tools_is_asked_for_text(at: Connect):
    with answering(no_tools) as endpoint:
        model = at(endpoint)
        for _ in range(2):
            assert (await model.complete(prompt())).text == CHANGES
    assert [("output_config" in body, "tools" in body) for body in endpoint.asked] == [
        (True, False),
        (False, True),
        (False, False),
        (False, False),
    ]


async def test_a_model_that_must_think_gets_room_for_it(at: Connect):
    def thinker(body: Body) -> Answer:
        if "thinking" in body:
            return invalid("thinking.type: 'disabled' is not supported by this model")
        return message({"type": "thinking", "thinking": "Hm.", "signature": "s"}, text(CHANGES))

    asked = prompt()
    with answering(thinker) as endpoint:
        model = at(endpoint)
        for _ in range(2):
            assert (await model.complete(asked)).text == CHANGES
    assert [body["max_tokens"] - asked.max_tokens for body in endpoint.asked] == [0, 4_000, 4_000]
    assert "output_config" in endpoint.asked[-1]


async def test_a_model_that_refuses_everything_is_not_asked_for_ever(at: Connect):
    refusing = answering(invalid("thinking, output_config, tools: not here"))
    with refusing as endpoint, pytest.raises(ModelRejected, match="invalid_request_error"):
        await at(endpoint).complete(prompt())
    assert len(endpoint.asked) == 4


async def test_what_failed_is_not_remembered(at: Connect):
    with answering(invalid("output_config: no"), API.busy(), API.said(CHANGES)) as endpoint:
        model = at(endpoint)
        with pytest.raises(ModelRateLimited):
            await model.complete(prompt())
        await model.complete(prompt())
    assert ["output_config" in body for body in endpoint.asked] == [True, False, True]


@pytest.mark.parametrize(
    "says",
    [
        "max_tokens: 2500 > 2048, which is the maximum allowed number of output tokens for small",
        "prompt is too long: 250000 tokens > 200000 maximum",
        "Your credit balance is too low to access the Anthropic API.",
    ],
)
async def test_a_refusal_of_something_else_is_not_answered_with_another_format(at: Connect, says: str):
    with answering(invalid(says)) as endpoint, pytest.raises(ModelRejected):
        await at(endpoint).complete(prompt())
    assert len(endpoint.asked) == 1


# What is answered


async def test_text_may_come_in_blocks(at: Connect):
    with answering(message(text(CHANGES[:10]), {"type": "new"}, text(CHANGES[10:]), usage=None)) as endpoint:
        answer = await at(endpoint).complete(prompt())
    assert (answer.text, answer.tokens_in, answer.tokens_cached, answer.tokens_out) == (CHANGES, None, None, None)


async def test_usage_without_a_cache_is_usage(at: Connect):
    with answering(message(text(CHANGES), usage={"input_tokens": 20, "output_tokens": 3})) as endpoint:
        answer = await at(endpoint).complete(prompt())
    assert (answer.tokens_in, answer.tokens_cached, answer.tokens_out) == (20, None, 3)


async def test_what_was_written_to_the_cache_is_told(at: Connect):
    with answering(message(text(CHANGES))) as endpoint:
        answer = await at(endpoint).complete(prompt())
    assert (answer.tokens_in, answer.tokens_written) == (91, 7)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (message(), "said nothing (stop_reason end_turn)"),
        (message({"type": "thinking", "thinking": "Hm."}), "said nothing"),
        (message(called(input={}), stop_reason="tool_use"), "said nothing (stop_reason tool_use)"),
        (message(called(), stop_reason="max_tokens"), "broke off"),
        (message(text("Fri"), stop_reason="model_context_window_exceeded"), "broke off"),
        (message(text("I cannot"), stop_reason="refusal"), "'small' declined to answer"),
        (
            message(stop_reason="refusal", stop_details={"type": "refusal", "explanation": "It is about weapons."}),
            "'small' declined to answer",
        ),
        (message(content="hello"), "is no message"),
        (message({"type": "text", "text": 7}, "hello"), "said nothing"),
    ],
)
async def test_an_answer_without_anything_in_it_is_unusable(at: Connect, answer: Answer, says: str):
    with answering(answer) as endpoint, pytest.raises(InvalidModelAnswer) as caught:
        await at(endpoint).complete(prompt())
    assert says in str(caught.value)


@pytest.mark.parametrize("code", ["enforced_spend_limit_reached", "contract_spend_limit_reached"])
async def test_a_spending_limit_is_a_refusal_though_it_comes_as_a_rate_limit(at: Connect, code: str):
    error = {"type": "rate_limit_error", "message": "Limit reached.", "details": {"error_code": code}}
    body = json.dumps({"type": "error", "error": error})
    spent = answering(Answer(status=429, body=body, headers={"Retry-After": "60"}))
    with spent as endpoint, pytest.raises(ModelRejected, match="has no credit left"):
        await at(endpoint).complete(prompt())
