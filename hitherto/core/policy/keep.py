"""Keeps: what stays verbatim when a stage fires, the low-water mark. What is kept begins with a user message."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, cast

from hitherto.core.policy.component import Component, quoted, register, share, whole
from hitherto.errors import InvalidPolicy


@dataclass(frozen=True)
class Keep(Component):
    """Says what stays verbatim."""

    slot: ClassVar[str] = "keep"


@register
@dataclass(frozen=True)
class Nothing(Keep):
    """Keep nothing verbatim but what came after the last digest (the gap)."""

    word: ClassVar[str] = "nothing"


@register
@dataclass(frozen=True)
class LastMessages(Keep):
    """Keep at least the newest `k` messages (user and final assistant ones), from the start of their turn on."""

    k: int
    word: ClassVar[str] = "last_messages"

    def __post_init__(self) -> None:
        whole(self, k=self.k)


@register
@dataclass(frozen=True)
class LastTurns(Keep):
    """Keep the newest `k` turns."""

    k: int
    word: ClassVar[str] = "last_turns"

    def __post_init__(self) -> None:
        whole(self, k=self.k)


@register
@dataclass(frozen=True)
class LastTokens(Keep):
    """Keep the newest turns that make up at most `t` tokens, and in any case the newest turn."""

    t: int
    word: ClassVar[str] = "last_tokens"

    def __post_init__(self) -> None:
        whole(self, t=self.t)


@register
@dataclass(frozen=True)
class LastFraction(Keep):
    """Keep the newest turns that make up at most the share `f` of a context's budget (of the model's window, if that is
    smaller), and in any case the newest turn."""

    f: float
    word: ClassVar[str] = "last_fraction"

    def __post_init__(self) -> None:
        share(self, f=self.f)


@register
@dataclass(frozen=True)
class Window(Keep):
    """What is older than the newest `n` messages (user and final assistant ones) leaves the digest too.

    The window starts at a user message: a start in the middle of a turn moves on to the next turn. `keep` says what of
    the window stays verbatim.
    """

    n: int
    keep: Keep = field(default=Nothing(), metadata={"slot": "keep"})
    word: ClassVar[str] = "window"

    def __post_init__(self) -> None:
        whole(self, n=self.n)
        if not isinstance(cast(object, self.keep), Keep):
            raise InvalidPolicy(f"Window.keep is {quoted(self.keep)}; give a keep such as LastTurns(2)")
        match self.keep:
            case LastMessages(k) if k >= self.n:
                raise InvalidPolicy(
                    f"Window.n is {self.n}, which is not more than its keep's {k}; a window has to be larger than "
                    "what it keeps verbatim"
                )
            case LastTurns(k) if 2 * k >= self.n:
                raise InvalidPolicy(
                    f"Window.n is {self.n}, but its keep's {k} turns are {2 * k} messages at least, once they are "
                    "answered; a window has to be larger than what it keeps verbatim"
                )
            case Window():
                raise InvalidPolicy("Window.keep is a window itself; give one of the other keeps")
            case _:
                pass
