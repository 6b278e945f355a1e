"""Answers: JSON, and errors as problem details."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response

from hitherto.aside import aside
from hitherto.core.log.head import Head
from hitherto.engine.context.context import Context
from hitherto.engine.log.append import AppendResult
from hitherto.errors import HithertoError
from hitherto.http.problems import MEDIA_TYPE, headers_of, problem_of
from hitherto.http.shapes import answer_to_json

_TOKEN = 5
"""Characters of a context's token, about."""

_FATE = 200
"""What each fate in a context's manifest counts for."""

_UNKNOWN = 10**9
"""An answer that may be long is written in a thread."""


def encoded(value: Any) -> bytes:
    """JSON in ASCII: a text may have halves of characters, which UTF-8 cannot hold."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()


async def answer(result: Any, hint: Any) -> Response:
    """What a verb of this return type answered; without a body where it answers nothing."""
    if hint is type(None):
        return Response(status_code=204)
    return Response(await aside(_size(result), _body, result, hint), media_type="application/json")


def _size(result: Any) -> int:
    """What it takes to write an answer, in characters: as much as can be told at once."""
    match result:
        case AppendResult() | bool() | int():
            return 0
        case Head():
            return result.size
        case Context():
            return _TOKEN * result.tokens + _FATE * len(result.manifest.fates)
        case _:
            return _UNKNOWN


def _body(result: Any, hint: Any) -> bytes:
    if not isinstance(result, list | tuple):
        return encoded(answer_to_json(result, hint))
    # Entry by entry: the interpreter lets others go on in between.
    return b"[" + b",".join([encoded(entry) for entry in answer_to_json(result, hint)]) + b"]"


def problem(error: HithertoError, **members: Any) -> Response:
    """An error as problem details, with these members beside its own or in their place."""
    found = problem_of(error) | members
    return Response(encoded(found), status_code=found["status"], media_type=MEDIA_TYPE, headers=headers_of(error))
