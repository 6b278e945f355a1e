"""Digests: the record of one firing of a stage over a range of messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from hitherto.core.log.frontier import DigestAction
from hitherto.core.log.ranges import Ranges, any_in, joined


class Status(StrEnum):
    """The state of a digest. `superseded`: what it rests on was hidden, retracted or erased."""

    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"
    SUPERSEDED = "superseded"


class Needs(StrEnum):
    """What a process must have to make a digest: a language model, or an endpoint that compacts."""

    MODEL = "model"
    COMPACTOR = "compactor"


@dataclass(frozen=True, slots=True)
class Item:
    """One statement of a digest and the messages it rests on: its `sources` (at least one), and `earlier` ones that
    have left the digest's window but whose content it may still carry. `earlier` counts for erasure alone."""

    text: str
    sources: Ranges
    earlier: Ranges = ()

    @property
    def first(self) -> int:
        return self.sources[0][0]

    @property
    def rests(self) -> Ranges:
        """Every message that its text may come from."""
        return joined((*self.sources, *self.earlier)) if self.earlier else self.sources

    def rests_on(self, ranges: Ranges) -> bool:
        """Whether its text may come from any message in `ranges`."""
        return any(any_in(ranges, first, last) for first, last in self.rests)


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """One digest row. `start` and `end` are seqs, both inclusive.

    `base` is the digest it was built on. `stage` is the fingerprint of the stage that fired, `spec` its JSON; `policy`
    is the JSON of the policy it fired under (None where nothing is made in the background). Only a process that has
    what it `needs` makes it; None: any can. `fired_rev` is the conversation's revision at which it began. Views use it
    from revision `visible_rev` on, and no more from `hidden_rev` on; a `hidden_rev` of 0 means that what it rested on
    was erased, so that no past view uses it either.

    `attempt` fences its writer: a result is taken only from the attempt that the row names; 0 before the first. `tries`
    counts the failed attempts and the present one. A digest in progress can be claimed from `due_at` on, which is the
    end of the present claim if it is `claimed`; `error` says why it was postponed, if it was.

    `tokens` are those of its text; of a drop or a redaction, those that it took out of the view. `freed` are those that
    were taken out in the same way so far, by this row included; `since` is the running sum of tokens where that began.
    `kept_from` is the first message that the row covers but that stayed verbatim, if any. `opaque` is the JSON text of
    the list of items that a model's endpoint made, `family` names the models that understand them; None: all.
    """

    id: int
    stage: str
    spec: str
    action: DigestAction
    start: int
    end: int
    base: int | None
    status: Status
    attempt: int
    items: tuple[Item, ...]
    text: str
    tokens: int
    model: str | None
    prompt_version: int | None
    generation_time_ms: int | None
    error: str | None
    fired_rev: int
    visible_rev: int | None
    created_at: datetime
    completed_at: datetime | None
    hidden_rev: int | None = None
    freed: int = 0
    since: int = 0
    kept_from: int | None = None
    opaque: str | None = None
    family: str | None = None
    tries: int = 0
    due_at: datetime | None = None
    claimed: bool = False
    policy: str | None = None
    needs: Needs | None = None

    def visible(self, at: int) -> bool:
        """Whether views at revision `at` use it."""
        return (
            self.visible_rev is not None
            and self.visible_rev <= at
            and (self.hidden_rev is None or self.hidden_rev > at)
        )


def render_items(items: Sequence[Item]) -> str:
    """The text of a digest: its statements in order, one a line. Deterministic, so that caches keep hitting."""
    return "\n".join(item.text for item in items)
