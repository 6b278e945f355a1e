"""The port to monitoring: metrics and traces."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from hitherto.core.digests.digest import Backlog
from hitherto.core.ledger import FailureCause, ModelCall
from hitherto.core.log.frontier import DigestAction

Value = str | int | float | bool


class TraceSpan(Protocol):
    """One timed piece of work in a trace."""

    def set(self, **attributes: Value | None) -> None:
        """Add attributes to the span; those that are None are left out."""
        ...


class _NoSpan(TraceSpan):
    def set(self, **attributes: Value | None) -> None:
        pass


_NOTHING: AbstractContextManager[TraceSpan] = nullcontext(_NoSpan())


class Watch:
    """Receives what happens in a memory; this one records nothing. Every method returns at once and never raises.

    `span` is a piece of work with a name of `append`, `context`, `recall`, `digest` or `model_call`, timed by a `with`
    block. `appended` reports messages written, in so many seconds; `context_built` a context; `recalled` a search;
    `digested` the end of a digest that was made in the background (`cause` is None if it completed); `called` a model
    call, inside its span; `answered` a request to the service, whose `path` is a pattern; `show` the current backlog.
    `exposition` is what was counted so far, in Prometheus's text format; empty where nothing is counted.
    """

    def span(self, name: str, **attributes: Value | None) -> AbstractContextManager[TraceSpan]:
        return _NOTHING

    def appended(self, *, messages: int, seconds: float) -> None: ...
    def context_built(self, *, seconds: float) -> None: ...
    def recalled(self, *, seconds: float) -> None: ...
    def digested(self, *, action: DigestAction, cause: FailureCause | None, seconds: float) -> None: ...
    def called(self, call: ModelCall) -> None: ...
    def answered(self, *, method: str, path: str, status: int, seconds: float) -> None: ...
    def show(self, load: Backlog) -> None: ...

    def exposition(self) -> bytes:
        return b""
