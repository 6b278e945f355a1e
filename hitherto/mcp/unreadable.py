"""The errors by which messages are answered that the protocol cannot read: its library leaves most of them without an
answer, and who asked would wait for it."""

from __future__ import annotations

import json
from typing import Any, cast

from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    jsonrpc_message_adapter,
)

_NO_REQUEST = (
    'this is no request: give one JSON object with "jsonrpc": "2.0", an id that is a text or a whole number, a method, '
    "and params that are an object"
)
_NO_JSON = "this cannot be read as JSON: {}; give one JSON object a request"
_SURROGATE = (
    "this has half of a character in it (a lone surrogate, such as \\ud800), which UTF-8 cannot say; send it without, "
    "or as the whole character"
)


def unreadable_answer(text: str | bytes) -> JSONRPCError | None:
    """The answer to a message that is no request, with the id of this if it can be told. None for what can be read, and
    for what nobody waits for: notifications and answers."""
    try:
        message = jsonrpc_message_adapter.validate_json(text, by_name=False)
        if not isinstance(message, JSONRPCNotification):
            return None
        code, why = INVALID_REQUEST, _NO_REQUEST  # if it has an id after all, of another kind
    except ValueError as error:
        code, why = INVALID_REQUEST, _NO_REQUEST
        first = cast(Any, error).errors(include_input=False)[0]
        if first["type"] == "json_invalid":
            code, why = PARSE_ERROR, _NO_JSON.format(first["ctx"]["error"])
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        read = None
    try:
        json.dumps(read, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        why = _SURROGATE
    fields = cast("dict[str, Any]", read) if isinstance(read, dict) else {"id": None}
    if "result" in fields or "error" in fields or ("method" in fields and "id" not in fields):
        return None
    return _answer(fields.get("id"), code, why)


def _answer(id: Any, code: int, why: str) -> JSONRPCError:
    error = ErrorData(code=code, message=why)
    try:
        answer = JSONRPCError(jsonrpc="2.0", id=id, error=error)
        answer.model_dump_json()
        return answer
    except ValueError:  # it is no id, or none that can be written
        return JSONRPCError(jsonrpc="2.0", id=None, error=error)
