"""The parts of policies: frozen values with plain parameters, registered under a word.

A part's word and parameters are its JSON. A custom trigger or action has to be registered. Each slot has its own name
space of words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any, ClassVar, TypeVar, cast

from hitherto.errors import InvalidPolicy

Kind = TypeVar("Kind", bound="type[Component]")


@dataclass(frozen=True)
class Component:
    """A trigger, keep, action or render: a frozen dataclass whose fields are its JSON.

    `word` names it in JSON, `slot` says what it is: "trigger", "keep", "action" or "render". A field that holds other
    parts, or a tuple of them, names their slot in its metadata: `field(metadata={"slot": "trigger"})`. A field that was
    added to a part after its release has `"later": True` there: while it has its default, it is left out of the JSON
    and of what is printed, so that rows written before it still name the same stage.
    """

    word: ClassVar[str]
    slot: ClassVar[str]

    def to_json(self) -> dict[str, Any]:
        """`{"is": word, parameter: value, …}`."""
        return {"is": self.word, **{name: _plain(value) for name, value in self._said()}}

    def __str__(self) -> str:
        inner = ", ".join(f"{name}={_shown(value)}" for name, value in self._said())
        return f"{type(self).__name__}({inner})"

    def _said(self) -> Iterator[tuple[str, object]]:
        for one in fields(self):
            value = getattr(self, one.name)
            if not (one.metadata.get("later") and _is_default(value, one)):
                yield one.name, value


_MOST = 10**15
_EXCERPT = 100
"""Characters of a wrong value in an error."""

_KNOWN: dict[str, dict[str, type[Component]]] = {"trigger": {}, "keep": {}, "action": {}, "render": {}}


def register(kind: Kind) -> Kind:
    """Class decorator: makes a part known under its word, so that policies with it can be read from JSON.

    Raises InvalidPolicy for a word that another part of the slot has, and for an unknown slot.
    """
    slot = _KNOWN.get(kind.slot)
    if slot is None:
        raise InvalidPolicy(f"{kind.__name__}.slot is {kind.slot!r}; it must be one of {', '.join(_KNOWN)}")
    other = slot.setdefault(kind.word, kind)
    if (other.__module__, other.__qualname__) != (kind.__module__, kind.__qualname__):
        raise InvalidPolicy(f"the {kind.slot} {kind.word!r} is {other.__qualname__} already; choose another word")
    slot[kind.word] = kind
    return kind


def part_from_json(slot: str, value: object, where: str) -> Any:
    """The part of `slot` that `to_json` wrote. Raises InvalidPolicy naming the field that is wrong."""
    named = mapping(value, where)
    word = named.get("is")
    kind = _KNOWN[slot].get(word) if isinstance(word, str) else None
    if kind is None:
        known = ", ".join(sorted(_KNOWN[slot]))
        raise InvalidPolicy(
            f"{where}.is is {quoted(word)}; known: {known} (one of another package is known once it is registered)"
        )
    known = {one.name: one for one in fields(kind)}
    only(named, {*known, "is"}, where)
    given: dict[str, Any] = {}
    for name, inner in named.items():
        if name != "is":
            given[name] = _decoded(known[name].metadata.get("slot"), inner, f"{where}.{name}")
    lacking = [
        name
        for name, one in known.items()
        if name not in given and one.default is MISSING and one.default_factory is MISSING
    ]
    if lacking:
        raise InvalidPolicy(f"{where} lacks the parameter {lacking[0]!r} of {kind.word!r}")
    try:
        return kind(**given)
    except InvalidPolicy as error:
        raise InvalidPolicy(f"{where}: {error}") from error


def registered(part: Component) -> bool:
    """Whether the part, and every part in it, can be read from JSON again."""
    slot, word = getattr(part, "slot", None), getattr(part, "word", None)
    known = _KNOWN.get(slot, {}).get(word) if isinstance(slot, str) and isinstance(word, str) else None
    if known is None or known.__qualname__ != type(part).__qualname__ or known.__module__ != type(part).__module__:
        return False
    inner = [getattr(part, one.name) for one in fields(part)]
    listed = [
        one for value in inner for one in (cast(tuple[object, ...], value) if isinstance(value, tuple) else (value,))
    ]
    return all(registered(one) for one in listed if isinstance(one, Component))


def quoted(value: object) -> str:
    """`value` as an error shows it: short, whatever it is."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        text = f"<a {type(value).__name__} that cannot be printed>"
    return text if len(text) <= _EXCERPT else text[:_EXCERPT] + "…"


