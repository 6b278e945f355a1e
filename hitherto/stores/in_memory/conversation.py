"""One conversation in memory: its head, its log, its digests, and how a set of changes is applied to them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from hitherto.core.digests.digest import Digest, Status
from hitherto.core.log.append import marked
from hitherto.core.log.frontier import DigestAction, Frontier
from hitherto.core.log.head import Head, StandingSummary
from hitherto.core.log.message import Kind, Logged, Role, Sums
from hitherto.core.log.probe import AnyProbe, DialogueAt, Freeable, Mark, SeqAt, TokensAt, ToolTokens, TurnAt
from hitherto.core.log.ranges import Ranges, joined, ranges
from hitherto.core.scope import Scope
from hitherto.ports.digests import DigestWork
from hitherto.ports.log import Changes, MessageRange
from hitherto.stores.in_memory import digests as rows

MAX_AHEAD = timedelta(hours=2)
"""No due time, no end of a claim and no `resume_at` is set further ahead than this. One that lies beyond was set before
the clock was put back, and counts as reached."""

_TOOL_KINDS = (Kind.TOOL_CALL, Kind.TOOL_RESULT, Kind.REASONING)
_REACHING = (DigestAction.DROP, DigestAction.REDACT, DigestAction.CHUNK, DigestAction.COMPACT)


@dataclass
class StoredConversation:
    """One conversation: its head as last committed, its log and its digests. `live` are the seqs of the messages that
    were not retracted, ascending: over them the running sums ascend too."""

    head: Head
    updated_at: datetime
    log: list[Logged] = field(default_factory=list[Logged])
    live: list[int] = field(default_factory=list[int])
    digests: list[Digest] = field(default_factory=list[Digest])
    title: str = ""
    metadata: str = "{}"
    ttl: timedelta | None = None
    created_at: datetime = field(init=False)

    def __post_init__(self) -> None:
        self.created_at = self.updated_at

    def copy(self) -> StoredConversation:
        """The conversation as it is now: later changes to this one do not show in it."""
        copied = replace(self, log=list(self.log), live=list(self.live), digests=list(self.digests))
        copied.created_at = self.created_at
        return copied

    def head_now(self, clock: datetime) -> Head:
        """The newest head."""
        reached = {name: one for name, one in self.head.frontiers.items() if one.end >= self.head.view_start}
        running = tuple(rows.running(digest) for digest in self.digests if digest.status is Status.PROCESSING)
        now = max(clock, self.updated_at)
        resume_at = self.head.resume_at
        if resume_at is not None and resume_at > clock + MAX_AHEAD:
            resume_at = None
        return self._with_digest(
            replace(
                self.head,
                frontiers=reached,
                running=running,
                now=now,
                clock=clock,
                resume_at=resume_at,
                ttl=self.ttl,
            )
        )

    def head_at(self, at: int, clock: datetime) -> Head | None:
        """The head as it was at revision `at`, rebuilt from rows that carry their revisions; None if there is no such
        revision."""
        if not 0 <= at <= self.head.rev:
            return None
        log = [logged for logged in self.log if logged.rev <= at]
        live = [logged for logged in log if logged.live(at)]
        last = live[-1] if live else None
        cleared = [d.end + 1 for d in self.digests if d.action is DigestAction.CLEAR and d.visible(at)]
        view_start = max(cleared, default=0)
        past = replace(
            self.head,
            rev=at,
            next_seq=len(log),
            sums=Sums() if last is None else last.sums,
            view_start=view_start,
            view_sums=self._sums(view_start - 1, at),
            closed=last is not None and last.message.role is Role.ASSISTANT and last.message.kind is Kind.TEXT,
            frontiers=self._frontiers(view_start, at),
            open_calls={},
            late=(),
            failures=0,
            resume_at=None,
            ttl=self.ttl,
            running=(),
            finish_seq=0,
            erased=tuple((first, min(end, len(log) - 1)) for first, end in self.head.erased if first < len(log)),
            retracted=ranges(logged.seq for logged in log if not logged.live(at)),
            now=max(clock, self.updated_at),
            clock=clock,
        )
        return self._with_digest(past)

    def probe(self, probe: AnyProbe) -> Mark | Freeable | None:
        match probe:
            case DialogueAt(n):
                at = bisect_left(self.live, n, key=lambda seq: self.log[seq].sums.dialogue)
            case TurnAt(n):
                at = bisect_left(self.live, n, key=lambda seq: self.log[seq].sums.turns)
            case TokensAt(n):
                at = bisect_left(self.live, n, key=lambda seq: self.log[seq].sums.tokens)
            case SeqAt(n):
                at = bisect_left(self.live, n + 1) - 1
            case ToolTokens():
                return self._freeable(probe)
        return marked(self.log[self.live[at]]) if 0 <= at < len(self.live) else None

    def tail(self, n: int) -> list[Logged]:
        shown = self.live[bisect_left(self.live, self.head.view_start) :]
        return [self.log[seq] for seq in shown[max(len(shown) - max(n, 0), 0) :]]

    def read(self, reading: MessageRange) -> list[Logged]:
        live = self.live if reading.live_at is None else self._live(reading.live_at)
        shown: Sequence[int] = range(len(self.log)) if reading.live_at is None else live
        stop = max(reading.stop, 0)
        first = 0
        if reading.tokens > 0:
            reached = bisect_left(live, reading.tokens, key=lambda seq: self.log[seq].sums.tokens)
            first = live[reached] if reached < len(live) else stop
        first = max(reading.start, first)
        found = shown[bisect_left(shown, first) : bisect_left(shown, stop)]
        if reading.tools_from is not None:
            before = shown[bisect_left(shown, reading.tools_from) : bisect_left(shown, min(first, stop))]
            found = [*(seq for seq in before if self.log[seq].message.kind in _TOOL_KINDS), *found]
        wanted = found if reading.limit is None else found[: max(reading.limit, 0)]
        return [self.log[seq] for seq in wanted]

    def replaced(self, row: Digest) -> None:
        """Replace the digest that has the id of `row`."""
        self.digests = [row if one.id == row.id else one for one in self.digests]

    def behind(self, row: Digest) -> int:
        """How many messages the log has from the first one that is new to the digest of `row`: the one after its base's
        end, or its start if that is later."""
        base = next((made.end for made in self.digests if made.id == row.base), -1)
        return self.head.next_seq - max(row.start, base + 1)

    def work(self, scope: Scope, conversation: str, row: Digest, now: datetime) -> DigestWork:
        """What is needed to make the digest of `row`."""
        by_id = {made.id: made for made in self.digests}
        base = None if row.base is None else by_id.get(row.base)
        bases = [] if base is None else [base]
        while (
            row.action is DigestAction.SUMMARIZE
            and bases
            and bases[0].action is DigestAction.CHUNK
            and bases[0].base in by_id
        ):
            bases.insert(0, by_id[bases[0].base])
        return DigestWork(
            scope=scope,
            conversation=conversation,
            digest=row,
            base=tuple(item for one in bases for item in one.items),
            opaque=None if base is None else base.opaque,
            messages=tuple(
                logged
                for logged in self.log[row.start if base is None else max(row.start, base.end + 1) : row.end + 1]
                if not logged.erased and logged.retracted_rev is None
            ),
            expiring=self.expiring(now),
        )

    def expiring(self, now: datetime) -> bool:
        """Whether it has expired messages that are not erased yet."""
        return self.head.next_expiry is not None and self.head.next_expiry <= now

    def expired(self, now: datetime) -> tuple[Ranges, datetime | None]:
        """As `Unit.expired`."""
        times = [(one.seq, one.message.expires_at) for one in self.log if not one.erased]
        due = ranges(seq for seq, at in times if at is not None and at <= now)
        return due, min((at for _, at in times if at is not None and at > now), default=None)

    def apply(self, changes: Changes, fired: Sequence[int], now: datetime, *, due_at: datetime) -> None:
        """Write all of `changes` but the receipt, at the time `now`. New digests get the ids `fired` and are due at
        `due_at`, the clock's time: `now` never goes back, so it would make them wait after the clock was put back.

        Raises Conflict, before anything is written, for a second digest of a stage in progress, and for a second
        completed one of a stage and range.
        """
        self.digests = rows.changed(self.digests, changes, fired, now, due_at)
        retracted = joined([*self.head.retracted, *((seq, seq) for seq in changes.retract)])
        self.head = replace(changes.head, ref=self.head.ref, retracted=retracted)
        if not changes.background:
            self.updated_at = max((now, *(logged.created_at for logged in changes.messages)))
        self.title = self.title if changes.title is None else changes.title
        self.metadata = self.metadata if changes.metadata is None else changes.metadata
        self.ttl = self.ttl if changes.ttl is None else changes.ttl
        self.log += changes.messages
        self.live += [logged.seq for logged in changes.messages]
        if changes.retract:
            self._retract(changes.retract, changes.head.rev)
        for first, last in changes.erase:
            self.log[first : last + 1] = [_erased(logged) for logged in self.log[first : last + 1]]

    def standing(self) -> Digest | None:
        """The standing summary: of those that views use now, the one that reaches furthest."""
        return rows.standing(self.digests, self.head.view_start, self.head.rev)

    def summary(self, now: datetime) -> tuple[str, int]:
        """The text of the standing summary, if it may be shown, and how many user and final assistant messages it
        covers."""
        found = None if self.expiring(now) else self.standing()
        if found is None:
            return "", 0
        before = self._sums(found.start - 1, self.head.rev)
        return found.text, self._sums(found.end, self.head.rev).dialogue - before.dialogue

    def _retract(self, seqs: Sequence[int], rev: int) -> None:
        for seq in set(seqs).intersection(self.live):
            self.log[seq] = replace(self.log[seq], retracted_rev=rev)
        self.live = [seq for seq in self.live if self.log[seq].retracted_rev is None]

    def _live(self, at: int) -> list[int]:
        return self.live if at >= self.head.rev else [logged.seq for logged in self.log if logged.live(at)]

    def _sums(self, seq: int, at: int) -> Sums:
        """The running sums through message `seq`: those of the last message up to it that is live at revision `at`."""
        live = self._live(at)
        found = bisect_left(live, seq + 1)
        return self.log[live[found - 1]].sums if found else Sums()

    def _freeable(self, probe: ToolTokens) -> Freeable:
        kinds = (Kind.TOOL_RESULT, Kind.TOOL_CALL) if probe.calls else (Kind.TOOL_RESULT,)
        found = [
            logged.tokens
            for logged in self.log[max(probe.start, 0) : max(probe.end + 1, 0)]
            if logged.message.kind in kinds
            and logged.retracted_rev is None
            and not logged.erased
            and not set(logged.message.tools) & set(probe.never)
        ]
        return Freeable(tokens=sum(found), messages=len(found))

    def _with_digest(self, head: Head) -> Head:
        """`head` with the standing summary at its revision."""
        found = rows.standing(self.digests, head.view_start, head.rev)
        if found is None:
            return replace(head, digest=None, digest_sums=Sums())
        digest = StandingSummary(
            id=found.id, start=found.start, end=found.end, text=found.text, spec=found.spec, tokens=found.tokens
        )
        return replace(head, digest=digest, digest_sums=self._sums(found.end, head.rev))

    def _frontiers(self, view_start: int, at: int) -> dict[str, Frontier]:
        found: dict[str, Frontier] = {}
        for stage in {digest.stage for digest in self.digests}:
            row = rows.furthest(
                d
                for d in self.digests
                if d.stage == stage and d.action in _REACHING and d.end >= view_start and d.visible(at)
            )
            if row is None:
                continue
            kept_from = row.end + 1 if row.kept_from is None else row.kept_from
            found[stage] = Frontier(
                action=row.action,
                start=row.start,
                end=row.end,
                sums=self._sums(row.end, at),
                kept_from=kept_from,
                kept_sums=self._sums(kept_from - 1, at),
                digest=row.id if row.action in (DigestAction.CHUNK, DigestAction.COMPACT) else None,
                family=row.family,
                tokens=row.tokens if row.action is DigestAction.COMPACT else 0,
                freed=row.freed,
                since=row.since,
            )
        return found


def _erased(logged: Logged) -> Logged:
    message = replace(logged.message, raw="{}", text="", calls=(), answers=(), tools=(), metadata="{}")
    return replace(logged, message=message, erased=True)
