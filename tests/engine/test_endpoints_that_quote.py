"""Endpoints, and parts of somebody's own, whose errors quote what they were sent: not a word of it is logged or stored,
where it would outlive the messages. Over real HTTP."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hitherto import Conversation, Memory, assistant, native, sliding_window, user
from hitherto.core.digests.digest import Status
from hitherto.ports.models import Prompt, RerankResult
from hitherto.providers.anthropic import Anthropic
from hitherto.providers.chat_model_reranker import ChatModelReranker
from hitherto.providers.cross_encoder import CrossEncoder
from hitherto.providers.openai_compatible.compactor import OpenAICompactor
from hitherto.providers.openai_compatible.embedder import OpenAICompatibleEmbedder
from hitherto.providers.openai_compatible.model import OpenAICompatible
from hitherto.providers.scripted import Scripted, ScriptedEmbedder
from hitherto.store.store import Store
from tests.acceptance.dialogue import ONE_TRY
from tests.conftest import SCOPE
from tests.memories import open_on
from tests.providers.embedders.serving import DIMENSIONS, as_a_server_at_home
from tests.providers.models.endpoint import Answer, Body, Endpoint, compacted, said
from tests.providers.models.providers import message

SECRET = "Granary"
KEPT: dict[str, Any] = {**ONE_TRY, "breaker_failures": 1_000_000}
"""Settings with which every call is made."""


def failed(body: object, status: int = 400, **headers: str) -> Answer:
    return Answer(status=status, body=body if isinstance(body, str) else json.dumps(body), headers=headers)


SHAPES: dict[str, Callable[[str], Answer]] = {
    "OpenAI": lambda quoted: failed({"error": {"message": f"Invalid: {quoted}", "type": "invalid_request_error"}}),
    "flat": lambda quoted: failed({"object": "error", "message": quoted, "code": 400}),
    "text in its place": lambda quoted: failed({"error": quoted}, 404),
    "in a list": lambda quoted: failed([{"error": {"code": 429, "message": quoted, "status": quoted}}], 429),
    "FastAPI": lambda quoted: failed({"detail": [{"type": "x", "loc": ["body"], "msg": "no", "input": quoted}]}, 422),
    "a name stuffed with it": lambda quoted: failed({"error": {"message": "no", "type": quoted, "code": quoted}}, 401),
    "a name that is an object": lambda quoted: failed({"error": {"message": [quoted], "code": {"of": quoted}}}, 403),
    "plain text": lambda quoted: failed(quoted, 500),
    "a page": lambda quoted: failed(f"<html><body>{quoted}</body></html>", 502),
    "too large": lambda quoted: failed({"error": {"message": f"Request too large: {quoted}"}}, 429),
    "too long": lambda quoted: failed({"error": {"message": f"The prompt is too long: {quoted}"}}),
    "a redirect": lambda quoted: failed("", 307, Location=f"/{quoted[:100]}"),
    "an error in an answer": lambda quoted: failed({"error": {"message": quoted, "code": 503}}, 200),
    "another error in an answer": lambda quoted: failed({"error": {"message": quoted, "code": quoted}}, 200),
    "no answer": lambda quoted: failed(quoted[:1000], 200),
    "an answer of another shape": lambda quoted: failed({"choices": quoted, "data": quoted, "output": quoted}, 200),
    "a header that is none": lambda quoted: failed("{}", 200, Echo=f"{quoted[:1000]}\x01"),
    "an encoding that is none": lambda quoted: failed(quoted, 200, **{"Content-Encoding": "gzip"}),
    "a charset that is none": lambda quoted: failed(quoted, 200, **{"Content-Type": "text/plain; charset=zlib_codec"}),
}


class Quoting:
    """Quotes the requests, the secret first, in one shape after the other; before the first, it embeds texts as it
    should. `quoted` counts the requests with the secret in them."""

    def __init__(self, shapes: dict[str, Callable[[str], Answer]] = SHAPES) -> None:
        self.shapes = shapes
        self.shape: str | None = None
        self.quoted = 0

    def each(self) -> Iterator[str]:
        for shape in self.shapes:
            self.shape = shape
            yield shape

    def __call__(self, body: Body) -> Answer:
        if self.shape is None:
            return as_a_server_at_home(body)
        whole = json.dumps(body)
        self.quoted += SECRET in whole
        return self.shapes[self.shape](whole[max(whole.find(SECRET) - 9, 0) :])


@pytest.fixture(autouse=True)
def listening(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "hitherto")


def assert_nothing_logged(caplog: pytest.LogCaptureFixture) -> None:
    ours = [record for record in caplog.records if record.name.startswith("hitherto")]
    assert ours, "what failed is logged"
    for record in ours:
        assert SECRET not in caplog.handler.format(record) + str(vars(record))


async def assert_nothing_stored(chat: Conversation) -> None:
    rows = await chat.digests()
    assert rows
    assert SECRET not in str([row.error for row in rows])


async def say(memory: Memory, chat: Conversation) -> None:
    await chat.append(user(f"Shall we meet at the {SECRET}, Rosa?"), assistant("Yes."))
    await memory.wait_for_digests()


def openai(endpoint: Endpoint) -> OpenAICompatible:
    return OpenAICompatible(model="small", base_url=endpoint.url)


def anthropic(endpoint: Endpoint) -> Anthropic:
    return Anthropic(model="small", base_url=endpoint.root)


@pytest.mark.parametrize("model_at", [openai, anthropic])
async def test_digests(
    store: Store, model_at: Callable[[Endpoint], OpenAICompatible | Anthropic], caplog: pytest.LogCaptureFixture
) -> None:
    unstated = {
        "declined": lambda quoted: said(None, refusal=quoted),
        "stopped": lambda quoted: said(None, finish=quoted),
        "declined by Anthropic": lambda quoted: message(stop_reason="refusal", stop_details={"explanation": quoted}),
        "stopped by Anthropic": lambda quoted: message(stop_reason=quoted),
    }
    quoting = Quoting({**SHAPES, **unstated})
    with Endpoint(quoting, path=None) as endpoint:
        model = model_at(endpoint)
        async with open_on(store, model=model, **KEPT) as memory:
            chat = memory.conversation("c", scope=SCOPE, policy=sliding_window(after_seq=1))
            for shape in quoting.each():
                before = quoting.quoted
                await say(memory, chat)
                row = (await chat.digests())[-1]
                assert (row.status, quoting.quoted > before) == (Status.FAILED, True), shape
                assert endpoint.root in str(row.error) or "'small'" in str(row.error) or "unexpected" in str(row.error)
            await assert_nothing_stored(chat)
        await model.aclose()
    assert_nothing_logged(caplog)


async def test_compactions(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    odd = {"type": "compaction", "encrypted_content": "gAAAA"}
    quoting = Quoting({**SHAPES, "an item that is none": lambda quoted: compacted({"type": quoted}, odd)})
    with Endpoint(quoting, path=None) as endpoint:
        compactor = OpenAICompactor(model="gpt-5.2", base_url=endpoint.url)
        async with open_on(store, model=Scripted(), compactor=compactor, context_window=20, **KEPT) as memory:
            chat = memory.conversation("c", scope=SCOPE, policy=native())
            for shape in quoting.each():
                before = quoting.quoted
                for _ in range(3):
                    await say(memory, chat)
                assert quoting.quoted > before, shape
            assert {row.status for row in await chat.digests()} == {Status.FAILED}
            await assert_nothing_stored(chat)
        await compactor.aclose()
    assert_nothing_logged(caplog)


async def test_embedders_and_rerankers(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    """A search goes on without them, and says nothing of what they said."""
    numbered = {
        "numbered": lambda quoted: failed({"data": [{"index": quoted, "embedding": [1.0]}]}, 200),
        "no scores": lambda quoted: failed({"results": [{"index": quoted, "relevance_score": quoted}]}, 200),
    }
    quoting = Quoting({**SHAPES, **numbered})
    with Endpoint(quoting, path=None) as endpoint:
        embedder = OpenAICompatibleEmbedder(model="small", base_url=endpoint.url, dimensions=DIMENSIONS)
        reranker = CrossEncoder(model="small", base_url=endpoint.url)
        given: dict[str, Any] = {"embedder": embedder, "reranker": reranker, "worker": False, **KEPT}
        async with open_on(store, **given) as memory:
            for name in ("one", "two"):
                await say(memory, memory.conversation(name, scope=SCOPE))
            assert await memory.wait_for_index()
        for shape in quoting.each():
            async with open_on(store, **given) as memory:  # the last may have put off what it embeds
                chat = memory.conversation("c", scope=SCOPE)
                before = quoting.quoted
                found = await memory.recall(f"Who is at the {SECRET}?", scope=SCOPE)
                assert quoting.quoted >= before + 2, shape
                assert {"embedder", "reranker"} <= set(found.missing), shape
                context = await chat.context(user(f"Where is the {SECRET}?"), recall=True)
                assert {"embedder", "reranker"} <= set(context.manifest.missing), shape
                await say(memory, chat)
                before = quoting.quoted
                await memory.wait_for_index()
                assert quoting.quoted > before, shape
        await embedder.aclose()
        await reranker.aclose()
    assert_nothing_logged(caplog)


async def test_documents_that_an_embedder_refuses(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    """Each text is tried by itself, and the one that is refused goes without a vector."""

    def choosy(body: Body) -> Answer:
        return SHAPES["OpenAI"](str(body["input"])) if SECRET in str(body["input"]) else as_a_server_at_home(body)

    with Endpoint(choosy, path=None) as endpoint:
        embedder = OpenAICompatibleEmbedder(model="small", base_url=endpoint.url, dimensions=DIMENSIONS)
        async with open_on(store, embedder=embedder, worker=False, **KEPT) as memory:
            await say(memory, memory.conversation("c", scope=SCOPE))
            await memory.wait_for_index()
        await embedder.aclose()
    assert "The embedder refused a text, which is found by its words only" in caplog.text
    assert_nothing_logged(caplog)


async def test_a_chat_model_that_puts_passages_in_order(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    says = {
        "prose": lambda quoted: said(f"The best is {quoted}"),
        "numbers": lambda quoted: said(json.dumps({"ranking": [987654, 987653]})),
    }
    quoting = Quoting({**SHAPES, **says})
    with Endpoint(quoting, path=None) as endpoint:
        model = openai(endpoint)
        async with open_on(store, reranker=ChatModelReranker(model), worker=False, **KEPT) as memory:
            for name in ("one", "two"):
                await say(memory, memory.conversation(name, scope=SCOPE))
            for shape in quoting.each():
                before = quoting.quoted
                found = await memory.recall(f"Who is at the {SECRET}?", scope=SCOPE)
                assert (quoting.quoted > before, found.missing) == (True, ("reranker",)), shape
        await model.aclose()
    assert "987654" not in caplog.text
    assert_nothing_logged(caplog)


async def test_parts_of_ones_own(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    """Their defects are found by their names and places in the log."""

    def quotes(prompt: Prompt) -> str:
        raise ValueError(prompt.user)

    class Panic(BaseException):
        """As what a panic in an extension module is raised as: no Exception."""

    def panics(prompt: Prompt) -> str:
        raise Panic(prompt.user)

    def odd(_: object) -> object:
        raise RuntimeError(SECRET)

    class Reranking:
        name, limit = "mine", 10

        async def rerank(self, question: str, passages: object) -> RerankResult:
            raise KeyError(question)

        async def aclose(self) -> None:
            pass

    embedder = ScriptedEmbedder()
    parts: dict[str, Any] = {"embedder": embedder, "reranker": Reranking(), "worker": False}
    async with open_on(store, **parts, **KEPT) as memory:
        await say(memory, memory.conversation("other", scope=SCOPE))
        assert await memory.wait_for_index()
    embedder._then = odd
    parts["worker"] = True
    async with open_on(store, model=Scripted([quotes, panics]), **parts, **KEPT) as memory:
        chat = memory.conversation("c", scope=SCOPE, policy=sliding_window(after_seq=1))
        await say(memory, chat)
        await say(memory, chat)
        errors = [row.error for row in await chat.digests()]
        assert errors == ["unexpected ValueError", "unexpected RuntimeError from Panic"]
        found = await memory.recall(f"Who is at the {SECRET}?", scope=SCOPE)
        assert {"embedder", "reranker"} <= set(found.missing)
        await memory.wait_for_index()
    assert "in quotes\n" in caplog.text, "the traceback tells where"
    assert_nothing_logged(caplog)
