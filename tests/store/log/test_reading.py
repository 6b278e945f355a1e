"""Ranges of messages and for probes, compared with their definitions."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from hitherto.core.log.append import marked
from hitherto.core.log.conversations import MessageRange
from hitherto.core.log.message import CHAT, RESPONSES, Kind, Logged
from hitherto.core.log.probe import DialogueAt, Freeable, Mark, Probe, SeqAt, TokensAt, ToolTokens, TurnAt
from hitherto.store.store import Store
from tests.store.samples import (
    SCOPE,
    any_messages,
    assistant,
    chances,
    head_of,
    log_of,
    user,
    write,
)

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
            assert await unit.probe(SeqAt(-1)) is None

    async def test_probes_find_nothing_in_a_new_conversation(self, store: Store) -> None:
        await write(store, "other", *any_messages(chances(0), 30))
        async with store.write(SCOPE, "new") as unit:
            assert await unit.probe(DialogueAt(1)) is None
            assert await unit.probe(TurnAt(1)) is None
            assert await unit.probe(TokensAt(1)) is None
            assert await unit.probe(SeqAt(5)) is None
            assert await unit.probe(ToolTokens(0, 5, True, ())) == Freeable(0, 0)
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
