"""Probes: the questions about a log that one index look-up answers, whatever its length."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from hitherto.core.log.message import Sums

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class DialogueAt:
    """Asks for the first live message at which the running sum `dialogue` reaches `n`."""

    n: int


@dataclass(frozen=True, slots=True)
class TurnAt:
    """Asks for the live message that opens turn `n` (the running sum `turns` reaches `n`)."""

    n: int


@dataclass(frozen=True, slots=True)
class TokensAt:
    """Asks for the first live message at which the running sum `tokens` reaches `n`."""

    n: int


@dataclass(frozen=True, slots=True)
class SeqAt:
    """Asks for the last live message up to seq `n` (inclusive)."""

    n: int


@dataclass(frozen=True, slots=True)
class SpeakerAt:
    """Asks for the last live message up to seq `n` (inclusive) that is no tool result."""

    n: int


@dataclass(frozen=True, slots=True)
class ToolTokens:
    """Asks how many tokens above `leaves` each the tool results from seq `start` to `end` (inclusive) have, with
    `calls` the tool calls too, without those of the tools `never`. The answer is a number."""

    start: int
    end: int
    calls: bool
    never: tuple[str, ...]
    leaves: int


@dataclass(frozen=True, slots=True)
class ToolIds:
    """Asks which calls the tool items from seq `start` on make and answer. The answer is a tuple of `ToolItem`,
    ascending by seq."""

    start: int


Probe = DialogueAt | TurnAt | TokensAt | SeqAt | SpeakerAt
AnyProbe = Probe | ToolTokens | ToolIds


@dataclass(frozen=True, slots=True)
class Mark:
    """A message found by a probe: its place, its running sums, its own tokens, and whether it opens a turn."""

    seq: int
    sums: Sums
    tokens: int
    opens_turn: bool

    @property
    def before(self) -> Sums:
        """The running sums up to the message before one that opens a turn."""
        s = self.sums
        return Sums(tokens=s.tokens - self.tokens, turns=s.turns - 1, dialogue=s.dialogue - 1, results=s.results)


class ToolItem(NamedTuple):
    """A live message that makes tool calls or answers some, with their ids."""

    seq: int
    calls: tuple[str, ...]
    answers: tuple[str, ...]


ProbeAnswer = Mark | int | tuple[ToolItem, ...] | None

ProbeGenerator = Generator[AnyProbe, ProbeAnswer, _T]
"""A pure computation that yields probes, is sent their answers, and returns a `_T`."""


def mark_at(probe: Probe) -> ProbeGenerator[Mark | None]:
    """The message that answers `probe`."""
    found = yield probe
    assert not isinstance(found, int | tuple), "only ToolTokens and ToolIds are answered by one"
    return found
