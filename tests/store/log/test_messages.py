"""Messages: every field comes back equal, raw JSON byte for byte; ranges of them and probes, by their definitions."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from hitherto.core.changes import Changes
from hitherto.core.log.append import marked
from hitherto.core.log.conversations import MessageRange
from hitherto.core.log.message import ANTHROPIC, CHAT, RESPONSES, Kind, Logged, Message, Role, storable
from hitherto.core.log.probe import DialogueAt, Mark, Probe, SeqAt, SpeakerAt, TokensAt, ToolTokens, TurnAt
from hitherto.store.store import Store
from tests.store.samples import (
    SCOPE,
    any_messages,
    assistant,
    call,
    chances,
    head_of,
    log_of,
    result,
    user,
    write,
)

NESTED = 200
RAWS = {
    "keys in their order": '{"z": 1, "a": 2, "m": {"b": 1, "a": 2}}',
    "a key twice": '{"a": 1, "a": 2}',
    "spaces": '{ "a" :1,\n\t"b":[ ] }',
    "numbers": '{"a": -0.0, "b": 1e400, "c": 1E-7, "d": 0.1000, "e": 1.0, "f": 123456789012345678901234567890}',
    "escapes": r'{"nul": "a\u0000b", "lone": "\ud800", "low": "\udfff\ud800", "pair": "\ud83d\ude00", "slash": "\/"}',
    "text": '{"a": "Grüße, 世界, 🗝, \u202e\u2028 <|endoftext|> %s %(a)s {} $1 \'; --"}',
    "empty": "{}",
    "nested": '{"a": ' * NESTED + "1" + "}" * NESTED,
    "long": json.dumps({"content": "x" * 3_000_000}),
}
TIMES = [
    datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
    datetime(2030, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=-7, minutes=-30))),
    datetime.max.replace(tzinfo=UTC),
    datetime(1, 1, 1, tzinfo=UTC),
]


class TestMessage:
    async def test_raw_and_metadata_come_back_byte_for_byte(self, store: Store) -> None:
        await write(store, "c", *(replace(user(), raw=raw, raw_metadata=raw) for raw in RAWS.values()))
        found = zip(RAWS.items(), await log_of(store, "c"), strict=True)
        for (name, raw), logged in found:
            assert logged.message.raw == raw, name
            assert logged.message.raw_metadata == raw, name

    async def test_every_role_and_kind(self, store: Store) -> None:
        written = await write(
            store,
            "c",
            *(
                Message(raw='{"a": 1}', wire=RESPONSES, role=role, kind=kind, text="", raw_metadata='{"b": 2}')
                for role in Role
                for kind in Kind
            ),
        )
        assert await log_of(store, "c") == list(written.logged)

    async def test_every_field_comes_back(self, store: Store) -> None:
        plain = storable("readable \x00\ud800 text — 世界 \\ \n \r\n \t '\" %s")
        batch = [
            *(replace(user(f"{at}"), expires_at=at, said_at=at) for at in TIMES),
            replace(call("toolu_1", 'b"\\,{}', ""), text=plain, tools=("look up", "{a,b}", ""), wire=ANTHROPIC),
            replace(
                result("toolu_1"),
                answers=("toolu_1", 'b"\\,{}', ""),
                tools=("look up", "{a,b}", ""),
                text=plain,
                wire=CHAT,
            ),
            replace(user(plain), raw=json.dumps({"content": plain})),
        ]
        written = await write(store, "c", *batch, tokens=[0, 1, 2**31 - 1, 2**31 - 1, 5, 6, 7])
        log = await log_of(store, "c")
        assert [logged.message for logged in log] == batch
        assert log == list(written.logged)
        assert not any(logged.erased for logged in log)
        assert {logged.rev for logged in log} == {1}

    async def test_when_it_was_said_orders_nothing(self, store: Store) -> None:
        """Not the log, nor its times: those are when it was appended."""
        late = datetime(9998, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
        early = datetime(2, 1, 1, tzinfo=timezone(timedelta(hours=14)))
        for at in (late, early, None):
            await write(store, "c", replace(user(f"{at}"), said_at=at))
        log = await log_of(store, "c")
        assert [one.message.said_at for one in log] == [late, early, None]
        assert [one.said_at for one in log] == [late, early, log[2].created_at]
        assert [one.created_at for one in log] == sorted(one.created_at for one in log)
        assert log[0].created_at < late
        head = await head_of(store, "c")
        assert head.now >= log[2].created_at
        assert head.now < late

    async def test_a_long_batch_keeps_its_order(self, store: Store) -> None:
        batch = [user(f"{n}") for n in range(1_000)]
        await write(store, "c", *batch)
        assert [logged.message for logged in await log_of(store, "c")] == batch

    async def test_nobody_changes_a_message_through_what_was_handed_out(self, store: Store) -> None:
        await write(store, "c", user("as it was"))
        head = await head_of(store, "c")
        found = await store.messages(SCOPE, "c", head.ref, MessageRange(start=0, stop=1))
        found[0].message.payload["content"] = "changed"
        found.clear()
        assert [logged.message for logged in await log_of(store, "c")] == [user("as it was")]


async def test_ranges_of_several_conversations(store: Store) -> None:
    """What was retracted, erased or has expired is among them, and cannot be taken for what is shown."""
    scope = replace(SCOPE, agent="another")
    gone = replace(user("gone"), expires_at=datetime.now(UTC) - timedelta(seconds=1))
    await write(store, "c", *(user(f"{at}") for at in range(4)), gone, user("5"), user("6"))
    await write(store, "c", erase=((1, 1),))
    async with store.write(SCOPE, "c") as unit:
        await unit.commit(Changes(head=replace(unit.head, rev=unit.head.rev + 1), retract=((3, 5),)))
    await write(store, "c", view_start=2)
    await write(store, "c", user("another's"), scope=scope)
    own, other, unknown = (SCOPE.agent, "c"), (scope.agent, "c"), (SCOPE.agent, "none")
    found = await store.messages_of(SCOPE, {own: ((0, 1), (3, 4), (6, 9)), other: ((0, 0),), unknown: ((0, 9),)})
    assert [found[where].view_start for where in (own, other, unknown)] == [2, 0, 0]
    read = found[own].messages
    assert [(one.seq, one.erased, one.retracted_rev is not None) for one in read] == [
        (0, False, False),
        (1, True, False),
        (3, False, True),
        (4, True, True),
        (6, False, False),
    ]
    assert [read[at].message.text for at in (0, 2, 4)] == ["0", "3", "6"]
    assert [[one.message.text for one in found[where].messages] for where in (other, unknown)] == [["another's"], []]


TOOLS = (Kind.TOOL_CALL, Kind.TOOL_RESULT, Kind.REASONING)
READINGS = 60
MARKS = range(1, 40)


def read(log: Sequence[Logged], reading: MessageRange) -> list[Logged]:
    """The messages that `reading` selects, by the definition of `MessageRange`."""
    found = [
        logged
        for logged in log
        if logged.seq < reading.stop
        and (
            (logged.seq >= reading.start and logged.sums.tokens >= reading.tokens)
            or (reading.tools_from is not None and logged.seq >= reading.tools_from and logged.message.kind in TOOLS)
        )
    ]
    return found[: reading.limit]


def mark(log: Sequence[Logged], probe: Probe) -> Mark | None:
    """The answer to `probe`, by the definition of `Probe`."""
    if isinstance(probe, SpeakerAt):
        found = [one for one in log if one.seq <= probe.n and one.message.kind is not Kind.TOOL_RESULT]
        return marked(found[-1]) if found else None
    for logged in log:
        match probe:
            case DialogueAt():
                reached = logged.sums.dialogue
            case TurnAt():
                reached = logged.sums.turns
            case TokensAt():
                reached = logged.sums.tokens
            case SeqAt():
                reached = probe.n if logged.seq == min(probe.n, log[-1].seq) else probe.n - 1
        if reached >= probe.n:
            return marked(logged)
    return None


async def random_log(store: Store, name: str, chance: random.Random, *, longest: int = 40) -> list[Logged]:
    """A log of all kinds of messages in batches; a third of them have no tokens, so that running sums stand still."""
    for _ in range(chance.randint(1, 6)):
        batch = any_messages(chance, chance.randint(1, longest // 5))
        await write(store, name, *batch, tokens=[max(chance.randint(-10, 20), 0) for _ in batch])
    return await log_of(store, name)


def random_reading(chance: random.Random, log: Sequence[Logged]) -> MessageRange:
    seqs = range(len(log) + 3)
    every = log[-1].sums.tokens
    return MessageRange(
        live_at=log[-1].rev,
        start=chance.choice([0, 0, chance.choice(seqs)]),
        stop=chance.choice([len(log), len(log), chance.choice(seqs)]),
        tokens=chance.choice([0, 0, chance.randint(0, every + 5), chance.choice(log).sums.tokens]),
        tools_from=chance.choice([None, 0, chance.choice(seqs)]),
        limit=chance.choice([None, None, 0, 1, chance.randint(0, len(log))]),
    )


class TestReading:
    @pytest.mark.parametrize("seed", range(4))
    async def test_any_reading_of_any_log(self, store: Store, seed: int) -> None:
        chance = chances(seed)
        log = await random_log(store, "c", chance)
        ref = (await head_of(store, "c")).ref
        for _ in range(READINGS):
            reading = random_reading(chance, log)
            assert await store.messages(SCOPE, "c", ref, reading) == read(log, reading), reading

    async def test_a_ref_of_another_conversation_reads_nothing(self, store: Store) -> None:
        await write(store, "c", user())
        await write(store, "d", user())
        refs = {name: (await head_of(store, name)).ref for name in ("c", "d")}
        assert refs["c"] != refs["d"]
        everything = MessageRange(start=0, stop=10)
        assert await store.messages(SCOPE, "c", refs["d"], everything) == []
        assert await store.messages(SCOPE, "none", refs["d"], everything) == []
        assert await store.messages(SCOPE, "c", 0, everything) == []

    @pytest.mark.parametrize("seed", range(4))
    async def test_probes_of_any_log(self, store: Store, seed: int) -> None:
        chance = chances(1_000 + seed)
        await random_log(store, "other", chance)
        log = await random_log(store, "c", chance)
        async with store.write(SCOPE, "c") as unit:
            for n in MARKS:
                assert await unit.probe(DialogueAt(n)) == mark(log, DialogueAt(n))
                assert await unit.probe(TurnAt(n)) == mark(log, TurnAt(n))
                assert await unit.probe(TokensAt(8 * n)) == mark(log, TokensAt(8 * n))
                assert await unit.probe(SeqAt(n)) == mark(log, SeqAt(n))
                assert await unit.probe(SpeakerAt(n)) == mark(log, SpeakerAt(n))
            assert await unit.probe(SeqAt(-1)) is None

    async def test_probes_find_nothing_in_a_new_conversation(self, store: Store) -> None:
        await write(store, "other", *any_messages(chances(0), 30))
        async with store.write(SCOPE, "new") as unit:
            assert await unit.probe(DialogueAt(1)) is None
            assert await unit.probe(TurnAt(1)) is None
            assert await unit.probe(TokensAt(1)) is None
            assert await unit.probe(SeqAt(5)) is None
            assert await unit.probe(ToolTokens(0, 5, True, (), 0)) == 0
            assert await unit.tail(5) == []

    async def test_items_alone(self, store: Store) -> None:
        """Equal in value and order, at any revision; None if one is of another format, or was erased."""
        await write(store, "c", user("a"), assistant("b"))
        await write(store, "c", user("c"), assistant("d"))
        head, log = await head_of(store, "c"), await log_of(store, "c")

        async def items(start: int, stop: int, live_at: int | None = None, *, wire: str = CHAT) -> object:
            reading = MessageRange(start=start, stop=stop, live_at=live_at)
            return await store.payloads(SCOPE, "c", head.ref, reading, wire=wire)

        every = [logged.message.payload for logged in log]
        assert await items(0, 9) == every
        assert await items(1, 3) == every[1:3]
        assert await items(0, 9, log[1].rev) == every[:2]
        assert await items(4, 9) == []
        assert await items(0, 9, wire=RESPONSES) is None
        assert await store.payloads(SCOPE, "c", head.ref + 1, MessageRange(start=0, stop=9), wire=CHAT) == []
        elsewhere = replace(SCOPE, user="another")
        assert await store.payloads(elsewhere, "c", head.ref, MessageRange(start=0, stop=9), wire=CHAT) == []
        await write(store, "c", erase=((1, 1),))
        assert await items(0, 4) is None
        assert await items(2, 4) == every[2:]
