"""Monitoring: metrics for Prometheus, always; traces for OpenTelemetry, with the setting `tracing`."""

from __future__ import annotations

from hitherto.errors import InvalidSettings
from hitherto.settings import Settings
from hitherto.watching.prometheus import CONTENT_TYPE, Metrics, Serving, serving

__all__ = ["CONTENT_TYPE", "Metrics", "Serving", "serving", "watch_of"]


def watch_of(settings: Settings) -> Metrics:
    """The monitoring of one memory. Raises InvalidSettings where `tracing` is set and OpenTelemetry is not
    installed."""
    if not settings.tracing:
        return Metrics()
    try:
        from hitherto.watching.tracing import Tracing
    except ImportError as error:
        raise InvalidSettings(
            "tracing needs OpenTelemetry's API, which is not installed: pip install 'hitherto[tracing]', or do without "
            "the setting tracing (HITHERTO_TRACING)"
        ) from error
    return Metrics(Tracing())
