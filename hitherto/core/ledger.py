"""The ledger: what model calls cost, one entry per call."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal
from uuid import UUID, uuid4

By = Literal["tenant", "user", "model", "day", "purpose"]
"""What calls of the ledger are grouped by; days are UTC."""


class Purpose(StrEnum):
    """What a model was called for."""

    DIGEST = "digest"
    CONDENSE = "condense"
    CORRECT = "correct"
    COMPACT = "compact"
    ARCHIVE = "archive"
    FACTS = "facts"
    EMBED = "embed"
    RERANK = "rerank"
    CHECK = "check"


class FailureCause(StrEnum):
    """Why a model call failed, or the digest that needed it.

    BUSY: a rate limit. UNREACHABLE: no answer. REFUSED: the endpoint rejected the request. UNUSABLE: the answer could
    not be used. LOST: the call was cancelled, or the digest was given up after too many attempts. DEFECT: any other
    error.
    """

    BUSY = "busy"
    UNREACHABLE = "unreachable"
    REFUSED = "refused"
    UNUSABLE = "unusable"
    LOST = "lost"
    DEFECT = "defect"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """One request to a model, whether it succeeded or not.

    The token counts are the endpoint's own figures, None where it gave none; `tokens_cached` is the part of `tokens_in`
    from its prompt cache. `cost` is in US dollars, None without a known price. `latency_ms` runs from the request to
    the end of the answer or to the failure. `cause` says why the call failed, None if it did not. `digest` is the row
    that the call was made for. `key` identifies the entry: an entry that is written twice is stored once.
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
    """The total of model calls: US dollars (calls without a known price count 0), and input and output tokens
    together."""

    cost: float = 0.0
    tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """The total of one group of ledger entries. `failed` counts the calls that failed, `unpriced` those without a known
    price, which add nothing to `cost` (US dollars). Tokens count 0 where the endpoint gave no figure. `latency_ms` is
    the sum over all calls."""

    group: str
    calls: int
    failed: int
    unpriced: int
    tokens_in: int
    tokens_cached: int
    tokens_out: int
    cost: float
    latency_ms: int
