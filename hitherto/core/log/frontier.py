"""Frontiers: how far a stage of a policy has come in a conversation; and the actions that digest rows record."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hitherto.core.log.message import Sums


class DigestAction(StrEnum):
    """What a digest row records as done to its range."""

    SUMMARIZE = "summarize"
    CHUNK = "chunk"
    COMPACT = "compact"
    FACTS = "facts"
    REDACT = "redact"
    DROP = "drop"
    CLEAR = "clear"


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontier:
    """How far one stage has come with drops, redactions, chunks, opaque items or facts: its visible row that reaches
    furthest. The row covers `start` to `end`, both inclusive.

    `sums` run through `end`. `kept_from` is the first message that the row covers but that stayed verbatim, or `end` +
    1; `kept_sums` run up to the message before it. `digest` is the id of a row that others build on (a chunk, opaque
    items), else None. Opaque items take `tokens` and are understood by the models of `family` (None: all). Redactions
    have taken `freed` tokens out of the view so far, beginning where the running sum of tokens was `since`.
    """

    action: DigestAction
    start: int
    end: int
    sums: Sums
    kept_from: int
    kept_sums: Sums
    digest: int | None = None
    family: str | None = None
    tokens: int = 0
    freed: int = 0
    since: int = 0
