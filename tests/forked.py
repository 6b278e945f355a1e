"""Runs programs of Hitherto's in forks of one process that has imported everything already.

Each program is a process of its own, as a user's is, without the seconds that imports and tables take."""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[1]

_PROGRAM = """
import atexit, gc, json, os, pkgutil, runpy, signal, socket, sys, threading
import hitherto, tests.engine.log.writer, tests.faults.worker, tests.faults.writer
from hitherto.providers import wordllama
from hitherto.tokens.counters import BpeCounter
# Anthropic's package takes a second, and few programs need it.
left_out = "__main__", "hitherto.providers.anthropic", "hitherto.testing"
for module in pkgutil.walk_packages(hitherto.__path__, "hitherto."):
    if not any(name in module.name for name in left_out):
        __import__(module.name)
wordllama._model()
BpeCounter("o200k_base").count("")

gc.freeze()
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
orders = socket.socket(fileno=0)
while True:
    begun, ends, _, _ = socket.recv_fds(orders, 1, 5)
    if not begun:
        os._exit(0)
    order, given_in, out, err, status = ends
    if os.fork() == 0:
        # This process waits for the program, so that the other one can take the next order.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        program = os.fork()
        if program == 0:
            break
        os.write(status, b"%d " % program)
        os.close(out)
        os.close(err)
        os.write(status, b"%d" % os.waitstatus_to_exitcode(os.waitpid(program, 0)[1]))
        os._exit(0)
    for end in ends:
        os.close(end)

orders.detach()
os.close(status)
for stream, opened in (0, given_in), (1, out), (2, err):
    os.dup2(opened, stream)
    os.close(opened)
# The streams that this process had remember whether they were files.
sys.stdout = open(1, "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors, closefd=False)
sys.stderr = open(2, "w", 1, encoding=sys.stderr.encoding, errors=sys.stderr.errors, closefd=False)
with open(order) as opened:
    given = json.load(opened)
os.environ.clear()
os.environ.update(given["environment"])
os.chdir(given["folder"])
sys.argv = [given["module"], *given["words"]]
code = 0
try:
    runpy.run_module(given["module"], run_name="__main__", alter_sys=True)
except SystemExit as ended:
    code = ended.code or 0
# As an interpreter ends, but without taking apart all that was imported.
threading._shutdown()
atexit._run_exitfuncs()
sys.stdout.flush()
sys.stderr.flush()
os._exit(code)
"""


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it printed."""

    code: int
    out: bytes
    err: bytes


class Program:
    """`hitherto` with `words`, which runs. Its standard input comes from `their_in`, or is empty."""

    def __init__(
        self, *words: str, environment: Mapping[str, str], out: int, err: int, their_in: int | None = None
    ) -> None:
        self._words = words
        self._status = _order("hitherto", words, environment, Path.cwd(), out, err, their_in)
        self._said = b""

    @property
    def code(self) -> int | None:
        """How it ended; None while it runs."""
        self._hear(0)
        return int(self._said.split()[1]) if self._status is None else None

    def wait(self) -> int:
        """How it ended, once it has. TimeoutError: it took `PATIENCE`, and was killed."""
        while self._status is not None:
            if not self._hear(PATIENCE):
                self.send_signal(signal.SIGKILL)
                raise TimeoutError(f"still running after {PATIENCE:g} s: {self._words}")
        return int(self._said.split()[1])

    def send_signal(self, number: int) -> None:
        """Does nothing if it has ended."""
        while b" " not in self._said:
            assert self._hear(PATIENCE)
        if self.code is None:
            os.kill(int(self._said.split()[0]), number)

    def _hear(self, patience: float) -> bool:
        if self._status is None or not select.select([self._status], [], [], patience)[0]:
            return False
        more = os.read(self._status, 100)
        self._said += more
        if not more:
            os.close(self._status)
            self._status = None
        return True


def run(*words: str, environment: Mapping[str, str], given: bytes = b"") -> Ended:
    """Run `hitherto` with `words` to its end, with `given` on its standard input. Raises what `Program.wait` does."""
    their_in, ours = os.pipe()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        program = Program(*words, environment=environment, out=out.fileno(), err=err.fileno(), their_in=their_in)
        os.close(their_in)
        with open(ours, "wb") as writing, suppress(BrokenPipeError):
            writing.write(given)
        code = program.wait()
        out.seek(0)
        err.seek(0)
        return Ended(code, out.read(), err.read())


class Process:
    """A program that runs, as `asyncio.subprocess.Process` is one."""

    def __init__(self, pid: int, status: asyncio.StreamReader, out: asyncio.StreamReader, err: asyncio.StreamReader):
        self.pid = pid
        self.stdout = out
        self.stderr = err
        self._ending = asyncio.create_task(status.read())

    @classmethod
    async def start(cls, module: str, *words: str, environment: Mapping[str, str]) -> Process:
        """Starts `python -m MODULE WORDS…` at the project's root, with nothing on standard input."""
        (out, their_out), (err, their_err) = os.pipe(), os.pipe()
        status = _order(module, words, environment, ROOT, their_out, their_err, None)
        os.close(their_out)
        os.close(their_err)
        readers = [await _reader(end) for end in (status, out, err)]
        return cls(int(await readers[0].readuntil(b" ")), *readers)

    @property
    def returncode(self) -> int | None:
        return int(self._ending.result()) if self._ending.done() else None

    def send_signal(self, number: int) -> None:
        """Does nothing if the program has ended."""
        if not self._ending.done():
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    async def wait(self) -> int:
        return int(await self._ending)


async def _reader(end: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=1 << 24)  # what nobody reads does not stop the program
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(end, "rb")
    )
    return reader


def _order(
    module: str,
    words: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    out: int,
    err: int,
    their_in: int | None,
) -> int:
    """Have a program started; the end of a pipe on which its process id and later its exit code come."""
    status, theirs = os.pipe()
    order = {"module": module, "words": words, "environment": dict(environment), "folder": str(folder)}
    with tempfile.TemporaryFile() as file, open(os.devnull, "rb") as nothing:
        file.write(json.dumps(order).encode())
        file.seek(0)
        given = nothing.fileno() if their_in is None else their_in
        socket.send_fds(_process_that_forks(), [b"."], [file.fileno(), given, out, err, theirs])
    os.close(theirs)
    return status


@cache
def _process_that_forks() -> socket.socket:
    """Where its orders go. It ends with this process."""
    orders, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM], stdin=theirs.fileno(), cwd=ROOT, start_new_session=True
        )

    def end() -> None:
        orders.close()
        process.wait()

    atexit.register(end)
    return orders
