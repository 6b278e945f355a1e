"""One conversation that a test takes through anything, and what must hold after every step of it."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from io import BytesIO
from itertools import count, islice, pairwise
from typing import Any

from hitherto import Context, Conversation, Memory, Policy, none, tokens, user, wire
from hitherto.core.context.manifest import Manifest
from hitherto.core.digests.digest import Digest, DigestJob, Status
from hitherto.core.log.frontier import DigestAction
from hitherto.core.log.group import groups
from hitherto.core.log.head import PATIENCE, REPLACED, Head, OpenCall
from hitherto.core.log.message import RESPONSES, Kind, Logged, Payload
from hitherto.core.log.ranges import ranges
from hitherto.core.policy.span import Fate, Reason
from hitherto.core.policy.view import view
from hitherto.core.scope import Scope
from hitherto.engine.services import Services
from hitherto.errors import BudgetExceeded
from hitherto.ports.models import family_of
from hitherto.settings import Settings
from hitherto.store.store import Store
from hitherto.tokens import CANONICAL
from tests.acceptance.dialogue import ONE_TRY
from tests.conftest import SCOPE
from tests.engine.held import HeldCompactor, HeldModel, HeldQueue
from tests.engine.validity import assert_whole
from tests.store.samples import open_calls
from tests.times import DAY, Time

ENDLESS = 10_000_000
MODEL = "gpt-5.2"
"""The agent's model: of the compactor's family."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A context that was taken, and how it was asked for."""

    context: Context
    policy: Policy
    asked: dict[str, Any]


@dataclass(eq=False)
class Line:
    """A conversation of a world, whose first revision was `began`. `said` is every item that was appended to it, in
    order; `ids` tells for each which it is, in forks too. `paths` are what was live after each step, and `copied` the
    new messages of the digests that came with it."""

    chat: Conversation
    said: list[Payload] = field(default_factory=list[Payload])
    ids: list[int] = field(default_factory=list[int])
    paths: list[list[int]] = field(default_factory=list[list[int]])
    copied: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    began: int = 0

    def now_has(self, items: Sequence[Payload], ids: Iterator[int]) -> None:
        self.said += items
        self.ids += islice(ids, len(items))


