"""The log as a policy leaves it at a revision: a pure function of the head, before any budget."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hitherto.core.head import Head, Standing
from hitherto.core.manifest import Fate, Reason, Span
from hitherto.core.message import Sums
from hitherto.core.policy import Policy, Render


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What the model could see with an endless budget.

    `before` are the spans of everything ahead of the verbatim part, `digest` (shown as `render` says) stands for
    those that are digested; messages `start` to `stop` (exclusive) are verbatim, `start_sums` runs up to `start`.
    """

    before: tuple[Span, ...]
    digest: Standing | None
    render: Render | None
    start: int
    stop: int
    start_sums: Sums


def view(policy: Policy, head: Head) -> View:
    """The view of `head` under `policy`. A digest is shown while the policy has a stage, whichever stage made it;
    under a policy without one, everything that is not cleared is verbatim."""
    shown = next((stage.render for stage in policy.stages), None)
    digest = head.digest if shown is not None else None
    spans = [Span(start=0, end=head.view_start - 1, fate=Fate.DROPPED, reason=Reason.CLEARED)]
    if digest is None:
        start, sums = head.view_start, head.view_sums
    else:
        first = max(digest.start, head.view_start)
        spans.append(Span(start=head.view_start, end=first - 1, fate=Fate.DROPPED, reason=Reason.WINDOW))
        summarised = Span(start=first, end=digest.end, fate=Fate.DIGESTED, reason=Reason.SUMMARISED, digest=digest.id)
        spans += overlaid(summarised, expired(head.erased))
        start, sums = digest.end + 1, head.digest_sums
    return View(
        before=tuple(span for span in spans if span.start <= span.end),
        digest=digest,
        render=None if digest is None else shown,
        start=start,
        stop=head.next_seq,
        start_sums=sums,
    )


def expired(ranges: Iterable[tuple[int, int]]) -> tuple[Span, ...]:
    """The erased ranges as spans."""
    return tuple(Span(start=a, end=b, fate=Fate.DROPPED, reason=Reason.EXPIRED) for a, b in ranges)


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
