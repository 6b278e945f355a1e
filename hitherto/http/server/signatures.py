"""The parameters of a route, and their types in JSON, made from the signature of the operation's verb."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin
from uuid import UUID

from fastapi import Path, Query, Request
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, create_model

from hitherto.engine.conversation import Conversation
from hitherto.engine.facts.facts import Facts
from hitherto.http.operations import AGENT, EXAMPLES, IDEMPOTENCY_KEY, POLICY, SUBJECT, USER, Operation
from hitherto.http.shapes import json_list_type, json_type

MADE_WITH: dict[type, dict[str, tuple[Any, Any]]] = {
    Facts: {"subject": (str | None, None), "all_agents": (bool, False)},
}
"""What the object of a verb is made with beside the scope: type and default of each. It comes with the query."""

_HEADERS = {
    USER: "The user, percent-encoded.",
    AGENT: "The agent, percent-encoded.",
    POLICY: "The policy of the conversation until it has a stored one: a name, or JSON, percent-encoded.",
    SUBJECT: "The id of what the conversation's facts are about until it has a stored one, percent-encoded.",
    IDEMPOTENCY_KEY: "Makes the request idempotent: another with the same key and content gets the same answer.",
}


def _empty_as_none(value: object) -> object:
    """None for an empty text: how a query gives None where something else is the default."""
    return None if value == "" else value


def _json_object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except RecursionError:
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
            if parameter.default is not None and type(None) in get_args(hint):
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
    of_conversation = [POLICY, SUBJECT] if operation.owner is Conversation else []
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
    return Union[tuple(types)]  # noqa: UP007 (of parts that are known when it runs)
