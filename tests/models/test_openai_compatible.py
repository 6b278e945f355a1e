from __future__ import annotations

import asyncio
import json
import socket
import traceback
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from hitherto.errors import InvalidSettings, ModelAnswerUnusable, ModelRefused, ModelUnreachable
from hitherto.models.openai_compatible import OpenAICompatible
from hitherto.models.scripted import items
from tests.models.digests import digested, prompt, spoken
from tests.models.endpoint import Answer, Body, Endpoint, refused, said

KEY = "sk-quire-lane-7f3a"
CHANGES = items(("Friday is at the Granary", [0]))


@pytest.fixture(autouse=True)
def _nothing_from_the_environment(monkeypatch: pytest.MonkeyPatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


Connect = Callable[..., OpenAICompatible]


@pytest.fixture
async def at() -> AsyncIterator[Connect]:
    """Makes models at an endpoint, without retries unless asked for, and closes them."""
    models: list[OpenAICompatible] = []

    def connect(endpoint: Endpoint, **options: Any) -> OpenAICompatible:
        chosen: dict[str, Any] = {"model": "small", "base_url": endpoint.url, "api_key": KEY, "max_retries": 0}
        models.append(OpenAICompatible(**{**chosen, **options}))
        return models[-1]

    yield connect
    for model in models:
        await model.aclose()


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


async def test_the_core_makes_a_digest_of_it(at: Connect):
    with Endpoint(said(CHANGES)) as endpoint:
        made = await digested(at(endpoint), spoken("Let's take the Granary for Friday."))
    assert made.text == "Friday is at the Granary"


async def test_its_name_is_the_models():
    model = OpenAICompatible(model="small", input_limit=8_000)
    assert (model.name, model.input_limit) == ("small", 8_000)
    await model.aclose()
    await model.aclose()


async def test_a_key_of_the_environment_is_not_sent_to_another_address(at: Connect, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Endpoint(said(CHANGES)) as endpoint:
        await at(endpoint, api_key=None).complete(prompt())
    assert KEY not in str(endpoint.headers)


async def test_lone_surrogates_and_special_tokens_are_sent_as_text(at: Connect):
    with Endpoint(said(CHANGES)) as endpoint:
        await at(endpoint).complete(prompt(*spoken("a\ud800b\0c <|endoftext|>")))
    assert "a\ufffdb" in endpoint.asked[0]["messages"][1]["content"]
    assert "<|endoftext|>" in endpoint.asked[0]["messages"][1]["content"]


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


async def test_a_refused_schema_falls_back_to_a_json_object_and_that_is_remembered(at: Connect):
    with Endpoint(no_schema) as endpoint:
        model = at(endpoint)
        for _ in range(2):
            assert (await model.complete(prompt())).text == CHANGES
    kinds = [body["response_format"]["type"] for body in endpoint.asked]
    assert kinds == ["json_schema", "json_object", "json_object"]


async def test_an_endpoint_without_any_format_is_asked_without(at: Connect):
    with Endpoint(no_format) as endpoint:
        model = at(endpoint)
        for _ in range(2):
            assert (await model.complete(prompt())).text == CHANGES
    assert ["response_format" in body for body in endpoint.asked] == [True, True, False, False]


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
    assert endpoint.asked[-1]["response_format"] == {"type": "json_object"}


async def test_an_endpoint_that_refuses_everything_is_not_asked_for_ever(at: Connect):
    with Endpoint(refused(400, "max_tokens, max_completion_tokens and response_format are unsupported")) as endpoint:
        assert "are unsupported" in await failure(at(endpoint), ModelRefused)
        assert len(endpoint.asked) == 2
    with Endpoint(refused(400, "unsupported")) as endpoint:
        await failure(at(endpoint), ModelRefused)
        assert len(endpoint.asked) == 3


async def test_what_failed_is_not_remembered(at: Connect):
    with Endpoint(refused(400, "unsupported"), refused(429, "slow down"), said(CHANGES)) as endpoint:
        model = at(endpoint)
        with pytest.raises(ModelRefused):
            await model.complete(prompt())
        await model.complete(prompt())
    assert [body["response_format"]["type"] for body in endpoint.asked] == ["json_schema", "json_object", "json_schema"]


# What an endpoint refuses


@pytest.mark.parametrize("status", [401, 403])
async def test_a_wrong_key_is_named_as_the_fault_and_not_told(at: Connect, status: int):
    with Endpoint(refused(status, f"Incorrect API key provided: {KEY}.")) as endpoint:
        message = await failure(at(endpoint), ModelRefused)
    assert "HITHERTO_MODEL_KEY" in message
    assert "Incorrect API key provided: [key]." in message
    assert endpoint.url in message


async def test_a_missing_key_is_named_as_missing(at: Connect):
    with Endpoint(refused(401, "You didn't provide an API key.")) as endpoint:
        assert "wants a key and none is set" in await failure(at(endpoint, api_key=None), ModelRefused)


async def test_an_unknown_model_is_named(at: Connect):
    with Endpoint(Answer(status=404, body='{"error": "model \'smal\' not found, try pulling it first"}')) as endpoint:
        message = await failure(at(endpoint, model="smal"), ModelRefused)
    assert "does not know the model 'smal' (404: model 'smal' not found, try pulling it first)" in message
    assert "HITHERTO_MODEL " in message
    assert len(endpoint.asked) == 1


async def test_a_wrong_path_is_named_as_a_possible_fault(at: Connect):
    with Endpoint(said(CHANGES)) as endpoint:
        message = await failure(at(endpoint, base_url=endpoint.url.removesuffix("/v1")), ModelRefused)
    assert "Unknown request URL" in message
    assert "HITHERTO_MODEL_BASE_URL" in message


async def test_a_rate_limit_is_waited_for(at: Connect):
    busy = refused(429, "Rate limit reached", Retry_After="0.01")
    with Endpoint(busy, busy, said(CHANGES)) as endpoint:
        assert (await at(endpoint, max_retries=2).complete(prompt())).text == CHANGES
    assert len(endpoint.asked) == 3


async def test_a_rate_limit_without_end_is_a_refusal(at: Connect):
    with Endpoint(refused(429, "Rate limit reached", Retry_After="0.01")) as endpoint:
        assert "Rate limit reached" in await failure(at(endpoint, max_retries=1), ModelRefused)
    assert len(endpoint.asked) == 2


async def test_a_wait_longer_than_the_timeout_is_not_waited_for(at: Connect):
    with Endpoint(refused(429, "Rate limit reached", Retry_After="100")) as endpoint:
        assert "0.2 seconds" in await failure(at(endpoint, max_retries=2, timeout=0.2), ModelUnreachable)


async def test_an_endpoint_that_fails_for_ever_is_given_up(at: Connect):
    with Endpoint(Answer(status=500, body="<h1>Oops</h1>" * 1_000, headers={"Retry-After": "0.01"})) as endpoint:
        message = await failure(at(endpoint, max_retries=1), ModelUnreachable)
    assert "(500: <h1>Oops</h1>" in message
    assert len(message) < 600
    assert len(endpoint.asked) == 2


async def test_an_error_in_place_of_an_answer_is_a_refusal(at: Connect):
    with Endpoint(Answer(body='{"error": {"message": "Provider returned error", "code": 502}}')) as endpoint:
        assert "Provider returned error" in await failure(at(endpoint), ModelRefused)


# What does not come


async def test_silence_is_an_endpoint_that_cannot_be_reached(at: Connect):
    with Endpoint(Answer(silent=True)) as endpoint:
        message = await failure(at(endpoint, timeout=0.3), ModelUnreachable)
    assert "did not answer within 0.3 seconds" in message
    assert endpoint.url in message


async def test_an_answer_that_drips_is_not_waited_for(at: Connect):
    begun = asyncio.get_running_loop().time()
    with Endpoint(Answer(body=said(CHANGES).body, pause=0.05)) as endpoint:
        await failure(at(endpoint, timeout=0.3), ModelUnreachable)
    assert asyncio.get_running_loop().time() - begun < 2


async def test_a_connection_cut_in_the_middle_is_an_endpoint_that_cannot_be_reached(at: Connect):
    with Endpoint(Answer(body=said(CHANGES).body, cut=40)) as endpoint:
        assert f"no answer from {endpoint.url}" in await failure(at(endpoint), ModelUnreachable)


async def test_a_closed_port_cannot_be_reached():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://someone:{KEY}@127.0.0.1:{taken.getsockname()[1]}/v1"
        model = OpenAICompatible(model="small", base_url=url, max_retries=0)
        message = await failure(model, ModelUnreachable)
        await model.aclose()
    assert "HITHERTO_MODEL_BASE_URL" in message
    assert "http://127.0.0.1:" in message


async def test_cancelling_ends_the_call(at: Connect):
    with Endpoint(Answer(silent=True)) as endpoint:
        call = asyncio.create_task(at(endpoint).complete(prompt()))
        await asyncio.to_thread(endpoint.reached.wait)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call


# What cannot be used


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (said(""), "said nothing (finish_reason stop)"),
        (said("  \n"), "said nothing"),
        (said("<think>Hm.</think>"), "said nothing"),
        (said(None, finish="content_filter"), "said nothing (finish_reason content_filter)"),
        (said(None, refusal="I cannot help with that."), "declined: I cannot help with that."),
        (said(None, finish="length"), "broke off"),
        (said("<think>Let me see", finish="length"), "broke off"),
        (said('{"add": [{"text": "Fri', finish="length"), "broke off"),
        (Answer(body="}{ nonsense"), "is no chat completion: '}{ nonsense'"),
        (Answer(body=""), "is no chat completion"),
        (Answer(body="<html>Welcome</html>", headers={"Content-Type": "text/html"}), "Welcome"),
        (Answer(body="[" * 100_000), "is no chat completion"),
        (Answer(body='{"choices": []}'), "is no chat completion"),
        (Answer(body='{"choices": "none"}'), "is no chat completion"),
        (Answer(body='{"choices": [{"message": "hello"}]}'), "is no chat completion"),
        (Answer(body="7"), "is no chat completion"),
        (said({"add": []}), "said nothing"),
    ],
)
async def test_an_answer_without_anything_in_it_is_unusable(at: Connect, answer: Answer, says: str):
    with Endpoint(answer) as endpoint:
        assert says in await failure(at(endpoint), ModelAnswerUnusable)


async def test_a_whole_answer_at_its_bound_is_an_answer(at: Connect):
    with Endpoint(said(CHANGES, finish="length")) as endpoint:
        assert (await at(endpoint).complete(prompt())).text == CHANGES


@pytest.mark.parametrize("key", ["sk quire", "sk-schlüssel", "sk-\x07", "sk-\nx"])
def test_a_key_that_no_header_can_carry_is_refused_at_once(key: str):
    with pytest.raises(InvalidSettings, match="HITHERTO_MODEL_KEY") as caught:
        OpenAICompatible(model="small", api_key=key)
    assert key not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    ["localhost:11434", "ftp://127.0.0.1", "http://", "http://[::1", "http://h:x", "http://a b/", "http://h/\ud800"],
)
def test_an_address_that_is_none_is_refused_at_once(url: str):
    with pytest.raises(InvalidSettings, match="HITHERTO_MODEL_BASE_URL"):
        OpenAICompatible(model="small", base_url=url)


def test_blanks_around_a_key_are_left_out():
    OpenAICompatible(model="small", api_key=f" {KEY}\n")
