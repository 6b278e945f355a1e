"""A process that appends, makes no digests, and says on standard output what was acknowledged, one JSON object a line.

python -m tests.faults.writer NAME APPENDS [after] CONVERSATION...

It appends to the conversations in turn, so often in all, or until SIGTERM. What fails for the store's sake is tried
again with the same key. With `after` it kills itself as soon as its first commit has returned.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from dataclasses import asdict

import hitherto
from hitherto import assistant, sliding_window, user
from hitherto.core.changes import Changes
from hitherto.errors import StoreError
from hitherto.store.unit import Unit
from tests.conftest import SCOPE
from tests.faults.processes import Acknowledged

POLICY = sliding_window(window=8, after_seq=2)
_REST = 0.02


def _die_after_commit() -> None:
    commit = Unit.commit

    async def commits_and_dies(self: Unit, changes: Changes) -> tuple[int, ...]:
        await commit(self, changes)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("nobody outlives that")

    Unit.commit = commits_and_dies


async def write(name: str, appends: int, conversations: list[str]) -> None:
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    async with hitherto.open(worker=False) as memory:
        chats = [memory.conversation(one, scope=SCOPE, policy=POLICY) for one in conversations]
        for number in range(appends):
            chat, key = chats[number % len(chats)], f"{name}-{number}"
            words = f"{chat.id}/{key}"
            while not stopped.is_set():
                try:
                    done = await chat.append(user(f"{words} asks"), assistant(f"{words} answers"), key=key)
                except StoreError as error:
                    print(f"again: {error}", file=sys.stderr, flush=True)  # noqa: T201
                    await asyncio.sleep(_REST)
                else:
                    told = Acknowledged(chat.id, key, done.start, done.end, done.rev, done.digest, done.replayed)
                    print(json.dumps(asdict(told)), flush=True)  # noqa: T201 (it is what this program is for)
                    break


def main(name: str, appends: str, *conversations: str) -> None:
    if conversations[0] == "after":
        _die_after_commit()
        conversations = conversations[1:]
    asyncio.run(write(name, int(appends), list(conversations)))


if __name__ == "__main__":
    main(*sys.argv[1:])
