"""What a trace has in it, as OpenTelemetry's own SDK collects it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from hitherto.core.ledger import FailureCause, ModelCall, Purpose
from hitherto.core.log.frontier import DigestAction
from hitherto.errors import InvalidSettings, ModelRateLimited
from hitherto.settings import Settings
from hitherto.settings.values import ModelProvider
from hitherto.watching import Metrics, watch_of
from hitherto.watching.tracing import PROVIDERS, Tracing

SECRET = "the vault opens with 1234"


class Collected:
    """Spans that have ended, by name."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    def __getitem__(self, name: str) -> ReadableSpan:
        (found,) = [span for span in self.exporter.get_finished_spans() if span.name == f"hitherto.{name}"]
        return found

    def attributes(self, name: str) -> dict[str, Any]:
        return dict(self[name].attributes or {})


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collected]:
    made = Collected()

    def get_tracer(name: str, version: str) -> trace.Tracer:
        return made.provider.get_tracer(name, version)

    monkeypatch.setattr(trace, "get_tracer", get_tracer)
    yield made
    made.provider.shutdown()


@pytest.fixture
def tracing(collected: Collected) -> Tracing:
    return Tracing()


def own(span: ReadableSpan) -> tuple[int, int]:
    """The ids of its trace and of itself."""
    assert span.context is not None
    return span.context.trace_id, span.context.span_id


def parent(span: ReadableSpan) -> tuple[int, int] | None:
    return None if span.parent is None else (span.parent.trace_id, span.parent.span_id)


def test_attributes(tracing: Tracing, collected: Collected) -> None:
    with tracing.span("append", tenant="acme", conversation="c1", messages=2) as span:
        span.set(start=4, end=5, digest=None)
    assert collected.attributes("append") == {
        "hitherto.tenant": "acme",
        "gen_ai.conversation.id": "c1",
        "hitherto.messages": 2,
        "hitherto.start": 4,
        "hitherto.end": 5,
    }
    assert collected["append"].kind is SpanKind.INTERNAL
    assert collected["append"].status.status_code is StatusCode.UNSET
    scope = collected["append"].instrumentation_scope
    assert scope is not None
    assert scope.name == "hitherto"


def test_a_model_call_is_told_in_the_words_of_the_conventions(tracing: Tracing, collected: Collected) -> None:
    with tracing.span("model_call", model="small", purpose=Purpose.DIGEST, provider="azure"):
        tracing.called(
            ModelCall(
                purpose=Purpose.DIGEST,
                model="small",
                latency_ms=12,
                tokens_in=91,
                tokens_cached=64,
                tokens_out=17,
                cost=0.5,
                digest=3,
            )
        )
    assert collected.attributes("model_call") == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "small",
        "gen_ai.provider.name": "azure.ai.openai",
        "gen_ai.usage.input_tokens": 91,
        "gen_ai.usage.cache_read.input_tokens": 64,
        "gen_ai.usage.output_tokens": 17,
        "hitherto.purpose": "digest",
        "hitherto.cost": 0.5,
        "hitherto.digest": 3,
    }
    assert collected["model_call"].kind is SpanKind.CLIENT


def test_each_provider_has_its_name_in_the_conventions() -> None:
    assert {*PROVIDERS} == {*get_args(ModelProvider)}


def test_a_compaction_is_no_chat(tracing: Tracing, collected: Collected) -> None:
    with tracing.span("model_call", purpose=Purpose.COMPACT, provider="openai"):
        pass
    found = collected.attributes("model_call")
    assert (found["gen_ai.operation.name"], found["gen_ai.provider.name"]) == ("compact", "openai")


async def test_a_digest_begins_a_trace_and_its_calls_belong_to_it(tracing: Tracing, collected: Collected) -> None:
    async def digest() -> None:
        with tracing.span("digest", action=DigestAction.SUMMARIZE):
            await asyncio.sleep(0)
            with tracing.span("model_call"):
                await asyncio.sleep(0)

    with collected.provider.get_tracer("app").start_as_current_span("hitherto.request"):
        with tracing.span("append"):
            working = asyncio.create_task(digest())  # the task has the append's context
            await asyncio.sleep(0)
            with tracing.span("context"):
                pass
        await working
    request, append, context = (collected[name] for name in ("request", "append", "context"))
    made, call = collected["digest"], collected["model_call"]
    assert parent(append) == own(request)
    assert parent(context) == own(append)
    assert parent(made) is None
    assert own(made)[0] != own(append)[0]
    assert parent(call) == own(made)


