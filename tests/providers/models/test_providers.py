"""What every provider's adapter does alike, each against its own wire format."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from hitherto.errors import InvalidModelAnswer, ModelError, ModelRateLimited, ModelRejected, ModelUnavailable
from hitherto.ports.models import Model
from hitherto.providers.endpoints import response
from hitherto.providers.scripted import items
from tests.providers.models.digests import FACTS, digested, prompt, spoken
from tests.providers.models.endpoint import Answer, Endpoint
from tests.providers.models.providers import KEY, MODEL, PROVIDERS, OpenAI, Service

CHANGES = items(("Friday is at the Granary", [0]))

Connect = Callable[..., Model]
Error = TypeVar("Error", bound=ModelError)


@pytest.fixture(params=PROVIDERS, ids=[one.name for one in PROVIDERS])
def provider(request: pytest.FixtureRequest) -> OpenAI:
    return request.param


@pytest.fixture
async def at(provider: OpenAI) -> AsyncIterator[Connect]:
    """Makes models of the provider at an endpoint, and closes them."""
    models: list[Model] = []

    def connect(endpoint: Endpoint, **options: Any) -> Model:
        models.append(provider.model(endpoint.root, **options))
        return models[-1]

    yield connect
    for model in models:
        await model.aclose()


async def failure(model: Model, kind: type[Error]) -> Error:
    """The error with which the model fails, after a look that neither it nor its causes tell the key."""
    with pytest.raises(ModelError) as caught:
        await model.complete(prompt())
    assert type(caught.value) is kind, caught.value
    assert KEY not in "".join(traceback.format_exception(caught.value))
    assert "\n" not in str(caught.value)
    return caught.value


# What is asked and what is answered


async def test_a_prompt_is_asked_with_its_schema_and_bound(provider: OpenAI, at: Connect):
    asked = prompt()
    with Service(provider, provider.said(CHANGES)) as endpoint:
        answer = await at(endpoint).complete(asked)
    assert answer.text == CHANGES
    [body] = endpoint.asked
    assert endpoint.paths == [provider.path]
    assert body["model"] == MODEL
    assert provider.texts(body) == (asked.system, asked.user)
    assert provider.schema(body) == asked.schema
    assert body[provider.bound] == asked.max_tokens
    assert "stream" not in body or body["stream"] is False


async def test_facts_are_asked_for_with_the_digest_in_a_schema_that_strict_endpoints_take(
    provider: OpenAI, at: Connect
):
    asked = prompt(facts=FACTS)
    answer = items(("Friday is at the Granary", [0]), facts=[("milestone", "Takes the Granary.", [0])])
    with Service(provider, provider.said(answer)) as endpoint:
        made = await digested(at(endpoint), spoken("Let's take the Granary for Friday."), facts=FACTS)
    [body] = endpoint.asked
    assert provider.schema(body) == asked.schema
    assert body[provider.bound] == asked.max_tokens > prompt().max_tokens
    assert [(fact.category, fact.content, fact.seqs) for fact in made.facts or ()] == [
        ("milestone", "Takes the Granary.", (0,))
    ]
    for one in _parts_of(asked.schema):
        match one["type"]:
            case "object":
                assert set(one) == {"type", "properties", "required", "additionalProperties"}
                assert one["required"] == list(one["properties"])
                assert one["additionalProperties"] is False
            case "array":
                assert set(one) == {"type", "items"}
            case kind:
                assert kind in ("string", "integer", "number")
                assert set(one) <= {"type", "enum"}


def _parts_of(schema: Any) -> Iterator[Any]:
    yield schema
    inner = [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]
    for one in inner:
        yield from _parts_of(one)


async def test_its_tokens_are_told_those_of_the_cache_among_them(provider: OpenAI, at: Connect):
    with Service(provider, provider.said(CHANGES)) as endpoint:
        answer = await at(endpoint).complete(prompt())
    assert (answer.tokens_in, answer.tokens_cached, answer.tokens_out) == (91, 64, 17)


@pytest.mark.parametrize("figure", [None, -5, 2**70, 91.5, "91", [91], {}, True], ids=repr)
async def test_usage_that_is_nonsense_is_none(provider: OpenAI, at: Connect, figure: object):
    said = provider.said(CHANGES)
    usage: dict[str, object] = json.loads(said.body)["usage"]
    for wrong in (figure, dict.fromkeys(usage, figure)):
        body = json.dumps({**json.loads(said.body), "usage": wrong})
        with Service(provider, replace(said, body=body)) as endpoint:
            answer = await at(endpoint).complete(prompt())
        assert answer.text == CHANGES
        assert (answer.tokens_in, answer.tokens_cached, answer.tokens_out, answer.tokens_written) == (None,) * 4


async def test_the_core_makes_a_digest_of_it(provider: OpenAI, at: Connect):
    with Service(provider, provider.said(CHANGES)) as endpoint:
        made = await digested(at(endpoint), spoken("Let's take the Granary for Friday."))
    assert made.text == "Friday is at the Granary"


async def test_its_name_is_the_models(provider: OpenAI):
    model = provider.model("http://localhost:1", input_limit=8_000)
    assert (model.name, model.input_limit) == (MODEL, 8_000)
    await model.aclose()
    await model.aclose()


async def test_lone_surrogates_and_special_tokens_are_sent_as_text(provider: OpenAI, at: Connect):
    with Service(provider, provider.said(CHANGES)) as endpoint:
        await at(endpoint).complete(prompt(*spoken("a\ud800b\0c <|endoftext|>")))
    user = provider.texts(endpoint.asked[0])[1]
    assert "a\ufffdb" in user
    assert "<|endoftext|>" in user


async def test_nothing_of_the_environment_is_sent(provider: OpenAI, at: Connect, monkeypatch: pytest.MonkeyPatch):
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"):
        monkeypatch.setenv(name, f"{name}-of-another")
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, f"{name}-of-another")
    for name in ("OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS"):
        monkeypatch.setenv(name, "Authorization: Bearer of-another\nX-Gateway-Key: of-another")
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "AZURE_OPENAI_ENDPOINT"):
        monkeypatch.setenv(name, "http://127.0.0.1:1/v1")
    monkeypatch.setenv("OPENAI_API_VERSION", "of-another")
    with Service(provider, provider.said(CHANGES)) as endpoint:
        await at(endpoint).complete(prompt())
        if provider.name != "ollama":
            await failure(at(endpoint, api_key=None), ModelRejected)
    assert "of-another" not in str(endpoint.headers) + str(endpoint.paths)


# What an endpoint refuses


async def test_a_wrong_key_is_named_as_the_fault_and_not_told(provider: OpenAI, at: Connect):
    with Service(provider, provider.said(CHANGES)) as endpoint:
        error = await failure(at(endpoint, api_key="wrong"), ModelRejected)
    assert "refused the key (401" in str(error)
    assert "HITHERTO_MODEL_KEY" in str(error)
    assert endpoint.root in str(error)
    assert len(endpoint.asked) == 1


@pytest.mark.parametrize("status", [401, 403])
async def test_a_key_that_the_endpoint_repeats_is_not_told(provider: OpenAI, at: Connect, status: int):
    says = provider.failed(status, f"Incorrect API key provided: {KEY}.", "authentication_error", KEY)
    with Service(provider, says) as endpoint:
        error = await failure(at(endpoint), ModelRejected)
    assert f"refused the key ({status}" in str(error)


async def test_an_unknown_model_is_named(provider: OpenAI, at: Connect):
    with Service(provider, provider.said(CHANGES)) as endpoint:
        error = await failure(at(endpoint, model="smal"), ModelRejected)
    assert "does not know the model 'smal' (404: " in str(error)
    assert "HITHERTO_MODEL " in str(error)
    assert len(endpoint.asked) == 1


async def test_a_wrong_path_is_named_as_a_possible_fault(provider: OpenAI, at: Connect):
    with Service(provider, provider.said(CHANGES)) as endpoint:
        error = await failure(at(endpoint, base_url=f"{endpoint.root}/elsewhere"), ModelRejected)
    assert "HITHERTO_MODEL_BASE_URL" in str(error)


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_a_bad_request_is_a_refusal_with_the_errors_name(provider: OpenAI, at: Connect, status: int):
    says = provider.failed(status, "Invalid value: 'Granary'.", "invalid_request_error", "invalid_value")
    with Service(provider, says) as endpoint:
        error = await failure(at(endpoint), ModelRejected)
    assert f"refused the request for 'small' ({status}: invalid_" in str(error)
    assert "Granary" not in str(error)
    assert len(endpoint.asked) == 1


@pytest.mark.parametrize("status", [400, 413, 422])
@pytest.mark.parametrize(
    "says",
    [
        "prompt is too long: 250000 tokens > 200000 maximum",
        "This model's maximum context length is 8192 tokens, however you requested 9000 tokens.",
    ],
)
async def test_what_is_too_long_is_a_refusal_that_says_so(provider: OpenAI, at: Connect, status: int, says: str):
    with Service(provider, provider.failed(status, says, "invalid_request_error", None)) as endpoint:
        error = await failure(at(endpoint), ModelRejected)
    assert f"finds the request too long for 'small' ({status}" in str(error)
    assert "lower HITHERTO_MODEL_INPUT_LIMIT" in str(error)
    assert len(endpoint.asked) == 1


async def test_an_account_without_credit_is_a_refusal(provider: OpenAI, at: Connect):
    with Service(provider, provider.without_credit()) as endpoint:
        error = await failure(at(endpoint), ModelRejected)
    assert "has no credit left (" in str(error)
    assert len(endpoint.asked) == 1


async def test_a_redirect_is_not_followed_with_a_key_and_a_conversation(provider: OpenAI, at: Connect):
    with Endpoint(provider.said(CHANGES), path=None) as other:
        elsewhere = Answer(status=307, headers={"Location": f"{other.root}{provider.path}"})
        with Service(provider, elsewhere) as endpoint:
            error = await failure(at(endpoint), ModelRejected)
    assert "sends the request elsewhere (307)" in str(error)
    assert other.asked == []


# What may be better later


async def test_a_rate_limit_says_how_long_to_wait(provider: OpenAI, at: Connect):
    with Service(provider, provider.busy(Retry_After="20")) as endpoint:
        error = await failure(at(endpoint), ModelRateLimited)
    assert error.retry_after == 20
    assert "lets no more requests through (429" in str(error)
    assert len(endpoint.asked) == 1


async def test_a_rate_limit_may_not_say_how_long(provider: OpenAI, at: Connect):
    with Service(provider, provider.busy(Retry_After="soon")) as endpoint:
        assert (await failure(at(endpoint), ModelRateLimited)).retry_after is None


@pytest.mark.parametrize("status", [408, 409, 500, 502, 503, 504, 529])
async def test_a_failing_endpoint_cannot_be_reached(provider: OpenAI, at: Connect, status: int):
    with Service(provider, provider.broken(status, retry_after_ms="1500")) as endpoint:
        error = await failure(at(endpoint), ModelUnavailable)
    assert error.retry_after == 1.5
    assert f"is failing ({status}: " in str(error)
    assert len(endpoint.asked) == 1, "one call is one request"


async def test_a_page_in_place_of_an_error_is_not_repeated(provider: OpenAI, at: Connect):
    page = Answer(status=502, body="<h1>Bad Gateway</h1>\n" * 1_000, headers={"Content-Type": "text/html"})
    with Service(provider, page) as endpoint:
        error = await failure(at(endpoint), ModelUnavailable)
    assert "is failing (502);" in str(error)


async def test_a_connection_cut_in_the_middle_of_a_body(provider: OpenAI, at: Connect):
    with Service(provider, Answer(body=provider.said(CHANGES).body, cut=40), provider.said(CHANGES)) as endpoint:
        model = at(endpoint)
        assert f"no answer from {endpoint.root}" in str(await failure(model, ModelUnavailable))
        assert (await model.complete(prompt())).text == CHANGES, "the next call has a connection of its own"


async def test_silence_ends_at_the_timeout(provider: OpenAI, at: Connect):
    begun = asyncio.get_running_loop().time()
    with Service(provider, Answer(silent=True)) as endpoint:
        error = await failure(at(endpoint, timeout=0.3), ModelUnavailable)
    assert "did not answer within 0.3 seconds" in str(error)
    assert error.retry_after is None
    assert asyncio.get_running_loop().time() - begun < 2
    assert len(endpoint.asked) == 1


@pytest.mark.parametrize("status", [200, 500])
async def test_an_answer_that_drips_is_not_waited_for(provider: OpenAI, at: Connect, status: int):
    begun = asyncio.get_running_loop().time()
    with Service(provider, Answer(status=status, body=provider.said(CHANGES).body, pause=0.05)) as endpoint:
        await failure(at(endpoint, timeout=0.3), ModelUnavailable)
    assert asyncio.get_running_loop().time() - begun < 2


async def test_a_closed_port_cannot_be_reached(provider: OpenAI):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        model = provider.model(f"http://someone:{KEY}@127.0.0.1:{port}")
        error = await failure(model, ModelUnavailable)
        await model.aclose()
    assert "HITHERTO_MODEL_BASE_URL" in str(error)
    assert f"no answer from http://127.0.0.1:{port}" in str(error)


async def test_cancelling_ends_the_call(provider: OpenAI, at: Connect):
    with Service(provider, Answer(silent=True)) as endpoint:
        call = asyncio.create_task(at(endpoint).complete(prompt()))
        await asyncio.to_thread(endpoint.reached.wait)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call


# What cannot be used


@pytest.mark.parametrize(
    "answer",
    [
        Answer(body="}{ nonsense"),
        Answer(body=""),
        Answer(body="<html>Welcome</html>", headers={"Content-Type": "text/html"}),
        Answer(body="[" * 100_000),
        Answer(body="7"),
        Answer(body="{}"),
        Answer(status=204),
    ],
    ids=["nonsense", "nothing", "html", "nested", "number", "object", "no content"],
)
async def test_something_else_is_no_answer(provider: OpenAI, at: Connect, answer: Answer):
    with Service(provider, answer) as endpoint:
        error = await failure(at(endpoint), InvalidModelAnswer)
    assert f"answered with something that is no {'message' if provider.name == 'anthropic' else 'chat comp'}" in str(
        error
    )
    assert "HITHERTO_MODEL_BASE_URL" in str(error)


@pytest.mark.parametrize("text", ["", "  \n", None])
async def test_an_empty_answer_is_unusable(provider: OpenAI, at: Connect, text: str | None):
    with Service(provider, provider.said(text)) as endpoint:
        assert "said nothing" in str(await failure(at(endpoint), InvalidModelAnswer))


async def test_an_answer_that_broke_off_is_unusable(provider: OpenAI, at: Connect):
    with Service(provider, provider.said('{"add": [{"text": "Fri', cut_short=True)) as endpoint:
        assert "broke off at its bound" in str(await failure(at(endpoint), InvalidModelAnswer))


async def test_a_whole_answer_at_its_bound_is_an_answer(provider: OpenAI, at: Connect):
    with Service(provider, provider.said(CHANGES, cut_short=True)) as endpoint:
        assert (await at(endpoint).complete(prompt())).text == CHANGES


async def test_a_body_without_end_is_given_up_early(provider: OpenAI, at: Connect, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(response, "LONGEST", 300_000)
    with Service(provider, Answer(body=" " * 10_000, endless=True)) as endpoint:
        assert "answered with more than" in str(await failure(at(endpoint), InvalidModelAnswer))


async def test_a_body_that_unpacks_without_end_is_given_up_early(provider: OpenAI, at: Connect):
    packed = gzip.compress(b" " * 30_000_000).decode("latin-1")
    bomb = Answer(body=packed, charset="latin-1", headers={"Content-Encoding": "gzip"})
    with Service(provider, bomb) as endpoint:
        assert "answered with more than 10 MB" in str(await failure(at(endpoint), InvalidModelAnswer))


async def test_an_error_without_end_is_still_that_error(provider: OpenAI, at: Connect):
    with Service(provider, Answer(status=503, body="Oops. " * 1_000, endless=True)) as endpoint:
        assert "is failing (503);" in str(await failure(at(endpoint), ModelUnavailable))


@pytest.mark.parametrize("charset", ["zlib_codec", "utf-16", "nonsense"])
async def test_whatever_charset_it_names_an_answer_is_utf_8(provider: OpenAI, at: Connect, charset: str):
    headers = {"Content-Type": f"application/json; charset={charset}"}
    with Service(provider, replace(provider.said(CHANGES), headers=headers)) as endpoint:
        assert (await at(endpoint).complete(prompt())).text == CHANGES


async def test_an_answer_of_parts_within_parts_says_nothing(provider: OpenAI, at: Connect):
    parts: Any = []
    for _ in range(400):
        parts = [{"type": "text", "text": parts}]
    with Service(provider, provider.said(parts)) as endpoint:
        await failure(at(endpoint), InvalidModelAnswer)


async def test_a_packed_answer_is_read(provider: OpenAI, at: Connect):
    packed = gzip.compress(provider.said(CHANGES).body.encode()).decode("latin-1")
    answer = Answer(body=packed, charset="latin-1", headers={"Content-Encoding": "gzip"})
    with Service(provider, answer) as endpoint:
        assert (await at(endpoint).complete(prompt())).text == CHANGES


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "Provider returned error", "code": 502}, ModelUnavailable),
        ({"message": "Provider returned error", "code": 429}, ModelRateLimited),
        ({"message": "Provider returned error", "code": 402}, ModelRejected),
        ({"message": "Provider returned error", "code": "bad"}, ModelRejected),
        ("Provider returned error", ModelRejected),
    ],
)
async def test_an_error_in_place_of_an_answer_means_what_it_says(
    provider: OpenAI, at: Connect, error: object, kind: type[ModelError]
):
    with Service(provider, Answer(body=json.dumps({"error": error}))) as endpoint:
        assert "Provider returned error" not in str(await failure(at(endpoint), kind))
