"""Running a command's coroutine to an orderly end, also when the process is told to stop."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")

WAITED_FOR: dict[str, Any] = {"worker": True, "digest_tries": 1, "backoff": 0, "breaker_failures": 1_000_000}
"""Settings of a memory whose digests are each waited for: they are made here, and what fails has failed for good. One
that was put off would not be there for the rounds to come."""


def run(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """`asyncio.run`, but SIGTERM and SIGHUP cancel as Ctrl-C does: what is open gets closed, and the server that this
    process started stops with it. Raises SystemExit then, with 128 + the signal's number."""
    told: list[int] = []

    async def main() -> Result:
        task = asyncio.current_task()
        assert task is not None

        def stop(number: int) -> None:
            told.append(number)
            task.cancel()

        if sys.platform != "win32":
            for number in (signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) is signal.SIG_DFL:  # `nohup` has it ignored
                    asyncio.get_running_loop().add_signal_handler(number, stop, number)
        return await coroutine

    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        raise SystemExit(128 + told[0]) from None
