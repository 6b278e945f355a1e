"""Runs `hitherto` in forks of one process that has imported it already.

Each command is a process of its own, as a user's is, without the second that imports take."""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock

from tests.patience import PATIENCE

_PROGRAM = """
import gc, json, os, pkgutil, runpy, sys
import hitherto.cli, hitherto.providers.wordllama
import hitherto.stores.postgres.embedded.server, hitherto.stores.postgres.store
for module in pkgutil.walk_packages(hitherto.cli.__path__, "hitherto.cli."):
    __import__(module.name)

gc.freeze()
for line in sys.stdin:
    order = json.loads(line)
    child = os.fork()
    if child == 0:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    os._exit(0)

for stream, path, flags in (0, os.devnull, os.O_RDONLY), (1, order["out"], os.O_WRONLY), (2, order["err"], os.O_WRONLY):
    opened = os.open(path, flags)
    os.dup2(opened, stream)
    os.close(opened)
os.environ.clear()
os.environ.update(order["environment"])
os.chdir(order["folder"])
sys.argv = ["hitherto", *order["words"]]
runpy.run_module("hitherto", run_name="__main__", alter_sys=True)
"""


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it printed."""

    code: int
    out: bytes
    err: bytes


def run(*words: str, environment: Mapping[str, str]) -> Ended:
    """Run `hitherto` with `words` to its end, with nothing on standard input. TimeoutError: it took `PATIENCE`."""
    with tempfile.TemporaryDirectory() as folder, _one_at_a_time:
        out, err = Path(folder, "out"), Path(folder, "err")
        out.touch()
        err.touch()
        order = {
            "words": words,
            "environment": dict(environment),
            "folder": os.getcwd(),
            "out": str(out),
            "err": str(err),
        }
        code = _process_that_forks().run(order)
        return Ended(code, out.read_bytes(), err.read_bytes())


class _Forking:
    """The process that forks; it ends with this one."""

    def __init__(self) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM], stdin=pipe, stdout=pipe, start_new_session=True
        )
        atexit.register(self._process.communicate)  # which closes its standard input

    def run(self, order: object) -> int:
        """The exit code of what `order` says."""
        given, said = self._process.stdin, self._process.stdout
        assert given is not None
        assert said is not None
        given.write(json.dumps(order).encode() + b"\n")
        given.flush()
        if not select.select([said], [], [], PATIENCE)[0]:
            os.killpg(self._process.pid, signal.SIGKILL)
            _process_that_forks.cache_clear()
            raise TimeoutError(f"still running after {PATIENCE:g} s: {order}")
        return int(said.readline())


_one_at_a_time = Lock()
_process_that_forks = cache(_Forking)