def mapping(value: object, where: str) -> Mapping[str, object]:
    """`value` as a JSON object. Raises InvalidPolicy."""
    if not isinstance(value, Mapping):
        raise InvalidPolicy(f"{where} is {quoted(value)}; give a JSON object")
    return cast(Mapping[str, object], value)


def only(value: Mapping[str, object], known: set[str], where: str) -> None:
    """Raises InvalidPolicy for a field that is not known."""
    unknown = sorted(str(name) for name in set(value) - known)
    if unknown:
        raise InvalidPolicy(f"{where}.{unknown[0]} is not a known field; known: {', '.join(sorted(known))}")


def whole(owner: Component, minimum: int = 1, **values: object) -> None:
    """Raises InvalidPolicy for a parameter that is not a whole number from `minimum` to `_MOST`."""
    for name, value in values.items():
        if not isinstance(value, int) or isinstance(value, bool) or not minimum <= value <= _MOST:
            found = f"{type(owner).__name__}.{name} is {quoted(value)}"
            raise InvalidPolicy(f"{found}; give a whole number of at least {minimum}")


def share(owner: Component, **values: object) -> None:
    """Raises InvalidPolicy for a parameter that is no share above 0 and at most 1; a usable one becomes a float."""
    for name, value in values.items():
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= 1:
            found = f"{type(owner).__name__}.{name} is {quoted(value)}"
            raise InvalidPolicy(f"{found}; give a share of the window above 0 and at most 1, such as 0.75")
        object.__setattr__(owner, name, float(value))


def choice(owner: Component, **values: object) -> None:
    """Raises InvalidPolicy for a parameter that is none of "window", "budget" and "view"."""
    for name, value in values.items():
        if value not in ("window", "budget", "view"):
            raise InvalidPolicy(f'{type(owner).__name__}.{name} is {quoted(value)}; give "window", "budget" or "view"')


def flags(owner: Component, **values: object) -> None:
    """Raises InvalidPolicy for a parameter that is neither true nor false."""
    for name, value in values.items():
        if not isinstance(value, bool):
            raise InvalidPolicy(f"{type(owner).__name__}.{name} is {quoted(value)}; give true or false")


def names(owner: Component, **values: object) -> None:
    """Raises InvalidPolicy for a parameter that is no tuple of non-empty texts."""
    for name, value in values.items():
        listed = cast(Iterable[object], value) if isinstance(value, tuple) else (None,)
        if not all(isinstance(one, str) and one for one in listed):
            raise InvalidPolicy(f"{type(owner).__name__}.{name} is {quoted(cast(object, value))}; give a list of names")


def _is_default(value: object, one: Field[Any]) -> bool:
    return type(value) is type(one.default) and value == one.default


def _decoded(slot: str | None, value: object, where: str) -> object:
    if isinstance(value, list):
        listed = enumerate(cast(list[object], value))
        return tuple(one if slot is None else part_from_json(slot, one, f"{where}[{at}]") for at, one in listed)
    return value if slot is None else part_from_json(slot, value, where)


def _plain(value: object) -> Any:
    if isinstance(value, Component):
        return value.to_json()
    return [_plain(one) for one in cast(tuple[object, ...], value)] if isinstance(value, tuple) else value


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return "(" + ", ".join(_shown(one) for one in cast(tuple[object, ...], value)) + ")"
    return str(value) if isinstance(value, Component) else repr(value)
