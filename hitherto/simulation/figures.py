"""What a simulation of one policy found, in tokens, messages and money."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from hitherto.core.policy.span import Fate, Span
from hitherto.core.price import Price


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRequest:
    """One request. `seq` is its first new message, `repeated` how many of its first tokens repeat the request before,
    `cached` how many of those the provider has in its cache, `breakpoints` behind how many tokens each of its cache
    breakpoints stands. `fired` counts the firings of stages that took effect since the request before. `recalled` are
    the tokens of recalled content, which no cache has."""

    seq: int
    tokens: int
    repeated: int
    cached: int
    fired: int = 0
    recalled: int = 0
    breakpoints: tuple[int, ...] = ()


@dataclass(slots=True, kw_only=True)
class Figures:
    """What one policy costs and keeps, over one conversation or several.

    `fates` counts the messages by what became of them in the end, `failed` has why digests failed. Tokens of digests
    are those of the prompts and of the answers of the model that makes them. `evidence` has, for each question about
    the conversations, the share of what answers it that its context shows in the end, with and without recall.
    """

    policy: str
    price: Price
    sent: list[SentRequest] = field(default_factory=list[SentRequest])
    fates: Counter[Fate] = field(default_factory=Counter[Fate])
    digest_calls: int = 0
    digest_tokens_in: int = 0
    digest_tokens_out: int = 0
    failed: list[str] = field(default_factory=list[str])
    evidence: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])

    @property
    def prompt_tokens(self) -> int:
        return sum(one.tokens for one in self.sent)

    @property
    def cached_tokens(self) -> int:
        return sum(one.cached for one in self.sent)

    @property
    def recalled_tokens(self) -> int:
        return sum(one.recalled for one in self.sent)

    @property
    def evidence_shown(self) -> float | None:
        """The share of what answers the questions that contexts show, from 0 to 1; None without questions."""
        return fmean(shown for shown, _ in self.evidence) if self.evidence else None

    @property
    def evidence_recalled(self) -> float | None:
        """The part of `evidence_shown` that recall adds; None without questions."""
        return fmean(shown - without for shown, without in self.evidence) if self.evidence else None

    @property
    def digest_tokens(self) -> int:
        return self.digest_tokens_in + self.digest_tokens_out

    @property
    def max_request_tokens(self) -> int:
        return max((one.tokens for one in self.sent), default=0)

    @property
    def cost_usd(self) -> float:
        """US dollars: the prompts, with cached tokens at their own price, and the calls for digests, at the prices of
        the same model. The agent's own answers are left out: they cost the same whatever the policy."""
        prompts = sum(self.price.prompt(one.tokens, one.cached, breakpoints=one.breakpoints) for one in self.sent)
        return prompts + self.price.prompt(self.digest_tokens_in, 0) + self.price.answer(self.digest_tokens_out)

    @property
    def cached(self) -> float:
        """The share of the prompt tokens that the cache has."""
        return share(self.cached_tokens, self.prompt_tokens)

    @property
    def repeated(self) -> float:
        """The share of the prompt tokens that repeats the request before."""
        return share(sum(one.repeated for one in self.sent), self.prompt_tokens)

    @property
    def verbatim(self) -> float:
        """The share of the messages that are still shown word for word in the end."""
        return self._kept(Fate.IN)

    @property
    def digested(self) -> float:
        """The share of which only a digest is left."""
        return self._kept(Fate.DIGESTED, Fate.RECALLED)

    @property
    def dropped(self) -> float:
        """The share whose content is gone: not shown, or with a placeholder in its place."""
        return self._kept(Fate.DROPPED, Fate.REDACTED)

    @property
    def redacted(self) -> float:
        """The part of `dropped` that has a placeholder."""
        return self._kept(Fate.REDACTED)

    def count(self, spans: Iterable[Span]) -> None:
        """Add the fates of a conversation's messages."""
        for span in spans:
            self.fates[span.fate] += span.end - span.start + 1

    def to_json(self) -> dict[str, Any]:
        return {
            "policy": self.policy,
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "recalled_tokens": self.recalled_tokens,
            "digest_calls": self.digest_calls,
            "digest_tokens": self.digest_tokens,
            "cost_usd": round(self.cost_usd, 6),
            "max_request_tokens": self.max_request_tokens,
            "verbatim": round(self.verbatim, 4),
            "digested": round(self.digested, 4),
            "dropped": round(self.dropped, 4),
            "redacted": round(self.redacted, 4),
            "requests": len(self.sent),
            "repeated": round(self.repeated, 4),
            "evidence": _rounded(self.evidence_shown),
            "evidence_recalled": _rounded(self.evidence_recalled),
            "price": self.price.model,
            "price_date": self.price.date,
        }

    def _kept(self, *fates: Fate) -> float:
        return share(sum(self.fates[fate] for fate in fates), self.fates.total())


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def share(part: int, whole: int) -> float:
    """`part` of `whole`, from 0 to 1; 0 of nothing."""
    return part / whole if whole else 0.0
