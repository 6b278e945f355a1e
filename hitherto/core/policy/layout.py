"""Layouts: what stands for the older part of a conversation under a policy, and where verbatim begins.

Plans and views start from the same layout, so that a stage counts what a context shows.
"""

from __future__ import annotations

from dataclasses import dataclass

from hitherto.core.log.frontier import DigestAction, Frontier
from hitherto.core.log.head import REPLACED, Head, StandingSummary
from hitherto.core.log.message import Sums
from hitherto.core.policy.action import Redact
from hitherto.core.policy.policy import Policy


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
    """The parts of a conversation, from its beginning: what was cleared, the ranges of `digest` and `opaque`, what was
    `dropped`, what is only shown as chunks (`chunked`), and from `start` on the verbatim messages, some of them
    redacted.

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
    dropped = _reached(policy, head, DigestAction.DROP)
    if dropped is not None and dropped.end >= start:
        start, sums = dropped.end + 1, dropped.sums
    else:
        dropped = None
    chunked = _reached(policy, head, DigestAction.CHUNK)
    if chunked is not None and chunked.kept_from > start:
        start, sums = chunked.kept_from, chunked.kept_sums
    else:
        chunked = None
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
