"""The parameters of a route, and their types in JSON, made from the signature of the operation's verb."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin
from uuid import UUID

from fastapi import Path, Query, Request
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, create_model
from starlette.datastructures import Headers
from starlette.types import Message, Receive

from hitherto.engine.conversation import Conversation
from hitherto.engine.facts.facts import Facts
from hitherto.errors import InvalidInput, TimedOut, TooLarge, UnsupportedMediaType
from hitherto.http.operations import AGENT, EXAMPLES, IDEMPOTENCY_KEY, POLICY, REMEMBER, SUBJECT, USER, Operation
from hitherto.http.shapes import any_json_type, json_list_type, json_type

MADE_WITH: dict[type, dict[str, tuple[Any, Any]]] = {
    Facts: {"subject": (str | None, None), "all_agents": (bool, False)},
}
"""What the object of a verb is made with beside the scope: type and default of each. It comes with the query."""

_HEADERS = {
    USER: "The user, percent-encoded.",
    AGENT: "The agent, percent-encoded.",
    POLICY: "The policy of the conversation until it has a stored one: a name, or JSON, percent-encoded.",
    SUBJECT: "The id of what the conversation's facts are about until it has a stored one, percent-encoded.",
    REMEMBER: '"false": the conversation is private, "true": it is not, until it has a stored value.',
    IDEMPOTENCY_KEY: "Makes the request idempotent: another with the same key and content gets the same answer.",
}


def _empty_as_none(value: object) -> object:
    """None for an empty text: how a query gives None where something else is the default."""
    return None if value == "" else value


def _json_object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ValueError("give a JSON object")
    return cast("dict[str, Any]", found)


_ObjectText = Annotated[
    str, AfterValidator(_json_object), WithJsonSchema({"type": "string", "contentMediaType": "application/json"})
]


def signature(operation: Operation) -> inspect.Signature:
    """The signature of the operation's route: the request, then what is in the path, the query and the body."""
    parameters = [inspect.Parameter("request", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Request)]
    return inspect.Signature([*parameters, *_parameters(operation)])


def _parameters(operation: Operation) -> Iterator[inspect.Parameter]:
    for name in operation.in_path:
        hint = operation.hints.get(operation.named(name), str)
        yield _parameter(name, Annotated[_path_type(hint), Path()])
    for name, (hint, default) in MADE_WITH.get(operation.owner, {}).items():
        yield _parameter(name, Annotated[hint, Query()], default)
    if not operation.has_body:
        for name, parameter in operation.given.items():
            hint = _query_type(operation.hints[name])
            if parameter.default is not None and type(None) in get_args(operation.hints[name]):
                hint = Annotated[hint, BeforeValidator(_empty_as_none)]
            yield _parameter(name, Annotated[hint, Query()], parameter.default)
    elif operation.given:
        model = _body(operation)
        if any(field.is_required() for field in model.model_fields.values()):
            yield _parameter("body", model)
        else:
            yield _parameter("body", model | None, None)


