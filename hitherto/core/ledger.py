"""What model calls cost: one entry a call."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID, uuid4


class Purpose(StrEnum):
    """What a model was called for."""

    DIGEST = "digest"
    CONDENSE = "condense"
    CORRECT = "correct"
    COMPACT = "compact"
    ARCHIVE = "archive"
    EMBED = "embed"
    RERANK = "rerank"
    CHECK = "check"


class FailureCause(StrEnum):
    """Why a call, or the digest that needed it, came to nothing."""

    BUSY = "busy"
    UNREACHABLE = "unreachable"
    REFUSED = "refused"
    UNUSABLE = "unusable"
    LOST = "lost"
    DEFECT = "defect"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """One request to a model, whatever came of it.

    Tokens are the endpoint's own figures, `tokens_cached` of `tokens_in` from its prompt cache; None where it gave
    none. `cost` is in US dollars, None where no price is known. `latency_ms` runs from the request to the answer's end
    or the failure. `cause` says why it failed, None if it did not. `digest` is the row that the call was made for.
    `key` tells an entry from all others: written twice, it is there once.
    """

    purpose: Purpose
    model: str
    latency_ms: int
    tokens_in: int | None = None
    tokens_cached: int | None = None
    tokens_out: int | None = None
    cost: float | None = None
    cause: FailureCause | None = None
    digest: int | None = None
    key: UUID = field(default_factory=uuid4, init=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What model calls took together: US dollars (calls without a known price left out), and tokens in and out."""

    cost: float = 0.0
    tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """The calls of one group in a sum of the ledger. `unpriced` of them have no known cost, which `cost` leaves out;
    `failed` came to nothing. Tokens count 0 where the endpoint gave no figure. `latency_ms` is the sum of all."""

    group: str
    calls: int
    failed: int
    unpriced: int
    tokens_in: int
    tokens_cached: int
    tokens_out: int
    cost: float
    latency_ms: int
