"""Planning: which stages are due, and over which range. Pure: its only questions are index probes.

`plan` is a generator: it yields a probe, is sent the mark the store found for it, and returns what fires. Most appends
are decided from the head alone and yield nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hitherto.core.log.frontier import DigestAction, Frontier
from hitherto.core.log.head import H, Head
from hitherto.core.log.message import Sums
from hitherto.core.log.probe import DialogueAt, ProbeGenerator, SeqAt, ToolTokens, TurnAt, mark_at
from hitherto.core.log.ranges import joined
from hitherto.core.policy.parts import Chunk, Compact, FindFacts, Nothing, Redact, Summarize, Window
from hitherto.core.policy.policy import Policy, Stage
from hitherto.core.policy.span import (
    Cut,
    kept,
    kept_groups_within,
    kept_within,
    past_late_results,
    whole_groups,
    window_start,
)
from hitherto.core.policy.trigger import TriggerInput
from hitherto.core.policy.unread import read_up_to, unread_from
from hitherto.core.policy.view import Layout, layout_of, redacted_up_to


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """A stage that is due: its row covers `start` to `end`, both inclusive; `new_start` is its first message that no
    digest has seen, `base` the digest it builds on.

    `sums` run through `end`. `kept` is where verbatim begins afterwards; for a chunk it may lie within the range, as
    chunked messages may still be shown. `freed` are the tokens that it takes out of the view, as far as known
    beforehand. `freed_so_far` adds those that were taken out before in the same way, from the running sum of tokens
    `since` on.
    """

    stage: Stage
    start: int
    end: int
    new_start: int
    base: int | None
    sums: Sums
    kept: Cut
    freed: int = 0
    freed_so_far: int = 0
    since: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is due. `held`: a stage was due, but one of its kind is in progress or digests are paused after
    failures. `nothing`: a stage was due but had nothing new to act on. `unread`: users said something that a stage will
    read for facts, but not now."""

    firings: tuple[Firing, ...] = ()
    held: bool = False
    nothing: bool = False
    unread: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What a process fires stages with: the `window` of the agent's model and the `budget` of a context (at most the
    window), in tokens; whether it has a language `model`, and whether that finds `facts`; and the `family` of the
    models whose opaque items it can make."""

    window: int
    budget: int
    model: bool = False
    facts: bool = False
    family: str | None = None


def plan(
    policy: Policy, head: Head, means: Means, *, appended: bool = True, rests: bool = False
) -> ProbeGenerator[Plan]:
    """What is due at `head`, in the order of the policy's stages; each counts what those before it left in view. While
    messages below `Head.finish_seq` are undigested, summaries and chunks are due whatever their triggers say; stages
    that find facts likewise, while they are unread. With `rests`, these alone are asked, and due in any case. They do
    not act in a private conversation.

    Not `appended`: it is asked because a digest ended, so no round ends now. Without a `family` no stage compacts,
    without a `model` none that is for models alone. A stage that digests does not fire while another digest of messages
    is in progress, nor one that compacts or finds facts during another that does, whichever stage began it. None of
    them fires while digests are paused after failures (`Head.resting`).
    """
    if head.next_seq <= head.view_start or not policy.stages:
        return Plan()
    if rests:
        head = replace(head, finish_seq=head.next_seq)
    firings: list[Firing] = []
    busy = set(_KIND.values()) if head.resting else {_KIND[one.action] for one in head.running if one.action in _KIND}
    held = nothing = words = False
    for stage in policy.stages:
        kind = _KIND.get(stage.action.digest_action)
        if not _possible(stage, means) or (rests and kind != "facts"):
            continue
        layout = layout_of(policy, head, family=means.family)
        begin = _pending_from(stage, policy, head, layout)
        finishing = kind == "digest" and _undigested(head).seq < head.finish_seq
        if kind == "facts":
            begin = yield from unread_from(head)
            if head.private or begin.sums.turns == head.sums.turns:
                continue
            words, finishing = True, begin.seq < head.finish_seq
        due = finishing or stage.trigger.due(_seen(stage, head, layout, begin, means, appended=appended))
        if not due or _has_no_results(stage, begin, head):
            continue
        if kind in busy:
            held = True
            continue
        cut = yield from _kept(stage, begin, head, means.budget)
        firing = yield from _firing(stage, begin, cut, head, layout, budget=means.budget, finishing=finishing)
        if firing is not None and stage.action.digest_action is DigestAction.DROP:
            firing = replace(firing, start=_first_dropped(policy, head))
        if firing is None or (kind != "facts" and _nothing_left(firing, head)):
            nothing = True
            continue
        if kind is None:
            firing = _counted(firing, begin, _earlier(stage, policy, head))
            head = advanced(head, firing)
        else:
            busy.add(kind)
        firings.append(firing)
    unread = words and ("facts" not in busy or head.resting)
    return Plan(firings=tuple(firings), held=held, nothing=nothing, unread=unread)


_KIND = {
    DigestAction.SUMMARIZE: "digest",
    DigestAction.CHUNK: "digest",
    DigestAction.COMPACT: "compaction",
    DigestAction.FACTS: "facts",
}
"""Only one of a kind may be in progress at a time. Drops and redactions take effect at once and have no kind."""


def advanced(head: H, firing: Firing) -> H:
    """`head` with the frontier of a stage that takes effect at once."""
    frontier = Frontier(
        action=firing.stage.action.digest_action,
        start=firing.start,
        end=firing.end,
        sums=firing.sums,
        kept_from=firing.end + 1,
        kept_sums=firing.sums,
        freed=firing.freed_so_far,
        since=firing.since,
    )
    return replace(head, frontiers={**head.frontiers, firing.stage.fingerprint: frontier})


def _earlier(stage: Stage, policy: Policy, head: Head) -> Frontier | None:
    """The frontier from which a stage that takes effect at once goes on."""
    if stage.action.digest_action is DigestAction.REDACT:
        return redacted_up_to(policy, head, stage.fingerprint)
    return head.frontiers.get(stage.fingerprint)


def _counted(firing: Firing, begin: Cut, earlier: Frontier | None) -> Firing:
    if earlier is None:
        return replace(firing, freed_so_far=firing.freed, since=begin.sums.tokens)
    return replace(firing, freed_so_far=earlier.freed + firing.freed, since=earlier.since)


def _kept(stage: Stage, begin: Cut, head: Head, budget: int) -> ProbeGenerator[Cut]:
    """The cut that leaves what the stage keeps."""
    cut = yield from kept(stage.keep, head, budget)
    if not stage.within_turn:
        return cut
    within = yield from (
        kept_within(stage.keep, head, budget)
        if stage.action.digest_action is DigestAction.REDACT
        else kept_groups_within(stage.keep, begin, head, budget)
    )
    return cut if within is None or within.seq <= cut.seq else within


def _pending_from(stage: Stage, policy: Policy, head: Head, layout: Layout) -> Cut:
    """Where the part begins that the stage has not dealt with yet, which is what its trigger counts."""
    match stage.action.digest_action:
        case DigestAction.REDACT:
            redacted = _earlier(stage, policy, head)
            if redacted is not None and redacted.end >= layout.start:
                return Cut(redacted.end + 1, redacted.sums)
            return Cut(layout.start, layout.start_sums)
        case DigestAction.CHUNK:
            return _undigested(head)
        case _:
            return Cut(layout.start, layout.start_sums)


def _undigested(head: Head) -> Cut:
    """Where the messages begin that are in no digest."""
    found = Cut(head.view_start, head.view_sums)
    if head.digest is not None and head.digest.end >= found.seq:
        found = Cut(head.digest.end + 1, head.digest_sums)
    chunk = head.reaches(DigestAction.CHUNK)
    return found if chunk is None or chunk.end < found.seq else Cut(chunk.end + 1, chunk.sums)


def _newest(head: Head) -> tuple[int, int | None]:
    """The last message that is in a digest or a chunk, and the id of that digest."""
    end, base = (head.view_start - 1, None) if head.digest is None else (head.digest.end, head.digest.id)
    chunk = head.reaches(DigestAction.CHUNK)
    return (end, base) if chunk is None or chunk.end <= end else (chunk.end, chunk.digest)


def _possible(stage: Stage, means: Means) -> bool:
    match stage.action:
        case Summarize(needs_model=True):
            return means.model
        case FindFacts():
            return means.facts
        case one if one.digest_action is DigestAction.COMPACT:
            return means.family is not None
        case _:
            return True


def _seen(stage: Stage, head: Head, layout: Layout, begin: Cut, means: Means, *, appended: bool) -> TriggerInput:
    in_front = [one.tokens for one in (layout.digest, layout.opaque) if one is not None]
    tokens = layout.place(head.sums.tokens) - layout.place(begin.sums.tokens)
    if isinstance(stage.action, FindFacts):
        tokens = head.sums.tokens - head.sums.results - begin.sums.tokens + begin.sums.results
    return TriggerInput(
        messages=head.sums.dialogue - begin.sums.dialogue,
        turns=head.sums.turns - begin.sums.turns,
        tokens=tokens,
        undigested=head.sums.dialogue - _undigested(head).sums.dialogue,
        last_seq=head.last_seq,
        round_ended=appended and head.round_ended,
        window=means.window,
        budget=means.budget,
        standing=sum(in_front),
        view=layout.place(head.sums.tokens) - layout.place(layout.start_sums.tokens),
    )


def _firing(
    stage: Stage, begin: Cut, cut: Cut, head: Head, layout: Layout, *, budget: int, finishing: bool
) -> ProbeGenerator[Firing | None]:
    """What the stage does to the range from `begin` to `cut`, where its keep begins, or to the end of what is to be
    digested in any case; None if that is empty."""
    finds = isinstance(stage.action, FindFacts)
    finish = (yield from _finish(begin, head)) if finishing and not finds else None
    if finds or isinstance(stage.action, Chunk):
        reading = _reading(stage, begin, cut, head, finishing=finishing)
        return (yield from reading if finds else _chunk(stage, begin, cut, head, finish))
    if finish is not None and finish.seq > cut.seq:
        cut = finish
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
        freed=layout.place(cut.sums.tokens) - layout.place(begin.sums.tokens),
    )
    match stage.action:
        case Redact() as redact:
            return (yield from _redaction(whole, redact.within(budget), begin))
        case Summarize():
            return (yield from _summary(whole, head))
        case Compact():
            return _compaction(whole, head, layout)
        case _:
            return whole


def _reading(stage: Stage, begin: Cut, cut: Cut, head: Head, *, finishing: bool) -> ProbeGenerator[Firing | None]:
    """A reading for facts: up to `cut`, or of all that is to be read in any case. It may split a group, as it takes
    nothing out of the view."""
    if finishing and head.finish_seq > cut.seq:
        last = yield from mark_at(SeqAt(head.finish_seq - 1))
        cut = cut if last is None else Cut(head.finish_seq, last.sums)
    end = yield from read_up_to(begin, cut)
    if end is None:
        return None
    return Firing(
        stage=stage, start=begin.seq, end=end.seq - 1, new_start=begin.seq, base=None, sums=end.sums, kept=end
    )


def _nothing_left(firing: Firing, head: Head) -> bool:
    """Whether all its new messages were retracted or erased."""
    return any(a <= firing.new_start and firing.end <= b for a, b in joined([*head.retracted, *head.erased]))


def _has_no_results(stage: Stage, begin: Cut, head: Head) -> bool:
    """Whether the stage redacts results and there are none, as far as is known without a probe."""
    only_results = isinstance(stage.action, Redact) and not stage.action.calls
    return only_results and begin.sums.results == head.sums.results


def _compaction(whole: Firing, head: Head, layout: Layout) -> Firing:
    """Opaque items stand for everything after a summary, dropped messages included; the next items build on them."""
    if layout.opaque is not None:
        return replace(whole, start=layout.opaque.start, new_start=layout.opaque.end + 1, base=layout.opaque.digest)
    start = head.view_start if layout.digest is None else layout.digest.end + 1
    return replace(whole, start=start, new_start=start)


def _summary(whole: Firing, head: Head) -> ProbeGenerator[Firing | None]:
    """A summary builds on the one before it, or on the chunks that were made under another policy."""
    start = head.view_start if head.digest is None else head.digest.start
    end, base = _newest(head)
    if isinstance(whole.stage.keep, Window):
        # What has left an earlier window does not come back with a larger one.
        start = max(start, (yield from window_start(whole.stage.keep.n, head)))
    new_start = max(end + 1, start)
    return None if new_start > whole.end else replace(whole, start=start, new_start=new_start, base=base)


def _redaction(whole: Firing, redact: Redact, begin: Cut) -> ProbeGenerator[Firing | None]:
    """A redaction fires only if it frees enough. Where results have too few tokens, the running sums tell it without a
    probe."""
    results = whole.sums.results - begin.sums.results
    if not redact.calls and (not results or results < redact.at_least):
        return None
    freed = yield ToolTokens(whole.start, whole.end, redact.calls, redact.never, redact.leaves)
    assert isinstance(freed, int), "the answer to ToolTokens"
    return replace(whole, freed=freed) if freed >= redact.at_least else None


def _first_dropped(policy: Policy, head: Head) -> int:
    """The first message that a drop's row covers: also of those that opaque items and chunks stand for, as they would
    be in view where the items cannot be sent and under a policy without chunks."""
    layout = layout_of(policy, head, opaque=False)
    if layout.dropped is not None:
        return layout.dropped.end + 1
    return head.view_start if layout.digest is None else layout.digest.end + 1


def _finish(begin: Cut, head: Head) -> ProbeGenerator[Cut]:
    """The end of what is to be digested, whatever the triggers say."""
    if head.finish_seq < head.next_seq:
        last = yield from mark_at(SeqAt(head.finish_seq - 1))
        following = None if last is None else (yield from mark_at(TurnAt(last.sums.turns + 1)))
        if following is None:
            return (yield from kept(Nothing(), head))
        return (yield from past_late_results(following, begin, head))
    if not head.awaited:
        return Cut(head.next_seq, head.sums)
    return (yield from whole_groups((yield from mark_at(TurnAt(max(head.sums.turns, 1)))), head))


def _chunk(stage: Stage, begin: Cut, keep: Cut, head: Head, finish: Cut | None) -> ProbeGenerator[Firing | None]:
    """The oldest messages, as many as a batch has, up to the end of a turn, whatever is kept of them in view; no
    further than `finish`, where fewer are left. Of a stage that acts within a turn, where there is no batch, those that
    `keep` leaves."""
    assert isinstance(stage.action, Chunk), "the caller looked"
    after = yield from mark_at(DialogueAt(begin.sums.dialogue + stage.action.batch + 1))
    if after is not None and not after.opens_turn:
        turn = after.sums.turns
        after = yield from mark_at(TurnAt(max(turn, 1)))
        if after is None or after.seq <= begin.seq:
            after = yield from mark_at(TurnAt(turn + 1))
    cut = None if after is None else (yield from past_late_results(after, begin, head))
    if stage.within_turn and (cut is None or cut.seq <= begin.seq):
        cut = keep
    if finish is not None and (cut is None or not begin.seq < cut.seq < finish.seq):
        cut = finish
    if cut is None or cut.seq <= begin.seq:
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
