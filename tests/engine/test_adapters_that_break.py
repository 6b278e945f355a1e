"""Models and embedders of somebody's own that break what the ports promise: nothing of ours ends with them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

import pytest

from hitherto import assistant, user
from hitherto.core.digests.digest import Status
from hitherto.core.ledger import FailureCause, Purpose
from hitherto.core.recall.vectors import Vectors
from hitherto.engine.calls import CallContext, Calls
from hitherto.engine.daily_limit import CallPostponed
from hitherto.errors import InvalidModelAnswer, ModelUnavailable
from hitherto.ports.models import Completion, Embeddings
from hitherto.providers.scripted import Scripted, ScriptedEmbedder
from hitherto.store.store import Store
from tests.conftest import SCOPE
from tests.engine.metered import PRICED, Told, services_of
from tests.memories import open_on
from tests.patience import PATIENCE
from tests.times import BreakerTime

WHAT = CallContext(model=PRICED, purpose=Purpose.DIGEST, tenant=SCOPE.tenant)
GOOD = Completion(text="yes", tokens_in=900, tokens_out=100)


class Panic(BaseException):
    """As what a panic in an extension module is raised as: no Exception."""


class Once:
    """Raises something the first time."""

    def __init__(self, error: BaseException) -> None:
        self._error: BaseException | None = error

    def __call__(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error


class Local(ScriptedEmbedder):
    """Computes in this process."""

    @property
    def local(self) -> bool:
        return True


@pytest.mark.parametrize("kind", [ScriptedEmbedder, Local])
@pytest.mark.parametrize("error", [Panic("index out of bounds"), asyncio.CancelledError()], ids=["panic", "cancelled"])
async def test_indexing_goes_on(
    store: Store, kind: type[ScriptedEmbedder], error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an embedder that raised what is no Exception, or was cancelled by others than us."""
    monkeypatch.setattr("hitherto.engine.recall.indexer._LATER", 0.2)
    once = Once(error)

    def breaks(vectors: Vectors) -> object:
        once()
        return vectors

    async with open_on(store, embedder=kind(then=breaks), model_max_attempts=1) as memory:
        await memory.conversation("c", scope=SCOPE).append(user("I play the cello"))
        index = memory._services.store.index
        async with asyncio.timeout(PATIENCE):
            while (load := await index.backlog(kind().space)).waiting or load.unembedded:  # noqa: ASYNC110 (others do it)
                await asyncio.sleep(0.05)


class Stubborn(Local):
    """Answers a cancellation with an error, or as if there had been none."""

    def __init__(self, error: Exception | None) -> None:
        super().__init__()
        self._error, self.called = error, asyncio.Event()

    async def documents(self, texts: Sequence[str]) -> Embeddings:
        self.called.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        if self._error is not None:
            raise self._error
        return await super().documents(texts)


@pytest.mark.parametrize("error", [RuntimeError("stopped"), None], ids=["error", "answer"])
async def test_closing_does_not_wait_for_ever(store: Store, error: Exception | None) -> None:
    embedder = Stubborn(error)
    async with asyncio.timeout(PATIENCE), open_on(store, embedder=embedder) as memory:
        await memory.conversation("c", scope=SCOPE).append(user("I play the cello"))
        await embedder.called.wait()


class SelfCancelling(Local):
    """Ends a wait by a cancellation of its own task, which it does not take back."""

    async def documents(self, texts: Sequence[str]) -> Embeddings:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return await super().documents(texts)


async def test_an_adapter_may_cancel_itself(store: Store) -> None:
    embedder = SelfCancelling()
    async with asyncio.timeout(PATIENCE), open_on(store, embedder=embedder) as memory:
        await memory.conversation("c", scope=SCOPE).append(user("I play the cello"))
        index = memory._services.store.index
        while (load := await index.backlog(embedder.space)).waiting or load.unembedded:  # noqa: ASYNC110 (others do it)
            await asyncio.sleep(0.05)


async def test_a_digest_is_not_held_up(store: Store) -> None:
    """By a model that raised what is no Exception: it is a defect of the model's, as any other."""

    def breaks(_: object) -> str:
        raise Panic("index out of bounds")

    model = Scripted([breaks])
    policy = "rolling:threshold=4,keep_last=2"
    async with open_on(store, model=model, policy=policy, model_max_attempts=1) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        for _ in range(3):
            await chat.append(user("q"), assistant("a"))
        async with asyncio.timeout(PATIENCE):
            await memory.wait_for_digests()
        (row,) = await chat.digests()
        assert row.status is Status.FAILED
        assert row.error == "unexpected RuntimeError from Panic"


def odd(**figures: object) -> Completion:
    return Completion(text="yes", **cast("dict[str, Any]", figures))


def answering(*answers: Completion | Exception) -> Callable[[], Awaitable[Completion]]:
    """One a call, then the last for ever."""
    left = list(answers)

    async def ask() -> Completion:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return ask


@pytest.mark.parametrize(
    "figures",
    [
        {"tokens_in": "12", "tokens_out": "3"},
        {"tokens_in": 1.5, "tokens_out": [3]},
        {"tokens_in": -1, "tokens_cached": "a", "tokens_out": True},
        {"tokens_in": 2**63},
    ],
    ids=str,
)
async def test_figures_that_are_none_are_left_out(store: Store, figures: dict[str, object]) -> None:
    """Of an answer that is good, and of one that is not; the ledger has the call all the same."""
    unusable = InvalidModelAnswer("nothing")
    unusable.tokens = cast("Any", (figures["tokens_in"], None, None))
    calls, ask = Calls(services_of(store, Told())), answering(odd(**figures), unusable)
    async with calls.recorded(SCOPE) as ledger:
        assert (await calls.make(ask, WHAT, ledger)).text == "yes"
        with pytest.raises(InvalidModelAnswer):
            await calls.make(ask, WHAT, ledger)
        took = [(call.tokens_in, call.tokens_cached, call.tokens_out, call.cost) for call in ledger]
        assert took == [(None, None, None, None)] * 2
        assert [call.cause for call in ledger] == [None, FailureCause.UNUSABLE]
    (costs,) = await store.costs("model")
    assert (costs.calls, costs.unpriced) == (2, 2)


@pytest.mark.parametrize("part", ["span", "price", "called", "the figures", "the answer"])
async def test_a_probe_that_breaks_is_not_the_last(store: Store, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After its rest one call is let through; whatever becomes of that, another may follow."""
    once, watch, breaker_time = Once(ZeroDivisionError()), Told(), BreakerTime(monkeypatch)
    services = services_of(store, watch, model_max_attempts=1, breaker_failures=1, breaker_cooldown=600)
    answers = {"the figures": odd(tokens_in="12"), "the answer": cast(Completion, "no answer at all")}
    calls = Calls(replace(services, price=breaking(services.price, once) if part == "price" else services.price))
    ask = answering(ModelUnavailable("down"), answers.get(part, GOOD), GOOD)
    with pytest.raises(ModelUnavailable):
        await calls.make(ask, WHAT, [])
    with pytest.raises(CallPostponed):
        await calls.make(ask, WHAT, [])
    breaker_time.pass_seconds(600)
    if part in ("span", "called"):
        setattr(watch, part, breaking(getattr(watch, part), once))
    with suppress(ZeroDivisionError, AttributeError):
        await calls.make(ask, WHAT, [])
    assert await calls.make(ask, WHAT, []) == GOOD


def breaking(work: Callable[..., Any], once: Once) -> Callable[..., Any]:
    """`work`, which raises something the first time."""

    def breaks(*given: Any, **named: Any) -> Any:
        once()
        return work(*given, **named)

    return breaks
