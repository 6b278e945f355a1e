"""Traces: OpenTelemetry spans for what Hitherto does, sent to whatever the application has set up to collect them.

Importing this needs OpenTelemetry's API (the extra `tracing`). A span says what was done to which conversation, and
never contains text of it. Of an error it has only the type, as its message may quote the conversation.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.metadata import version

from opentelemetry import trace
from opentelemetry.context import Context

from hitherto.core.ledger import FailureCause, ModelCall, Purpose
from hitherto.ports.watch import TraceSpan, Value, Watch

_CALL = "model_call"
_DIGEST = "digest"

_GEN_AI = {
    "model": "gen_ai.request.model",
    "provider": "gen_ai.provider.name",
    "conversation": "gen_ai.conversation.id",
    "agent": "gen_ai.agent.name",
    "tokens_in": "gen_ai.usage.input_tokens",
    "tokens_cached": "gen_ai.usage.cache_read.input_tokens",
    "tokens_out": "gen_ai.usage.output_tokens",
}
"""The attributes that OpenTelemetry's conventions for generative AI have a name for; all others are called
`hitherto.…`."""

PROVIDERS: Mapping[Value, str] = {
    "openai": "openai",
    "azure": "azure.ai.openai",
    "ollama": "ollama",
    "anthropic": "anthropic",
}
"""What those conventions call the providers of models."""


class _Traced(TraceSpan):
    def __init__(self, span: trace.Span) -> None:
        self._span = span

    def set(self, **attributes: Value | None) -> None:
        self._span.set_attributes(_named(attributes))
        if attributes.get("failed"):
            self._span.set_status(trace.StatusCode.ERROR)

    def failed(self, kind: str) -> None:
        self._span.set_attribute("error.type", kind)
        self._span.set_status(trace.StatusCode.ERROR, kind)


class Tracing(Watch):
    """A span for each piece of work: `hitherto.append`, `hitherto.context`, `hitherto.recall`, `hitherto.digest`,
    `hitherto.model_call`.

    Each is a child of the span that is current where it begins. A digest is the exception: it is made in the background
    and outlives the request that started it, so it begins a new trace. An error that leaves a span marks it as failed,
    and so does `set(failed=True)`; a cancellation does not.
    """

    def __init__(self) -> None:
        self._tracer = trace.get_tracer("hitherto", version("hitherto"))
        self._calling = ContextVar[_Traced | None]("hitherto_model_call", default=None)

    @contextmanager
    def span(self, name: str, **attributes: Value | None) -> Generator[TraceSpan]:
        calls = name == _CALL
        with self._tracer.start_as_current_span(
            f"hitherto.{name}",
            context=Context() if name == _DIGEST else None,
            kind=trace.SpanKind.CLIENT if calls else trace.SpanKind.INTERNAL,
            attributes={**_operation(attributes), **_named(attributes)} if calls else _named(attributes),
            record_exception=False,
            set_status_on_exception=False,
        ) as begun:
            traced = _Traced(begun)
            before = self._calling.set(traced if calls else None)
            try:
                yield traced
            except Exception as error:
                traced.failed(type(error).__name__)
                raise
            finally:
                self._calling.reset(before)

    def called(self, call: ModelCall) -> None:
        """Add tokens, cost and failure to the span of the current model call, if there is one."""
        traced = self._calling.get()
        if traced is None:
            return
        traced.set(
            model=call.model,
            purpose=call.purpose.value,
            digest=call.digest,
            tokens_in=call.tokens_in,
            tokens_cached=call.tokens_cached,
            tokens_out=call.tokens_out,
            cost=call.cost,
        )
        if call.cause not in (None, FailureCause.LOST):  # a call that was cancelled is no failure
            traced.failed(call.cause.value)


def _operation(attributes: Mapping[str, Value | None]) -> dict[str, Value]:
    named = {Purpose.COMPACT.value: "compact", Purpose.EMBED.value: "embeddings"}
    return {"gen_ai.operation.name": named.get(str(attributes.get("purpose")), "chat")}


def _named(attributes: Mapping[str, Value | None]) -> dict[str, Value]:
    return {
        _GEN_AI.get(name, f"hitherto.{name}"): PROVIDERS.get(value, value) if name == "provider" else value
        for name, value in attributes.items()
        if value is not None
    }
