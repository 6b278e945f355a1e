"""The service runs here as a deployed one does: on PostgreSQL, its role owns nothing, and row-level security holds."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Iterator

import pytest
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

import hitherto
from hitherto import Memory
from hitherto.http.server.app import application
from hitherto.tokens import CANONICAL, counter_for


@pytest.fixture
def row_security() -> bool:
    """As a service reaches its database."""
    return True


@pytest.fixture
async def memory(database: str) -> AsyncIterator[Memory]:
    """The memory of a service, in its process."""
    async with hitherto.open(database, keep_contexts=10, row_security=True) as opened:
        yield opened


LONGEST = 0.5
"""Seconds of the event loop's own time that a request may take in one piece: others wait for so long, /healthz too.
At rest the longest takes 0.06, and a busy machine was seen to make ten times that of one. What took longer than this
was work of seconds; `test_health.py` looks closer, and looks again before it fails."""

REQUEST = RequestResponseCycle.run_asgi.__code__


@pytest.fixture(autouse=True)
def no_request_holds_up_others() -> Iterator[None]:
    """Fails a test in which a request did. Time of the garbage collector, which goes through all that the tests have
    made, does not count, nor does what a process does once."""
    pieces, run, collecting = [0.0], asyncio.Handle._run, _Collecting()

    def timed(handle: asyncio.Handle) -> None:
        before = time.thread_time() - collecting.seconds
        run(handle)
        taken = time.thread_time() - collecting.seconds - before
        task = getattr(getattr(handle, "_callback", None), "__self__", None)
        if isinstance(task, asyncio.Task) and getattr(task.get_coro(), "cr_code", None) is REQUEST:
            pieces.append(taken)

    counter_for(CANONICAL).count("")
    application().openapi()
    with collecting, pytest.MonkeyPatch.context() as patched:
        patched.setattr(asyncio.Handle, "_run", timed)
        yield
    assert max(pieces) <= LONGEST, f"of {len(pieces)} pieces, the longest took {max(pieces):.3f} s"


class _Collecting:
    """The garbage collector's time in the block, in seconds."""

    def __init__(self) -> None:
        self.seconds, self._began = 0.0, 0.0

    def __enter__(self) -> None:
        gc.callbacks.append(self._note)

    def __exit__(self, *_: object) -> None:
        gc.callbacks.remove(self._note)

    def _note(self, phase: str, _: dict[str, int]) -> None:
        now = time.thread_time()
        if phase == "start":
            self._began = now
        else:
            self.seconds += now - self._began
