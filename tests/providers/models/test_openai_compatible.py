"""What only this adapter does; the rest is in test_providers."""

from __future__ import annotations

import json
import traceback
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from hitherto.errors import InvalidModelAnswer, ModelRateLimited, ModelRejected, ModelUnavailable
from hitherto.providers.openai_compatible.model import OpenAICompatible
from hitherto.providers.scripted import items
from tests.providers.models.digests import prompt
from tests.providers.models.endpoint import Answer, Body, Endpoint, connecting, refused, said

KEY = "sk-quire-lane-7f3a"
CHANGES = items(("Friday is at the Granary", [0]))


Connect = Callable[..., OpenAICompatible]


@pytest.fixture
async def at() -> AsyncIterator[Connect]:
    """Makes models at an endpoint, and closes them."""
    async with connecting(OpenAICompatible, model="small", api_key=KEY) as connect:
        yield connect


async def failure(model: OpenAICompatible, kind: type[Exception]) -> str:
    """The message with which the model fails, after a look that neither it nor its causes tell the key."""
    with pytest.raises(kind) as caught:
        await model.complete(prompt())
    assert KEY not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


# What is asked and what is answered


async def test_structured_output_is_asked_for_and_read(at: Connect):
    asked = prompt()
    with Endpoint(said(CHANGES)) as endpoint:
        answer = await at(endpoint).complete(asked)
    assert (answer.text, answer.tokens_in, answer.tokens_out) == (CHANGES, 91, 17)
    [body] = endpoint.asked
    assert body["model"] == "small"
    assert body["messages"] == [
        {"role": "system", "content": asked.system},
        {"role": "user", "content": asked.user},
    ]
    assert body["response_format"]["json_schema"] == {
        "name": "digest_changes",
        "schema": asked.schema,
        "strict": True,
    }
    assert body["max_tokens"] == asked.max_tokens
    assert set(body) == {"model", "messages", "response_format", "max_tokens"}
    assert endpoint.headers[0]["authorization"] == f"Bearer {KEY}"


async def test_content_may_come_in_parts_after_thoughts_and_without_usage(at: Connect):
    parts = [{"type": "text", "text": "<think>Let me see. "}, {"type": "text", "text": f"Yes.</think>\n{CHANGES}"}]
    answer = Answer(
        body=json.dumps({"choices": [{"message": {"content": parts}}]}), headers={"Content-Type": "text/plain"}
    )
    with Endpoint(answer) as endpoint:
        completion = await at(endpoint).complete(prompt())
    assert (completion.text, completion.tokens_in, completion.tokens_out) == (CHANGES, None, None)


# What an endpoint cannot do


def no_schema(body: Body) -> Answer:
    kind = body.get("response_format", {}).get("type")
    return refused(400, "This response_format type is unavailable now") if kind == "json_schema" else said(CHANGES)


def no_format(body: Body) -> Answer:
    unsupported = Answer(status=422, body=json.dumps({"detail": [{"loc": ["body", "response_format"], "msg": "no"}]}))
    return unsupported if "response_format" in body else said(CHANGES)


def as_llama_cpp_python(body: Body) -> Answer:
    if body["response_format"]["type"] != "json_schema":
        return said(CHANGES)
    fault = "{'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), 'input': 'json_schema'}"
    error = {"message": f"1 validation error:\n  {fault}", "type": "internal_server_error", "param": None, "code": None}
    return Answer(status=500, body=json.dumps({"error": error}))


@pytest.mark.parametrize("refusing", [no_schema, as_llama_cpp_python])
async def test_a_refused_schema_goes_beside_a_json_object_and_that_is_remembered(
    at: Connect, refusing: Callable[[Body], Answer]
):
    asked = prompt()
    with Endpoint(refusing) as endpoint:
        model = at(endpoint)
        for _ in range(2):
            assert (await model.complete(asked)).text == CHANGES
    assert endpoint.asked[0]["response_format"]["type"] == "json_schema"
    beside = {"type": "json_object", "schema": asked.schema}
    assert [body["response_format"] for body in endpoint.asked[1:]] == [beside, beside]


