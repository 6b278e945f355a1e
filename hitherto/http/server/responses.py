"""Answers: JSON, and errors as problem details."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any, cast

from starlette.responses import Response

from hitherto.errors import HithertoError
from hitherto.http.problems import MEDIA_TYPE, headers_of, problem_of
from hitherto.http.shapes import written

_LONG = 50
"""Entries of a list that are written as JSON on the event loop."""


def encoded(value: Any) -> bytes:
    """JSON in ASCII: a text may have halves of characters, which UTF-8 cannot hold."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()


async def answer(result: Any, hint: Any) -> Response:
    """What a verb of this return type answered; without a body where it answers nothing."""
    if hint is type(None):
        return Response(status_code=204)
    if isinstance(result, list | tuple) and len(cast("Sequence[Any]", result)) > _LONG:
        body = await asyncio.to_thread(_list, cast("Sequence[Any]", result), hint)
    else:
        body = encoded(written(result, hint))
    return Response(body, media_type="application/json")


def _list(result: Sequence[Any], hint: Any) -> bytes:
    # Entry by entry: the interpreter lets others go on in between.
    return b"[" + b",".join([encoded(one) for one in written(result, hint)]) + b"]"


def problem(error: HithertoError) -> Response:
    found = problem_of(error)
    return Response(encoded(found), status_code=found["status"], media_type=MEDIA_TYPE, headers=headers_of(error))
