"""Processes with Hitherto's own server that are told to stop: nothing is complained of, and digests get their grace."""

from __future__ import annotations

import asyncio
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hitherto
from hitherto import assistant, user
from tests.acceptance.cli.commands import processes_in
from tests.conftest import SCOPE
from tests.faults.processes import Program
from tests.faults.thinking import ThinkingModel
from tests.faults.writer import POLICY
from tests.lengths import at_length, lasting
from tests.patience import PATIENCE


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="hitherto-"))
    yield made
    shutil.rmtree(made)


SERVE, WORKER = (("serve", "--port", "0"), "Serving at"), (("worker",), "Worker started")
STOPS = [(*SERVE, signal.SIGTERM), (*WORKER, signal.SIGINT)]
MORE_STOPS = [(*SERVE, signal.SIGINT), (*WORKER, signal.SIGTERM)]


@lasting
@pytest.mark.parametrize(("words", "started", "number"), [*STOPS, *MORE_STOPS] if at_length() else STOPS)
async def test_a_digest_in_progress_gets_its_grace(
    words: tuple[str, ...], started: str, number: signal.Signals, folder: Path, model: ThinkingModel
) -> None:
    where = str(folder / "pg")
    endpoint: dict[str, Any] = {"model": "small", "model_base_url": model.url, "model_key": "k"}
    async with hitherto.open(data_dir=where, worker=False, **endpoint) as memory:
        chat = memory.conversation("c", scope=SCOPE, policy=POLICY)
        while (await chat.append(user("c/k asks"), assistant("c/k answers"))).digest is None:
            continue
    model.hold()
    program = await Program.start(words[0], "hitherto", *words, data_dir=where, grace=PATIENCE, **endpoint)
    await program.said(started)
    await program.said(f"Database: Hitherto's own PostgreSQL, in {where}")
    call = await model.asked(1)
    program.send(number)
    await program.said("digests in progress get")
    await asyncio.sleep(0.3)
    call.release("It was in time.")
    assert await program.ended() == 0
    assert [line for line in program.err if "ERROR" in line or "WARNING" in line or "Traceback" in line] == []
    assert program.err[-1].endswith("topped"), "it says so when all has ended"
    assert (processes_in(folder), len(model.calls)) == ([], 1)
    async with hitherto.open(data_dir=where, worker=False) as memory:
        (digest,) = await memory.conversation("c", scope=SCOPE).digests()
        assert (digest.status, digest.text) == ("completed", "It was in time.")
