"""How far a stage of a policy has come in a conversation, and what a digest row does to its range."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hitherto.core.log.message import Sums


class DigestAction(StrEnum):
    """What a digest row records as done to its range."""

    SUMMARIZE = "summarize"
    CHUNK = "chunk"
    COMPACT = "compact"
    REDACT = "redact"
    DROP = "drop"
    CLEAR = "clear"


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontier:
    """How far one stage has come with drops, redactions, chunks or opaque items: its visible row that reaches
    furthest, from `start` to `end` (inclusive).

    `sums` run through `end`. `kept_from` is the first message that stayed verbatim though the row covers it, `end` + 1
    if none did, and `kept_sums` run up to the one before. `family` tells which models understand an opaque item;
    None: all. `digest` is the row's id where something else rests on it, `tokens` what its opaque items take. A
    redaction has taken `freed` tokens out of the view so far, from where the running sum of tokens was `since`.
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
