"""A process that erases: two messages of each of SCOPE's conversations, and then everything of the user `ANN`.

python -m tests.faults.eraser

It says "begun" on standard error when it begins, and "ended" when nothing is left to do.
"""

from __future__ import annotations

import asyncio
import sys

import hitherto
from hitherto import Scope
from tests.conftest import SCOPE

ANN = Scope(tenant=SCOPE.tenant, user="ann-frobnik", agent="agent-wibble")


def say(word: str) -> None:
    print(word, file=sys.stderr, flush=True)  # noqa: T201 (it is what this program is for)


async def erase() -> None:
    async with hitherto.open(worker=False) as memory:
        page = await memory.conversations(SCOPE)
        say("begun")
        for one in page.conversations:
            await memory.conversation(one.conversation, scope=SCOPE).erase([0, 1])
        await memory.erase_user(ANN.tenant, ANN.user)
        await memory.wait_for_erasure()
        say("ended")


if __name__ == "__main__":
    asyncio.run(erase())
