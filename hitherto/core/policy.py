"""Policies: values that say when older messages leave the context and what becomes of them.

A policy is an ordered list of stages; a stage is trigger × keep × action × render (design §3). All of them are
frozen and comparable, print as what they are, and go to JSON and back.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Self, cast

from hitherto.errors import InvalidPolicy

VERSION = 1


@dataclass(frozen=True)
class Part:
    """A trigger, keep, action or render: plain parameters under a registered name."""

    word: ClassVar[str]

    def to_json(self) -> dict[str, Any]:
        return {"is": self.word, **{field.name: getattr(self, field.name) for field in fields(self)}}

    def __str__(self) -> str:
        inner = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in fields(self))
        return f"{type(self).__name__}({inner})"


def _positive(owner: Part, **values: object) -> None:
    for name, value in values.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise InvalidPolicy(f"{type(owner).__name__}.{name} is {value!r}; give a whole number of at least 1")


@dataclass(frozen=True)
class Seq(Part):
    """Due at the end of a round whose last message has seq `n` or later (seed 000's `memory_summarize_after_seq`)."""

    n: int
    word: ClassVar[str] = "seq"

    def __post_init__(self) -> None:
        if not isinstance(cast(object, self.n), int) or isinstance(cast(object, self.n), bool) or self.n < 0:
            raise InvalidPolicy(f"Seq.n is {self.n!r}; give a whole number of at least 0")


@dataclass(frozen=True)
class Nothing(Part):
    """Keep nothing verbatim but what came after the last digest (the gap)."""

    word: ClassVar[str] = "nothing"


@dataclass(frozen=True)
class Window(Part):
    """Keep the content of the newest `n` messages (user and final assistant ones): what is older leaves the digest too.

    The window starts at a user message: a start in the middle of a turn moves on to the next turn (the seed's
    "start even").
    """

    n: int
    word: ClassVar[str] = "window"

    def __post_init__(self) -> None:
        _positive(self, n=self.n)


@dataclass(frozen=True)
class Summarise(Part):
    """Derive a digest of the range, built on the digest before; at most `limit` tokens of text."""

    limit: int = 1_000
    word: ClassVar[str] = "summarise"

    def __post_init__(self) -> None:
        _positive(self, limit=self.limit)


@dataclass(frozen=True)
class Prefix(Part):
    """Show the digest in front of the first user message's text; `{text}` stands for it."""

    template: str = "[Previous context: {text}]\n\n"
    word: ClassVar[str] = "prefix"

    def __post_init__(self) -> None:
        _check_template(self, self.template)

    def __call__(self, text: str) -> str:
        return self.template.replace("{text}", text)


@dataclass(frozen=True)
class SystemMessage(Part):
    """Show the digest as a system message after the instructions; `{text}` stands for it."""

    template: str = "Summary of the conversation so far:\n{text}"
    word: ClassVar[str] = "system_message"

    def __post_init__(self) -> None:
        _check_template(self, self.template)

    def __call__(self, text: str) -> str:
        return self.template.replace("{text}", text)


def _check_template(owner: Part, template: object) -> None:
    if not isinstance(template, str) or template.count("{text}") != 1:
        raise InvalidPolicy(f"{type(owner).__name__}.template is {template!r}; it must contain {{text}} exactly once")


Trigger = Seq
Keep = Nothing | Window
Action = Summarise
Render = Prefix | SystemMessage

_PARTS: dict[str, dict[str, type[Part]]] = {
    "trigger": {Seq.word: Seq},
    "keep": {Nothing.word: Nothing, Window.word: Window},
    "action": {Summarise.word: Summarise},
    "render": {Prefix.word: Prefix, SystemMessage.word: SystemMessage},
}


@dataclass(frozen=True)
class Stage:
    """One rule: when `trigger` is due, do `action` to what `keep` does not keep, and show it as `render` says."""

    trigger: Trigger
    keep: Keep
    action: Action
    render: Render

    def to_json(self) -> dict[str, Any]:
        return {slot: getattr(self, slot).to_json() for slot in _PARTS}

    @cached_property
    def fingerprint(self) -> str:
        """16 hex digits that name the stage in every row it writes: SHA-256 of its JSON with sorted keys."""
        text = json.dumps(self.to_json(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def __str__(self) -> str:
        return f"when {self.trigger} keep {self.keep}: {self.action} as {self.render}"

    @classmethod
    def from_json(cls, value: object, *, where: str = "stage") -> Self:
        """The stage that `to_json` wrote. Raises InvalidPolicy naming the field that is wrong."""
        slots = _mapping(value, where)
        _only(slots, set(_PARTS), where)
        return cls(**{slot: _part_from_json(slot, slots.get(slot), f"{where}.{slot}") for slot in _PARTS})


@dataclass(frozen=True)
class Policy:
    """An ordered list of stages under a name. No stage at all: everything stays, up to the budget."""

    name: str
    stages: tuple[Stage, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(cast(object, self.name), str) or not self.name.strip():
            raise InvalidPolicy(f"the policy's name is {self.name!r}; give it a non-empty one")
        if len({stage.fingerprint for stage in self.stages}) != len(self.stages):
            raise InvalidPolicy(f"policy {self.name!r} has the same stage twice; leave one out")

    def to_json(self) -> dict[str, Any]:
        """`{"version": 1, "name": …, "stages": [{"trigger": {"is": …}, "keep", "action", "render"}, …]}`."""
        return {"version": VERSION, "name": self.name, "stages": [stage.to_json() for stage in self.stages]}

    @classmethod
    def from_json(cls, value: object) -> Self:
        """The policy that `to_json` wrote. Raises InvalidPolicy naming the field that is wrong."""
        top = _mapping(value, "policy")
        _only(top, {"version", "name", "stages"}, "policy")
        if top.get("version") != VERSION:
            raise InvalidPolicy(f"policy.version is {top.get('version')!r}; this Hitherto reads version {VERSION}")
        stages = top.get("stages")
        if not isinstance(stages, list):
            raise InvalidPolicy(f"policy.stages is {stages!r}; give a list of stages")
        found = cast(list[object], stages)
        return cls(
            name=cast(str, top.get("name")),
            stages=tuple(Stage.from_json(one, where=f"policy.stages[{at}]") for at, one in enumerate(found)),
        )

    def __str__(self) -> str:
        return f"{self.name}: " + ("; ".join(str(stage) for stage in self.stages) or "everything stays")


def _part_from_json(slot: str, value: object, where: str) -> Any:
    named = _mapping(value, where)
    kinds = _PARTS[slot]
    kind = kinds.get(str(named.get("is")))
    if kind is None:
        raise InvalidPolicy(f"{where}.is is {named.get('is')!r}; known: {', '.join(sorted(kinds))}")
    known = {field.name for field in fields(kind)}
    _only(named, known | {"is"}, where)
    try:
        return kind(**{name: inner for name, inner in named.items() if name != "is"})
    except TypeError as error:
        raise InvalidPolicy(f"{where} lacks a parameter: {error}") from error


def _mapping(value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise InvalidPolicy(f"{where} is {value!r}; give a JSON object")
    return cast(Mapping[str, object], value)


def _only(value: Mapping[str, object], known: set[str], where: str) -> None:
    unknown = sorted(set(value) - known)
    if unknown:
        raise InvalidPolicy(f"{where}.{unknown[0]} is not a known field; known: {', '.join(sorted(known))}")
