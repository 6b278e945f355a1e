"""Triggers: when a stage is due. Each is a pure function of what the stage could still act on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal, cast

from hitherto.core.policy.component import Component, choice, quoted, register, share, whole
from hitherto.errors import InvalidPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerInput:
    """What a trigger decides by: the part of the present view that its stage has not dealt with yet.

    `messages` are user messages and final assistant messages, `turns` user messages, `tokens` canonical ones as shown,
    without what redactions took out; `undigested` are messages that are in no digest, dropped ones included. `last_seq`
    is the newest message's seq, `round_ended` whether it was appended just now and ends a round. `window` is the
    model's context window in tokens, `budget` that of a context (at most the window), `standing` the tokens of what
    stands in it for older messages, `view` those of all messages in view, as shown.
    """

    messages: int
    turns: int
    tokens: int
    undigested: int
    last_seq: int
    round_ended: bool
    window: int
    budget: int
    standing: int = 0
    view: int = 0


@dataclass(frozen=True)
class Trigger(Component):
    """Says when a stage is due: the high-water mark. Pure: the same `TriggerInput`, the same answer."""

    slot: ClassVar[str] = "trigger"

    def due(self, seen: TriggerInput) -> bool:
        """Whether the stage has to act now. Asked after every append and when a digest ends: a clock sets nothing
        off."""
        raise NotImplementedError


@dataclass(frozen=True)
class _CountTrigger(Trigger):
    n: int

    def __post_init__(self) -> None:
        whole(self, n=self.n)


@register
@dataclass(frozen=True)
class Messages(_CountTrigger):
    """Due with more than `n` messages in view."""

    word: ClassVar[str] = "messages"

    def due(self, seen: TriggerInput) -> bool:
        return seen.messages > self.n


@register
@dataclass(frozen=True)
class Turns(_CountTrigger):
    """Due with `n` turns in view or more."""

    word: ClassVar[str] = "turns"

    def due(self, seen: TriggerInput) -> bool:
        return seen.turns >= self.n


@register
@dataclass(frozen=True)
class Tokens(_CountTrigger):
    """Due with more than `n` tokens in view."""

    word: ClassVar[str] = "tokens"

    def due(self, seen: TriggerInput) -> bool:
        return seen.tokens > self.n


@register
@dataclass(frozen=True)
class Fraction(Trigger):
    """Due when the view, with what stands for older messages, takes at least the share `f` of the model's window. It
    always waits for new messages of a quarter of that, however much stands for older ones.

    With `of="budget"`, due when the messages in view alone take at least that share of a context's budget (of the
    window, if that is smaller); with `of="view"`, when all that is in view does, also what the stage has dealt with.
    """

    f: float
    of: Literal["window", "budget", "view"] = field(default="window", metadata={"later": True})
    word: ClassVar[str] = "fraction"

    def __post_init__(self) -> None:
        share(self, f=self.f)
        choice(self, of=self.of)

    def due(self, seen: TriggerInput) -> bool:
        if self.of == "budget":
            return seen.tokens >= self.f * seen.budget
        if self.of == "view":
            return seen.view + seen.standing >= self.f * seen.budget
        mark = self.f * seen.window
        return seen.tokens >= max(mark - seen.standing, mark / 4)


@register
@dataclass(frozen=True)
class Seq(Trigger):
    """Due at the end of a round whose last message has seq `n` or later."""

    n: int
    word: ClassVar[str] = "seq"

    def __post_init__(self) -> None:
        whole(self, 0, n=self.n)

    def due(self, seen: TriggerInput) -> bool:
        return seen.round_ended and seen.last_seq >= self.n


@register
@dataclass(frozen=True)
class Undigested(_CountTrigger):
    """Due with more than `n` messages that are in no digest."""

    word: ClassVar[str] = "undigested"

    def due(self, seen: TriggerInput) -> bool:
        return seen.undigested > self.n


def _checked(owner: Component, of: object) -> None:
    name = type(owner).__name__
    if isinstance(of, list):
        of = tuple(cast(list[object], of))
        object.__setattr__(owner, "of", of)
    if not isinstance(of, tuple) or not of:
        raise InvalidPolicy(
            f"{name}.of is {quoted(cast(object, of))}; give at least one trigger, or the stage could never fire"
        )
    for one in cast(tuple[object, ...], of):
        if not isinstance(one, Trigger):
            raise InvalidPolicy(f"{name}.of has {quoted(one)}, which is no trigger")


@register
@dataclass(frozen=True)
class AnyOf(Trigger):
    """Due when one of its triggers is."""

    of: tuple[Trigger, ...] = field(metadata={"slot": "trigger"})
    word: ClassVar[str] = "any_of"

    def __post_init__(self) -> None:
        _checked(self, self.of)

    def due(self, seen: TriggerInput) -> bool:
        return any(one.due(seen) for one in self.of)


@register
@dataclass(frozen=True)
class AllOf(Trigger):
    """Due when all of its triggers are."""

    of: tuple[Trigger, ...] = field(metadata={"slot": "trigger"})
    word: ClassVar[str] = "all_of"

    def __post_init__(self) -> None:
        _checked(self, self.of)

    def due(self, seen: TriggerInput) -> bool:
        return all(one.due(seen) for one in self.of)
