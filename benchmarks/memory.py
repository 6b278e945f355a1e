"""How long a throw-away memory (`memory:`) takes to open, to empty and to close, and what a thousand of them leave."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory

import psutil

import hitherto
from benchmarks.ground import Ground
from benchmarks.report import Bar, Figure, Findings
from hitherto import Memory, Scope, assistant, user
from hitherto.store.embedded import throwaway

_SCOPE = Scope(tenant="acme", user="ada", agent="planner")

_OPEN = """
import asyncio, sys, time
import hitherto

async def main():
    for _ in range(int(sys.argv[1])):
        begun = time.perf_counter()
        async with hitherto.open("memory:", embedder="none"):
            print(time.perf_counter() - begun)

asyncio.run(main())
"""
"""Opens so many memories, one after the other, and prints how long each took."""


async def run(ground: Ground) -> Findings:
    """What is emptied has five turns, a digest and a fact. The table of words of the embedder is left out."""
    firsts = [(await _opened(1))[0] for _ in range(ground.size(15, quick=1))]
    count = ground.size(1_000, quick=5)
    with _folder() as folder:
        later = (await _opened(count, folder))[1:]
        left = _left_in(folder)
    tests, emptying = list[float](), list[float]()
    for _ in range(ground.size(100, quick=2)):
        test, took = await _test()
        tests.append(test)
        emptying.append(took)
    return Findings(
        [
            _figure("the first open of a process", firsts, Bar(limit=2_500)),
            _figure("a later one", later, Bar(limit=100)),
            _figure("emptying", emptying, Bar(limit=5)),
            _figure("a clean memory a test", tests, Bar(limit=60)),
            Figure(what=f"processes and folders that {count:,} memories left", value=left, bar=Bar(limit=0)),
        ],
        [
            "medians; p95 "
            + ", ".join(f"{_p95(times):,.0f}" for times in (firsts, later, emptying, tests))
            + " ms; the first open has the imports in it"
        ],
    )


async def _opened(count: int, folder: Path | None = None) -> list[float]:
    """How long each of so many memories took to open, in a process of its own, which has ended."""
    environment = None if folder is None else {**os.environ, "TMPDIR": str(folder)}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _OPEN, str(count)), env=environment, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    return [float(line) for line in said.split()]


@contextmanager
def _folder() -> Generator[Path]:
    with TemporaryDirectory(prefix="hitherto-bench-") as name:
        folder = Path(name)
        folder.chmod(0o1777)  # for the server's account, where this process is root's
        yield folder


def _left_in(folder: Path) -> int:
    """How many processes and folders there are of throw-away servers in a folder, ten seconds after their owners' end
    or as soon as there are none."""
    left = 0
    for _ in range(100):
        words = [" ".join(one.info["cmdline"] or []) for one in psutil.process_iter(["cmdline"])]
        left = sum(str(folder) in word for word in words) + len(list(folder.iterdir()))
        if not left:
            break
        time.sleep(0.1)
    return left


async def _test() -> tuple[float, float]:
    """How long a test's memory takes beside what the test does, and its emptying alone."""
    begun = time.perf_counter()
    database = throwaway.take()
    async with hitherto.open(database.url, embedder="none") as memory:
        opened = time.perf_counter()
        await _use(memory)
        used = time.perf_counter()
    closed = time.perf_counter()
    database.give_back()
    return time.perf_counter() - begun - (used - opened), time.perf_counter() - closed


async def _use(memory: Memory) -> None:
    chat = memory.conversation("c", scope=_SCOPE, policy="trim:max_turns=3,keep_turns=1")
    for number in range(5):
        await chat.append(user(f"Question {number}?"), assistant("Yes."))
    await memory.facts(_SCOPE).add("Plays the cello.")
    await memory.wait_for_digests()
    await chat.context(user("And?"))


def _figure(what: str, seconds: list[float], bar: Bar) -> Figure:
    return Figure(what=what, value=median(seconds) * 1_000, unit="ms", bar=bar)


def _p95(seconds: list[float]) -> float:
    return quantiles([*seconds, seconds[-1]], n=20, method="inclusive")[18] * 1_000
