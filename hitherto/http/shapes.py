"""How the values of verbs stand in JSON: what the service takes and gives, and what the client sends and reads.

Answers are as their types say (pydantic's form of dataclasses), a policy is its own JSON form. A message that is given
is an item of an API, or an object with the item and what else is known of it: see `MessageInput`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, datetime, timedelta
from enum import Enum
from functools import cache, partial
from types import MappingProxyType, UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin
from uuid import UUID

from pydantic import (
    AllowInfNan,
    BaseModel,
    ConfigDict,
    Field,
    Strict,
    TypeAdapter,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from hitherto.core.digests.digest import Digest
from hitherto.core.log.message import NESTED, Logged, Message, Wire, check_item
from hitherto.core.log.transcript import LogPage
from hitherto.core.policy.policy import Policy
from hitherto.core.policy.span import Span
from hitherto.engine.turn_retry import TurnProgress
from hitherto.errors import InvalidInput
from hitherto.wire import read
from hitherto.wire.neutral import text_of

_LISTS = (Iterable, Sequence, Collection)
_TIME = re.compile(r"\d{4}-|-?P")


def _read_time(value: object, read: ValidatorFunctionWrapHandler) -> object:
    """The time, or how long, that `read` finds in a text of ISO 8601. Raises ValueError for a number, which it would
    take too, and for a text that is none."""
    try:
        if isinstance(value, datetime | date | timedelta) or (isinstance(value, str) and _TIME.match(value)):
            return read(value)
    except ValidationError:
        pass
    raise ValueError("give a time as ISO 8601 has it, such as 2026-05-08T13:30:00Z, or PT15M for how long")


class MessageInput(BaseModel):
    """A message with more than its item: the format of the item, metadata that no model is shown, when it expires, when
    it was said, and its own id."""

    model_config = ConfigDict(extra="forbid")

    item: dict[str, Any] = Field(description="A message as its API has it.")
    wire: Wire | None = Field(None, description="The format of the item; without it, its shape tells.")
    metadata: dict[str, Any] = Field(default_factory=dict)
    expires_at: Annotated[datetime, WrapValidator(_read_time)] | None = None
    said_at: Annotated[datetime, WrapValidator(_read_time)] | None = None
    id: str | None = Field(
        default=None, description="Without it, the `id` of the item is the message's; with null, none is."
    )


def _read_message(value: object, _: object) -> object:
    """A message that is given. Raises ValueError for what is no object, and ValidationError for one with the key `item`
    that is no `MessageInput`."""
    if not isinstance(value, dict):
        raise ValueError("give a message: an object, as its API has it")
    return MessageInput.model_validate(value) if "item" in value else cast("dict[str, Any]", value)


MessageOrItem = Annotated[MessageInput | dict[str, Any], WrapValidator(_read_message)]
"""A message that is given: an item of an API as it is, or a `MessageInput`, which has the key `item`."""

_OBJECTS: dict[object, Any] = {Message: MessageOrItem, Policy: dict[str, Any], Digest: None, Span: None}
"""Types of parameters for which JSON has another form, or none beside the others that the parameter has."""


def json_list_type(hint: Any) -> Any:
    """The type of a list in JSON: of wrong entries, the first is told, and not thousands."""
    return Annotated[list[hint], Field(fail_fast=True)]


def _is_object(hint: Any) -> bool:
    return is_dataclass(hint) or (isinstance(hint, type) and issubclass(hint, BaseModel))


def json_type(hint: Any, *, strict: bool = False) -> Any:  # noqa: PLR0911 (a case each)
    """The type of a parameter in JSON; times are texts. With `strict`, no number is read from a text or a truth
    value."""
    if hint in _OBJECTS:
        return _OBJECTS[hint]
    if hint in (datetime, date, timedelta):
        return Annotated[hint, WrapValidator(_read_time)]
    if strict and hint in (int, float, bool):
        return (
            Annotated[hint, Strict(), AllowInfNan(allow_inf_nan=False)] if hint is float else Annotated[hint, Strict()]
        )
    if strict and _is_object(hint):
        return Annotated[hint, WrapValidator(partial(_read_strictly, hint))]
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _union_type(parts, strict=strict)
    if origin in _LISTS:
        return json_list_type(json_type(parts[0], strict=strict))
    if origin is tuple and Ellipsis not in parts:
        return cast(Any, tuple)[tuple(json_type(part, strict=strict) for part in parts)]
    if origin is Mapping:
        return dict[parts[0], parts[1]]
    return hint


def _union_type(parts: tuple[Any, ...], *, strict: bool) -> Any:
    types = {part: json_type(part, strict=strict) for part in parts}
    shapes = [shape for shape in types.values() if shape is not None]
    if Message in parts:
        shapes = [shape for shape in shapes if shape != dict[str, Any]]  # an item, which `MessageOrItem` has
    if not strict:
        return Union[tuple(shapes)]  # noqa: UP007 (of parts that are known now)
    structured = dict[type, TypeAdapter[Any]]()
    for part, shape in types.items():
        if shape is not None and _is_object(part):
            structured[dict] = TypeAdapter(shape)
        if shape is not None and Message in parts and get_origin(part) in _LISTS:
            structured[list] = TypeAdapter(shape)
    return any_json_type(shapes, structured)


def any_json_type(types: Sequence[Any], structured: Mapping[type, TypeAdapter[Any]] = MappingProxyType({})) -> Any:
    """Any of these types of a parameter. Of several, a value that has none is left as it is: the verb refuses it, in
    the words that it has in Python. But where only one of them has objects or lists, it is in `structured`, and says
    what in such a value is wrong."""
    union = Union[tuple(types)]  # noqa: UP007 (of parts that are known when it runs)
    several = len([one for one in types if one is not type(None)]) > 1
    return Annotated[union, WrapValidator(partial(_read_any_of, structured))] if several else union


def messages_of(value: Any, wire: Wire | None = None) -> Any:
    """An argument with its messages read: one, or a list of them; None, a text, and a number, which no verb takes, as
    they are. Raises InvalidMessage."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Message | Mapping | MessageInput) or not isinstance(value, Iterable):
        return _message_of(cast(object, value), wire)
    return [_message_of(entry, wire) for entry in cast("Iterable[object]", value)]


