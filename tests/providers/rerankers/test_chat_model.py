"""The chat model puts passages in order."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from hitherto.core.recall.rerank import rerank_prompt
from hitherto.errors import InvalidModelAnswer, ModelError, ModelRateLimited, ModelRejected, ModelUnavailable
from hitherto.ports.models import RerankResult
from hitherto.providers.chat_model_reranker import ChatModelReranker
from hitherto.providers.extractive import Extractive
from hitherto.providers.openai_compatible.model import OpenAICompatible
from hitherto.providers.scripted import Delayed, Hang, Scripted
from tests.providers.models.endpoint import Answer, Endpoint, refused, said

PASSAGES = ["We took the Granary.", "Mira plays the cello.", "The barge leaves at dawn."]


async def test_a_model_is_asked_over_http_and_its_tokens_are_told():
    with Endpoint(said('{"ranking": [3, 1]}')) as endpoint:
        model = OpenAICompatible(model="small", base_url=endpoint.url)
        reranker = ChatModelReranker(model)
        assert reranker.name == "small"
        assert await reranker.rerank("When does it leave?", PASSAGES) == RerankResult(
            order=(2, 0), tokens_in=91, tokens_cached=64, tokens_out=17
        )
        await reranker.aclose()
        assert (await model.complete(rerank_prompt("?", PASSAGES, input_limit=10_000))).text, (
            "it does not close the model, which is another's"
        )
        await model.aclose()
    body = endpoint.asked[0]
    assert body["response_format"]["json_schema"]["name"] == "ranking"
    assert [json.loads(line).get("text") for line in body["messages"][1]["content"].split("\n")[2:]] == PASSAGES


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (refused(429, "slow down", Retry_After="20"), ModelRateLimited),
        (refused(500, "Oops."), ModelUnavailable),
        (refused(401, "no"), ModelRejected),
        (Answer(body="<html>"), InvalidModelAnswer),
        (said("I would rather not."), InvalidModelAnswer),
        (Answer(silent=True), ModelUnavailable),
    ],
)
async def test_what_goes_wrong_is_an_error_of_a_model(answer: Answer, kind: type[ModelError]):
    with Endpoint(answer) as endpoint:
        model = OpenAICompatible(model="small", base_url=endpoint.url)
        with pytest.raises(ModelError) as caught:
            await ChatModelReranker(model, timeout=0.5).rerank("When?", PASSAGES)
        await model.aclose()
    assert type(caught.value) is kind
    assert len(endpoint.asked) == 1, "one call is one request"


async def test_an_unusable_answer_is_paid_for():
    with Endpoint(said("I would rather not.")) as endpoint:
        model = OpenAICompatible(model="small", base_url=endpoint.url)
        with pytest.raises(InvalidModelAnswer) as caught:
            await ChatModelReranker(model).rerank("When?", PASSAGES)
        await model.aclose()
    assert caught.value.tokens == (91, 64, 17)


@pytest.mark.parametrize("reply", [Hang(), Delayed(5, "[1]")])
async def test_it_is_not_waited_for(reply: Any):
    began = asyncio.get_running_loop().time()
    with pytest.raises(ModelUnavailable, match="HITHERTO_RERANKER_TIMEOUT"):
        await ChatModelReranker(Scripted([reply]), timeout=0.1).rerank("When?", PASSAGES)
    assert asyncio.get_running_loop().time() - began < 2


async def test_a_model_that_cannot_read_leaves_the_order_and_costs_nothing():
    assert await ChatModelReranker(Extractive()).rerank("When?", PASSAGES) == RerankResult(order=(0, 1, 2), asked=False)


async def test_nothing_to_put_in_order_is_not_asked_about():
    model = Scripted()
    assert await ChatModelReranker(model).rerank("When?", []) == RerankResult(order=(), asked=False)
    assert model.calls == []


async def test_it_takes_as_many_passages_as_the_model_can_read():
    assert ChatModelReranker(Scripted(input_limit=100_000)).limit == 20
    assert ChatModelReranker(Scripted(input_limit=3_000)).limit == 11
