"""Random histories: each revision stays as it was, and can be read as it was."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from hitherto.core.cross_session import CrossSession
from hitherto.core.digests.digest import DigestOutcome, Status
from hitherto.core.log.conversations import MessageRange
from hitherto.core.log.frontier import DigestAction
from hitherto.core.log.head import Head, LatestDigest
from hitherto.core.log.message import Kind, Logged
from hitherto.store.store import Store
from tests.lengths import examples, lasting
from tests.store.digests.stage_samples import reach, stage_row, staged, superseded, take_back
from tests.store.samples import (
    OTHER_STAGE,
    SCOPE,
    STAGE,
    any_messages,
    chances,
    clear,
    fire,
    head_of,
    log_of,
    timeless,
    user,
    write,
)

STEPS = 40
READINGS = 80
_NOW = {
    "policy": None,
    "agent_policy": None,
    "cross_session": CrossSession(),
    "agent_cross_session": CrossSession(),
    "latest": LatestDigest(),
    "next_expiry": None,
    "erased": (),
}
_TOOLS = (Kind.TOOL_CALL, Kind.TOOL_RESULT, Kind.REASONING)


def of_any_revision(head: Head | None) -> dict[str, object] | None:
    """`head` without the fields that only the newest revision has, and without the clock."""
    if head is None:
        return None
    return timeless(replace(head, awaited=(), late=(), failures=0, running=(), run_start=0, retractions=0, **_NOW))


async def random_step(store: Store, name: str, chance: random.Random) -> None:
    """Make one random change to a conversation: append messages, clear, take back a clear, take back messages, fire a
    stage that is complete at once, set off a digest, or end one."""
    head, rows = await head_of(store, name), await store.digests(SCOPE, name)
    step = chance.choice(
        ["append"] * 4 + ["clear", "restore", "take back", "take back", "stage", "stage", "fire", "end"]
    )
    last, taken = head.last_seq, {(row.stage, row.start, row.end) for row in rows if row.status is Status.COMPLETED}
    match step:
        case "clear" if chance.random() < 0.5 and head.next_seq > head.view_start:
            await clear(store, name)
        case "restore":
            clears = [row for row in rows if row.action is DigestAction.CLEAR and row.visible(head.rev)]
            if clears:
                before = max((row.end + 1 for row in clears[:-1]), default=0)
                await superseded(store, name, clears[-1].id, view_start=before)
        case "take back":
            async with store.write(SCOPE, name) as unit:
                shown = len(await unit.tail(head.next_seq))
            if shown:
                await take_back(store, name, chance.randint(1, min(shown, 4)))
        case "stage" if last >= head.view_start:
            action = chance.choice([DigestAction.DROP, DigestAction.REDACT, DigestAction.CHUNK, DigestAction.COMPACT])
            end = chance.randint(head.view_start, last)
            row = stage_row(
                action,
                chance.randint(head.view_start, end),
                end,
                stage=chance.choice(["", "another " + action.value]),
                tokens=chance.randint(0, 30),
                freed=chance.randint(0, 99),
                since=chance.randint(0, 99),
                kept_from=chance.choice([None, chance.randint(head.view_start, end + 1)]),
                family=chance.choice([None, "f"]),
            )
            if (row.stage, row.start, row.end) not in taken:
                await staged(store, name, row)
        case "fire" if last >= head.view_start:
            stage, start = chance.choice([STAGE, OTHER_STAGE]), chance.randint(head.view_start, last)
            if stage not in [one.stage for one in head.running] and (stage, start, last) not in taken:
                await fire(store, name, start, last, stage=stage)
        case "end" if head.running:
            ended = chance.choice(head.running)
            error = chance.choice([None, None, "failed"])
            outcome = DigestOutcome(digest=ended.id, text=f"of {ended.id}", tokens=chance.randint(1, 9), error=error)
            await write(
                store, name, outcomes=[outcome], same_rev=error is not None, failures=head.failures + 1 if error else 0
            )
        case _:
            batch = any_messages(chance, chance.randint(1, 5))
            await write(store, name, *batch, tokens=[chance.randint(0, 9) for _ in batch])
    await reach(store, name)


def read(log: list[Logged], reading: MessageRange) -> list[int]:
    """The seqs that `reading` selects, by the definition of `MessageRange`."""
    live = [one for one in log if reading.live_at is None or one.live(reading.live_at)]
    enough = [one.seq for one in live if one.sums.tokens >= reading.tokens]
    first = max(reading.start, min(enough, default=reading.stop))
    found = [
        one.seq
        for one in live
        if one.seq < reading.stop
        and (
            one.seq >= first
            or (reading.tools_from is not None and one.seq >= reading.tools_from and one.message.kind in _TOOLS)
        )
    ]
    return found[: reading.limit]


@lasting
class TestHistory:
    @pytest.mark.parametrize("seed", range(examples(2)))
    async def test_every_revision_stays_what_it_was(self, store: Store, seed: int) -> None:
        """Frontiers too: the newest head has them as they were committed, a past head derives them from the rows."""
        chance = chances(2_000 + seed)
        await write(store, "c", user())
        was: dict[int, dict[str, object] | None] = {}
        for _ in range(STEPS):
            await random_step(store, "c", chance)
            head = await head_of(store, "c")
            was[head.rev] = of_any_revision(head)
        for rev, head in was.items():
            assert of_any_revision(await store.head(SCOPE, "c", at=rev)) == head, rev
        past = [await store.head(SCOPE, "c", at=rev) for rev in range(max(was))]
        gone = [head and (head.awaited, head.late, head.failures, head.running) for head in past]
        assert gone == [((), (), 0, ())] * len(past)

    @pytest.mark.parametrize("seed", range(examples(2)))
    async def test_every_revision_is_read_as_it_was(self, store: Store, seed: int) -> None:
        chance = chances(3_000 + seed)
        await write(store, "c", user())
        for _ in range(STEPS):
            await random_step(store, "c", chance)
        log, newest = await log_of(store, "c"), await head_of(store, "c")
        for _ in range(READINGS):
            at = chance.randint(1, newest.rev)
            head = await store.head(SCOPE, "c", at=at)
            assert head is not None
            live_at = chance.choice([at, at, at, None])
            reading = MessageRange(
                start=chance.choice([0, head.view_start, chance.randint(0, head.next_seq)]),
                stop=chance.choice([head.next_seq, chance.randint(0, newest.next_seq)]),
                tokens=0 if live_at is None else chance.choice([0, chance.randint(0, head.sums.tokens + 3)]),
                tools_from=chance.choice([None, chance.randint(0, head.next_seq)]),
                limit=chance.choice([None, None, 3]),
                live_at=live_at,
            )
            found = await store.messages(SCOPE, "c", newest.ref, reading)
            assert [one.seq for one in found] == read(log, reading), reading
            assert found == [log[one.seq] for one in found]