def _parameter(name: str, hint: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def headers(operation: Operation) -> list[dict[str, Any]]:
    """The headers of the operation, as the document shows them. The endpoint reads them itself."""
    of_scope = [USER, AGENT] if operation.has_scope or operation.optional_scope else []
    of_conversation = [POLICY, SUBJECT, REMEMBER] if operation.owner is Conversation else []
    key = operation.parameters.get("key")
    return [
        {
            "name": name,
            "in": "header",
            "required": name == IDEMPOTENCY_KEY and key is not None and key.default is inspect.Parameter.empty,
            "description": _HEADERS[name],
            "schema": {"type": "string", "minLength": 1},
        }
        for name in [*of_scope, *of_conversation, *([] if key is None else [IDEMPOTENCY_KEY])]
    ]


def _body(operation: Operation) -> type[BaseModel]:
    fields = dict[str, Any]()
    for name, parameter in operation.given.items():
        listed = parameter.kind is inspect.Parameter.VAR_POSITIONAL
        hint = json_type(operation.hints[name], strict=True)
        required = listed or parameter.default is inspect.Parameter.empty
        field = Field(... if required else parameter.default, examples=EXAMPLES.get(name))
        fields[name] = (json_list_type(hint) if listed else hint, field)
    title = "".join(word.capitalize() for word in operation.name.split("_")) + "Request"
    return create_model(title, __config__=ConfigDict(extra="forbid", title=title), **fields)


def _path_type(hint: Any) -> Any:
    """The type of a parameter in a path: a UUID where a text of one would do too."""
    return UUID if UUID in get_args(hint) else hint


def _query_type(hint: Any) -> Any:
    """The type of a parameter in a query: an object stands there as JSON, a policy by its name or as JSON."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    types = list[Any]()
    for part in parts:
        shape = json_type(part)
        if get_origin(shape) is dict:
            shape = None if str in parts else _ObjectText
        if shape is not None and not (shape is str and UUID in parts):
            types.append(shape)
    return any_json_type(types)


MOST_VALUES = 50_000
"""The most signs that separate values in a JSON body: what a verb does with each of them holds up others."""

DEEPEST = 100
"""How deep lists and objects may be nested in one another in a JSON body."""

_PATIENCE = 60.0
"""Seconds for which the next part of a body is waited for."""

_PIECE = 16_384
"""Bytes of a body that are looked at before others go on."""

_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_SIGNS = (b",", b":", b"[", b"{")


class ClientLeft(Exception):
    """The client has gone, or reads nothing any more."""


class ReceivedParts:
    """What comes of a request, whether that was all, and whether its client has left."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.ended = self.left = False

    async def __call__(self) -> Message:
        try:
            async with asyncio.timeout(None if self.ended else _PATIENCE):
                message = await self._receive()
        except TimeoutError:
            raise TimedOut(f"nothing has come of the request's body for {_PATIENCE:g} seconds") from None
        self.ended = not message.get("more_body", False)
        self.left = message["type"] == "http.disconnect"
        return message


def check_type(headers: Headers, needed: str) -> None:
    """Raises UnsupportedMediaType. A web page cannot send these types to another site without being asked first."""
    given = headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if given != needed:
        raise UnsupportedMediaType(f"send the body as what it is: Content-Type: {needed}")


class _Values:
    """Counts the signs that separate the values of JSON, as it comes, and how deep they are nested; what is in texts
    does not count."""

    def __init__(self) -> None:
        self._in_text, self._rest, self._open = False, b"", b""
        self.found = 0
        self.too_deep = False

    def read(self, part: bytes) -> None:
        part = self._rest + part
        self._rest = part[-1:] if (len(part) - len(part.rstrip(b"\\"))) % 2 else b""  # it belongs to the next sign
        texts = part.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        outside = b"".join(texts[self._in_text :: 2])
        self._in_text ^= len(texts) % 2 == 0
        self.found += sum(outside.count(sign) for sign in _SIGNS)
        brackets = self._open + outside.translate(None, _NO_BRACKETS)
        for _ in range(DEEPEST):
            brackets, before = brackets.replace(b"[]", b"").replace(b"{}", b""), len(brackets)
            if len(brackets) == before:
                break
        self._open = brackets
        self.too_deep |= len(brackets) > DEEPEST


async def whole_body(receive: Receive, headers: Headers, size: int) -> bytes:
    """The whole body. Raises TooLarge, InvalidInput for what is no length, ClientLeft."""
    announced = headers.get("Content-Length")
    if announced is not None and not announced.isdecimal():
        raise InvalidInput("the header Content-Length is not a number")
    parts, length, values = list[bytes](), int(announced or 0), _Values()
    total = 0
    while length <= size:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        part: bytes = message.get("body", b"")
        parts.append(part)
        total += len(part)
        length = max(length, total)
        if length > size:
            break
        for start in range(0, len(part), _PIECE):
            if start:
                await asyncio.sleep(0)
            values.read(part[start : start + _PIECE])
            if values.found > MOST_VALUES:
                raise TooLarge(f"the body has more than {MOST_VALUES} values; send it in parts")
            if values.too_deep:
                raise TooLarge(f"the body is nested more than {DEEPEST} deep, or its brackets do not match")
        if not message.get("more_body", False):
            return b"".join(parts)
    raise TooLarge(f"the body is larger than {size} bytes, which is what the key allows; send it in parts")


def replayed(body: bytes, receive: Receive) -> Receive:
    """What gives the body once, and then what comes."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
