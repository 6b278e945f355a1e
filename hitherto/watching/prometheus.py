"""Metrics for Prometheus: counts and times of this process, and the backlog of digests in the database."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest, start_http_server
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from hitherto.core.digests.digest import Backlog
from hitherto.core.ledger import FailureCause, ModelCall
from hitherto.core.log.frontier import DigestAction
from hitherto.errors import InvalidSettings
from hitherto.ports.watch import TraceSpan, Value, Watch

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""The content type of `Metrics.exposition`."""

_QUICK = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
_SLOW = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300)
"""Upper bounds of histograms in seconds: of what needs a database, and of what needs a model."""

_MODELS = 50
"""The most models with a label of their own; others count as "other". A program that makes up names must not make up
series without end."""


class Metrics(Watch):
    """Counts in a registry of its own, from 0 at the start of the process.

    No label names a tenant, user or conversation. Spans and model calls go to `tracing` too.
    """

    def __init__(self, tracing: Watch | None = None) -> None:
        self.registry = CollectorRegistry()
        self._tracing = tracing or Watch()
        self._known: dict[str, str] = {}
        self._standing = _BacklogCollector()
        self.registry.register(self._standing)
        counted, timed = self._counted, self._timed
        self._messages = counted("messages_appended_total", "Messages written to logs.")
        self._append = timed("append_seconds", "Seconds that an append took, until its messages were durable.", _QUICK)
        self._context = timed("context_seconds", "Seconds that it took to make a context.", _QUICK)
        self._recall = timed("recall_seconds", "Seconds that it took to search.", _QUICK)
        self._digests = counted(
            "digests_total",
            "Digests that ended in this process, by what they did and how they ended: completed, or why not.",
            *("action", "outcome"),
        )
        self._digest = timed(
            "digest_seconds", "Seconds from the claim of a digest to its end, model included.", _SLOW, "action"
        )
        self._calls = counted(
            "model_calls_total",
            "Requests to a model, by what for and how they ended: answered, or why not.",
            *("model", "purpose", "outcome"),
        )
        self._latency = timed("model_call_seconds", "Seconds from a request to its answer or failure.", _SLOW, "model")
        self._tokens = counted(
            "model_tokens_total",
            "Tokens by the endpoint's own figures: in is the whole prompt, cached the part of it from the provider's "
            "prompt cache, out the answer.",
            *("model", "direction"),
        )
        self._requests = timed(
            "request_seconds", "Seconds until a request to the service was answered.", _SLOW, "method", "path", "status"
        )
        self._dollars = counted("model_cost_dollars_total", "US dollars of calls with a known price.", "model")

    def _counted(self, name: str, help: str, *labels: str) -> Counter:
        return Counter(f"hitherto_{name}", help, labels, registry=self.registry)

    def _timed(self, name: str, help: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(f"hitherto_{name}", help, labels, buckets=buckets, registry=self.registry)

    def span(self, name: str, **attributes: Value | None) -> AbstractContextManager[TraceSpan]:
        return self._tracing.span(name, **attributes)

    def appended(self, *, messages: int, seconds: float) -> None:
        self._messages.inc(messages)
        self._append.observe(seconds)

    def context_built(self, *, seconds: float) -> None:
        self._context.observe(seconds)

    def recalled(self, *, seconds: float) -> None:
        self._recall.observe(seconds)

    def digested(self, *, action: DigestAction, cause: FailureCause | None, seconds: float) -> None:
        self._digests.labels(action.value, "completed" if cause is None else cause.value).inc()
        self._digest.labels(action.value).observe(seconds)

    def called(self, call: ModelCall) -> None:
        model = self._model(call.model)
        self._calls.labels(model, call.purpose.value, "answered" if call.cause is None else call.cause.value).inc()
        self._latency.labels(model).observe(call.latency_ms / 1_000)
        for direction, tokens in (("in", call.tokens_in), ("cached", call.tokens_cached), ("out", call.tokens_out)):
            if tokens is not None and tokens >= 0:  # the endpoint's own figure, and a counter takes nothing below 0
                self._tokens.labels(model, direction).inc(tokens)
        if call.cost is not None:
            self._dollars.labels(model).inc(call.cost)
        self._tracing.called(call)

    def answered(self, *, method: str, path: str, status: int, seconds: float) -> None:
        self._requests.labels(method, path, status).observe(seconds)

    def show(self, load: Backlog) -> None:
        """Set the gauges to this backlog; before the first call there are none."""
        self._standing.load = load

    def exposition(self) -> bytes:
        """All metrics in Prometheus's text format, which is `CONTENT_TYPE`."""
        return generate_latest(self.registry)

    def _model(self, name: str) -> str:
        if len(self._known) < _MODELS:
            self._known.setdefault(name, name)
        return self._known.get(name, "other")


class _BacklogCollector(Collector):
    """The gauges of the digest backlog, as last set by `show`."""

    load: Backlog | None = None

    def collect(self) -> Iterator[Metric]:
        load = self.load
        if load is None:
            return
        for name, says, value in (
            ("digests_due", "Digests that wait for a worker.", load.due),
            ("digests_in_progress", "Digests in a worker's hands.", load.claimed),
            ("digests_put_off", "Digests that wait for a later try.", load.put_off),
            ("digest_lag_seconds", "Age in seconds of the oldest digest that is not made yet.", load.lag_seconds),
            (
                "digest_lag_messages",
                "Most messages that a conversation with a digest that is not made yet is ahead of its last one.",
                load.lag_messages,
            ),
            ("conversations_resting", "Conversations that begin no digests for now: theirs failed.", load.resting),
            ("workers", "Processes that make digests and have shown themselves.", load.workers),
        ):
            yield GaugeMetricFamily(f"hitherto_{name}", says, value=value)


class Serving:
    """A server of metrics over HTTP, in a thread of its own, until `close`."""

    def __init__(self, server: WSGIServer, thread: threading.Thread, address: str) -> None:
        self._server = server
        self._thread = thread
        self.address = address
        """HOST:PORT; the actual port where 0 was asked for."""

    def close(self) -> None:
        """Stop the server; returns when its port is closed. Safe to call twice."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def serving(metrics: Metrics, address: str) -> Serving:
    """Serve `metrics` at `address`: HOST:PORT, [IPV6]:PORT, :PORT for all addresses of this machine, or PORT for
    requests from this machine only; port 0 finds a free one. Any path answers.

    Raises InvalidSettings for an invalid address, or one that the server cannot listen at.
    """
    host, port = _parsed(address)
    try:
        server, thread = start_http_server(port, host, metrics.registry)
    except OSError as error:
        raise InvalidSettings(
            f"metrics cannot be served at {address!r}: {error.strerror or error}; see whether another process has the "
            "port and whether this machine has the address, or give another one"
        ) from error
    return Serving(server, thread, f"{f'[{host}]' if ':' in host else host}:{server.server_port}")


def _parsed(address: str) -> tuple[str, int]:
    host, colon, port = address.strip().rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    bracketed = host != bare
    if (":" in bare) != bracketed or not (port.isascii() and port.isdigit()) or int(port) > 65_535:
        raise InvalidSettings(
            f"{address!r} is no address to serve metrics at; write HOST:PORT, :PORT for all addresses of this machine, "
            "or PORT for this machine only"
        )
    return bare or ("0.0.0.0" if colon else "127.0.0.1"), int(port)  # noqa: S104 (asked for in so many words)
