"""A process that erases: two messages of each of SCOPE's conversations, and then everything of the user `ANN`.

python -m tests.faults.eraser EXCHANGES

It says "begun" on standard error when it begins, and after how many exchanges with the database it "asked" for all and
"ended". It kills itself after so many EXCHANGES; 0: it does not.
"""

from __future__ import annotations

import asyncio
import sys

import hitherto
from hitherto import Scope
from tests.conftest import SCOPE
from tests.faults.exchanges import count_exchanges

ANN = Scope(tenant=SCOPE.tenant, user="ann-frobnik", agent="agent-wibble")


def say(word: str) -> None:
    print(word, file=sys.stderr, flush=True)  # noqa: T201 (it is what this program is for)


async def erase(last: str) -> None:
    async with hitherto.open(worker=False) as memory:
        page = await memory.conversations(SCOPE)
        exchanges = count_exchanges(int(last))
        say("begun")
        for one in page.conversations:
            await memory.conversation(one.conversation, scope=SCOPE).erase([0, 1])
        await memory.erase_user(ANN.tenant, ANN.user)
        say(f"asked after {exchanges()}")
        await memory.wait_for_erasure()
        say(f"ended after {exchanges()}")


if __name__ == "__main__":
    asyncio.run(erase(*sys.argv[1:]))
