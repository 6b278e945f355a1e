"""Promises 1 to 6 of the design, checked from the tables after whatever has happened."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from itertools import pairwise

import hitherto
from hitherto import user
from hitherto.core.log.append import key_hash
from tests.conftest import SCOPE
from tests.faults.processes import Acknowledged
from tests.faults.tables import Row, Tables
from tests.faults.thinking import Call

_ENDED = ("completed", "superseded")


async def check(
    tables: Tables,
    acknowledged: Sequence[Acknowledged],
    calls: Sequence[Call] = (),
    *,
    killed: Collection[str] = (),
    away: bool = False,
) -> None:
    """Everything is as promised, and nothing is in anybody's hands any more.

    `calls` are those that the model got, `killed` the keys of workers that were killed: what they asked need not stand
    in the ledger. `away`: the database was, and who could not reach it in time dropped what it had.
    """
    await _check_log(tables, acknowledged)
    await _check_receipts(tables, acknowledged)
    rows = await tables.digests()
    _check_chains(rows)
    _check_made(rows, calls)
    await _check_ledger(tables, rows, calls, killed, away=away)
    await _check_contexts(tables)


async def _check_log(tables: Tables, acknowledged: Sequence[Acknowledged]) -> None:
    """Promises 1 and 2: what was acknowledged is there; seqs are dense, batches whole."""
    log: dict[str, dict[int, str]] = defaultdict(dict)
    for name, seq, text in await tables.all(
        "select c.id, m.seq, m.text from hitherto.message m join hitherto.conversation c "
        "on c.tenant = m.tenant and c.ref = m.conversation order by c.id, m.seq"
    ):
        log[name][seq] = text
    for name, messages in log.items():
        assert sorted(messages) == list(range(len(messages))), f"{name} has gaps"
        texts = list(messages.values())
        asked = [text.removesuffix(" asks") for text in texts[::2]]
        assert texts == [line for key in asked for line in (f"{key} asks", f"{key} answers")], f"torn batches in {name}"
        assert len(set(asked)) == len(asked), f"a batch of {name} is there twice"
    for name, messages in await tables.all("select id, next_seq from hitherto.conversation"):
        assert messages == len(log[name])
    for one in acknowledged:
        words = f"{one.conversation}/{one.key}"
        found = [log[one.conversation].get(seq) for seq in range(one.start, one.end + 1)]
        assert found == [f"{words} asks", f"{words} answers"], f"{one} was acknowledged and is not there"


async def _check_receipts(tables: Tables, acknowledged: Sequence[Acknowledged]) -> None:
    """Promise 3: the receipts say what the answers said, and cover the log exactly once."""
    receipts = {
        bytes(hashed): (start, end, rev)
        for hashed, start, end, rev in await tables.all(
            "select key_hash, start_seq, end_seq, rev from hitherto.receipt"
        )
    }
    for one in acknowledged:
        assert receipts[key_hash(SCOPE, one.conversation, one.key)] == (one.start, one.end, one.rev), one
    batches = await tables.one("select count(*) / 2 from hitherto.message")
    assert len(receipts) == batches, "each batch has its receipt"


def _check_chains(rows: Sequence[Row]) -> None:
    """Promises 4, 5 and 6: bases hold, ranges follow one another, nothing is in progress or claimed."""
    found = {row.id: row for row in rows}
    for row in rows:
        assert row.status != "processing", f"{row} is still in progress"
        assert not row.claimed, f"{row} has ended and is claimed"
        assert not row.due, f"{row} has ended and is due"
        if row.base is not None:
            base = found[row.base]
            assert (base.conversation, base.status in _ENDED) == (row.conversation, True), f"{row} rests on {base}"
            assert base.end < row.end
        assert row.new <= row.end, f"{row} has nothing new"
    for name in {row.conversation for row in rows}:
        completed = [row for row in rows if row.conversation == name and row.status == "completed"]
        ranges = Counter((row.stage, row.start, row.end) for row in completed)
        assert not [one for one, times in ranges.items() if times > 1], f"a range of {name} was digested twice"
        for earlier, later in pairwise(completed):
            assert later.base == earlier.id, f"{later} does not rest on {earlier}, which was there"
            assert later.new in (earlier.end + 1, later.start), f"a gap, or an overlap, before {later}"
            assert later.new > earlier.end


def _check_made(rows: Sequence[Row], calls: Sequence[Call]) -> None:
    """Promise 4, from what the model was shown: a completed digest was made of its new messages, all of them, once."""
    shown = {(call.conversation, call.seqs) for call in calls}
    for row in rows:
        if row.status == "completed" and calls:
            assert (row.conversation, tuple(range(row.new, row.end + 1))) in shown, f"the model never saw all of {row}"


async def _check_ledger(
    tables: Tables, rows: Sequence[Row], calls: Sequence[Call], killed: Collection[str], *, away: bool
) -> None:
    """A completed digest has its call in the ledger, and each call that was made is there."""
    ledger = await tables.calls()
    good = Counter(digest for digest, cause in ledger if cause is None)
    for row in rows:
        assert row.status != "completed" or good[row.id], f"{row} was made, and no call of it is in the ledger"
    if calls:
        outlived = [call for call in calls if call.key not in killed]
        assert len(ledger) <= len(calls)
        assert away or len(ledger) >= len(outlived), f"{len(outlived)} calls were made, {len(ledger)} are in the ledger"


async def _check_contexts(tables: Tables) -> None:
    """Promise 4 at the other end: each message has one fate in a context."""
    async with hitherto.open(tables.database, worker=False) as memory:
        for name, messages in await tables.all("select id, next_seq from hitherto.conversation"):
            chat = memory.conversation(name, scope=SCOPE)
            fates = (await chat.context(user("?"), budget=4_000)).manifest.fates
            seqs = [seq for span in fates for seq in range(span.start, span.end + 1)]
            assert seqs == list(range(messages)), f"{name}: {fates}"
