from __future__ import annotations

import json
import traceback
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto.core.log.message import RESPONSES, Kind, Payload
from hitherto.errors import (
    HithertoError,
    InvalidModelAnswer,
    InvalidSettings,
    ModelRejected,
)
from hitherto.ports.models import family_of
from hitherto.providers.openai_compatible.compactor import OpenAICompactor
from hitherto.wire import codec
from tests.providers.models.endpoint import Answer, Body, Endpoint, compacted, connecting, refused, said

KEY = "sk-quire-lane-7f3a"
SAID: Body = {
    "type": "message",
    "id": "msg_1",
    "status": "completed",
    "role": "user",
    "content": [{"type": "input_text", "text": "Shall we take the Granary?"}],
    "x_new": [1],
}
OPAQUE: Body = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA", "x_new": None}
ITEMS: list[Payload] = [
    {"role": "user", "content": "Shall we take the Granary?"},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"},
    {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}", "x_new": {"async_": True}},
    {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "free"}]},
]


Connect = Callable[..., OpenAICompactor]


@pytest.fixture
async def at() -> AsyncIterator[Connect]:
    """Makes compactors at an endpoint, and closes them."""
    async with connecting(OpenAICompactor, model="gpt-5.2", api_key=KEY) as connect:
        yield connect


def answering(*answers: Answer | Callable[[Body], Answer]) -> Endpoint:
    return Endpoint(*answers, path="/v1/responses/compact")


def like_openai(body: Body) -> Answer:
    """Looks at the shape of the input before it asks a model, as OpenAI does."""
    if not isinstance(body.get("input"), str | list):
        return refused(400, "Invalid type for 'input': expected a string or an array.", code="invalid_type")
    return compacted(SAID, OPAQUE)


ContextRequest = Callable[[OpenAICompactor], Any]


def check(compactor: OpenAICompactor) -> Any:
    return compactor.check()


def compact(compactor: OpenAICompactor) -> Any:
    return compactor.compact(ITEMS)


async def failure(compactor: OpenAICompactor, kind: type[HithertoError], ask: ContextRequest = compact) -> str:
    """The message with which the compactor fails, after a look that neither it nor its causes tell the key."""
    with pytest.raises(HithertoError) as caught:
        await ask(compactor)
    assert type(caught.value) is kind
    assert KEY not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


# What is asked and what is answered


async def test_the_endpoints_items_come_back_whole(at: Connect):
    with answering(like_openai) as endpoint:
        done = await at(endpoint).compact(ITEMS, instructions="Keep what was decided.")
    assert json.dumps(done.items) == json.dumps([SAID, OPAQUE])
    assert (done.tokens_in, done.tokens_cached, done.tokens_out) == (139, 128, 438)
    assert [codec(RESPONSES).read(item).kind for item in done.items] == [Kind.TEXT, Kind.COMPACTION]
    [body] = endpoint.asked
    assert body == {"model": "gpt-5.2", "input": ITEMS, "instructions": "Keep what was decided."}
    assert json.dumps(body["input"]) == json.dumps(ITEMS)
    assert endpoint.headers[0]["authorization"] == f"Bearer {KEY}"


async def test_without_instructions_none_are_sent(at: Connect):
    with answering(compacted(OPAQUE, usage=None)) as endpoint:
        done = await at(endpoint).compact(ITEMS)
    assert (done.items, done.tokens_in, done.tokens_cached, done.tokens_out) == ((OPAQUE,), None, None, None)
    assert set(endpoint.asked[0]) == {"model", "input"}


async def test_it_says_which_model_and_family_it_is():
    compactor = OpenAICompactor(model="openai/gpt-5.2-2025-12-11")
    assert (compactor.name, compactor.family) == ("openai/gpt-5.2-2025-12-11", "gpt-5.2")
    await compactor.aclose()
    await compactor.aclose()


# Whether there is such a call


@pytest.mark.parametrize(
    "answer",
    [
        like_openai,
        Answer(status=422, body=json.dumps({"detail": [{"loc": ["body", "input"], "msg": "Input should be a list"}]})),
        compacted(OPAQUE),
    ],
)
async def test_an_endpoint_that_has_the_call_passes(at: Connect, answer: Answer | Callable[[Body], Answer]):
    with answering(answer) as endpoint:
        await at(endpoint).check()
    assert len(endpoint.asked) == 1


async def test_the_check_makes_no_model_work(at: Connect):
    worked: list[Body] = []

    def counted(body: Body) -> Answer:
        answer = like_openai(body)
        worked.extend([body] if answer.status == 200 else [])
        return answer

    with answering(counted) as endpoint:
        await at(endpoint).check()
        assert worked == []
        await at(endpoint).compact(ITEMS)
        assert len(worked) == 1


NO_SUCH_CALL = [
    refused(404, "Invalid URL (POST /v1/responses/compact)"),
    Answer(status=404, body="404 page not found", headers={"Content-Type": "text/plain"}),
    Answer(status=404, body='{"detail": "Not Found"}'),
    Answer(status=404),
    Answer(status=405, body='{"detail": "Method Not Allowed"}'),
    Answer(status=501, body="Unsupported method"),
]


@pytest.mark.parametrize("answer", NO_SUCH_CALL)
async def test_an_endpoint_without_the_call_is_told_at_configuration_time(at: Connect, answer: Answer):
    with answering(answer) as endpoint:
        message = await failure(at(endpoint), InvalidSettings, check)
    assert message.startswith(f"{endpoint.url}/responses/compact is not there ({answer.status}")
    assert "HITHERTO_COMPACT_BASE_URL" in message
    assert "summarize" in message


