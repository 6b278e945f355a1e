"""Views: the log as a policy shows it at a revision. A pure function of the head, before any budget."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hitherto.core.log.frontier import DigestAction, Frontier
from hitherto.core.log.head import REPLACED, Head, StandingSummary
from hitherto.core.log.message import Logged, Sums
from hitherto.core.policy.parts import Redact, Render, SystemMessage
from hitherto.core.policy.policy import Policy, Stage
from hitherto.core.policy.span import Fate, Reason, Span, overlaid
from hitherto.errors import InvalidPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """Messages `start` to `end` (inclusive) are shown as `action` says. That freed `freed` tokens between the running
    sums `since` and `until`. Which messages they were in is not known, so they count as spread evenly."""

    action: Redact
    start: int
    end: int
    freed: int
    since: int
    until: int

    def freed_at(self, tokens: int) -> int:
        """The tokens that it freed up to the running sum `tokens`."""
        whole = self.until - self.since
        part = min(max(tokens - self.since, 0), whole)
        return 0 if whole <= 0 else min(self.freed, whole) * part // whole

    def tokens_at(self, place: int) -> int:
        """The running sum of tokens that is `place` once the freed tokens are taken off."""
        whole = self.until - self.since
        freed = min(self.freed, whole)
        if whole <= 0 or place <= self.since:
            return place
        if place > self.until - freed:
            return place + freed
        return self.since + -(-(place - self.since) * whole // max(whole - freed, 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The parts of a conversation, from its beginning: what was cleared, the ranges of `digest` and `opaque`, what is
    in chunks (`chunked`), what was `dropped`, and from `start` on the verbatim messages, some of them redacted. What is
    in chunks may be dropped too, and the newest of it may be verbatim.

    Each of the four is None if the conversation has no such part. `start_sums` run up to the message before `start`.
    """

    digest: StandingSummary | None
    opaque: Frontier | None
    dropped: Frontier | None
    chunked: Frontier | None
    redactions: tuple[Redaction, ...]
    start: int
    start_sums: Sums

    def place(self, tokens: int) -> int:
        """The running sum of tokens as shown: `tokens` less what redactions freed up to there. It never decreases as
        `tokens` grows. Within a redaction it is an estimate; over a whole one it is as exact as `freed`."""
        if not self.redactions:
            return tokens
        return tokens - max(one.freed_at(tokens) for one in self.redactions)

    def tokens_at(self, place: int) -> int:
        """The least running sum of tokens at which `Layout.place` reaches `place`."""
        return max((one.tokens_at(place) for one in self.redactions), default=place)


def layout_of(policy: Policy, head: Head, *, opaque: bool = True, family: str | None = None) -> Layout:
    """The layout of `head` under `policy`.

    A summary counts while the policy has a stage, whichever stage made it. Drops, redactions, chunks and opaque items
    count while the policy has a stage with that action. An opaque item also has to be sendable (`opaque`) and of the
    model's `family`, or of none; otherwise the messages it stands for are shown themselves. One that a caller put in
    the place of messages needs no stage.
    """
    if head.digest is None and not head.frontiers:
        return _whole(head)
    digest = head.digest if policy.stages else None
    start, sums = (head.view_start, head.view_sums) if digest is None else (digest.end + 1, head.digest_sums)
    item = _opaque(policy, head, family) if opaque else None
    if item is not None and _covers(item, digest, head):
        digest, start, sums = None, item.end + 1, item.sums
    elif item is not None and item.start == start and item.end >= start:
        start, sums = item.end + 1, item.sums
    else:
        item = None
    chunked = _reached(policy, head, DigestAction.CHUNK)
    if chunked is not None and chunked.end < start:
        chunked = None
    dropped = _reached(policy, head, DigestAction.DROP)
    if dropped is not None and dropped.end >= start:
        start, sums = dropped.end + 1, dropped.sums
    else:
        dropped = None
    if chunked is not None and chunked.kept_from > start:
        start, sums = chunked.kept_from, chunked.kept_sums
    return Layout(
        digest=digest,
        opaque=item,
        dropped=dropped,
        chunked=chunked,
        redactions=tuple(_redactions(policy, head, start)),
        start=start,
        start_sums=sums,
    )


def _whole(head: Head) -> Layout:
    """The layout where nothing stands for anything."""
    return Layout(
        digest=None,
        opaque=None,
        dropped=None,
        chunked=None,
        redactions=(),
        start=head.view_start,
        start_sums=head.view_sums,
    )


def redacted_up_to(policy: Policy, head: Head, fingerprint: str) -> Frontier | None:
    """How far redaction has come for this stage: by its own rows, or by those of stages that the policy does not have,
    whichever reach further."""
    others = {stage.fingerprint for stage in policy.stages} - {fingerprint}
    found = [f for name, f in head.frontiers.items() if f.action is DigestAction.REDACT and name not in others]
    return max(found, key=lambda one: one.end, default=None)


def _covers(item: Frontier, digest: StandingSummary | None, head: Head) -> bool:
    """Whether the opaque item stands for everything from the view's start on, the digest's range included. It does
    unless the digest reaches further, or reaches as far and was made later."""
    if digest is None:
        return item.start <= head.view_start
    newer = item.digest is not None and item.digest > digest.id
    return item.start <= digest.start and (item.end > digest.end or (item.end == digest.end and newer))


