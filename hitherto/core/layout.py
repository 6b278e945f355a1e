"""Where the parts of a conversation lie under a policy: what stands for its older part, and where verbatim begins.

Plans and views start from the same layout, so that a stage counts what a context shows.
"""

from __future__ import annotations

from dataclasses import dataclass

from hitherto.core.action import Redact
from hitherto.core.digest import Done
from hitherto.core.head import REPLACED, Frontier, Head, Standing
from hitherto.core.message import Sums
from hitherto.core.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """Messages `start` to `end` (inclusive) are shown as `action` says."""

    action: Redact
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A conversation from its front: what was cleared, then the range of `digest`, of `opaque`, of what was dropped and
    of what is in chunks only, and from `start` on the verbatim messages, some of them redacted.

    Each of the first is None or absent where it has no place. `start_sums` run up to the message before `start`;
    `results` is the running sum of tool results' tokens through the last redacted message: as many of the tokens up
    to there are not shown.
    """

    digest: Standing | None
    opaque: Frontier | None
    dropped: Frontier | None
    chunked: Frontier | None
    redactions: tuple[Redaction, ...]
    start: int
    start_sums: Sums
    results: int

    def place(self, sums: Sums) -> int:
        """Running sums as the tokens shown, counted from the log's beginning; tool results that are redacted count
        nothing. Ascends as the sums do."""
        return sums.tokens - min(sums.results, self.results)


def layout(policy: Policy, head: Head, *, opaque: bool = True, family: str | None = None) -> Layout:
    """The layout of `head` under `policy`.

    A summary counts while the policy has a stage, whichever stage made it; drops, redactions and chunks count while
    the policy has a stage that does the like. An opaque item counts only where `opaque` says that it can be sent, and
    if it is of the model's `family` (or of none); else the messages it stands for are there themselves.
    """
    digest = head.digest if policy.stages else None
    start, sums = (head.view_start, head.view_sums) if digest is None else (digest.end + 1, head.digest_sums)
    item = _opaque(policy, head, family) if opaque else None
    if item is not None and item.end < start:
        item = None
    if item is not None and digest is not None:
        if item.start <= digest.start:
            digest = None
        elif item.start <= digest.end:
            item = None
    if item is not None:
        start, sums = item.end + 1, item.sums
    dropped = head.reaches(Done.DROP) if policy.doing(Done.DROP) else None
    if dropped is not None and dropped.end >= start:
        start, sums = dropped.end + 1, dropped.sums
    else:
        dropped = None
    chunked = head.reaches(Done.CHUNK) if policy.doing(Done.CHUNK) else None
    if chunked is not None and chunked.kept_from > start:
        start, sums = chunked.kept_from, chunked.kept_sums
    else:
        chunked = None
    redactions = tuple(_redactions(policy, head, start))
    reach = max((one.end for one in redactions), default=-1)
    results = max(
        (f.sums.results for f in head.frontiers.values() if f.done is Done.REDACT and f.end <= reach), default=0
    )
    return Layout(
        digest=digest,
        opaque=item,
        dropped=dropped,
        chunked=chunked,
        redactions=redactions,
        start=start,
        start_sums=sums,
        results=results,
    )


def redacted_up_to(policy: Policy, head: Head, fingerprint: str) -> Frontier | None:
    """How far the redacting stage has come: by its own rows, or where it has none by those of stages that the policy
    has no more."""
    own = head.frontiers.get(fingerprint)
    if own is not None:
        return own
    now = {stage.fingerprint for stage in policy.stages}
    former = [f for name, f in head.frontiers.items() if f.done is Done.REDACT and name not in now]
    return max(former, key=lambda one: one.end, default=None)


def _opaque(policy: Policy, head: Head, family: str | None) -> Frontier | None:
    usable = [head.frontiers.get(REPLACED), head.reaches(Done.COMPACT) if policy.doing(Done.COMPACT) else None]
    found = [one for one in usable if one is not None and one.family in (None, family)]
    return max(found, key=lambda one: one.end, default=None)


def _redactions(policy: Policy, head: Head, start: int) -> list[Redaction]:
    found: list[Redaction] = []
    for stage in policy.doing(Done.REDACT):
        frontier = redacted_up_to(policy, head, stage.fingerprint)
        if frontier is not None and frontier.end >= start:
            assert isinstance(stage.action, Redact), "a stage that redacts has an action that is a Redact"
            found.append(Redaction(action=stage.action, start=start, end=frontier.end))
    return found
