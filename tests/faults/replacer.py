"""A process that answers anew: one turn with `at`, of a call, its result and an answer.

python -m tests.faults.replacer KEY AT QUESTION EXCHANGES

Without a QUESTION (""), message AT is answered anew. It says "begun" on standard error when the turn begins, and
"ended" when it has. It kills itself after so many EXCHANGES with the database in between; 0: it does not.
"""

from __future__ import annotations

import asyncio
import sys

import hitherto
from hitherto import Call, Conversation, Turn, assistant, tool_result
from tests.conftest import SCOPE
from tests.faults.eraser import say
from tests.faults.exchanges import count_exchanges


def turn(chat: Conversation, key: str, at: int, question: str) -> Turn:
    return chat.turn(question or None, at=at, key=key)


async def answer(turn: Turn, key: str) -> None:
    async with turn:
        if not turn.replayed:
            await turn.add(assistant(calls=[Call(id=key, name="look")]))
            await turn.add(tool_result(key, f"{key} finds"))
            await turn.add(f"{key} answers")


async def replace(key: str, at: str, question: str, exchanges: str) -> None:
    async with hitherto.open(worker=False) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        say("begun")
        count_exchanges(int(exchanges))
        await answer(turn(chat, key, int(at), question), key)
        say("ended")


if __name__ == "__main__":
    asyncio.run(replace(*sys.argv[1:]))
