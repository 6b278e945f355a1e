"""Runs commands of `hitherto` in this process: one takes a tenth of what a process of its own does.

What makes a difference to a process (signals, closed streams, an ended interpreter) is tested with `tests.forked` or a
real start. `tests/test_docs.py` starts those of docs/cli.md for real."""

from __future__ import annotations

import io
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from unittest.mock import patch

from hitherto.cli import main
from hitherto.cli.terminal import output
from tests.forked import Ended
from tests.patience import PATIENCE


def call(*words: str, environment: Mapping[str, str]) -> Ended:
    """Run `hitherto` with `words` to its end. It may be called while a loop runs here, which waits. AssertionError: it
    did not end within `PATIENCE`."""
    printed, complained = io.BytesIO(), io.BytesIO()
    out, err = (io.TextIOWrapper(one, encoding="utf-8") for one in (printed, complained))
    codes: list[object] = []

    def run() -> None:
        try:
            main()
        except SystemExit as ended:
            codes.append(ended.code)

    with _as_a_process(words, environment), redirect_stdout(out), redirect_stderr(err):
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(PATIENCE)
        out.flush()
        err.flush()
    assert codes, f"still running after {PATIENCE:g} s: {words}"
    code = codes[0]
    assert isinstance(code, int)
    return Ended(code, printed.getvalue(), complained.getvalue())


@contextmanager
def _as_a_process(words: tuple[str, ...], environment: Mapping[str, str]) -> Generator[None]:
    """What a command changes of its process, and leaves to the end of that, is as before when it is left."""
    root, standard_output = logging.getLogger(), os.dup(1)
    handlers = root.handlers[:]
    # A thread cannot have signals handled. A command sets nothing up for those that have a handler.
    before = {number: signal.signal(number, lambda *_: sys.exit(1)) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        with (
            patch.dict(os.environ, environment, clear=True),
            patch.object(sys, "argv", ["hitherto", *words]),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore", DeprecationWarning)
            for console in output.out, output.err:  # they keep the width
                console.cache_clear()
            yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        root.handlers[:] = handlers
        os.dup2(standard_output, 1)
        os.close(standard_output)