async def test_a_json_object_is_asked_for_without_the_schema_where_only_that_is_known(at: Connect):
    def strict(body: Body) -> Answer:
        if "schema" in body["response_format"]:
            return refused(400, "Unknown parameter: 'response_format.schema'.", param="response_format.schema")
        return no_schema(body)

    with Endpoint(strict) as endpoint:
        assert (await at(endpoint).complete(prompt())).text == CHANGES
    assert endpoint.asked[-1]["response_format"] == {"type": "json_object"}
    assert len(endpoint.asked) == 3


async def test_another_500_is_no_objection_to_the_format(at: Connect):
    with Endpoint(refused(500, "the schema cache is not reachable")) as endpoint:
        await failure(at(endpoint), ModelUnavailable)
    assert len(endpoint.asked) == 1


async def test_an_endpoint_without_any_format_is_asked_without(at: Connect):
    with Endpoint(no_format) as endpoint:
        model = at(endpoint)
        for _ in range(2):
            assert (await model.complete(prompt())).text == CHANGES
    assert ["response_format" in body for body in endpoint.asked] == [True, True, True, False, False]


async def test_an_endpoint_that_only_knows_max_completion_tokens_gets_them(at: Connect):
    def newer(body: Body) -> Answer:
        if "max_tokens" in body:
            says = "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
            return refused(400, f"Unsupported parameter: {says}", param="max_tokens")
        return no_schema(body)

    asked = prompt()
    with Endpoint(newer) as endpoint:
        model = at(endpoint)
        for _ in range(2):
            await model.complete(asked)
    assert ["max_tokens" in body for body in endpoint.asked] == [True, False, False, False]
    assert endpoint.asked[-1]["max_completion_tokens"] == asked.max_tokens
    assert endpoint.asked[-1]["response_format"] == {"type": "json_object", "schema": asked.schema}


async def test_an_endpoint_that_refuses_everything_is_not_asked_for_ever(at: Connect):
    with Endpoint(refused(400, "max_tokens, max_completion_tokens and response_format are unsupported")) as endpoint:
        assert "(400: invalid_request_error)" in await failure(at(endpoint), ModelRejected)
        assert len(endpoint.asked) == 2
    with Endpoint(refused(400, "unsupported")) as endpoint:
        await failure(at(endpoint), ModelRejected)
        assert len(endpoint.asked) == 4


async def test_what_failed_is_not_remembered(at: Connect):
    with Endpoint(refused(400, "unsupported"), refused(429, "slow down"), said(CHANGES)) as endpoint:
        model = at(endpoint)
        with pytest.raises(ModelRateLimited):
            await model.complete(prompt())
        await model.complete(prompt())
    assert [body["response_format"]["type"] for body in endpoint.asked] == ["json_schema", "json_object", "json_schema"]


# What an endpoint refuses


async def test_a_missing_key_is_named_as_missing(at: Connect):
    with Endpoint(refused(401, "You didn't provide an API key.")) as endpoint:
        assert "wants a key and none is set" in await failure(at(endpoint, api_key=None), ModelRejected)


async def test_a_word_in_the_place_of_a_key_hides_nothing(at: Connect):
    """Servers that need no key are given one letter, or "none"."""
    with Endpoint(refused(400, "no", code="max_exceeded")) as endpoint:
        assert "max_exceeded" in await failure(at(endpoint, api_key="x"), ModelRejected)
    with Endpoint(refused(400, "no", code=f"of_{KEY}")) as endpoint:
        assert KEY not in await failure(at(endpoint), ModelRejected)


async def test_an_unknown_model_is_named(at: Connect):
    with Endpoint(Answer(status=404, body='{"error": "model \'smal\' not found, try pulling it first"}')) as endpoint:
        message = await failure(at(endpoint, model="smal"), ModelRejected)
    assert "does not know the model 'smal' (404);" in message
    assert "HITHERTO_MODEL " in message
    assert len(endpoint.asked) == 1