def test_an_error_is_a_kind_and_no_words(tracing: Tracing, collected: Collected) -> None:
    with pytest.raises(ModelRateLimited), tracing.span("digest"), tracing.span("model_call"):
        raise ModelRateLimited(SECRET)
    for name in ("digest", "model_call"):
        assert collected[name].status.status_code is StatusCode.ERROR
        assert collected[name].status.description == "ModelRateLimited"
        assert collected.attributes(name)["error.type"] == "ModelRateLimited"
    assert SECRET not in "".join(span.to_json() for span in collected.exporter.get_finished_spans())


async def test_being_cancelled_is_no_failure(tracing: Tracing, collected: Collected) -> None:
    async def digest() -> None:
        with tracing.span("digest"):
            await asyncio.Event().wait()

    task = asyncio.create_task(digest())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert collected["digest"].status.status_code is StatusCode.UNSET


def test_a_call_that_failed_is_known_though_nothing_was_raised(tracing: Tracing, collected: Collected) -> None:
    failed = ModelCall(purpose=Purpose.CORRECT, model="small", latency_ms=1, cause=FailureCause.UNUSABLE)
    with tracing.span("digest"):
        with tracing.span("model_call"):
            tracing.called(failed)
        tracing.called(failed)  # outside of its span: whose would it be?
    assert collected["model_call"].status.description == "unusable"
    assert collected["digest"].status.status_code is StatusCode.UNSET
    assert collected.attributes("digest") == {}


def test_what_ends_badly_without_an_error_can_say_so(tracing: Tracing, collected: Collected) -> None:
    with tracing.span("digest") as span:
        span.set(failed=True, put_off=False)
    with tracing.span("context") as span:
        span.set(failed=False)
    assert collected["digest"].status.status_code is StatusCode.ERROR
    assert collected.attributes("digest") == {"hitherto.failed": True, "hitherto.put_off": False}
    assert collected["context"].status.status_code is StatusCode.UNSET


def test_a_call_that_was_cancelled_is_no_failure(tracing: Tracing, collected: Collected) -> None:
    with tracing.span("model_call"):
        tracing.called(ModelCall(purpose=Purpose.DIGEST, model="small", latency_ms=1, cause=FailureCause.LOST))
    assert collected["model_call"].status.status_code is StatusCode.UNSET


def test_calls_side_by_side_keep_apart(tracing: Tracing, collected: Collected) -> None:
    async def call(model: str) -> None:
        with tracing.span("model_call", model="?"):
            await asyncio.sleep(0)
            tracing.called(ModelCall(purpose=Purpose.DIGEST, model=model, latency_ms=1, tokens_in=len(model)))

    async def both() -> None:
        await asyncio.gather(call("one"), call("three"))

    asyncio.run(both())
    spans = [dict(span.attributes or {}) for span in collected.exporter.get_finished_spans()]
    found = [(one["gen_ai.request.model"], one["gen_ai.usage.input_tokens"]) for one in spans]
    assert sorted(found, key=str) == [("one", 3), ("three", 5)]


def test_watching_tells_both(tracing: Tracing, collected: Collected) -> None:
    watching = Metrics(tracing)
    with watching.span("model_call"):
        watching.called(ModelCall(purpose=Purpose.DIGEST, model="small", latency_ms=1, tokens_out=5))
    assert collected.attributes("model_call")["gen_ai.usage.output_tokens"] == 5
    assert b'hitherto_model_tokens_total{direction="out",model="small"} 5.0' in watching.exposition()


def test_it_is_off_unless_asked_for(collected: Collected, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HITHERTO_TRACING", raising=False)
    with watch_of(Settings.load()).span("append"):
        pass
    assert collected.exporter.get_finished_spans() == ()
    with watch_of(Settings.load(tracing=True)).span("append"):
        pass
    assert [span.name for span in collected.exporter.get_finished_spans()] == ["hitherto.append"]


def test_without_opentelemetry_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "hitherto.watching.tracing", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(InvalidSettings, match=r"pip install 'hitherto\[tracing\]'"):
        watch_of(Settings.load(tracing=True))
    assert watch_of(Settings.load(tracing=False)).exposition()
