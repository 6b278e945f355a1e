"""A route for each operation: it finds whose the request is, calls the verb, and writes the answer."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Union, get_args
from urllib.parse import unquote

from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from starlette.responses import JSONResponse, Response

from hitherto.aside import aside, weight
from hitherto.core.scope import checked_name
from hitherto.engine.documents.documents import Documents
from hitherto.engine.facts.facts import Facts
from hitherto.engine.memory import Memory
from hitherto.engine.runs import Runs
from hitherto.errors import InvalidInput, InvalidPolicy, NotFound
from hitherto.http.operations import (
    AGENT,
    IDEMPOTENCY_KEY,
    MESSAGES,
    POLICY,
    PREFIX,
    REMEMBER,
    SUBJECT,
    USER,
    Operation,
)
from hitherto.http.server.callers import Caller, name_in, needs, text_in
from hitherto.http.server.responses import answer
from hitherto.http.server.signatures import MADE_WITH, headers, signature
from hitherto.http.shapes import json_type, messages_of


class _Request(Request):
    """A request whose body, where it is long, is parsed in a thread."""

    async def json(self) -> Any:
        body = await self.body()
        return await aside(len(body), json.loads, body)


class _Route(APIRoute):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            return await handler(_Request(request.scope, request.receive))

        return handle


def add(router: APIRouter, operation: Operation) -> None:
    """Add the operation's route."""
    hint = operation.hints["return"]
    empty = hint is type(None)
    router.add_api_route(
        PREFIX + operation.path,
        _endpoint(operation),
        methods=[operation.method],
        operation_id=operation.name,
        name=operation.name,
        tags=[operation.owner.__name__],
        summary=operation.summary,
        description=f"{inspect.getdoc(operation.function)}\n\nNeeds the right `{operation.right}`.",
        dependencies=[needs(operation.right)],
        status_code=204 if empty else 200,
        response_model=None if empty else _answer_type(operation),
        response_class=Response if empty else JSONResponse,
        openapi_extra={"parameters": headers(operation)},
        route_class_override=_Route,
    )


def _answer_type(operation: Operation) -> Any:
    """The type of the answer in the document. None is a 404 where the operation says so."""
    hint = operation.hints["return"]
    if not operation.none_is_404:
        return json_type(hint)
    parts = tuple(part for part in get_args(hint) if part is not type(None))
    return Union[parts]  # noqa: UP007 (of parts that are known when it runs)


def _endpoint(operation: Operation) -> Callable[..., Awaitable[Response]]:
    kinds = {name: parameter.kind for name, parameter in operation.parameters.items()}
    many = next((name for name, kind in kinds.items() if kind is inspect.Parameter.VAR_POSITIONAL), None)
    before_many = [name for name, kind in kinds.items() if kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]

    async def endpoint(request: Request, **given: Any) -> Response:
        caller: Caller = request.scope["caller"]
        body = given.pop("body", None)
        if body is not None:
            given |= {name: getattr(body, name) for name in body.model_fields_set}
        in_path = {name: _decoded(given.pop(name)) for name in operation.in_path}
        made_with = {name: given.pop(name) for name in MADE_WITH.get(operation.owner, {})}
        target = _target(operation, request, in_path, made_with)
        arguments = given | {operation.named(name): value for name, value in in_path.items()}
        for name in MESSAGES & arguments.keys():
            value = arguments[name]
            arguments[name] = await aside(weight(value), messages_of, value, arguments.get("wire"))
        if "key" in operation.parameters:
            arguments["key"] = text_in(request.headers, IDEMPOTENCY_KEY)
            if not arguments["key"] and operation.parameters["key"].default is inspect.Parameter.empty:
                raise InvalidInput(f"give the header {IDEMPOTENCY_KEY}: a retry is found by it")
        if operation.has_scope and "scope" in operation.parameters:
            arguments["scope"] = caller.scope(request.headers)
        if "tenant" in operation.parameters:
            arguments["tenant"] = caller.tenant
        if operation.optional_scope:
            narrowed = {"user": name_in(request.headers, USER), "agent": name_in(request.headers, AGENT)}
            arguments |= {name: value for name, value in narrowed.items() if arguments.get(name) is None}
        if "user" in operation.parameters:
            arguments["user"] = caller.user(arguments.get("user"))
        listed = [*(arguments.pop(name) for name in before_many), *arguments.pop(many)] if many else ()
        result = await getattr(target, operation.verb)(*listed, **arguments)
        if result is None and operation.none_is_404:
            raise NotFound("there is no such thing in this scope")
        return await answer(result, operation.hints["return"])

    endpoint.__signature__ = signature(operation)  # pyright: ignore[reportFunctionMemberAccess]
    endpoint.__name__ = operation.name
    return endpoint


def _target(
    operation: Operation,
    request: Request,
    in_path: dict[str, Any],
    made_with: dict[str, Any],
) -> Any:
    """The object whose verb is called. A conversation's name is taken from `in_path`."""
    memory: Memory = request.scope["memory"]
    if operation.owner is Memory:
        return memory
    caller: Caller = request.scope["caller"]
    scope = caller.scope(request.headers)
    if operation.owner is Documents:
        return memory.documents(scope)
    if operation.owner is Runs:
        return memory.runs(scope)
    if operation.owner is Facts:
        return memory.facts(scope, **made_with)
    name = checked_name(in_path.pop("conversation"), "conversation")
    subject = name_in(request.headers, SUBJECT)
    remember = _remember(request)
    return memory.conversation(name, scope=scope, policy=_policy(request), subject=subject, remember=remember)


def _policy(request: Request) -> str | dict[str, Any] | None:
    given = text_in(request.headers, POLICY)
    if given is None or not given.startswith("{"):
        return given
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        raise InvalidPolicy(f"the header {POLICY} is not JSON once its % signs are decoded") from None


def _remember(request: Request) -> bool | None:
    given = text_in(request.headers, REMEMBER)
    if given not in (None, "true", "false"):
        raise InvalidInput(f"the header {REMEMBER} is {given!r}; give true or false")
    return None if given is None else given == "true"


def _decoded(value: Any) -> Any:
    """What is in a path: the gate has left some signs encoded."""
    return unquote(value) if isinstance(value, str) else value