def _reached(policy: Policy, head: Head, action: DigestAction) -> Frontier | None:
    """The frontier that reaches furthest, if the policy has a stage with this action."""
    found = head.reaches(action)
    return found if found is not None and policy.doing(action) else None


def _opaque(policy: Policy, head: Head, family: str | None) -> Frontier | None:
    usable = [head.frontiers.get(REPLACED), _reached(policy, head, DigestAction.COMPACT)]
    found = [one for one in usable if one is not None and one.family in (None, family)]
    return max(found, key=lambda one: one.end, default=None)


def _redactions(policy: Policy, head: Head, start: int) -> list[Redaction]:
    found: list[Redaction] = []
    for stage in policy.doing(DigestAction.REDACT):
        frontier = redacted_up_to(policy, head, stage.fingerprint)
        if frontier is not None and frontier.end >= start:
            assert isinstance(stage.action, Redact), "a stage that redacts has an action that is a Redact"
            found.append(
                Redaction(
                    action=stage.action,
                    start=start,
                    end=frontier.end,
                    freed=frontier.freed,
                    since=frontier.since,
                    until=frontier.sums.tokens,
                )
            )
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What the model would see with an unlimited budget.

    `before` are the spans of everything ahead of the verbatim part. Of these, `digest` (shown as `render` says) and the
    opaque item with the row id `opaque` stand for those that are digested. Messages `start` to `stop` (exclusive) are
    verbatim, but for the redacted ones of `layout`, which has the running sums too. `gone` are the spans of erased and
    retracted messages.
    """

    before: tuple[Span, ...]
    digest: StandingSummary | None
    render: Render | None
    opaque: int | None
    start: int
    stop: int
    layout: Layout
    gone: tuple[Span, ...]


def view(policy: Policy, head: Head, *, opaque: bool = True, family: str | None = None) -> View:
    """The view of `head` under `policy`; `opaque` and `family` as in `layout_of`. Its size and cost do not depend on
    the length of the log."""
    layout = layout_of(policy, head, opaque=opaque, family=family)
    gone = _gone(head)
    return View(
        before=tuple(overlaid((span for span in _spans(head, layout) if span.start <= span.end), gone)),
        digest=layout.digest,
        render=None if layout.digest is None else _render(policy, layout.digest),
        opaque=None if layout.opaque is None else layout.opaque.digest,
        start=layout.start,
        stop=head.next_seq,
        layout=layout,
        gone=gone,
    )


def _spans(head: Head, layout: Layout) -> Iterator[Span]:
    at = head.view_start
    yield Span(start=0, end=at - 1, fate=Fate.DROPPED, reason=Reason.CLEARED)
    if layout.digest is not None:
        first = max(layout.digest.start, at)
        yield Span(start=at, end=first - 1, fate=Fate.DROPPED, reason=Reason.WINDOW)
        made = layout.digest
        yield Span(start=first, end=made.end, fate=Fate.DIGESTED, reason=Reason.SUMMARIZED, digest=made.id)
        at = made.end + 1
    if layout.opaque is not None:
        item = layout.opaque
        yield Span(start=at, end=item.end, fate=Fate.DIGESTED, reason=Reason.COMPACTED, digest=item.digest)
        at = item.end + 1
    if layout.chunked is not None:
        # The chunks follow each other from the digest on, so one of them has each of these, dropped or not.
        end = min(layout.chunked.end, layout.start - 1)
        yield Span(start=at, end=end, fate=Fate.DIGESTED, reason=Reason.CHUNKED)
        at = max(at, end + 1)
    yield Span(start=at, end=layout.start - 1, fate=Fate.DROPPED, reason=Reason.TRIMMED)


def _render(policy: Policy, digest: StandingSummary) -> Render:
    """The render of the first stage that summarizes; without one, that of the stage that made the digest."""
    for stage in policy.doing(DigestAction.SUMMARIZE):
        if stage.render is not None:
            return stage.render
    try:
        made_by = Stage.from_json(json.loads(digest.spec))
    except InvalidPolicy:  # a stage with parts that this process does not know
        return SystemMessage()
    return made_by.render or SystemMessage()


def _gone(head: Head) -> tuple[Span, ...]:
    """The erased and the retracted ranges, ascending and disjoint; a message that is both counts as erased."""
    erased = [Span(start=a, end=b, fate=Fate.DROPPED, reason=Reason.ERASED) for a, b in head.erased]
    if not head.retracted:
        return tuple(erased)
    retracted = [Span(start=a, end=b, fate=Fate.DROPPED, reason=Reason.RETRACTED) for a, b in head.retracted]
    both = [piece for piece in overlaid(retracted, erased) if piece.reason is Reason.RETRACTED]
    return tuple(sorted([*erased, *both], key=lambda span: span.start))


def redacted(seq: int, layout: Layout) -> bool:
    """Whether the message is in a range that is redacted."""
    return any(one.start <= seq <= one.end for one in layout.redactions)


def live(messages: Iterable[Logged], head: Head) -> list[Logged]:
    """Those of `messages` that a view of `head` can show."""
    return [logged for logged in messages if logged.live(head.rev)]
