"""Cross-encoders over real HTTP, as the services answer on the wire."""

from __future__ import annotations

import json
import traceback
from collections.abc import AsyncIterator, Callable, Sequence

import pytest

from hitherto.errors import InvalidModelAnswer, ModelError, ModelRateLimited, ModelRejected, ModelUnavailable
from hitherto.ports.models import RerankResult
from hitherto.providers.cross_encoder import CrossEncoder
from tests.providers.models.endpoint import Answer, Body, Endpoint, connecting, refused

KEY = "sk-quire-lane-7f3a"
PASSAGES = ["We took the Granary.", "Mira plays the cello.", "The barge leaves at dawn."]

Connect = Callable[..., CrossEncoder]


def cohere(*scores: tuple[object, object], **more: object) -> Answer:
    """As Cohere and vLLM have it; Jina sends the documents back as well."""
    results = [{"index": place, "relevance_score": score} for place, score in scores]
    return Answer(body=json.dumps({"id": "r-1", "results": results, **more}))


def tei(*scores: tuple[int, float]) -> Answer:
    return Answer(body=json.dumps([{"index": place, "score": score} for place, score in scores]))


def as_tei(body: Body) -> Answer:
    if "texts" not in body:
        fault = "Failed to deserialize the JSON body into the target type: missing field `texts` at line 1 column 90"
        return Answer(status=422, body=fault, headers={"Content-Type": "text/plain"})
    return tei((2, 0.99), (0, 0.2), (1, 0.001))


@pytest.fixture
async def at() -> AsyncIterator[Connect]:
    async with connecting(CrossEncoder, model="bge-reranker", api_key=KEY) as connect:
        yield connect


def serving(*answers: Answer | Callable[[Body], Answer], path: str = "/v1/rerank") -> Endpoint:
    return Endpoint(*answers, path=path)


async def failure(reranker: CrossEncoder, kind: type[ModelError], passages: Sequence[str] = PASSAGES) -> str:
    with pytest.raises(ModelError) as caught:
        await reranker.rerank("When?", passages)
    assert type(caught.value) is kind, caught.value
    assert KEY not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


async def test_it_is_asked_as_cohere_is_and_the_scores_make_the_order(at: Connect):
    answer = cohere((0, 0.2), (2, 0.98), (1, 0.01), meta={"billed_units": {"search_units": 1}})
    with serving(answer) as endpoint:
        assert await at(endpoint).rerank("When?", PASSAGES) == RerankResult(order=(2, 0, 1))
    assert endpoint.asked == [{"model": "bge-reranker", "query": "When?", "documents": PASSAGES, "top_n": 3}]
    assert endpoint.headers[0]["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("usage", [{"total_tokens": 91}, {"prompt_tokens": 91, "total_tokens": 91}])
async def test_its_tokens_are_told(at: Connect, usage: dict[str, int]):
    with serving(cohere((1, 3.5), (0, -7.25), usage=usage)) as endpoint:
        assert await at(endpoint).rerank("When?", PASSAGES) == RerankResult(order=(1, 0), tokens_in=91)


async def test_text_embeddings_inference_is_asked_in_its_own_words_and_that_is_remembered(at: Connect):
    with serving(as_tei, path="/rerank") as endpoint:
        reranker = at(endpoint, base_url=endpoint.root)
        for _ in range(2):
            assert (await reranker.rerank("When?", PASSAGES)).order == (2, 0, 1)
    assert len(endpoint.asked) == 3
    assert endpoint.asked[-1] == {"query": "When?", "texts": PASSAGES, "truncate": True}


async def test_another_422_is_a_refusal(at: Connect):
    with serving(refused(422, "`query` cannot be empty")) as endpoint:
        assert "refused the request for 'bge-reranker' (422" in await failure(at(endpoint), ModelRejected)
    assert len(endpoint.asked) == 1


async def test_long_and_odd_texts_are_cut_and_mended(at: Connect):
    with serving(cohere((0, 1.0))) as endpoint:
        await at(endpoint).rerank("q" * 100_000, ["x" * 1_000_000, "a\ud800b\0"])
    [body] = endpoint.asked
    assert [len(body["query"]), *map(len, body["documents"])] == [2_000, 2_000, 4]
    assert body["documents"][1] == "a\ufffdb\ufffd"


async def test_nothing_to_put_in_order_is_not_asked_about(at: Connect):
    with serving(cohere()) as endpoint:
        assert await at(endpoint).rerank("When?", []) == RerankResult(order=(), asked=False)
    assert endpoint.asked == []


async def test_places_and_scores_that_are_none_are_left_out(at: Connect):
    strange = [(3, 0.9), (-1, 0.9), ("0", 0.9), (True, 0.9), (None, 0.9), (1, float("nan")), (1, None), (1, "0.9")]
    with serving(cohere(*strange, (2, 0.1), (2, 0.9), (0, 0.5), (1, 10**400))) as endpoint:
        assert (await at(endpoint).rerank("When?", PASSAGES)).order == (0, 2)


async def test_equal_scores_stay_in_their_order(at: Connect):
    with serving(tei((2, 0.5), (1, 0.5), (0, 0.5))) as endpoint:
        assert (await at(endpoint).rerank("When?", PASSAGES)).order == (0, 1, 2)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Answer(body="<html>Sign in</html>", headers={"Content-Type": "text/html"}), "no list of scores"),
        (Answer(body=""), "no list of scores"),
        (Answer(body="{}"), "no list of scores"),
        (Answer(body='{"results": 7}'), "no list of scores"),
        (Answer(body='{"results": []}'), "no list of scores"),
        (Answer(body="[" * 100_000), "no list of scores"),
        (Answer(body="[]"), "no score for any of the 3 passages"),
        (Answer(body='["a"]'), "no score for any"),
        (cohere((7, 0.9)), "no score for any"),
    ],
)
async def test_an_answer_that_is_none_is_unusable(at: Connect, answer: Answer, says: str):
    with serving(answer) as endpoint:
        assert says in await failure(at(endpoint), InvalidModelAnswer)


async def test_faults_are_named_by_their_settings(at: Connect):
    with serving(refused(401, f"invalid api key {KEY}")) as endpoint:
        assert "HITHERTO_RERANKER_KEY" in await failure(at(endpoint), ModelRejected)
    with serving(cohere((0, 1.0))) as endpoint:
        assert "HITHERTO_RERANKER_BASE_URL" in await failure(at(endpoint, base_url=endpoint.root), ModelRejected)
    with serving(refused(429, "slow down", Retry_After="3")) as endpoint:
        assert "lets no more requests through" in await failure(at(endpoint), ModelRateLimited)
    with serving(refused(503, "loading")) as endpoint:
        assert "is failing (503: invalid_request_error)" in await failure(at(endpoint), ModelUnavailable)
        assert len(endpoint.asked) == 1, "one call is one request"
