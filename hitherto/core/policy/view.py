"""Views: the log as a policy shows it at a revision. A pure function of the head, before any budget."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hitherto.core.log.frontier import DigestAction
from hitherto.core.log.head import Head, StandingSummary
from hitherto.core.log.message import Logged
from hitherto.core.policy.layout import Layout, layout_of
from hitherto.core.policy.policy import Policy, Stage
from hitherto.core.policy.render import Render, SystemMessage
from hitherto.core.policy.span import Fate, Reason, Span, overlaid
from hitherto.errors import InvalidPolicy


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
    if layout.dropped is not None:
        yield Span(start=at, end=layout.dropped.end, fate=Fate.DROPPED, reason=Reason.TRIMMED)
        at = layout.dropped.end + 1
    if layout.chunked is not None:
        yield Span(start=at, end=layout.start - 1, fate=Fate.DIGESTED, reason=Reason.CHUNKED)


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
