"""Settings in, embedders out; and what contradicts itself."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import hitherto
from hitherto.errors import InvalidSettings
from hitherto.ports.models import Embedder
from hitherto.providers import names
from hitherto.providers.azure import AzureOpenAIEmbedder
from hitherto.providers.names import embedder_of, learn, previous_of
from hitherto.providers.ollama import OllamaEmbedder
from hitherto.providers.openai_compatible.embedder import OpenAICompatibleEmbedder
from hitherto.providers.scripted import ScriptedEmbedder
from hitherto.providers.wordllama import Wordllama
from hitherto.settings import Settings
from hitherto.testing.embedders import check_embedder
from tests.conftest import SCOPE
from tests.providers.embedders.serving import DIMENSIONS, KEY, PATH, as_a_server_at_home, as_openai, sent
from tests.providers.models.endpoint import Endpoint

RESOURCE = "https://my-resource.openai.azure.com"


def made(**settings: Any) -> Embedder:
    embedder = embedder_of(Settings.load(**{"embedder": "small", **settings}))
    assert embedder is not None
    return embedder


async def closed(*embedders: Embedder) -> None:
    for embedder in embedders:
        await embedder.aclose()


# What the settings name


async def test_without_any_setting_it_is_wordllama_which_keeps_the_promises_of_its_port():
    embedder = embedder_of(Settings.load())
    assert isinstance(embedder, Wordllama)
    await learn(embedder)
    await check_embedder(embedder)
    assert previous_of(Settings.load()) == ()


async def test_there_may_be_none():
    nothing = Settings.load(embedder="none", previous_embedder="small")
    assert embedder_of(nothing) is None
    assert previous_of(nothing) == ()


async def test_where_wordllama_is_not_installed_there_is_none(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, database: str
) -> None:
    """As on Linux on ARM. Who names it is told at once; to others a log line says that there are only words."""
    monkeypatch.setattr(names, "find_spec", lambda _: None)
    with pytest.raises(InvalidSettings, match="wordllama is not installed"):
        embedder_of(Settings.load(embedder="wordllama"))
    assert previous_of(Settings.load(embedder="small")) == ()
    async with hitherto.open(database) as memory:
        await memory.conversation("monday", scope=SCOPE).append(hitherto.user("The boat is green."))
        found = await memory.recall("Which boat?", scope=SCOPE)
    assert [hit.text for hit in found.hits] == ["The boat is green."]
    assert "Recall goes by words alone" in caplog.text


@pytest.mark.parametrize(
    ("provider", "kind", "path"),
    [
        ("openai", OpenAICompatibleEmbedder, PATH),
        ("azure", AzureOpenAIEmbedder, "/openai/v1/embeddings"),
        ("ollama", OllamaEmbedder, PATH),
    ],
)
async def test_the_settings_of_a_provider_reach_it(provider: str, kind: type, path: str):
    with Endpoint(as_openai, path=path) as endpoint:
        embedder = made(
            embedder_provider=provider,
            embedder_base_url=endpoint.url if provider == "openai" else endpoint.root,
            embedder_key=KEY,
            embedder_dimensions=16,
            embedder_input_limit=50,
        )
        assert type(embedder) is kind
        assert (embedder.space.name, embedder.space.dimensions) == ("small/16", 16)
        await embedder.documents(["dawn " * 1_000])
        await closed(embedder)
    [body] = endpoint.asked
    assert (body["model"], body["dimensions"]) == ("small", 16)
    assert len(body["input"][0]) < 400
    assert endpoint.headers[0]["authorization"] == f"Bearer {KEY}"


async def test_the_timeout_of_a_question_is_set_and_ten_times_that_for_documents():
    embedder: Any = made(embedder_timeout=0.5)
    assert (embedder._timeout, embedder._patience) == (0.5, 5.0)
    await closed(embedder)


async def test_an_api_version_is_azures():
    path = "/openai/deployments/small/embeddings?api-version=2024-10-21"
    with Endpoint(as_openai, path=path) as endpoint:
        embedder = made(
            embedder_provider="azure",
            embedder_base_url=endpoint.root,
            embedder_api_version="2024-10-21",
            embedder_key=KEY,
        )
        await learn(embedder)
        await closed(embedder)
    assert embedder.space.dimensions == DIMENSIONS


@pytest.mark.parametrize(
    ("provider", "url"), [("openai", "https://api.openai.com/v1"), ("ollama", "http://localhost:11434/v1")]
)
async def test_a_provider_has_an_address_of_its_own(provider: str, url: str):
    embedder: Any = made(embedder_provider=provider)
    assert embedder._endpoint.url == url
    await closed(embedder)


# The former ones


async def test_wordllama_answers_until_another_has_caught_up():
    [former] = previous_of(Settings.load(embedder="small"))
    assert isinstance(former, Wordllama)


async def test_the_former_one_is_of_the_same_provider_and_has_dimensions_of_its_own():
    with Endpoint(as_a_server_at_home, path=PATH) as endpoint:
        settings = Settings.load(
            embedder="small",
            embedder_dimensions=16,
            embedder_base_url=endpoint.url,
            previous_embedder="BAAI/bge-m3",
        )
        former, wordllama = previous_of(settings)
        assert (former.space.name, former.space.dimensions) == ("BAAI/bge-m3/1024", 1024)
        assert isinstance(wordllama, Wordllama)
        await closed(former)
        dimensioned, _ = previous_of(settings.model_copy(update={"previous_embedder": "text-embedding-3-small/48"}))
        assert (dimensioned.space.name, dimensioned.space.dimensions) == ("text-embedding-3-small/48", 48)
        await dimensioned.query("Where?")
        await closed(dimensioned)
    assert endpoint.asked[0]["model"] == "text-embedding-3-small"
    assert sent(endpoint.asked) == ["Where?"]


async def test_there_is_nothing_to_learn_of_some():
    embedder = ScriptedEmbedder()
    await learn(embedder)
    assert embedder.calls == []


# What contradicts itself


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"embedder_provider": "azure"}, "needs the address of your resource in HITHERTO_EMBEDDER_BASE_URL"),
        ({"embedder_api_version": "2024-10-21"}, "HITHERTO_EMBEDDER_PROVIDER is 'openai'"),
        (
            {
                "embedder_provider": "azure",
                "embedder_base_url": f"{RESOURCE}/openai",
                "embedder_api_version": "2024-10-21",
            },
            "the deployment's name stands in HITHERTO_EMBEDDER",
        ),
        (
            {"embedder_provider": "azure", "embedder_base_url": RESOURCE, "embedder_api_version": "2024-10-21&x=1"},
            "(HITHERTO_EMBEDDER_API_VERSION) is no version",
        ),
        ({"embedder_base_url": "http://localhost:8000/v1/embeddings"}, "leave out /embeddings"),
        ({"embedder_base_url": "localhost:8000"}, "HITHERTO_EMBEDDER_BASE_URL"),
        ({"embedder_key": "sk quire"}, "HITHERTO_EMBEDDER_KEY"),
        (
            {"embedder": "wordllama", "embedder_base_url": "http://localhost:8000/v1"},
            "HITHERTO_EMBEDDER_BASE_URL is set",
        ),
        ({"embedder": "wordllama", "embedder_dimensions": 64}, "HITHERTO_EMBEDDER_DIMENSIONS is set"),
        ({"embedder": None, "embedder_provider": "ollama"}, "and no model of it"),
        (
            {"embedder_provider": "sentence_transformers", "embedder_base_url": "http://localhost"},
            "has neither address nor key",
        ),
    ],
)
def test_what_contradicts_itself_is_told(settings: dict[str, Any], says: str):
    with pytest.raises(InvalidSettings) as caught:
        made(**settings)
    assert says in str(caught.value)
    assert "sk quire" not in str(caught.value)


def test_a_missing_package_is_told_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(InvalidSettings, match=r"pip install 'hitherto\[sentence-transformers\]'"):
        made(embedder="all-MiniLM-L6-v2", embedder_provider="sentence_transformers")
