"""Settings in, models out; and what is wrong with an address or a key before anything is sent."""

from __future__ import annotations

import sys
from typing import Any, get_args

import pytest

from hitherto.errors import InvalidSettings
from hitherto.ports.models import Model
from hitherto.providers.azure import AzureOpenAI
from hitherto.providers.extractive import Extractive
from hitherto.providers.names import compactor_of, model_of
from hitherto.providers.openai_compatible.model import OpenAICompatible
from hitherto.settings import Settings
from hitherto.settings.values import ModelProvider
from tests.providers.models.digests import prompt
from tests.providers.models.endpoint import Endpoint, compacted, refused
from tests.providers.models.providers import KEY, MODEL, PROVIDERS, VERSION, OpenAI, Service

CHANGES = '{"add": [], "replace": [], "drop": []}'
RESOURCE = "https://my-resource.openai.azure.com"


def made(**settings: Any) -> Model:
    return model_of(Settings.load(**{"model": MODEL, **settings}))


# What the settings name


@pytest.mark.parametrize("provider", PROVIDERS, ids=[one.name for one in PROVIDERS])
async def test_the_settings_of_a_provider_reach_it(provider: OpenAI):
    with Service(provider, provider.said(CHANGES)) as endpoint:
        model = made(
            model_provider={"compatible": "openai", "azure-v1": "azure"}.get(provider.name, provider.name),
            model_base_url=endpoint.root + provider.base_url,
            model_api_version=VERSION if provider.name == "azure" else None,
            model_key=KEY,
            model_timeout=5,
            model_input_limit=7_000,
        )
        answer = await model.complete(prompt())
        await model.aclose()
    assert (answer.text, model.name, model.input_limit) == (CHANGES, MODEL, 7_000)
    assert endpoint.paths == [provider.path]


async def test_nothing_set_is_no_model_at_all():
    assert isinstance(model_of(Settings.load()), Extractive)
    assert isinstance(model_of(Settings.load(model="extractive", model_provider="anthropic")), Extractive)


@pytest.mark.parametrize(
    ("provider", "url"),
    [
        ("openai", "https://api.openai.com/v1"),
        ("ollama", "http://localhost:11434/v1"),
        ("anthropic", "https://api.anthropic.com"),
    ],
)
async def test_a_provider_has_an_address_of_its_own(provider: str, url: str):
    model: Any = made(model_provider=provider)
    assert model._endpoint.url == url
    await model.aclose()


async def test_a_compactor_is_made_of_its_own_settings():
    assert compactor_of(Settings.load()) is None
    with Endpoint(
        compacted({"type": "compaction", "encrypted_content": "g"}), path="/v1/responses/compact"
    ) as endpoint:
        compactor = compactor_of(
            Settings.load(compact_model="gpt-5.2", compact_base_url=endpoint.url, compact_key=KEY, model_key="other")
        )
        assert compactor is not None
        await compactor.compact([])
        await compactor.aclose()
    assert endpoint.headers[0]["authorization"] == f"Bearer {KEY}"


# What contradicts itself


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"model_provider": "azure"}, "needs the address of your resource in HITHERTO_MODEL_BASE_URL"),
        (
            {"model_provider": "openai", "model_api_version": VERSION},
            "HITHERTO_MODEL_API_VERSION (2024-10-21) is for the provider 'azure'",
        ),
        ({"model_provider": "anthropic", "model_api_version": VERSION}, "HITHERTO_MODEL_PROVIDER is 'anthropic'"),
        ({"model_provider": "ollama", "model_api_version": VERSION}, "HITHERTO_MODEL_PROVIDER is 'ollama'"),
        (
            {"model_provider": "azure", "model_base_url": f"{RESOURCE}/openai/v1", "model_api_version": VERSION},
            "newer API, which has no versions",
        ),
        (
            {"model_provider": "azure", "model_base_url": f"{RESOURCE}/openai", "model_api_version": VERSION},
            "goes too far",
        ),
        (
            {
                "model_provider": "azure",
                "model_base_url": f"{RESOURCE}/openai/deployments/small",
                "model_api_version": VERSION,
            },
            "the deployment's name stands in HITHERTO_MODEL",
        ),
        (
            {
                "model_provider": "azure",
                "model_base_url": f"{RESOURCE}?api-version=2024-06-01&code=secret",
                "model_api_version": VERSION,
            },
            "must not have a query",
        ),
        (
            {"model_provider": "azure", "model_base_url": RESOURCE, "model_api_version": "2024-10-21&x=1"},
            "is no version of Azure's API",
        ),
        ({"model_base_url": "http://localhost:8000/v1/chat/completions"}, "leave out /chat/completions"),
        (
            {"model_provider": "anthropic", "model_base_url": "https://api.anthropic.com/v1/messages"},
            "leave out /messages",
        ),
    ],
)
def test_what_contradicts_itself_is_told(settings: dict[str, Any], says: str):
    with pytest.raises(InvalidSettings) as caught:
        made(**settings)
    assert says in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("provider", ["azure", "ollama", "anthropic"])
