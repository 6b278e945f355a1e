"""The stage of the fault tests: a model, workers and writers as processes, and the tables."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from functools import cache
from pathlib import Path

import pytest

import hitherto
from hitherto import assistant, user
from hitherto.engine.conversation import Conversation
from hitherto.engine.memory import Memory
from tests.conftest import SCOPE
from tests.faults.processes import Acknowledged, Program
from tests.faults.server import Server
from tests.faults.tables import Tables
from tests.faults.thinking import ThinkingModel
from tests.faults.writer import POLICY
from tests.patience import PATIENCE

PATIENT = {"lease_timeout": PATIENCE, "database_timeout": PATIENCE}
"""The settings of workers and writers where nobody dies: a machine that stands still has nothing taken over."""


@cache
def lease() -> float:
    """Seconds until a digest is taken over, and for which the database is waited for: longer than a worker takes to
    start on this machine, as busy as it is."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", "import hitherto.wiring"], check=True, timeout=PATIENCE)
    return max(2.0, 3 * (time.monotonic() - began))


class Crew:
    """Starts processes on one database and one model. A worker's name is the key it shows to the model."""

    def __init__(self, database: str, model: ThinkingModel) -> None:
        self._database = database
        self._model = model
        self._started: list[Program] = []
        self._numbers = itertools.count(1)

    async def worker(self, name: str | None = None, /, *, jump: float = 0, **settings: object) -> Program:
        """A worker that has begun to take jobs; with `jump`, one whose clock jumps by so many seconds at SIGUSR1."""
        name = name or f"worker-{next(self._numbers)}"
        given: dict[str, object] = {
            "database": self._database,
            "database_timeout": lease(),
            "model": "small",
            "model_base_url": self._model.url,
            "model_key": name,
            "model_timeout": 30,
            "lease_timeout": lease(),
            "backoff": 0.2,
            **settings,
        }
        words = ("tests.faults.worker", str(jump), "worker") if jump else ("hitherto", "worker")
        program = await Program.start(name, *words, **given)
        self._started.append(program)
        await program.said("Worker started")
        return program

    async def workers(self, count: int, /, *, jump: float = 0, **settings: object) -> dict[str, Program]:
        """Some alike, by their names."""
        started = await asyncio.gather(*(self.worker(jump=jump, **settings) for _ in range(count)))
        return {worker.name: worker for worker in started}

    async def writer(self, *words: str, appends: int = 1_000_000, **settings: object) -> Program:
        """A writer on the conversations `words`."""
        name = f"writer-{next(self._numbers)}"
        given: dict[str, object] = {"database": self._database, "database_timeout": lease(), **settings}
        program = await Program.start(name, "tests.faults.writer", name, str(appends), *words, **given)
        self._started.append(program)
        return program

    async def aclose(self) -> None:
        await asyncio.gather(*(program.kill() for program in self._started))


class Api:
    """A process that appends and makes no digests: this one. `acknowledged` is what it has written."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.acknowledged: list[Acknowledged] = []
        self._numbers = itertools.count(1)

    def conversation(self, name: str) -> Conversation:
        return self.memory.conversation(name, scope=SCOPE, policy=POLICY)

    async def append(self, name: str = "c", *, key: str | None = None) -> Acknowledged:
        """One round more."""
        key = key or f"api-{next(self._numbers)}"
        words = f"{name}/{key}"
        done = await self.conversation(name).append(user(f"{words} asks"), assistant(f"{words} answers"), key=key)
        told = Acknowledged(name, key, done.start, done.end, done.rev, done.digest, done.replayed)
        self.acknowledged.append(told)
        return told

    async def fire(self, name: str = "c") -> int:
        """Append until that sets off a digest; its id."""
        while (digest := (await self.append(name)).digest) is None:
            continue
        return digest


@pytest.fixture
def model() -> Iterator[ThinkingModel]:
    with ThinkingModel() as thinking:
        yield thinking


@pytest.fixture
def tables(database: str) -> Tables:
    return Tables(database)


@pytest.fixture
async def crew(database: str, model: ThinkingModel) -> AsyncIterator[Crew]:
    made = Crew(database, model)
    yield made
    await made.aclose()


@pytest.fixture
async def api(database: str) -> AsyncIterator[Api]:
    async with hitherto.open(database, worker=False) as memory:
        yield Api(memory)


@pytest.fixture
async def own_server() -> AsyncIterator[Server]:
    """A server of the test's own, to be stopped."""
    folder = Path(tempfile.mkdtemp(prefix="hitherto-"))
    server = await Server.start(folder / "pg")
    yield server
    await server.end()
    shutil.rmtree(folder, ignore_errors=True)