@pytest.mark.parametrize("answer", NO_SUCH_CALL)
async def test_a_call_that_went_away_later_is_a_refusal(at: Connect, answer: Answer):
    with answering(answer) as endpoint:
        assert "/responses/compact is not there" in await failure(at(endpoint), ModelRejected)


@pytest.mark.parametrize(
    "answer", [Answer(body="<html>Welcome</html>", headers={"Content-Type": "text/html"}), said("hello"), Answer()]
)
async def test_a_page_for_everything_is_no_such_call(at: Connect, answer: Answer):
    with answering(answer) as endpoint:
        assert "is not there (it answered with " in await failure(at(endpoint), InvalidSettings, check)


async def test_a_wrong_path_is_named_as_a_possible_fault(at: Connect):
    with answering(like_openai) as endpoint:
        message = await failure(at(endpoint, base_url=endpoint.url.removesuffix("v1")), InvalidSettings, check)
    assert "/responses/compact is not there (404" in message
    assert "often ends in /v1" in message


# What an endpoint refuses

either = pytest.mark.parametrize("ask", [check, compact])


@either
async def test_a_wrong_key_is_named_as_the_fault_and_not_told(at: Connect, ask: ContextRequest):
    with answering(refused(401, f"Incorrect API key provided: {KEY}.", code="invalid_api_key")) as endpoint:
        message = await failure(at(endpoint), ModelRejected, ask)
    assert "HITHERTO_COMPACT_KEY" in message
    assert "invalid_api_key" in message


UNKNOWN = "The model `gpt-5.2` does not exist or you do not have access to it."


@either
@pytest.mark.parametrize(
    "answer",
    [
        refused(404, UNKNOWN, code="model_not_found"),
        refused(404, "The API deployment for this resource does not exist.", code="DeploymentNotFound"),
        Answer(status=404, body='{"error": "model \'gpt-5.2\' not found, try pulling it first"}'),
        refused(400, UNKNOWN, code="model_not_found"),
    ],
)
async def test_an_unknown_model_is_named(at: Connect, ask: ContextRequest, answer: Answer):
    with answering(answer) as endpoint:
        message = await failure(at(endpoint), ModelRejected, ask)
    assert "'gpt-5.2'" in message
    assert f"({answer.status}" in message


async def test_an_error_in_place_of_an_answer_means_what_it_says(at: Connect):
    with answering(Answer(body='{"error": {"message": "Provider returned error"}}')) as endpoint:
        assert f"{endpoint.url} answered with an error" in await failure(at(endpoint), ModelRejected)


# What does not come


# What cannot be used


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Answer(body="}{ nonsense"), "is no compaction (no JSON)"),
        (Answer(body=""), "is no compaction"),
        (Answer(body="[" * 100_000), "is no compaction"),
        (said("hello"), "is no compaction"),
        (Answer(body='{"output": {}}'), "is no compaction"),
        (compacted(), "gave 0 items with 0 compactions"),
        (compacted(SAID), "gave 1 items with 0 compactions"),
        (compacted(SAID, OPAQUE, OPAQUE), "gave 3 items with 2 compactions"),
        (compacted({"type": "compaction", "id": "cmp_1"}), "1 compactions among them, 0 of them with content"),
        (compacted({**OPAQUE, "encrypted_content": ""}), "0 of them with content"),
        (compacted({**OPAQUE, "encrypted_content": 7}), "0 of them with content"),
        (Answer(body=json.dumps({"output": [OPAQUE, "hello"]})), "gave 2 items with 1 compactions"),
    ],
)
async def test_an_answer_without_one_compaction_is_unusable(at: Connect, answer: Answer, says: str):
    with answering(answer) as endpoint:
        message = await failure(at(endpoint), InvalidModelAnswer)
    assert says in message
    assert "Granary" not in message, "what was said does not belong in an error"


def test_a_key_and_an_address_that_no_request_can_carry_are_refused_at_once():
    with pytest.raises(InvalidSettings, match="HITHERTO_COMPACT_KEY"):
        OpenAICompactor(model="gpt-5.2", api_key="sk quire")
    with pytest.raises(InvalidSettings, match="HITHERTO_COMPACT_BASE_URL"):
        OpenAICompactor(model="gpt-5.2", base_url="localhost:11434")


# Families


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("gpt-4.1", "gpt-4.1"),
        ("gpt-4.1-2025-04-14", "gpt-4.1"),
        ("gpt-4.1-mini-2025-04-14", "gpt-4.1-mini"),
        ("openai/gpt-5.2", "gpt-5.2"),
        ("litellm/openai/gpt-5.2-2025-12-11", "gpt-5.2"),
        ("ft:gpt-4.1-mini-2025-04-14:acme:support:a1B2", "gpt-4.1-mini"),
        ("openai/ft:gpt-4.1:acme::a1", "gpt-4.1"),
        (" gpt-4.1\n", "gpt-4.1"),
        ("claude-sonnet-4-20250514", "claude-sonnet-4"),
        ("llama3.1:8b", "llama3.1:8b"),
        ("gpt-4-0613", "gpt-4-0613"),
        ("gpt-4.1-2025-04-14-preview", "gpt-4.1-2025-04-14-preview"),
        ("-2025-04-14", "-2025-04-14"),
        ("models/", "models/"),
        ("ft:", "ft:"),
        ("", ""),
    ],
)
def test_a_family_is_a_models_name_without_provider_tuning_and_date(model: str, family: str):
    assert family_of(model) == family


@given(model=st.from_regex(r"\A(openai/)?gpt-[1-9](\.[1-9])?(-mini|-nano|-pro)?(-20[0-9]{2}-[0-9]{2}-[0-9]{2})?\Z"))
def test_a_familys_name_is_its_own_family(model: str):
    assert family_of(family_of(model)) == family_of(model)
    assert family_of(f"ft:{family_of(model)}:acme::a1") == family_of(model)
