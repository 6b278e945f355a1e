"""Which stages are due, and over which range: pure, with index probes as its only questions.

`plan` is a generator: it yields a probe, is sent the mark the store found for it, and returns what fires. Most
appends are decided from the head alone and yield nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hitherto.core.action import Chunk, Redact
from hitherto.core.cut import Cut, kept, whole_groups, window_start
from hitherto.core.digest import Done
from hitherto.core.head import Head
from hitherto.core.keep import Window
from hitherto.core.layout import Layout, layout, redacted_up_to
from hitherto.core.message import Sums
from hitherto.core.policy import Policy, Stage
from hitherto.core.probe import Asking, Freeable, TalkAt, ToolTokens, TurnAt, mark_at
from hitherto.core.trigger import Seen

PLACEHOLDER = 12
"""Tokens that a placeholder is reckoned with when it is asked what a redaction would free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """A stage that is due: its row covers `start` to `end`, both inclusive; `new_start` is its first message that no
    digest has seen, `base` the digest it builds on.

    `sums` run through `end`. `kept` is where verbatim begins then, which lies within the range where a chunk's
    messages go on being shown. `freed`: tokens that it takes out of the view, as far as known beforehand.
    """

    stage: Stage
    start: int
    end: int
    new_start: int
    base: int | None
    sums: Sums
    kept: Cut
    freed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What an append sets off. `held` says that a stage was due but one of its kind is still in progress, `nothing`
    that one was due without anything new to it."""

    firings: tuple[Firing, ...] = ()
    held: bool = False
    nothing: bool = False


def plan(policy: Policy, head: Head, window: int) -> Asking[Plan]:
    """What is due at `head`, in the order of the policy's stages; `window` is the model's context window in tokens.

    A stage that asks a model does not fire while a digest of its kind is in progress, whichever stage began that.
    """
    if head.next_seq <= head.view_start or not policy.stages:
        return Plan()
    lies = layout(policy, head, family=_family(head))
    firings: list[Firing] = []
    held = nothing = False
    for stage in policy.stages:
        begin = _undealt(stage, policy, head, lies)
        if not stage.trigger.due(_seen(head, lies, begin, window)):
            continue
        if not stage.action.at_once and any(one.done is stage.action.done for one in head.running):
            held = True
            continue
        firing = yield from _firing(stage, begin, head, lies)
        if firing is None:
            nothing = True
        else:
            firings.append(firing)
    return Plan(firings=tuple(firings), held=held, nothing=nothing)


def overdue(policy: Policy, head: Head, window: int) -> bool:
    """Whether a digest is due that nobody is making, though there are messages for it: its last attempt failed, or it
    is of a policy that came to count only now."""
    if head.next_seq <= head.view_start or head.awaited:
        return False
    lies = layout(policy, head, family=_family(head))
    for stage in policy.stages:
        if stage.action.at_once or any(one.done is stage.action.done for one in head.running):
            continue
        seen = _seen(head, lies, _undealt(stage, policy, head, lies), window)
        if seen.undigested > 0 and seen.messages > 0 and stage.trigger.due(seen):
            return True
    return False


def _family(head: Head) -> str | None:
    """An append does not know the model; it reckons with the one whose opaque item there is."""
    item = head.reaches(Done.COMPACT)
    return None if item is None else item.family


def _undealt(stage: Stage, policy: Policy, head: Head, lies: Layout) -> Cut:
    """From where on the stage counts: what it has not dealt with yet."""
    match stage.action.done:
        case Done.REDACT:
            redacted = redacted_up_to(policy, head, stage.fingerprint)
            if redacted is not None and redacted.end >= lies.start:
                return Cut(redacted.end + 1, redacted.sums)
            return Cut(lies.start, lies.start_sums)
        case Done.CHUNK:
            return _undigested(head)
        case _:
            return Cut(lies.start, lies.start_sums)


def _undigested(head: Head) -> Cut:
    """Where the messages begin that are in no digest."""
    found = Cut(head.view_start, head.view_sums)
    if head.digest is not None and head.digest.end >= found.seq:
        found = Cut(head.digest.end + 1, head.digest_sums)
    chunk = head.reaches(Done.CHUNK)
    return found if chunk is None or chunk.end < found.seq else Cut(chunk.end + 1, chunk.sums)


def _newest(head: Head) -> tuple[int, int | None]:
    """Where the digests of messages end so far, chunks included, and the one that ends there."""
    end, base = (head.view_start - 1, None) if head.digest is None else (head.digest.end, head.digest.id)
    chunk = head.reaches(Done.CHUNK)
    return (end, base) if chunk is None or chunk.end <= end else (chunk.end, chunk.digest)


def _seen(head: Head, lies: Layout, begin: Cut, window: int) -> Seen:
    return Seen(
        messages=head.sums.talk - begin.sums.talk,
        turns=head.sums.turns - begin.sums.turns,
        tokens=lies.place(head.sums) - lies.place(begin.sums),
        undigested=head.sums.talk - _undigested(head).sums.talk,
        last_seq=head.last_seq,
        round_ended=head.round_ended,
        window=window,
    )


def _firing(stage: Stage, begin: Cut, head: Head, lies: Layout) -> Asking[Firing | None]:
    """What the stage does to the range from `begin` to where its keep begins; None if that is empty."""
    if isinstance(stage.action, Redact) and not stage.action.calls and begin.sums.results == head.sums.results:
        return None
    cut = yield from kept(stage.keep, head)
    if isinstance(stage.action, Chunk):
        return (yield from _chunk(stage, stage.action, begin, cut, head))
    if cut.seq <= begin.seq:
        return None
    whole = Firing(
        stage=stage,
        start=begin.seq,
        end=cut.seq - 1,
        new_start=begin.seq,
        base=None,
        sums=cut.sums,
        kept=cut,
        freed=lies.place(cut.sums) - lies.place(begin.sums),
    )
    match stage.action:
        case Redact() as redact:
            return (yield from _redaction(whole, redact, begin))
        case action if action.done is Done.SUMMARISE:
            return (yield from _summary(whole, head))
        case action if action.done is Done.COMPACT and lies.opaque is not None:
            base = lies.opaque
            return replace(whole, start=base.start, new_start=base.end + 1, base=base.digest)
        case _:
            return whole


def _summary(whole: Firing, head: Head) -> Asking[Firing | None]:
    """A summary builds on the one before it, or on the chunks that were made under another policy."""
    start = head.view_start if head.digest is None else head.digest.start
    end, base = _newest(head)
    if isinstance(whole.stage.keep, Window):
        start = yield from window_start(whole.stage.keep.n, head)
    new_start = max(end + 1, start)
    return None if new_start > whole.end else replace(whole, start=start, new_start=new_start, base=base)


def _redaction(whole: Firing, redact: Redact, begin: Cut) -> Asking[Firing | None]:
    """A redaction fires when it frees enough; the running sums tell most of what it would."""
    results = whole.sums.results - begin.sums.results
    if not redact.calls and (not results or results < redact.at_least):
        return None
    found = yield ToolTokens(whole.start, whole.end, redact.calls, redact.never)
    assert isinstance(found, Freeable), "the answer to ToolTokens"
    freed = max(0, found.tokens - PLACEHOLDER * found.messages)
    return replace(whole, freed=freed) if found.messages and freed >= redact.at_least else None


def _chunk(stage: Stage, chunk: Chunk, begin: Cut, keep: Cut, head: Head) -> Asking[Firing | None]:
    """The oldest `batch` messages, up to the end of a turn, whatever is kept of them in view."""
    after = yield from mark_at(TalkAt(begin.sums.talk + chunk.batch + 1))
    if after is not None and not after.opens_turn:
        turn = after.sums.turns
        after = yield from mark_at(TurnAt(max(turn, 1)))
        if after is None or after.seq <= begin.seq:
            after = yield from mark_at(TurnAt(turn + 1))
    if after is None:
        return None
    cut = yield from whole_groups(after, head)
    if cut.seq <= begin.seq:
        return None
    return Firing(
        stage=stage,
        start=begin.seq,
        end=cut.seq - 1,
        new_start=begin.seq,
        base=_newest(head)[1],
        sums=cut.sums,
        kept=keep if keep.seq <= cut.seq else cut,
    )
