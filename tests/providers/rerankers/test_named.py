from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hitherto.errors import InvalidSettings, ModelUnavailable
from hitherto.providers.chat_model_reranker import ChatModelReranker
from hitherto.providers.cross_encoder import CrossEncoder
from hitherto.providers.extractive import Extractive
from hitherto.providers.names import reranker_of
from hitherto.providers.scripted import Delayed, Hang, Scripted, ScriptedReranker
from hitherto.settings import Settings
from tests.providers.models.endpoint import Endpoint
from tests.providers.rerankers.test_cross_encoder import KEY, PASSAGES, cohere


def test_without_a_setting_there_is_none():
    assert reranker_of(Settings.load(), Extractive()) is None


async def test_it_may_be_the_model_for_digests():
    model = Scripted(["[2] > [1]"])
    reranker = reranker_of(Settings.load(reranker="model", reranker_timeout=0.1), model)
    assert isinstance(reranker, ChatModelReranker)
    assert (await reranker.rerank("When?", PASSAGES)).order == (1, 0)
    await reranker.aclose()
    assert model.closed == 0


async def test_it_may_be_a_cross_encoder():
    with Endpoint(cohere((1, 0.5)), path="/v1/rerank") as endpoint:
        settings = Settings.load(
            reranker="bge-reranker", reranker_base_url=endpoint.url, reranker_key=KEY, reranker_timeout=3
        )
        reranker: Any = reranker_of(settings, Extractive())
        assert isinstance(reranker, CrossEncoder)
        assert (reranker.name, reranker._endpoint.timeout) == ("bge-reranker", 3)
        assert (await reranker.rerank("When?", PASSAGES)).order == (1,)
        await reranker.aclose()
    assert endpoint.headers[0]["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"reranker": "model"}, "which cannot read"),
        ({"reranker": "bge-reranker"}, "needs the address of its endpoint in HITHERTO_RERANKER_BASE_URL"),
        ({"reranker_base_url": "http://localhost:8080"}, "name one with HITHERTO_RERANKER"),
        ({"reranker": "bge", "reranker_base_url": "http://localhost:8080/rerank"}, "leave out /rerank"),
        ({"reranker": "bge", "reranker_base_url": "localhost:8080"}, "HITHERTO_RERANKER_BASE_URL"),
        ({"reranker": "bge", "reranker_base_url": "http://h", "reranker_key": "sk quire"}, "HITHERTO_RERANKER_KEY"),
    ],
)
def test_what_contradicts_itself_is_told(settings: dict[str, Any], says: str):
    with pytest.raises(InvalidSettings) as caught:
        reranker_of(Settings.load(**settings), Extractive())
    assert says in str(caught.value)
    assert "sk quire" not in str(caught.value)


def test_the_model_for_digests_has_no_other_address():
    settings = Settings.load(reranker="model", reranker_base_url="http://localhost:8080")
    with pytest.raises(InvalidSettings, match="the address of another"):
        reranker_of(settings, Scripted())


async def test_a_scripted_one_does_what_it_is_told():
    away = ModelUnavailable("away")
    reranker = ScriptedReranker([(2, 0), Delayed(0.02, lambda question, passages: [len(passages) - 1]), away, Hang()])
    assert (await reranker.rerank("When?", PASSAGES)).order == (2, 0)
    assert (await reranker.rerank("When?", PASSAGES)).order == (2,)
    with pytest.raises(ModelUnavailable, match="away"):
        await reranker.rerank("When?", PASSAGES)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await reranker.rerank("When?", PASSAGES)
    assert (await reranker.rerank("Where?", PASSAGES[:1])).order == ()
    assert reranker.calls[-1] == ("Where?", ("We took the Granary.",))