def _message_of(value: object, wire: Wire | None) -> Message:
    check_item(value.item if isinstance(value, MessageInput) else value)
    if not isinstance(value, MessageInput):
        return read(cast("Mapping[str, Any]", value), wire)
    message = read(value.item, value.wire or wire, take_id="id" not in value.model_fields_set)
    if value.metadata:
        message = message.with_metadata(value.metadata)
    if value.expires_at is not None:
        message = message.expiring(value.expires_at)
    if value.id is not None:
        message = message.with_id(value.id)
    return message if value.said_at is None else message.dated(value.said_at)


def _read_strictly(hint: Any, value: object, read: ValidatorFunctionWrapHandler) -> object:
    """An object, for which the rules of `Strict` hold to its last part: pydantic has them for JSON, but takes no halves
    of characters there, which texts may have."""
    text = json.dumps(value, ensure_ascii=False).encode(errors="replace")
    adapter(hint).validate_json(text, strict=True, extra="forbid")
    return read(value)


def _read_any_of(
    structured: Mapping[type, TypeAdapter[Any]], value: object, read: ValidatorFunctionWrapHandler
) -> object:
    """See `any_json_type`. Raises ValidationError for a wrong value of a type that is in `structured`."""
    try:
        return read(value)
    except ValidationError:
        if (known := structured.get(type(value))) is not None:
            return known.validate_python(value)
        return value


@cache
def adapter(hint: Any) -> TypeAdapter[Any]:
    """What writes and reads an answer of this type."""
    return TypeAdapter(dict[str, Any] if hint is Policy else hint)


_MESSAGES_IN: dict[object, Callable[[Any], Iterable[dict[str, Any]]]] = {
    Logged | None: lambda answer: [answer["message"]] if answer else [],
    Logged: lambda answer: [answer["message"]],
    list[Logged]: lambda answer: [one["message"] for one in answer],
    Sequence[tuple[str, Logged]]: lambda answer: [one["message"] for _, one in answer],
    LogPage: lambda answer: [one["message"] for one in answer["messages"]],
    TurnProgress | None: lambda answer: answer["messages"] if answer else [],
}
"""How the messages are found in the JSON of an answer of this type."""

_LONG = 1_000

LEFT_OUT = f"""Left out where it is longer than {_LONG:,} characters and `payload` says it all: it is then the texts of
`payload`, in their order, a line each; a tool call is "[calls name(arguments)]", an image "[image]", another part
"[type]"."""
"""What the document says of a message's `text`."""


def answer_to_json(value: Any, hint: Any) -> Any:
    """An answer as JSON values. Long texts of messages stand there once: see LEFT_OUT."""
    if isinstance(value, Policy):
        return value.to_json()
    answer = adapter(hint).dump_python(value, mode="json", by_alias=True, context=NESTED)
    for message in _MESSAGES_IN.get(hint, lambda _: ())(answer):
        if len(message["text"]) > _LONG and _text_in(message) == message["text"]:
            del message["text"]
    return answer


def _text_in(message: dict[str, Any]) -> str | None:
    """The text that the message's payload has; None if it cannot be read."""
    try:
        return text_of(message["payload"], message["wire"])
    except InvalidInput:
        return None


def answer_from_json(value: Any, hint: Any) -> Any:
    """The answer that JSON values stand for. Raises ValueError for other values."""
    try:
        for message in _MESSAGES_IN.get(hint, lambda _: ())(value):
            if "text" not in message:
                message["text"] = _text_in(message)
    except (AttributeError, KeyError, TypeError):
        pass  # no such answer, which is told below
    return Policy.from_json(value) if hint is Policy else adapter(hint).validate_python(value, context=NESTED)


def argument_to_json(value: Any) -> Any:  # noqa: PLR0911, PLR0912 (a case each)
    """An argument of the client's as JSON values."""
    match value:
        case Message():
            message = MessageInput(
                item=value.payload,
                wire=cast(Wire, value.wire),
                metadata=value.metadata,
                expires_at=value.expires_at,
                said_at=value.said_at,
            )
            given = message.model_dump(mode="json", exclude_defaults=True)
            return given | {"id": value.id} if value.id is not None or "id" in message.item else given
        case Policy():
            return value.to_json()
        case Digest():
            return value.id
        case Span():
            return [value.start, value.end]
        case BaseModel():
            return value.model_dump(mode="json", by_alias=True)
        case Enum():
            return value.value
        case datetime():
            return value.isoformat()
        case timedelta():
            return adapter(timedelta).dump_python(value, mode="json")
        case UUID():
            return str(value)
        case str() | int() | float() | None:
            return value
        case Mapping():
            return cast("Mapping[Any, Any]", value)
        case Iterable():
            return [argument_to_json(entry) for entry in cast("Iterable[Any]", value)]
        case _ if is_dataclass(value):
            return {field.name: argument_to_json(getattr(value, field.name)) for field in fields(value)}
        case _:
            return value
