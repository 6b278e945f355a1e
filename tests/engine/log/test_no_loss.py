"""Promise 1: what was acknowledged is there, whatever was killed. Real processes, really killed."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest

import hitherto
from hitherto import assistant, user
from hitherto.core.digests.digest import Status
from hitherto.core.policy.span import Fate
from hitherto.providers.scripted import Scripted, items
from tests.conftest import SCOPE
from tests.engine.log.writer import TAKE_OVER_AFTER
from tests.forked import Process
from tests.patience import PATIENCE


class Writer:
    """A writing process and the appends it reported as acknowledged: key → first seq."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.acknowledged: dict[str, int] = {}

    @classmethod
    async def start(cls, where: str, conversation: str, name: str) -> Writer:
        return cls(await Process.start("tests.engine.log.writer", where, conversation, name, environment=os.environ))

    async def read(self, *, appends: int | None = None) -> None:
        """Take in reports: so many, or all that are left."""
        while appends is None or len(self.acknowledged) < appends:
            line = (await self.process.stdout.readline()).decode()
            if not line:
                assert appends is None, f"the writer ended after {len(self.acknowledged)} appends"
                return
            if line.endswith("\n") and not line.startswith("lost"):
                key, start = line.split()
                self.acknowledged[key] = int(start)

    async def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        await self.read()
        await self.process.wait()


async def check(given: dict[str, Any], conversation: str, writers: list[Writer]) -> None:
    """Everything acknowledged is in the log, dense and whole; the conversation goes on."""
    model = Scripted(then=items("They talk."))
    async with hitherto.open(model=model, lease_timeout=TAKE_OVER_AFTER, **given) as memory:
        chat = memory.conversation(conversation, scope=SCOPE)
        log = await chat.messages()
        assert [logged.seq for logged in log] == list(range(len(log)))
        assert len(log) % 2 == 0, "a batch is all or nothing"
        for writer in writers:
            assert writer.acknowledged
            for key, start in writer.acknowledged.items():
                assert [logged.message.text for logged in log[start : start + 2]] == [f"{key} asks", f"{key} answers"]
        # A retry of every acknowledged append writes nothing.
        for writer in writers:
            key, start = next(reversed(writer.acknowledged.items()))
            again = await chat.append(user(f"{key} asks"), assistant(f"{key} answers"), key=key)
            assert (again.start, again.replayed) == (start, True)
        # What the dead had in hand is taken over.
        async with asyncio.timeout(10 * TAKE_OVER_AFTER):
            while [row for row in await chat.digests() if row.status is Status.PROCESSING]:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        await chat.append(user("go on"), assistant("so we do"), key="on")
        await memory.wait_for_digests()
        digests = await chat.digests()
        assert digests[-1].status is Status.COMPLETED
        assert digests[-1].end == len(log) + 1
        assert {row.status for row in digests} == {Status.COMPLETED}, "none is given up"
        fates = (await chat.context(user("?"), budget=4_000)).manifest.fates
        assert sum(span.end - span.start + 1 for span in fates) == len(log) + 2
        assert any(span.fate is Fate.DIGESTED for span in fates)


async def test_kill_9_of_writers(database: str) -> None:
    """Three processes write one conversation; each is killed in the middle of it."""
    writers = [await Writer.start(database, "kill", name) for name in ("a", "b", "c")]
    for writer in writers:
        await writer.read(appends=40)
    for writer in writers:
        await writer.kill()
    await check({"database": database}, "kill", writers)


@pytest.fixture
async def folder() -> AsyncIterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="hitherto-"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


async def test_the_power_cord(folder: Path) -> None:
    """Writers, server and all its backends die at once; what was acknowledged is there when it comes up again."""
    home = folder / "pg"
    writers = [await Writer.start(str(home), "cord", name) for name in ("a", "b")]
    for writer in writers:
        await writer.read(appends=30)
    server = int((home / "data" / "postmaster.pid").read_text().splitlines()[0])
    victims = [server, *(child.pid for child in psutil.Process(server).children(recursive=True))]
    for pid in [*victims, *(writer.process.pid for writer in writers)]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    for writer in writers:
        await writer.kill()
    await check({"data_dir": home}, "cord", writers)


async def test_kill_9_of_the_server_alone(folder: Path) -> None:
    """The writer starts it again and goes on; nothing it was told is lost."""
    home = folder / "pg"
    writer = await Writer.start(str(home), "crash", "a")
    await writer.read(appends=30)
    server = int((home / "data" / "postmaster.pid").read_text().splitlines()[0])
    os.kill(server, signal.SIGKILL)
    try:
        async with asyncio.timeout(PATIENCE):
            await writer.read(appends=len(writer.acknowledged) + 30)
    finally:
        await writer.kill()
    await check({"data_dir": home}, "crash", [writer])