@pytest.mark.parametrize(
    "error",
    [
        {"type": "billing_not_active", "code": "billing_not_active"},
        {"type": "insufficient_quota", "code": None},
        {"type": "requests", "code": "project_spend_limit_exceeded"},
    ],
)
async def test_a_429_for_want_of_money_is_a_refusal(at: Connect, error: Body):
    body = json.dumps({"error": {"message": "See your billing details.", **error}})
    with Endpoint(Answer(status=429, body=body, headers={"Retry-After": "1"})) as endpoint:
        assert f"has no credit left (429: {error['type']}" in await failure(at(endpoint), ModelRejected)


async def test_a_429_that_the_same_request_gets_for_ever_is_a_refusal(at: Connect):
    says = "Request too large for small on tokens per min (TPM): Limit 30000, Requested 40000."
    with Endpoint(refused(429, says, code="rate_limit_exceeded")) as endpoint:
        assert "HITHERTO_MODEL_INPUT_LIMIT" in await failure(at(endpoint), ModelRejected)


async def test_an_error_in_a_list_is_read(at: Connect):
    body = json.dumps([{"error": {"code": 429, "message": "Resource exhausted.", "status": "RESOURCE_EXHAUSTED"}}])
    with Endpoint(Answer(status=429, body=body)) as endpoint:
        assert "(429: RESOURCE_EXHAUSTED)" in await failure(at(endpoint), ModelRateLimited)


# What cannot be used


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (said("<think>Hm.</think>"), "said nothing"),
        (said(None, finish="content_filter"), "said nothing (finish_reason content_filter)"),
        (said(None, refusal="I cannot help with that."), "declined to answer"),
        (said(None, finish="I cannot help with that."), "said nothing (finish_reason None)"),
        (said(None, finish="length"), "broke off"),
        (said("<think>Let me see", finish="length"), "broke off"),
        (said('{"add": [{"text": "Fri', finish="length"), "broke off"),
        (Answer(body='{"choices": []}'), "is no chat completion"),
        (Answer(body='{"choices": "none"}'), "is no chat completion"),
        (Answer(body='{"choices": [{"message": "hello"}]}'), "is no chat completion"),
        (said({"add": []}), "said nothing"),
    ],
)
async def test_an_answer_without_anything_in_it_is_unusable(at: Connect, answer: Answer, says: str):
    with Endpoint(answer) as endpoint:
        assert says in await failure(at(endpoint), InvalidModelAnswer)


def test_what_clients_trust_is_read_once() -> None:
    """Not for each model, which would hold up the event loop for 30 ms."""
    models: list[Any] = [OpenAICompatible(model=f"model {number}", api_key="k") for number in range(2)]
    first, second = (one._endpoint.client._client._transport._pool._ssl_context for one in models)
    assert first is second


@pytest.mark.parametrize(
    ("fields", "cached", "written"),
    [
        ({"prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 27}, 64, None),
        ({"cached_tokens": 64}, 64, None),
        ({"cache_read_input_tokens": 64, "cache_creation_input_tokens": 7}, 64, 7),
        ({"prompt_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 7}}, 64, 7),
        ({"prompt_tokens_details": {"cached_tokens": "64"}, "cached_tokens": -1}, None, None),
        ({"prompt_tokens_details": None}, None, None),
    ],
)
async def test_cache_fields_of_other_providers(
    at: Connect, fields: Body, cached: int | None, written: int | None
) -> None:
    body = {**json.loads(said(CHANGES).body), "usage": {"prompt_tokens": 91, "completion_tokens": 17, **fields}}
    with Endpoint(Answer(body=json.dumps(body))) as endpoint:
        answer = await at(endpoint).complete(prompt())
    assert (answer.tokens_in, answer.tokens_cached, answer.tokens_written) == (91, cached, written)
