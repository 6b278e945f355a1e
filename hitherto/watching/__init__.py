"""Whoever watches: metrics for Prometheus, always; traces for OpenTelemetry, where they are asked for."""

from __future__ import annotations

from contextlib import AbstractContextManager

from hitherto.core.digest import Done
from hitherto.core.ledger import Cause, ModelCall
from hitherto.errors import InvalidSettings
from hitherto.ports.store import Load
from hitherto.ports.watch import Span, Unwatched, Value, Watch
from hitherto.settings import Settings
from hitherto.watching.prometheus import CONTENT_TYPE, Metrics, Serving, serving

__all__ = ["CONTENT_TYPE", "Metrics", "Serving", "Watching", "serving", "watch_of"]


class Watching(Watch):
    """Tells `metrics` what was counted and `tracing` what to trace; each keeps to its own."""

    def __init__(self, metrics: Metrics, tracing: Watch | None = None) -> None:
        self.metrics = metrics
        self._tracing = tracing or Unwatched()

    def span(self, name: str, **attributes: Value | None) -> AbstractContextManager[Span]:
        return self._tracing.span(name, **attributes)

    def appended(self, *, messages: int, seconds: float) -> None:
        self.metrics.appended(messages=messages, seconds=seconds)

    def contexted(self, *, seconds: float) -> None:
        self.metrics.contexted(seconds=seconds)

    def recalled(self, *, seconds: float) -> None:
        self.metrics.recalled(seconds=seconds)

    def digested(self, *, done: Done, cause: Cause | None, seconds: float) -> None:
        self.metrics.digested(done=done, cause=cause, seconds=seconds)

    def called(self, call: ModelCall) -> None:
        self.metrics.called(call)
        self._tracing.called(call)

    def show(self, load: Load) -> None:
        self.metrics.show(load)

    def exposition(self) -> bytes:
        return self.metrics.exposition()


def watch_of(settings: Settings) -> Watching:
    """The watch of one memory. Raises InvalidSettings where traces are wanted and OpenTelemetry is not there."""
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