@dataclass(eq=False)
class World:
    """`line` is what steps are done to, `others` are forks or what it was forked from; `policy` governs; `time` is the
    store's. `gone` are the messages that were erased."""

    memory: Memory
    queue: HeldQueue
    scope: Scope
    line: Line
    items: list[Payload]
    time: Time
    policy: Policy = field(default_factory=none)
    others: list[Line] = field(default_factory=list[Line])
    taken: list[Taken] = field(default_factory=list[Taken])
    at: int = 0
    gone: set[int] = field(default_factory=set[int])
    ids: Iterator[int] = field(default_factory=count)

    @property
    def chat(self) -> Conversation:
        return self.line.chat

    # Steps.

    async def append(self, count: int, policy: Policy | None = None, *, expiring: Collection[int] = ()) -> None:
        """The next `count` items that the conversation can take: results whose call was taken back or cleared cannot
        come any more. Those at the places `expiring` of the batch expire tomorrow."""
        waiting = set(await self.open_calls())
        batch: list[Payload] = []
        while self.at < len(self.items) and len(batch) < count:
            item = self.items[self.at]
            self.at += 1
            message = wire.read(item)
            if set(message.answers) <= waiting:
                batch.append(item)
                waiting = (waiting | set(message.calls)) - set(message.answers)
        if not batch:
            return
        before = await self.chat.digests()
        tomorrow = self.time() + DAY
        read = [wire.read(item) for item in batch]
        given = [one.expiring(tomorrow) if at in expiring else one for at, one in enumerate(read)]
        done = await self.chat.append(*given, policy=policy)
        assert (done.start, done.end) == (len(self.line.said), len(self.line.said) + len(batch) - 1)
        self.line.now_has(batch, self.ids)
        await self.check_fired(done.fired, before)

    async def put(self, by: int) -> None:
        """Say something else in place of the last messages, in one step."""
        head = await self.chat.head()
        if head is None:
            return
        live = [one.seq for one in await self.chat.messages() if one.live(head.rev)]
        to, said = max(head.last_seq - by, head.view_start - 1), {"role": "user", "content": f"instead of {by}"}
        before = await self.chat.digests()
        done = await self.chat.append(said, at=to, unchanged_since=head.messages_rev)
        self.line.now_has([said], self.ids)
        after = await self.chat.head()
        assert after is not None
        shown = [one.seq for one in await self.chat.messages() if one.live(after.rev)]
        assert shown == [*(seq for seq in live if seq <= to), done.start]
        await self.check_fired(done.fired, before)

    async def switch(self, place: int, *, back: bool) -> None:
        """Show the branch with some message, as it was shown last; and, if asked for, the present one again."""
        head = await self.chat.head()
        if head is None or head.view_start == head.next_seq:
            return
        seq = head.view_start + place % (head.next_seq - head.view_start)
        shown = [one.seq for one in await self.chat.messages() if one.retracted_rev is None]
        asked: dict[str, Any] = {"wire": RESPONSES, "model": MODEL}
        before, calls = await self.context(asked, ENDLESS), await self.open_calls()
        last = await self.chat.switch(seq, expect=head.rev)
        assert last == max((one for one in shown if one >= head.view_start), default=head.view_start - 1)
        now = [one.seq for one in await self.chat.messages() if one.retracted_rev is None]
        assert now == next(path for path in reversed(self.line.paths) if seq in path)
        parted = next((at for at, (one, other) in enumerate(zip(shown, now, strict=False)) if one != other), None)
        if parted is not None:
            assert {shown[parted], now[parted]} <= {one.seq for one in await self.chat.branches(now[parted])}
        if back and last >= head.view_start:
            await (self.chat.rewind(to=last) if last in now else self.chat.switch(last))
            assert shown == [one.seq for one in await self.chat.messages() if one.retracted_rev is None]
            assert (await self.context(asked, ENDLESS)).request == before.request
            assert await self.open_calls() == calls
            after = await self.chat.head()
            assert after is not None
            assert as_shown(after) == as_shown(head)

    async def fork(self, place: int, *, goes: bool, deletes: bool) -> None:
        """Make a fork that ends with some message that is shown: it is as if all behind that was taken back. Go on with
        it, and delete what it was made from, if asked for."""
        head = await self.chat.head()
        log = [] if head is None else await self.chat.messages()
        shown = [] if head is None else [one.seq for one in log if one.live(head.rev) and one.seq >= head.view_start]
        if head is None or not shown:
            return
        at, asked = shown[place % len(shown)], {"wire": RESPONSES, "model": MODEL}
        as_if = await self.context({**asked, "upto": at}, ENDLESS)
        chat = await self.chat.fork(at=at, id=f"fork {len(self.others)} {head.rev} {at}")
        assert await chat.messages() == log[: at + 1]
        line, rows = Line(chat, self.line.said[: at + 1], self.line.ids[: at + 1]), await chat.digests()
        line.paths = [[seq for seq in path if seq <= at] for path in self.line.paths]
        line.paths.append([one.seq for one in log[: at + 1] if one.retracted_rev is None])
        first = {row.id: max((one.end + 1 for one in rows if one.id == row.base), default=row.start) for row in rows}
        line.copied = {row.id: [*range(max(row.start, first[row.id]), row.end + 1)] for row in rows}
        after = await chat.head()
        assert after is not None
        line.began = after.rev
        self.others.append(line)
        await self.turn_to(-1)
        assert (await self.context(asked, ENDLESS)).request == as_if.request
        if not goes:
            await self.turn_to(-1)
        elif deletes:
            await self.others.pop().chat.delete()

    async def turn_to(self, place: int) -> None:
        """Go on with another fork, or with what this one was made from."""
        if self.others:
            other = self.others.pop(place % len(self.others))
            self.others.append(self.line)
            self.line = other
            self.taken.clear()

    async def wait(self) -> None:
        """Until all that expires has expired; contexts that were taken before cannot be made again."""
        await self.time.pass_days(2)
        self.taken.clear()

    async def erase(self, places: Collection[int]) -> None:
        """Erase messages, wherever they stand; contexts that were taken before cannot be made again."""
        log = await self.chat.messages()
        if not log:
            return
        seqs = {place % len(log) for place in places}
        erased = await self.chat.erase(seqs)
        self.gone |= {self.line.ids[seq] for seq in seqs}
        assert erased == sum(not log[seq].erased for seq in seqs)
        after = await self.chat.messages()
        assert [one.seq for one in after if one.erased] == [s for s in range(len(log)) if log[s].erased or s in seqs]
        self.taken.clear()

    async def move(self) -> None:
        """Export, delete and import everything, unless a digest is in hand. Contexts taken before name
        digests by other numbers."""
        if (head := await self.chat.head()) is None or self.queue.begun:
            return
        branches = [await self.chat.branches(seq) for seq in range(head.view_start, head.next_seq)]
        past = {
            rev: await self.chat.items(wire=RESPONSES, model=MODEL, policy=none(), at=rev)
            for rev in range(self.line.began, head.rev + 1)
        }
        before, log = await self.state(), await self.chat.messages()
        lines = [self.line, *self.others]
        rows = [(line, row.id) for line in lines for row in await line.chat.digests()]
        file = BytesIO()
        await self.memory.export_to(file, tenant=self.scope.tenant, user=self.scope.user, agent=self.scope.agent)
        for line in lines:
            await line.chat.delete()
        file.seek(0)
        done = await self.memory.import_from(file)
        assert (done.conversations, done.refused) == (len(lines), ())
        assert await self.state() == before
        assert await self.chat.messages() == log
        found = [row.id for line in lines for row in await line.chat.digests()]
        now = dict(zip((row for _, row in rows), found, strict=True))
        for line in lines:
            line.copied = {now[row]: seqs for row, seqs in line.copied.items()}
        assert [await self.chat.branches(seq) for seq in range(head.view_start, head.next_seq)] == branches
        for rev, items in past.items():
            assert await self.chat.items(wire=RESPONSES, model=MODEL, policy=none(), at=rev) == items
        self.queue.all = [hold for hold in self.queue.all if hold.job.digest in now]  # without those of deleted ones
        for hold in self.queue.all:
            hold.job = DigestJob(self.scope.tenant, now[hold.job.digest])
        waiting = [job.digest for job in self.queue.waiting if job.digest in now]
        self.queue.waiting = [DigestJob(self.scope.tenant, now[digest]) for digest in waiting]
        self.taken.clear()

    async def configure(self, policy: Policy) -> None:
        await self.chat.configure(policy=policy, create=True)
        self.policy = policy

    async def pop(self) -> None:
        head = await self.chat.head()
        log = [] if head is None else [one for one in await self.chat.messages() if one.live(head.rev)]
        shown = await self.items_now()
        popped = await self.chat.pop()
        if log and log[-1].erased:
            return  # its place is taken back, and nothing that was shown
        if popped is None:
            assert shown == []
            return
        newest = [one.message.payload for one in log[-1:]]
        assert popped in [*newest, *shown[-1:]]
        if popped in newest and await self.answers_what_is_gone(log):
            return  # its call was replaced before it came, or has expired: it was not shown
        if log and log[-1].message.kind is Kind.REASONING:
            return  # what it led to never came: it was not shown
        assert await self.items_now() != shown or not shown

    async def rewind(self, by: int) -> None:
        """To so many messages before the last, or to where the view begins."""
        head = await self.chat.head()
        if head is None:
            return
        live = [one.seq for one in await self.chat.messages() if one.live(head.rev)]
        to = max(head.last_seq - by, head.view_start - 1)
        asked: dict[str, Any] = {"wire": RESPONSES, "model": MODEL}
        as_if = await self.context({**asked, "upto": to}, ENDLESS)
        taken = await self.chat.rewind(to=to)
        assert taken == sum(seq > to for seq in live)
        assert (await self.context(asked, ENDLESS)).request == as_if.request
        after = await self.chat.head()
        assert after is not None
        assert [one.seq for one in await self.chat.messages() if one.live(after.rev)] == [s for s in live if s <= to]

    async def answers_what_is_gone(self, log: Sequence[Logged]) -> bool:
        """Whether the newest message is the result of a call that expired, or that others stand in the place of."""
        calls = [one.seq for one in log if set(one.message.calls) & set(log[-1].message.answers)]
        if not calls:
            return bool(log[-1].message.answers)
        return max(calls) <= await self.replaced_up_to() < log[-1].seq

    async def replaced_up_to(self) -> int:
        return max((row.end for row in await self.chat.digests() if row.stage == REPLACED), default=-1)

    async def clear(self) -> None:
        await self.chat.clear()
        assert await self.items_now() == []

    async def replace(self, items: Sequence[Payload]) -> None:
        head = await self.chat.head()
        if head is None or head.view_start == head.next_seq:
            return
        await self.chat.replace(items)
        assert await self.items_now() == list(items)

    async def take_back_a_clear(self) -> None:
        """As a compaction that finds nothing to do: clear, then put back what was there."""
        if (before := await self.items_now()) == []:
            return
        await self.chat.clear()
        await self.chat.replace(before)
        assert await self.items_now() == before

    async def open_calls(self, *, shown: bool = False) -> Mapping[str, OpenCall]:
        """The calls that wait for their results; with `shown`, without those that were erased."""
        found = await open_calls(self.memory._services.store, self.chat.id, scope=self.scope)
        log = await self.chat.messages() if shown and found else []
        return {call: one for call, one in found.items() if not (shown and log[one.seq].erased)}

    async def items_now(self) -> list[Payload]:
        return await self.chat.items(wire=RESPONSES, model=MODEL)

    async def look(self, budget: int, to: str, incoming: str) -> None:
        """Take a context within `budget` and one without any, and hold both against the promises."""
        asked: dict[str, Any] = {"wire": to, "instructions": "Be brief.", "model": MODEL}
        if incoming == "user":
            asked["incoming"] = user("And the hotel?")
        elif incoming == "result" and (waiting := await self.open_calls(shown=True)):
            call = min(waiting, key=lambda one: (waiting[one].seq, one))
            asked["incoming"] = next(
                (item for item in self.items[self.at :] if wire.read(item).answers == (call,)), user("And the hotel?")
            )
        contexts = [await self.context(asked, room) for room in (budget, ENDLESS)]
        log, rows, after = await self.chat.messages(), await self.chat.digests(), await self.chat.head()
        for context in contexts:
            self.taken.append(Taken(context, self.policy, asked))
            self.check(context, to, after, log, rows)

    async def context(self, asked: dict[str, Any], budget: int) -> Context:
        """The context at that budget, or at the least one that the error asks for."""
        for _ in range(2):
            try:
                return await self.chat.context(**asked, budget=budget)
            except BudgetExceeded as error:  # an incoming result is found to need its call only then
                budget += error.over_by
        return await self.chat.context(**asked, budget=budget)

    # What must hold.

    def check(
        self, context: Context, to: str, head: Head | None, log: Sequence[Logged], rows: Sequence[Digest]
    ) -> None:
        manifest = context.manifest
        fates = fates_of(manifest)
        assert sum(manifest.sections.values()) == manifest.total <= manifest.budget
        shown = sum(span.tokens for span in manifest.fates if span.fate in (Fate.IN, Fate.REDACTED, Fate.SHORTENED))
        assert shown == manifest.sections["verbatim"] + manifest.sections.get("rules", 0), (
            manifest.fates,
            manifest.sections,
        )
        assert_whole(to, context.messages)
        if not manifest.request.incoming:
            self.check_newest(head, log, fates, to)
        self.check_thoughts(log, rows, fates, manifest)
        self.check_said(manifest, log, rows)

    def check_newest(
        self, head: Head | None, log: Sequence[Logged], fates: Sequence[tuple[Fate, Reason]], to: str
    ) -> None:
        """Without an incoming message the newest group that can be sent is in."""
        if head is None:
            return
        start = view(self.policy, head, opaque=to == RESPONSES, family=family_of(MODEL)).start
        found = groups([one for one in log[start:] if one.live(head.rev)], head.retracted)
        members = [group.members for group in found if not group.orphan]
        for one in max(members, key=lambda each: each[-1].seq, default=[]):
            assert fates[one.seq][0] in (Fate.IN, Fate.REDACTED, Fate.SHORTENED), f"{one.seq} is not in"

    def check_thoughts(
        self,
        log: Sequence[Logged],
        rows: Sequence[Digest],
        fates: Sequence[tuple[Fate, Reason]],
        manifest: Manifest,
    ) -> None:
        """A reasoning item is in exactly when what it precedes is, unless the caller cut between the two: a clear or a
        `replace` in the middle of a response."""
        live = [one for one in log if one.live(manifest.rev)]
        cut_after = {row.end for row in rows if row.stage == REPLACED}
        for one, following in pairwise(live):
            if one.message.kind is not Kind.REASONING or one.message.wire != following.message.wire:
                continue
            # What was taken back may stand between a message and the end of what replaced it.
            cut = any(one.seq <= end < following.seq for end in cut_after)
            if fates[one.seq][1] is Reason.CLEARED or cut:
                continue
            if (
                one.erased
                or following.erased
                or following.message.opens_turn
                or following.message.kind is Kind.TOOL_RESULT
            ):
                continue
            there = (Fate.IN, Fate.REDACTED, Fate.SHORTENED)
            both = [fates[each.seq][0] in there for each in (one, following)]
            assert both[0] == both[1], f"reasoning {one.seq} apart from {following.seq}"

    def check_said(self, manifest: Manifest, log: Sequence[Logged], rows: Sequence[Digest]) -> None:
        """What a manifest says of a message is true: it is in the digest, was dropped by a row, was taken back."""
        held = self.held(rows)
        visible = [row for row in rows if row.visible(manifest.rev)]
        for span in manifest.fates:
            for seq in range(span.start, span.end + 1):
                one = log[seq]
                live = one.live(manifest.rev)
                match span.reason:
                    case Reason.SUMMARIZED | Reason.COMPACTED:
                        assert span.digest is not None
                        assert seq in held[span.digest] or not live, f"{span} says of {seq} what is not so"
                    case Reason.CHUNKED:
                        found = [row for row in visible if row.action is DigestAction.CHUNK and seq in held[row.id]]
                        assert found or not live, f"{span} says of {seq} what is not so"
                    case Reason.TRIMMED:
                        assert any(row.action is DigestAction.DROP and row.start <= seq <= row.end for row in visible)
                    case Reason.CLEARED:
                        assert any(row.action is DigestAction.CLEAR and seq <= row.end for row in visible)
                    case Reason.RETRACTED:
                        assert not live
                    case Reason.ERASED:
                        assert one.erased
                    case _:
                        assert live
                        assert not one.erased

    def held(self, rows: Sequence[Digest]) -> dict[int, set[int]]:
        """Which messages each row stands for: those that its base does, and its own new ones."""
        found: dict[int, set[int]] = {}
        ends = {row.id: row.end for row in rows}
        for row in rows:
            base = set[int]() if row.base is None else found[row.base]
            first = row.start if row.base is None else max(row.start, ends[row.base] + 1)
            found[row.id] = {seq for seq in base if seq >= row.start or row.action is DigestAction.CHUNK}
            found[row.id] |= set(range(first, row.end + 1))
        return found

    async def check_fired(self, fired: Sequence[int], before: Sequence[Digest]) -> None:
        """Each range begins where it may, and parts no group that could be told to be one."""
        rows = {row.id: row for row in await self.chat.digests()}
        head = await self.chat.head()
        assert head is not None
        live = [one for one in await self.chat.messages() if one.live(head.rev) and one.seq >= head.view_start]
        ends = {row.id: row.end for row in before}
        for row in (rows[one] for one in fired):
            first = row.start if row.base is None else max(row.start, ends[row.base] + 1)
            assert head.view_start <= row.start <= row.end < head.next_seq
            within_turn = json.loads(row.spec).get("within_turn", False)
            if within_turn and row.action is DigestAction.REDACT:
                continue  # it redacts single results, which takes no group apart
            after = next((one for one in live if one.seq > row.end), None)
            assert after is None or after.message.opens_turn or within_turn, "what is kept begins with a user message"
            inside = {call: one.seq for one in live if first <= one.seq <= row.end for call in one.message.calls}
            for one in live:
                parted = [call for call in one.message.answers if call in inside and one.seq > row.end]
                assert not parted, f"{row.action} {first}-{row.end} parts {parted} from their result {one.seq}"
            open_now = (await self.open_calls()).values()
            awaited = [one.seq for one in open_now if head.sums.turns - one.turn < PATIENCE]
            awaited = [seq for seq in awaited if first <= seq <= row.end]
            assert not awaited, f"{row.action} {first}-{row.end} takes calls {awaited} that are awaited"

    async def check_all(self) -> None:
        """What holds of the log and of its digests after any step."""
        log, rows = await self.chat.messages(), await self.chat.digests()
        self.line.paths.append([one.seq for one in log if one.retracted_rev is None])
        self.check_log(log)
        for line in self.others:
            found = await line.chat.messages()
            assert len(found) == len(line.said)
            for one, said, which in zip(found, line.said, line.ids, strict=True):
                assert one.message.payload == ({} if one.erased else said)
                assert one.erased or which not in self.gone, f"{one.seq} is in {line.chat.id}"
            assert [one.seq for one in found if one.retracted_rev is None] == line.paths[-1]
        self.check_digests(log, {row.id: row for row in rows})

    def check_log(self, log: Sequence[Logged]) -> None:
        """Nothing is lost, whatever happened, but for what has expired."""
        assert len(log) == len(self.line.said)
        for one, said in zip(log, self.line.said, strict=True):
            assert one.message.payload == ({} if one.erased else said)

    def check_digests(self, log: Sequence[Logged], rows: Mapping[int, Digest]) -> None:
        """The summarizer got each message as new once, or again where that digest came to nothing; none is left out."""
        erased = ranges(one.seq for one in log if one.erased)
        for row in rows.values():
            assert not [item for item in row.items if item.rests_on(erased)], f"{row.id} says what was erased"
        told: dict[int, int] = {}
        for number, seqs in self.line.copied.items():
            if rows[number].status is Status.COMPLETED and rows[number].action in (
                DigestAction.SUMMARIZE,
                DigestAction.CHUNK,
            ):
                told |= dict.fromkeys(seqs, number)
        for hold in (one for one in self.queue.all if one.job.digest in rows):
            row = rows[hold.job.digest]
            if row.action not in (DigestAction.SUMMARIZE, DigestAction.CHUNK) or row.status in (
                Status.FAILED,
                Status.SUPERSEDED,
            ):
                continue
            for seq in hold.shown:
                assert seq not in told, f"{seq} went to digest {told[seq]} and again to {row.id}"
                told[seq] = row.id
            base = None if row.base is None else rows[row.base]
            first = row.start if base is None else max(row.start, base.end + 1)
            there = {one.seq for one in log if one.retracted_rev is None and not one.erased}
            due = [seq for seq in range(first, row.end + 1) if seq in there]
            if row.status is Status.COMPLETED:
                assert [seq for seq in hold.shown if seq in there] == due

    async def check_past(self) -> None:
        """Contexts of the past come out the same, by their manifest and by their revision."""
        for taken in self.taken:
            manifest = taken.context.manifest
            again = await self.chat.rebuild(Manifest.from_json(json.dumps(manifest.to_json())))
            assert json.dumps(again.request) == json.dumps(taken.context.request)
            assert again.manifest == manifest
            asked: dict[str, Any] = {
                **taken.asked,
                "budget": manifest.budget,
                "at": manifest.rev,
                "policy": taken.policy,
            }
            past = await self.chat.context(**asked)
            assert json.dumps(past.request) == json.dumps(taken.context.request)
            assert past.manifest.fates == manifest.fates

    async def state(self) -> list[object]:
        """What there is, but for ids and times."""
        rows = await self.chat.digests()
        order = {row.id: at for at, row in enumerate(rows)}
        head = await self.chat.head()
        return [
            None if head is None else plain_head(head, order),
            [plain_row(row, order) for row in rows],
            order_ids(str(await self.chat.view()), order),
            await self.items_now(),
        ]


