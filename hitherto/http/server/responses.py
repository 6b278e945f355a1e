"""Answers: JSON, and errors as problem details."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from starlette.responses import Response

from hitherto.core.log.head import Head
from hitherto.engine.context.context import Context
from hitherto.engine.log.append import AppendResult
from hitherto.errors import HithertoError
from hitherto.http.problems import MEDIA_TYPE, headers_of, problem_of
from hitherto.http.shapes import answer_to_json

_SMALL = (AppendResult, Head, bool, int)
_FEW = 10_000
"""Tokens of a context that is written as JSON on the event loop, as small answers are."""


def encoded(value: Any) -> bytes:
    """JSON in ASCII: a text may have halves of characters, which UTF-8 cannot hold."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()


async def answer(result: Any, hint: Any) -> Response:
    """What a verb of this return type answered; without a body where it answers nothing."""
    if hint is type(None):
        return Response(status_code=204)
    small = isinstance(result, _SMALL) or (isinstance(result, Context) and result.tokens <= _FEW)
    body = _body(result, hint) if small else await asyncio.to_thread(_body, result, hint)
    return Response(body, media_type="application/json")


def _body(result: Any, hint: Any) -> bytes:
    if not isinstance(result, list | tuple):
        return encoded(answer_to_json(result, hint))
    # Entry by entry: the interpreter lets others go on in between.
    return b"[" + b",".join([encoded(entry) for entry in answer_to_json(result, hint)]) + b"]"


def problem(error: HithertoError, **members: Any) -> Response:
    """An error as problem details, with these members beside its own or in their place."""
    found = problem_of(error) | members
    return Response(encoded(found), status_code=found["status"], media_type=MEDIA_TYPE, headers=headers_of(error))
