"""The log as a policy leaves it at a revision: a pure function of the head, before any budget."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hitherto.core.digest import Done
from hitherto.core.head import Head, Standing
from hitherto.core.layout import Layout, layout
from hitherto.core.manifest import Fate, Reason, Span
from hitherto.core.message import Logged
from hitherto.core.policy import Policy, Stage
from hitherto.core.render import Render, SystemMessage
from hitherto.errors import InvalidPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What the model could see with an endless budget.

    `before` are the spans of everything ahead of the verbatim part. Of these, `digest` (shown as `render` says)
    and the opaque item with the row id `opaque` stand for those that are digested. Messages `start` to `stop`
    (exclusive) are verbatim, but for the redacted ones of `lies`, which has the running sums too. `gone` are those
    that were erased or taken back.
    """

    before: tuple[Span, ...]
    digest: Standing | None
    render: Render | None
    opaque: int | None
    start: int
    stop: int
    lies: Layout
    gone: tuple[Span, ...]


def view(policy: Policy, head: Head, *, opaque: bool = True, family: str | None = None) -> View:
    """The view of `head` under `policy`, for a model of `family` that can be sent opaque items or not; see
    `layout`. Its size and cost do not depend on the length of the log."""
    lies = layout(policy, head, opaque=opaque, family=family)
    gone = _gone(head)
    return View(
        before=tuple(piece for span in _spans(head, lies) if span.start <= span.end for piece in overlaid(span, gone)),
        digest=lies.digest,
        render=None if lies.digest is None else _render(policy, lies.digest),
        opaque=None if lies.opaque is None else lies.opaque.digest,
        start=lies.start,
        stop=head.next_seq,
        lies=lies,
        gone=gone,
    )


def _spans(head: Head, lies: Layout) -> Iterator[Span]:
    at = head.view_start
    yield Span(start=0, end=at - 1, fate=Fate.DROPPED, reason=Reason.CLEARED)
    if lies.digest is not None:
        first = max(lies.digest.start, at)
        yield Span(start=at, end=first - 1, fate=Fate.DROPPED, reason=Reason.WINDOW)
        made = lies.digest
        yield Span(start=first, end=made.end, fate=Fate.DIGESTED, reason=Reason.SUMMARISED, digest=made.id)
        at = made.end + 1
    if lies.opaque is not None:
        item = lies.opaque
        yield Span(start=at, end=item.end, fate=Fate.DIGESTED, reason=Reason.COMPACTED, digest=item.digest)
        at = item.end + 1
    if lies.dropped is not None:
        yield Span(start=at, end=lies.dropped.end, fate=Fate.DROPPED, reason=Reason.TRIMMED)
        at = lies.dropped.end + 1
    if lies.chunked is not None:
        yield Span(start=at, end=lies.start - 1, fate=Fate.DIGESTED, reason=Reason.CHUNKED)


def _render(policy: Policy, digest: Standing) -> Render:
    """As the policy's first stage that summarises says; where it has none, as the stage did that made the digest."""
    for stage in policy.doing(Done.SUMMARISE):
        if stage.render is not None:
            return stage.render
    try:
        made_by = Stage.from_json(json.loads(digest.spec))
    except InvalidPolicy:  # a stage with parts that this process does not know
        return SystemMessage()
    return made_by.render or SystemMessage()


def _gone(head: Head) -> tuple[Span, ...]:
    """The erased ranges and those taken back, ascending and disjoint; what is both counts as erased."""
    erased = [Span(start=a, end=b, fate=Fate.DROPPED, reason=Reason.EXPIRED) for a, b in head.erased]
    if not head.retracted:
        return tuple(erased)
    retracted = [Span(start=a, end=b, fate=Fate.DROPPED, reason=Reason.RETRACTED) for a, b in head.retracted]
    both = [piece for span in retracted for piece in overlaid(span, erased) if piece.reason is Reason.RETRACTED]
    return tuple(sorted([*erased, *both], key=lambda span: span.start))


def redacted(seq: int, lies: Layout) -> bool:
    """Whether the message is in a range that is redacted."""
    return any(one.start <= seq <= one.end for one in lies.redactions)


def live(messages: Iterable[Logged], head: Head) -> list[Logged]:
    """Those of `messages` that a view of `head` can show."""
    return [logged for logged in messages if logged.live(head.rev)]


def overlaid(under: Span, over: Iterable[Span]) -> Iterator[Span]:
    """`under` in pieces, in order, with the spans of `over` (ascending, disjoint) in their places."""
    at = under.start
    for span in over:
        first, last = max(span.start, under.start), min(span.end, under.end)
        if first > last:
            continue
        if at < first:
            yield under.model_copy(update={"start": at, "end": first - 1})
        yield span.model_copy(update={"start": first, "end": last})
        at = last + 1
    if at <= under.end:
        yield under.model_copy(update={"start": at})


def merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Ascending spans with neighbours of the same fate joined, their tokens added up."""
    found: list[Span] = []
    run: list[Span] = []
    for span in spans:
        if run and not _joins(run[-1], span):
            found.append(_one(run))
            run = []
        run.append(span)
    return (*found, _one(run)) if run else ()


def _joins(last: Span, span: Span) -> bool:
    same = (last.fate, last.reason, last.digest) == (span.fate, span.reason, span.digest)
    return same and last.end + 1 == span.start


def _one(run: Sequence[Span]) -> Span:
    if len(run) == 1:
        return run[0]
    return run[0].model_copy(update={"end": run[-1].end, "tokens": sum(span.tokens for span in run)})