def test_a_provider_without_a_model_is_told(provider: str):
    with pytest.raises(InvalidSettings, match=f"provider {provider!r}"):
        model_of(Settings.load(model_provider=provider))


def test_a_missing_sdk_is_told_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "anthropic", None)
    monkeypatch.delitem(sys.modules, "hitherto.providers.anthropic", raising=False)
    with pytest.raises(InvalidSettings, match=r"pip install 'hitherto\[anthropic\]'"):
        made(model_provider="anthropic")


# Addresses and keys


@pytest.mark.parametrize("provider", get_args(ModelProvider))
@pytest.mark.parametrize(
    "url",
    [
        "localhost:11434",
        "ftp://127.0.0.1",
        "http://",
        "http://[::1",
        "http://h:x",
        "http://h:99999",
        "http://a b/",
        "http://h/\ud800",
        "http://a..b/v1",
        f"http://{'a' * 64}/v1",
        "http://bücher.example/v1",
    ],
)
def test_an_address_that_is_none_is_refused_at_once(provider: str, url: str):
    with pytest.raises(InvalidSettings, match="HITHERTO_MODEL_BASE_URL"):
        made(model_provider=provider, model_base_url=url)


@pytest.mark.parametrize("provider", get_args(ModelProvider))
@pytest.mark.parametrize("key", ["sk quire", "sk-schlüssel", "sk-\x07", "sk-\nx"])
def test_a_key_that_no_header_can_carry_is_refused_at_once(provider: str, key: str):
    with pytest.raises(InvalidSettings, match="HITHERTO_MODEL_KEY") as caught:
        made(model_provider=provider, model_base_url=RESOURCE, model_key=key)
    assert key not in str(caught.value)


async def test_blanks_around_a_key_are_left_out():
    with Service(PROVIDERS[0], PROVIDERS[0].said(CHANGES)) as endpoint:
        model = OpenAICompatible(model=MODEL, base_url=endpoint.url, api_key=f" {KEY}\n")
        await model.complete(prompt())
        await model.aclose()


async def test_an_address_is_shown_without_its_secrets():
    model: Any = made(model_base_url="http://someone:secret@[::1]:8000/v1?code=secret#secret")
    assert model._endpoint.url == "http://[::1]:8000/v1"
    await model.aclose()


@pytest.mark.parametrize("url", [RESOURCE, f"{RESOURCE}/", f"{RESOURCE}/openai/v1", f"{RESOURCE}/openai/v1/"])
async def test_azures_newer_api_is_found_from_the_resource_alone(url: str):
    model: Any = AzureOpenAI(model=MODEL, base_url=url)
    assert str(model._endpoint.client.base_url) == f"{RESOURCE}/openai/v1/"
    await model.aclose()


async def test_a_gateway_in_front_of_azure_may_have_a_path():
    path = f"/gateway{PROVIDERS[3].path}"
    with Endpoint(PROVIDERS[3].said(CHANGES), path=path) as endpoint:
        model = AzureOpenAI(model=MODEL, base_url=f"{endpoint.root}/gateway/", api_version=VERSION, api_key=KEY)
        assert (await model.complete(prompt())).text == CHANGES
        await model.aclose()


async def test_an_older_azure_says_what_it_does_not_take():
    def older(body: dict[str, Any]) -> Any:
        if "max_completion_tokens" in body:
            return refused(400, "Unrecognized request argument supplied: max_completion_tokens")
        if body["response_format"]["type"] == "json_schema":
            says = "response_format value as json_schema is enabled only for api versions 2024-08-01-preview and later"
            return refused(400, says)
        return PROVIDERS[3].said(CHANGES)

    with Endpoint(older, path=None) as endpoint:
        model = AzureOpenAI(model=MODEL, base_url=endpoint.root, api_version="2023-05-15", api_key=KEY)
        assert (await model.complete(prompt())).text == CHANGES
        await model.aclose()
    assert len(endpoint.asked) == 3