def as_shown(head: Head) -> Head:
    """What a head says of the log that is shown, however it came about."""
    asks = {
        "messages_rev": 0,
        "retractions": 0,
        "running": (),
        "facts_due_at": None,
        "facts_resume_at": None,
        "failures": 0,
        "resume_at": None,
        "finish_seq": 0,
    }
    return replace(head, rev=0, now=datetime.min, clock=datetime.min, **asks)


def plain_row(row: Digest, order: dict[int, int]) -> str:
    when = datetime(2026, 1, 1, tzinfo=UTC)
    same = replace(
        row,
        id=order[row.id],
        base=None if row.base is None else order[row.base],
        created_at=when,
        completed_at=None if row.completed_at is None else when,
        due_at=None if row.due_at is None else when,
        generation_time_ms=None,
    )
    return str(same)


def plain_head(head: Head, order: dict[int, int]) -> str:
    when = datetime(2026, 1, 1, tzinfo=UTC)
    same = replace(
        head,
        ref=0,
        now=when,
        clock=when,
        next_expiry=None if head.next_expiry is None else when,
        frontiers=dict(sorted(head.frontiers.items())),
        running=tuple(replace(one, id=order[one.id], created_at=when) for one in head.running),
    )
    return order_ids(str(same), order)


def order_ids(text: str, order: dict[int, int]) -> str:
    return re.sub(
        r"(digest|opaque|StandingSummary\(id)=(\d+)", lambda found: f"{found[1]}=#{order[int(found[2])]}", text
    )


