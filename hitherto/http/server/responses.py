"""Answers: JSON, and errors as problem details."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from starlette.responses import Response

from hitherto.aside import EACH, aside
from hitherto.engine.context.context import Context
from hitherto.errors import HithertoError
from hitherto.http.problems import MEDIA_TYPE, headers_of, problem_of
from hitherto.http.shapes import written

_OF_A_TOKEN = 4
"""Characters."""


def encoded(value: Any) -> bytes:
    """JSON in ASCII: a text may have halves of characters, which UTF-8 cannot hold."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()


async def answer(result: Any, hint: Any) -> Response:
    """What a verb of this return type answered; without a body where it answers nothing."""
    if hint is type(None):
        return Response(status_code=204)
    return Response(await aside(_size(result), _body, result, hint), media_type="application/json")


def _size(result: Any) -> int:
    """Of an answer, in characters, about."""
    if isinstance(result, Context):
        return result.tokens * _OF_A_TOKEN
    return len(cast("Sequence[Any]", result)) * EACH if isinstance(result, list | tuple) else 0


def _body(result: Any, hint: Any) -> bytes:
    if not isinstance(result, list | tuple):
        return encoded(written(result, hint))
    # Entry by entry: the interpreter lets others go on in between.
    return b"[" + b",".join([encoded(one) for one in written(result, hint)]) + b"]"


def problem(error: HithertoError) -> Response:
    found = problem_of(error)
    return Response(encoded(found), status_code=found["status"], media_type=MEDIA_TYPE, headers=headers_of(error))
