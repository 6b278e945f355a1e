"""Errors over HTTP: problem details (RFC 9457), in one table with the error classes.

The `type` of a problem is `urn:hitherto:` and the name of the error class; `title` is what the class says of itself,
`detail` the error's own message. What else an error tells (`actual`, `over_by`, `line`, `retry_after`) is a member of
its own. The client raises the error of that class.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from typing import Any

from hitherto import errors
from hitherto.errors import HithertoError

MEDIA_TYPE = "application/problem+json"
_URN = "urn:hitherto:"


STATUS: Mapping[type[HithertoError], int] = {
    HithertoError: 500,
    errors.InvalidInput: 422,
    errors.Conflict: 409,
    errors.NotFound: 404,
    errors.BudgetExceeded: 422,
    errors.NotReproducible: 409,
    errors.StoreError: 503,
    errors.ModelError: 502,
    errors.ModelUnavailable: 503,
    errors.Unauthorized: 401,
    errors.Forbidden: 403,
    errors.TooLarge: 413,
    errors.UnsupportedMediaType: 415,
    errors.TooManyRequests: 429,
    errors.TimedOut: 408,
}
"""The status of an error: that of its class, or else of the nearest class above it."""

_LONGEST = 2_000
"""Characters of a detail; it may quote what was given."""

RETRY_AFTER = 1
"""Seconds after which a request may be tried again that found the store away."""


def status_of(error: HithertoError) -> int:
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def problem_of(error: HithertoError) -> dict[str, Any]:
    """An error as problem details."""
    kind = type(error)
    members = {name: value for name in _members(kind) if (value := getattr(error, name)) is not None}
    title = inspect.getdoc(kind) or kind.__name__
    return {
        "type": f"{_URN}{kind.__name__}",
        "title": " ".join(title.split(". ")[0].split()).rstrip("."),
        "status": status_of(error),
        "detail": detail_of(error)[:_LONGEST],
        **members,
    }


def detail_of(error: HithertoError) -> str:
    """The message for the client. What a store says is for those who run it, and names addresses."""
    if isinstance(error, errors.StoreError) and not isinstance(error, errors.ServiceUnavailable):
        return (
            "the service's database is away, or refuses this; try again later. A write that was under way is done or "
            "not: send it again with its Idempotency-Key"
        )
    return str(error)


def headers_of(error: HithertoError) -> dict[str, str]:
    """The headers that go with an error: when to try again, and how to give a key."""
    headers = dict[str, str]()
    retry_after = getattr(error, "retry_after", None)
    if status_of(error) == 503 or retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(retry_after or RETRY_AFTER)))
    if isinstance(error, errors.Unauthorized):
        headers["WWW-Authenticate"] = "Bearer"
    return headers


def error_of(problem: Mapping[str, Any]) -> HithertoError:
    """The error that a problem tells of; a `ServiceError` for a class that is not known here, or not told whole."""
    kind = _CLASSES.get(str(problem.get("type")).removeprefix(_URN), errors.ServiceError)
    detail = str(problem.get("detail") or problem.get("title") or "the service gives no reason")
    members = {name: problem[name] for name in _members(kind) if isinstance(problem.get(name), int | float)}
    try:
        return kind(detail, **members)
    except TypeError:
        return errors.ServiceError(detail)


def _members(kind: type[HithertoError]) -> list[str]:
    """What else an error of the class tells: what it is made with, beside its message."""
    return inspect.getfullargspec(kind.__init__).kwonlyargs


def _all(kind: type[HithertoError]) -> dict[str, type[HithertoError]]:
    classes = {kind.__name__: kind}
    for below in kind.__subclasses__():
        classes |= _all(below)
    return classes


_CLASSES = _all(HithertoError)