def fates_of(manifest: Manifest) -> list[tuple[Fate, Reason]]:
    """One fate a message, and the proof that there is exactly one."""
    found: list[tuple[Fate, Reason]] = []
    for span in manifest.fates:
        assert span.start == len(found), f"{span} leaves a gap or overlaps"
        found += [(span.fate, span.reason)] * (span.end - span.start + 1)
    assert len(found) == manifest.next_seq
    return found


@asynccontextmanager
async def world(store: Store, name: str, items: Sequence[Payload], time: Time, **given: Any) -> AsyncGenerator[World]:
    """A world on `store`, which goes by `time`, whose conversation is of a user of this name and will say `items`;
    `given` are settings. Nothing is recalled."""
    queue = HeldQueue(store)
    settings = Settings.load(context_window=400, breaker_failures=1_000_000, **ONE_TRY, **given)
    parts = Services(
        store=store,
        model=HeldModel(),
        queue=queue,
        settings=settings,
        canonical=tokens.counter_for(CANONICAL),
        counter=lambda asked: tokens.counter_for(asked or settings.encoding),
        codec=wire.codec,
        read=wire.read,
        compactor=HeldCompactor(),
    )
    async with Memory(parts) as memory:
        scope = replace(SCOPE, user=name)
        yield World(memory, queue, scope, Line(Conversation(memory._services, "c", scope=scope)), list(items), time)
