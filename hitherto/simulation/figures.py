"""What a simulation of one policy found, in tokens, messages and money, in evidence and in requests that repeat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from statistics import fmean
from typing import Any, cast

from hitherto.core.context.budget import TokenCounter
from hitherto.core.context.request import WireFormat
from hitherto.core.log.message import Message, Payload
from hitherto.core.policy.span import Fate, Span
from hitherto.core.price import Price
from hitherto.engine.context.context import Context
from hitherto.wire.breakpoints import has_breakpoints, without_breakpoints


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRequest:
    """One request. `seq` is its first new message, `repeated` how many of its first tokens repeat the request before,
    `cached` how many of those the provider has in its cache, `breakpoints` behind how many tokens each of its cache
    breakpoints stands. `fired` counts the firings of stages that took effect since the request before. `recalled` are
    the tokens of recalled content."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Labeled:
    """A question and its evidence: the seqs of the messages that answer it, at least one."""

    text: str
    evidence: frozenset[int]


def evidence_shown(
    context: Context, messages: Sequence[Message], evidence: Collection[int], starts: Mapping[str, int] | None = None
) -> float:
    """The share of the evidence that the payload shows word for word, from 0 to 1: each message counts by the share of
    its characters. `evidence` has places in `messages`; these are those of the context's conversation, or of several:
    `starts` has the place of the first of each."""
    manifest = context.manifest
    starts = {manifest.conversation: 0} if starts is None else starts
    own = starts.get(manifest.conversation)
    whole = {
        seq
        for span in manifest.fates
        if span.fate is Fate.IN and own is not None
        for seq in evidence
        if span.start <= seq - own <= span.end
    }
    parts: dict[int, float] = {}
    for one in manifest.recalled:
        first = starts.get(one.conversation or "")
        if one.kind == "message" and first is not None and one.start is not None:
            seqs = range(first + one.start, first + (one.end or one.start) + 1)
            parts |= _shares(messages, seqs, one.characters)
    return fmean(1.0 if seq in whole else parts.get(seq, 0.0) for seq in evidence)


def _shares(
    messages: Sequence[Message], seqs: Sequence[int], characters: Sequence[tuple[int, int]]
) -> dict[int, float]:
    """What is shown of each message of a recalled group, whose texts stand one a line in the text that `characters` are
    ranges of; all of it where there are none."""
    found: dict[int, float] = {}
    begin = 0
    for seq in seqs:
        text = messages[seq].text
        inside = sum(max(min(end, begin + len(text)) - max(start, begin), 0) for start, end in characters)
        found[seq] = min(inside / max(len(text), 1), 1.0) if characters else 1.0
        begin += len(text) + 1 if text.strip() else 0
    return found


_Piece = tuple[str, Any]
"""A part of a request, after its kind: "tools", "system" or "item"."""


class Repeats:
    """Compares the requests of one conversation, each with the one before.

    A request counts in the order in which the provider reads it: tools, instructions, items. A part is compared
    when it is met and counted once, so the time is linear in what is sent. Cache breakpoints make no difference.
    """

    def __init__(self, codec: WireFormat, counter: TokenCounter) -> None:
        self._codec, self._counter = codec, counter
        self._last: list[tuple[_Piece, int]] = []
        self._marked: list[bool] = []

    def of(self, request: Mapping[str, Any]) -> int:
        """How many of the request's first tokens repeat the request before; 0 for the first.

        Whole parts that are equal count with all their tokens. Of the first part that differs, the common beginning of
        the text counts, if nothing but the text differs.
        """
        given = list(parts_of(request))
        pieces = [piece for piece, _ in given]
        same = 0
        while same < min(len(pieces), len(self._last)) and pieces[same] == self._last[same][0]:
            same += 1
        shared = sum(cost for _, cost in self._last[:same])
        if same < min(len(pieces), len(self._last)):
            shared += self._partly(self._last[same], pieces[same])
        self._last[same:] = [(piece, self._cost(piece)) for piece in pieces[same:]]
        self._marked = [marked for _, marked in given]
        return shared

    @property
    def breakpoints(self) -> tuple[int, ...]:
        """Behind how many tokens each the last request has its cache breakpoints: at the ends of its parts."""
        ends = accumulate(cost for _, cost in self._last)
        return tuple(end for end, marked in zip(ends, self._marked, strict=True) if marked)

    @property
    def end(self) -> int:
        """How many tokens the last request has."""
        return sum(cost for _, cost in self._last)

    def _cost(self, piece: _Piece) -> int:
        kind, value = piece
        match kind:
            case "tools":
                return self._codec.tools_tokens(value, self._counter)
            case "system":
                return self._codec.system_tokens(value, self._counter)
            case _:
                return self._codec.tokens(value, self._counter)

    def _partly(self, last: tuple[_Piece, int], piece: _Piece) -> int:
        """The tokens of the two parts' common beginning; 0 when more than their text differs."""
        (last_kind, before), cost = last
        kind, now = piece
        if kind != last_kind:
            return 0
        if kind == "system":
            return min(cost, self._cost((kind, _common(before, now))))
        if kind != "item" or not _alike(before, now):
            return 0
        begin = {**now, "content": _common(before["content"], now["content"])}
        return min(cost, self._cost((kind, begin)))


def _alike(one: Payload, other: Payload) -> bool:
    """Whether nothing but the text of the two items differs."""
    texts = isinstance(one.get("content"), str) and isinstance(other.get("content"), str)
    return texts and {**one, "content": ""} == {**other, "content": ""}


def _common(one: str, other: str) -> str:
    return one[: common_start(one, other)]


def common_start(one: str, other: str) -> int:
    """How many characters the two texts have in common from their start."""
    same, most = 0, min(len(one), len(other))
    while same < most:  # halved each time, as comparing long texts is fast, and going through them is not
        middle = (same + most + 1) // 2
        if one[same:middle] == other[same:middle]:
            same = middle
        else:
            most = middle - 1
    return same


def parts_of(request: Mapping[str, Any]) -> Iterator[tuple[_Piece, bool]]:
    """The parts, each with whether it has a cache breakpoint."""
    if request.get("tools"):
        yield ("tools", request["tools"]), has_breakpoints(request["tools"])
    for name in ("instructions", "system"):
        if isinstance(request.get(name), str):
            yield ("system", request[name]), False
        for block in cast("list[Payload]", request[name] if isinstance(request.get(name), list) else []):
            yield ("system", block["text"]), has_breakpoints([block])
    for item in cast("list[Payload]", request["messages"] if "messages" in request else request["input"]):
        yield ("item", without_breakpoints(item)), has_breakpoints([item])
