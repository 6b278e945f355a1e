"""Erasure under kill -9: it is whole or not begun, goes on, and leaves no mark."""

from __future__ import annotations

import random
import signal
from collections.abc import AsyncIterator

import pytest

import hitherto
from hitherto import Memory, Scope
from hitherto.providers.scripted import Scripted, ScriptedEmbedder
from tests.acceptance.dialogue import ONE_TRY
from tests.conftest import SCOPE
from tests.engine.log.test_erase import remembers
from tests.faults.eraser import ANN
from tests.faults.processes import Program
from tests.lengths import at_length, lasting
from tests.postgres.test_erasure_bytes import SECRET, dump, filled, marks

CONVERSATIONS = 6
KILLS = 24 if at_length() else 2


@pytest.fixture
async def memory(database: str) -> AsyncIterator[Memory]:
    model = Scripted(then=remembers)
    embedder = ScriptedEmbedder(dimensions=64)
    async with hitherto.open(database, model=model, embedder=embedder, keep_contexts=99, **ONE_TRY) as opened:
        yield opened


async def _fill(memory: Memory, number: int) -> None:
    for scope in (SCOPE, ANN):
        for at in range(CONVERSATIONS):
            await filled(memory, scope, name=f"c-{number}-{at}", rounds=2)
        await memory.documents(scope).add(f"# Of {scope.user}\n\nA text, number {number}.")
    await memory.documents(ANN).add(f"# {SECRET}\n\nA text, number {number}.")
    await memory.facts(ANN).add(f"Sails with {SECRET} {number}.")
    await memory.wait_for_index()


async def _erased(memory: Memory, scope: Scope) -> list[bool]:
    """Of each conversation, whether its first two messages are erased; it fails where only one is."""
    found: list[bool] = []
    for one in (await memory.conversations(scope)).conversations:
        first = await memory.conversation(one.conversation, scope=scope).messages(stop=2)
        assert len({message.erased for message in first}) == 1
        found.append(first[0].erased)
    return found


@lasting
async def test_kill_9_between_exchanges(memory: Memory, database: str) -> None:
    """The first may end, to know how many exchanges with the database there are; the others die at moments among
    them, of which each part of the whole has one."""
    drawn, asked, last = random.Random(4), 0, 0
    for number in range(1 + KILLS):
        await _fill(memory, number)
        eraser = await Program.start("eraser", "tests.faults.eraser", str(last), database=database, embedder="none")
        assert await eraser.ended() == (-signal.SIGKILL if last else 0)
        asked = asked or next(int(line.split()[-1]) for line in eraser.err if line.startswith("asked"))
        last = 1 + int((number + drawn.random()) * asked / KILLS)
        await memory.wait_for_erasure()
        kept = (await memory.conversations(ANN)).conversations
        assert len(kept) in (0, CONVERSATIONS), "nobody is left half erased"
        if not all(await _erased(memory, SCOPE)) or kept:  # the caller had no answer, and asks again
            for one in (await memory.conversations(SCOPE)).conversations:
                await memory.conversation(one.conversation, scope=SCOPE).erase([0, 1])
            await memory.erase_user(ANN.tenant, ANN.user)
            await memory.wait_for_erasure()
        await memory.wait_for_digests()
        await memory.wait_for_erasure()
        after = await dump(database)
        assert [mark for mark in marks(SECRET, "frobnik") if mark in after] == []
        assert after.count("ann likes 1.") >= CONVERSATIONS * (number + 1), "the others' messages are there"
