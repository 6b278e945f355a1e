"""The shape of a request, by the TypedDicts of the API's own SDK: what is missing, unknown, or of another kind.

Pydantic reads these types too, but checks nothing inside of an `Iterable` before somebody iterates, takes fields that
the type does not have, and answers a wrong item with the faults of all members of a union of thirty.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NotRequired,
    Required,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from hitherto.testing.requests.fields import Found, Path, mapping, shown

_OPTIONAL: Final[Mapping[str, set[str]]] = {
    # The caller adds them.
    "CompletionCreateParamsBase": {"model"},
    "MessageCreateParamsBase": {"model", "max_tokens"},
    # Answers have them; OpenAI's guides leave them out of what is sent.
    "ResponseOutputMessageParam": {"id", "status", "type"},
    "ResponseOutputTextParam": {"annotations"},
    "ResponseReasoningItemParam": {"id"},
    "ResponseInputImageParam": {"detail"},
    "FunctionToolParam": {"parameters", "strict"},
}
"""Fields that the SDK's type demands and the API does not, by type."""

_REFUSED: Final[Mapping[str, set[str]]] = {
    "ResponseReasoningItemParam": {"status"},  # "Unknown parameter: 'input[3].status'"
}
"""Fields that the SDK's type has and the API refuses, by type."""

_ACCEPTED: Final[Mapping[str, Mapping[str, Any]]] = {
    "ChatCompletionToolMessageParam": {"name": str},  # as OpenAI's own examples send it
}
"""Fields that the API takes and the SDK's type lacks, by type."""

_TAGS: Final = ("type", "role")
"""The fields by which the members of a union differ."""

_WRAPPERS: Final = (Required, NotRequired, Annotated)
_UNIONS: Final = (Union, UnionType)
_LISTS: Final = (list, Iterable, Sequence)
_SCALARS: Final[Mapping[Any, str]] = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}


def check_shape(value: object, hint: Any, path: Path = ()) -> Found:
    """Where a JSON value does not fit a type."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in _WRAPPERS:
        yield from check_shape(value, inner[0], path)
    elif origin in _UNIONS or _is_typed_dict(hint):
        yield from _check_union(value, _members(hint), path)
    elif hint in (Any, object):
        return
    elif not _fits(value, hint):
        yield path, f"is {_told(value)}; it must be {_described(hint)}"
    elif isinstance(value, Mapping) and inner:
        for key, one in cast("Mapping[object, object]", value).items():
            yield from check_shape(one, inner[1], (*path, str(key)))
    elif isinstance(value, list | tuple) and inner:
        for place, one in enumerate(cast("Iterable[object]", value)):
            yield from check_shape(one, inner[0], (*path, place))


def _check_fields(value: Mapping[str, Any], hint: Any, path: Path) -> Found:
    fields = _fields(hint)
    for key, one in fields.items():
        if key in value:
            yield from check_shape(value[key], one, (*path, key))
        elif _is_required(hint, key):
            yield (*path, key), "is missing"
    if getattr(hint, "__pydantic_config__", {}).get("extra") != "allow":
        for key in value:
            if key not in fields:
                yield (*path, key), "is not a field that the API takes here"


def _check_union(value: object, members: Sequence[Any], path: Path) -> Found:
    """By the member that fits best: with the fewest wrong tags, then the fewest faults, then the deepest."""
    fitting = [member for member in members if member in (Any, object) or _fits(value, member)]
    if not fitting:
        kinds = dict.fromkeys(_described(member) for member in members)
        yield path, f"is {_told(value)}; it must be {' or '.join(kinds)}"
        return
    own = mapping(value)
    for tag in _TAGS if _fits(value, dict) else ():
        known = [name for member in fitting for name in _literals(member, tag)]
        fitting = [member for member in fitting if _tag_fits(own, member, tag)]
        if not fitting:
            yield (*path, tag), f"is {shown(own[tag]) if tag in own else 'missing'}; it must be {_listed(known)}"
            return
    faults = (
        _check_fields(own, one, path) if _is_typed_dict(one) else check_shape(value, one, path) for one in fitting
    )
    yield from min(map(list, faults), key=_badness)


def _badness(faults: Sequence[tuple[Path, str]]) -> tuple[int, int, int]:
    places = [path for path, _ in faults]
    wrong_tags = sum(path[-1] in _TAGS for path in places if path)
    return wrong_tags, len(faults), -max(map(len, places), default=0)


def _members(hint: Any) -> list[Any]:
    """A union's members, those of unions in it too. What JSON cannot be is left out: the SDKs also take files and
    answers, and turn them into JSON."""
    if get_origin(hint) in _UNIONS:
        return [one for member in get_args(hint) for one in _members(member)]
    origin = get_origin(hint) or hint
    known = origin in (*_SCALARS, *_LISTS, NoneType, object, dict, Mapping) or _is_list(origin) or _is_typed_dict(hint)
    return [hint] if known or not isinstance(origin, type) else []


def _fits(value: object, hint: Any) -> bool:
    """Whether a value is of the kind that a type means, whatever is in it."""
    origin = get_origin(hint) or hint
    if origin is Literal:
        return any(value == one and type(value) is type(one) for one in get_args(hint))
    if _is_typed_dict(hint) or origin in (dict, Mapping):
        return isinstance(value, Mapping)
    if _is_list(origin):
        return isinstance(value, list | tuple)
    return type(value) is origin or (origin is float and type(value) is int)


def _tag_fits(value: Mapping[str, Any], hint: Any, tag: str) -> bool:
    known = _literals(hint, tag)
    return not known or (value[tag] in known if tag in value else not _is_required(hint, tag))


def _literals(hint: Any, key: str) -> list[str]:
    """The values that a field of a TypedDict may have, if the type lists them."""
    one = _fields(hint).get(key) if _is_typed_dict(hint) else None
    while get_origin(one) in _WRAPPERS:
        one = get_args(one)[0]
    return [name for member in _members(one) if get_origin(member) is Literal for name in get_args(member)]


def _is_required(hint: Any, key: str) -> bool:
    return get_origin(_fields(hint).get(key)) is Required and key not in _OPTIONAL.get(hint.__name__, ())


def _is_typed_dict(hint: Any) -> bool:
    """Those of `typing_extensions` have a metaclass of their own."""
    return isinstance(hint, type) and hasattr(hint, "__required_keys__")


def _is_list(origin: Any) -> bool:
    return origin in _LISTS or getattr(origin, "__name__", "") == "SequenceNotStr"


@cache
def _fields(hint: Any) -> Mapping[str, Any]:
    fields = {**get_type_hints(hint, include_extras=True), **_ACCEPTED.get(hint.__name__, {})}
    return {key: one for key, one in fields.items() if key not in _REFUSED.get(hint.__name__, ())}


def _described(hint: Any) -> str:
    origin = get_origin(hint) or hint
    if origin is Literal:
        return _listed(get_args(hint))
    if _is_typed_dict(hint) or origin in (dict, Mapping):
        return "an object"
    return "null" if origin is NoneType else _SCALARS.get(origin, "a list")


def _listed(names: Iterable[object]) -> str:
    listed = sorted({repr(name) for name in names})
    return " or ".join(listed) if len(listed) <= 8 else "one that the SDK knows"


def _told(value: object) -> str:
    if value is None or isinstance(value, str | int | float):
        return "null" if value is None else shown(value)
    return "an object" if isinstance(value, Mapping) else "a list"
