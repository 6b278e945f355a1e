"""Embeddings over real HTTP: what is asked, what is understood, and how it fails."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

import numpy as np
import pytest

from hitherto.core.recall.vectors import Space, Vectors
from hitherto.errors import InvalidEmbedding, ModelError, ModelRejected, ModelUnavailable
from hitherto.providers.azure import AzureOpenAIEmbedder
from hitherto.providers.ollama import OllamaEmbedder
from hitherto.providers.openai_compatible.embedder import BATCH, OpenAICompatibleEmbedder
from hitherto.testing.embedders import check_embedder
from tests.providers.embedders.serving import (
    DIMENSIONS,
    KEY,
    PATH,
    as_a_server_at_home,
    as_openai,
    count,
    limited,
    listed,
    packed,
    sent,
    vector,
)
from tests.providers.models.endpoint import Answer, Body, Endpoint, connecting, refused

TALK = ["We took the Granary.", "Mira is allergic to peanuts."]

Connect = Callable[..., OpenAICompatibleEmbedder]
Error = TypeVar("Error", bound=ModelError)


def serving(*answers: Answer | Callable[[Body], Answer]) -> Endpoint:
    return Endpoint(*answers, path=PATH)


@pytest.fixture
async def at() -> AsyncIterator[Connect]:
    """Makes embedders at an endpoint, and closes them."""
    async with connecting(OpenAICompatibleEmbedder, model="small", api_key=KEY) as connect:
        yield connect


async def failure(embedder: OpenAICompatibleEmbedder, kind: type[Error], texts: list[str] | None = None) -> Error:
    """The error with which it fails, after a look that neither it nor its causes tell the key."""
    with pytest.raises(ModelError) as caught:
        await embedder.documents(texts or TALK)
    assert type(caught.value) is kind, caught.value
    assert KEY not in "".join(traceback.format_exception(caught.value))
    assert "\n" not in str(caught.value)
    return caught.value


def units(texts: list[str], dimensions: int = DIMENSIONS) -> Vectors:
    rows = np.asarray([vector(text, dimensions) for text in texts], dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


# The contract


@pytest.mark.parametrize("answering", [as_openai, as_a_server_at_home])
@pytest.mark.parametrize("dimensions", [None, DIMENSIONS])
async def test_it_keeps_the_promises_of_its_port(
    at: Connect, answering: Callable[[Body], Answer], dimensions: int | None
):
    with serving(answering) as endpoint:
        embedder = at(endpoint, dimensions=dimensions)
        await embedder.learn()
        await check_embedder(embedder)
    assert all(text.strip() for text in sent(endpoint.asked))


# What is asked, and what is understood


async def test_texts_are_asked_for_at_once_and_their_vectors_made_unit_length(at: Connect):
    with serving(as_openai) as endpoint:
        found = await at(endpoint).documents(TALK)
    assert np.allclose(found.vectors, units(TALK), atol=1e-6)
    assert (found.tokens, found.asked) == (sum(count(text) for text in TALK), True)
    assert endpoint.asked == [{"model": "small", "input": TALK, "encoding_format": "base64"}]
    assert endpoint.headers[0]["authorization"] == f"Bearer {KEY}"


async def test_decimals_are_understood_as_base64_is(at: Connect):
    with serving(as_openai) as one, serving(as_a_server_at_home) as other:
        in_base64, decimal = await at(one).documents(TALK), await at(other).documents(TALK)
    assert np.array_equal(in_base64.vectors, decimal.vectors)


async def test_an_endpoint_that_refuses_base64_is_asked_for_decimals_and_that_is_remembered(at: Connect):
    def plain(body: Body) -> Answer:
        if body["encoding_format"] == "base64":
            return refused(400, "Unsupported value: 'encoding_format' must be 'float'.", param="encoding_format")
        return as_openai(body)

    with serving(plain) as endpoint:
        embedder = at(endpoint)
        for _ in range(2):
            assert np.allclose((await embedder.documents(TALK)).vectors, units(TALK), atol=1e-6)
    assert [body["encoding_format"] for body in endpoint.asked] == ["base64", "float", "float"]


async def test_vectors_go_where_their_index_says(at: Connect):
    def backwards(body: Body) -> Answer:
        texts = body["input"]
        return listed([vector(text) for text in texts[::-1]], places=range(len(texts))[::-1])

    with serving(backwards) as endpoint:
        found = await at(endpoint).documents(TALK)
    assert np.allclose(found.vectors, units(TALK), atol=1e-6)


async def test_blank_texts_are_not_sent_and_have_zeros(at: Connect):
    with serving(as_openai) as endpoint:
        embedder = at(endpoint, dimensions=DIMENSIONS)
        found = await embedder.documents(["", TALK[0], " \n\t"])
        none = await embedder.documents(["", "  "])
        question = await embedder.query("")
    assert not found.vectors[[0, 2]].any()
    assert np.allclose(found.vectors[1:2], units(TALK[:1]), atol=1e-6)
    assert sent(endpoint.asked) == TALK[:1]
    assert (none.vectors.shape, none.asked, question.vectors.shape, question.asked) == (
        (2, DIMENSIONS),
        False,
        (1, DIMENSIONS),
        False,
    )


async def test_dimensions_are_asked_for_where_they_are_set(at: Connect):
    with serving(as_openai) as endpoint:
        embedder = at(endpoint, model="text-embedding-3-small", dimensions=16)
        assert (await embedder.documents(TALK)).vectors.shape == (2, 16)
        assert embedder.space == Space("text-embedding-3-small/16", 16)
    assert endpoint.asked[0]["dimensions"] == 16


async def test_an_endpoint_that_knows_no_dimensions_is_asked_without(at: Connect):
    def fixed(body: Body) -> Answer:
        if "dimensions" in body:
            return refused(400, 'Model "small" does not support matryoshka representation.')
        return as_a_server_at_home(body)

    with serving(fixed) as endpoint:
        embedder = at(endpoint, dimensions=DIMENSIONS)
        for _ in range(2):
            assert (await embedder.query("Where?")).vectors.shape == (1, DIMENSIONS)
    assert ["dimensions" in body for body in endpoint.asked] == [True, False, False]


async def test_a_question_and_a_document_get_what_the_model_wants_before_them(at: Connect):
    with serving(as_a_server_at_home) as endpoint:
        embedder = at(endpoint, model="nomic-embed-text:latest", dimensions=DIMENSIONS)
        await embedder.query("Where?")
        await embedder.documents(["In Leith."])
        plain = at(endpoint, model="nomic-embed-text", query_prefix="", document_prefix="", dimensions=DIMENSIONS)
        await plain.query("Where?")
    assert sent(endpoint.asked) == ["search_query: Where?", "search_document: In Leith.", "Where?"]
    assert embedder.space.name == f"nomic-embed-text/{DIMENSIONS}/search_document:"
    assert plain.space.name == f"nomic-embed-text/{DIMENSIONS}"


# The space


async def test_a_known_model_has_its_space_before_anything_is_asked(at: Connect):
    with serving(as_openai) as endpoint:
        embedder = at(endpoint, model="text-embedding-3-large")
        await embedder.learn()
        assert embedder.space == Space("text-embedding-3-large/3072", 3_072)
    assert endpoint.asked == []


async def test_an_unknown_model_has_one_when_it_has_answered(at: Connect):
    with serving(refused(503, "loading"), as_a_server_at_home) as endpoint:
        embedder = at(endpoint, model="acme/notes-embed")
        with pytest.raises(ModelUnavailable, match="HITHERTO_EMBEDDER_DIMENSIONS"):
            _ = embedder.space
        with pytest.raises(ModelUnavailable):
            await embedder.learn()
        await embedder.learn()
        assert embedder.space == Space(f"acme/notes-embed/{DIMENSIONS}", DIMENSIONS)
        await embedder.learn()
    assert len(endpoint.asked) == 2


async def test_nothing_secret_is_in_its_name(at: Connect):
    with serving(as_openai) as endpoint:
        url = endpoint.url.replace("http://", f"http://someone:{KEY}@")
        assert KEY not in at(endpoint, base_url=url, dimensions=DIMENSIONS).space.name


# Batches and lengths


async def test_many_texts_go_in_several_requests_and_keep_their_order(at: Connect):
    texts = [f"{number} barges on the canal" for number in range(2 * BATCH + 3)]
    with serving(as_openai) as endpoint:
        found = await at(endpoint).documents(texts)
    assert [len(body["input"]) for body in endpoint.asked] == [BATCH, BATCH, 3]
    assert np.allclose(found.vectors, units(texts), atol=1e-6)
    assert found.tokens == sum(count(text) for text in texts)


async def test_long_texts_share_no_request_that_is_too_large(at: Connect):
    texts = ["The barge leaves at dawn. " * 1_000] * 20
    with serving(as_openai) as endpoint:
        await at(endpoint).documents(texts)
    assert len(sent(endpoint.asked)) == 20
    assert max(sum(len(text) for text in body["input"]) for body in endpoint.asked) <= 200_000


async def test_wide_vectors_come_in_answers_that_are_read_whole(at: Connect):
    def wide(body: Body) -> Answer:
        return listed([vector(text, 16_000) for text in body["input"]])

    with serving(wide) as endpoint:
        found = await at(endpoint, dimensions=16_000).documents(["barge"] * 40)
    assert found.vectors.shape == (40, 16_000)
    assert max(len(body["input"]) for body in endpoint.asked) == 8


@pytest.mark.parametrize("text", ["dawn " * 300_000, "x" * 2_000_000, "会议" * 200_000, "🦜" * 100_000, " ." * 500_000])
async def test_what_is_longer_than_the_model_reads_is_cut(at: Connect, text: str):
    began = time.process_time()
    with serving(as_openai) as endpoint:
        found = await at(endpoint, model="text-embedding-3-small", dimensions=DIMENSIONS).documents([text])
    assert time.process_time() - began < 5
    assert found.vectors.any()
    [body] = endpoint.asked
    assert 1_000 < count(body["input"][0]) <= 8_191
    assert text.lstrip().startswith(body["input"][0])


async def test_a_limit_that_is_set_is_kept(at: Connect):
    with serving(as_openai) as endpoint:
        await at(endpoint, model="text-embedding-3-small", input_limit=100, dimensions=16).documents(["dawn " * 1_000])
    assert 50 < count(sent(endpoint.asked)[0]) <= 100


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (400, "This model's maximum context length is {limit} tokens. However, you requested {given} tokens."),
        (413, "Input validation error: `inputs` must have less than {limit} tokens. Given: {given}"),
        (500, "input ({given} tokens) is too large to process. increase the physical batch size (current: {limit})"),
        (400, "the input length exceeds the context length"),
    ],
    ids=["vllm", "tei", "llama.cpp", "ollama"],
)
async def test_an_endpoint_that_reads_less_gets_less_and_that_is_remembered(at: Connect, status: int, says: str):
    texts = ["dawn " * 3_000, "A short one."]
    with serving(limited(tokens=512, says=says, status=status)) as endpoint:
        embedder = at(endpoint)
        first = await embedder.documents(texts)
        tries = len(endpoint.asked)
        second = await embedder.documents(texts)
    assert np.array_equal(first.vectors, second.vectors)
    assert 2 <= tries <= 7
    assert len(endpoint.asked) == tries + 1
    assert count(endpoint.asked[-1]["input"][0]) <= 512
    assert endpoint.asked[-1]["input"][1] == "A short one."


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (413, "batch size {given} > maximum allowed batch size 20"),
        (400, "Too many inputs. The max number of inputs is 20."),
        (429, "Request too large for small on tokens per min (TPM): Limit 20, Requested {given}."),
    ],
)
async def test_an_endpoint_that_takes_fewer_gets_fewer_and_that_is_remembered(at: Connect, status: int, says: str):
    def few(body: Body) -> Answer:
        given = len(body["input"])
        return refused(status, says.format(given=given)) if given > 20 else as_a_server_at_home(body)

    texts = [f"{number} barges" for number in range(BATCH)]
    with serving(few) as endpoint:
        embedder = at(endpoint)
        for _ in range(2):
            assert np.allclose((await embedder.documents(texts)).vectors, units(texts), atol=1e-6)
    assert [len(body["input"]) for body in endpoint.asked] == [64, 32, *[16] * 8]


# Faults of the endpoint


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (listed([vector(TALK[0])]), "1 vectors for 2 texts"),
        (listed([vector(TALK[0])] * 3), "3 vectors for 2 texts"),
        (listed([vector(TALK[0]), vector(TALK[1], 47)]), "answered with 47 dimensions in the place of 48"),
        (listed([vector(TALK[0]), [float("nan")] * 48]), "not finite"),
        (listed([vector(TALK[0]), [float("inf")] * 48]), "not finite"),
        (listed([vector(TALK[0]), [1e300] * 48]), "not finite"),
        (listed([vector(TALK[0]), [None] * 48]), "not finite"),
        (listed([vector(TALK[0]), [10**400] * 48]), "no vector"),
        (listed([packed(vector(TALK[0])), packed([float("nan")] * 48)]), "not finite"),
        (listed([packed(vector(TALK[0])), "not base64!"]), "no vector"),
        (listed([packed(vector(TALK[0])), "AAAA"]), "no vector"),
        (listed([vector(TALK[0]), []]), "empty vector"),
        (listed([vector(TALK[0]), [[0.1, 0.2]]]), "another shape"),
        (listed([vector(TALK[0]), None]), "another shape"),
        (listed([vector(TALK[0]), {"a": 1}]), "no vector"),
        (listed([vector(TALK[0]), vector(TALK[1])], places=[0, 0]), "did not number its 2 vectors from 0 to 1"),
        (listed([vector(TALK[0]), vector(TALK[1])], places=[1, 2]), "did not number its 2 vectors from 0 to 1"),
        (listed([vector(TALK[0]), vector(TALK[1])], places=[0, None]), "did not number its 2 vectors from 0 to 1"),
        (Answer(body='{"data": "none"}'), "no list of embeddings"),
        (Answer(body='{"embeddings": [[0.1]]}'), "no list of embeddings"),
        (Answer(body='{"data": [1, 2]}'), "another shape"),
        (Answer(body="<html>Sign in</html>", headers={"Content-Type": "text/html"}), "no list of embeddings"),
        (Answer(body=""), "no list of embeddings"),
        (Answer(body="[" * 100_000), "no list of embeddings"),
        (Answer(body="\ufffd" * 100), "no list of embeddings"),
    ],
)
async def test_an_answer_that_is_none_is_unusable_and_the_next_one_is_used(at: Connect, answer: Answer, says: str):
    with serving(answer, as_openai) as endpoint:
        embedder = at(endpoint, dimensions=DIMENSIONS)
        assert says in str(await failure(embedder, InvalidEmbedding))
        assert np.allclose((await embedder.documents(TALK)).vectors, units(TALK), atol=1e-6)


@pytest.mark.parametrize(
    "answer", [listed([[float("nan")], [1.0]], tokens=91), Answer(body='{"data": 7, "usage": {"total_tokens": 91}}')]
)
async def test_what_an_unusable_answer_took_is_told(at: Connect, answer: Answer):
    with serving(answer) as endpoint:
        assert (await failure(at(endpoint), InvalidEmbedding)).tokens == (91, None, None)


async def test_a_bad_first_answer_teaches_no_dimensions(at: Connect):
    with serving(listed([[float("nan")] * 3] * 2), as_openai) as endpoint:
        embedder = at(endpoint)
        await failure(embedder, InvalidEmbedding)
        await embedder.documents(TALK)
    assert embedder.space.dimensions == DIMENSIONS


async def test_another_dimension_than_the_one_that_is_set_says_what_to_set(at: Connect):
    with serving(as_a_server_at_home) as endpoint:
        error = await failure(at(endpoint, dimensions=512), InvalidEmbedding)
    assert "answered with 48 dimensions in the place of 512; set HITHERTO_EMBEDDER_DIMENSIONS" in str(error)


async def test_a_wrong_key_is_named_by_its_setting(at: Connect):
    with serving(refused(401, f"Incorrect API key provided: {KEY}")) as endpoint:
        error = await failure(at(endpoint), ModelRejected)
    assert "HITHERTO_EMBEDDER_KEY" in str(error)


async def test_an_unknown_model_is_named_by_its_setting(at: Connect):
    with serving(refused(404, "The model `small` does not exist.")) as endpoint:
        error = await failure(at(endpoint), ModelRejected)
    assert "does not know the model 'small'" in str(error)
    assert "HITHERTO_EMBEDDER " in str(error)


async def test_a_question_is_not_waited_for_as_long_as_documents_are(at: Connect):
    with serving(Answer(silent=True)) as endpoint:
        embedder = at(endpoint, timeout=0.2, patience=0.8)
        with pytest.raises(ModelUnavailable, match=r"did not answer within 0\.2 seconds.*HITHERTO_EMBEDDER_TIMEOUT"):
            await embedder.query("Where?")
        asked = time.perf_counter()
        with pytest.raises(ModelUnavailable, match=r"within 0\.8 seconds"):
            await embedder.documents(TALK)
        done = time.perf_counter()
    assert done - asked > 0.7


async def test_an_error_in_place_of_an_answer_means_what_it_says(at: Connect):
    with serving(Answer(body=json.dumps({"error": {"message": "upstream is away", "code": 502}}))) as endpoint:
        assert "is failing (502);" in str(await failure(at(endpoint), ModelUnavailable))


# Azure and Ollama


@pytest.mark.parametrize(
    ("version", "path"),
    [
        (None, "/openai/v1/embeddings"),
        ("2024-10-21", "/openai/deployments/notes/embeddings?api-version=2024-10-21"),
    ],
)
async def test_an_azure_resource_is_asked_as_it_wants_to_be(version: str | None, path: str):
    with Endpoint(as_openai, path=path) as endpoint:
        embedder = AzureOpenAIEmbedder(
            model="notes", base_url=endpoint.root, api_version=version, api_key=KEY, dimensions=DIMENSIONS
        )
        await check_embedder(embedder)
        await embedder.aclose()
    assert set(endpoint.paths) == {path}
    header = "authorization" if version is None else "api-key"
    assert endpoint.headers[0][header].removeprefix("Bearer ") == KEY


async def test_an_ollama_is_asked_without_a_key_where_it_is():
    with serving(as_a_server_at_home) as endpoint:
        embedder = OllamaEmbedder(model="notes", base_url=endpoint.root)
        await embedder.learn()
        await check_embedder(embedder)
        await embedder.aclose()
