"""Monitoring: metrics for Prometheus, always; traces for OpenTelemetry, with the setting `tracing`."""

from __future__ import annotations

from contextlib import AbstractContextManager

from hitherto.core.digests.work import Backlog
from hitherto.core.ledger import FailureCause, ModelCall
from hitherto.core.log.frontier import DigestAction
from hitherto.errors import InvalidSettings
from hitherto.ports.watch import NoWatch, TraceSpan, Value, Watch
from hitherto.settings import Settings
from hitherto.watching.prometheus import CONTENT_TYPE, Metrics, Serving, serving

__all__ = ["CONTENT_TYPE", "Metrics", "Serving", "Watching", "serving", "watch_of"]


class Watching(Watch):
    """Forwards counts and times to `metrics`, spans to `tracing`, and model calls to both."""

    def __init__(self, metrics: Metrics, tracing: Watch | None = None) -> None:
        self.metrics = metrics
        self._tracing = tracing or NoWatch()

    def span(self, name: str, **attributes: Value | None) -> AbstractContextManager[TraceSpan]:
        return self._tracing.span(name, **attributes)

    def appended(self, *, messages: int, seconds: float) -> None:
        self.metrics.appended(messages=messages, seconds=seconds)

    def context_built(self, *, seconds: float) -> None:
        self.metrics.context_built(seconds=seconds)

    def recalled(self, *, seconds: float) -> None:
        self.metrics.recalled(seconds=seconds)

    def digested(self, *, action: DigestAction, cause: FailureCause | None, seconds: float) -> None:
        self.metrics.digested(action=action, cause=cause, seconds=seconds)

    def called(self, call: ModelCall) -> None:
        self.metrics.called(call)
        self._tracing.called(call)

    def answered(self, *, method: str, path: str, status: int, seconds: float) -> None:
        self.metrics.answered(method=method, path=path, status=status, seconds=seconds)

    def show(self, load: Backlog) -> None:
        self.metrics.show(load)

    def exposition(self) -> bytes:
        return self.metrics.exposition()


def watch_of(settings: Settings) -> Watching:
    """The monitoring of one memory. Raises InvalidSettings where `tracing` is set and OpenTelemetry is not
    installed."""
    if not settings.tracing:
        return Watching(Metrics())
    try:
        from hitherto.watching.tracing import Tracing
    except ImportError as error:
        raise InvalidSettings(
            "tracing needs OpenTelemetry's API, which is not installed: pip install 'hitherto[tracing]', or do without "
            "the setting tracing (HITHERTO_TRACING)"
        ) from error
    return Watching(Metrics(), Tracing())
