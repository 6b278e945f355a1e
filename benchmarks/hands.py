"""A process of a fleet, for benchmarks: `python -m benchmarks.hands ROLE URL …`, told to go on standard input.

It says `{"ready": true}` on a line of standard output, begins when it reads a line, says what it found on another, and
ends when standard input does.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from random import Random
from typing import Any

import hitherto
from benchmarks.ground import turn
from hitherto import Memory, Scope, sliding_window
from hitherto.core.prompt import Prompt
from hitherto.ports.models import Completion, Model
from hitherto.providers.scripted import items
from hitherto.tokens import CANONICAL

TEXT = 12
"""Tokens of a message's text."""


class AtOnce(Model):
    """Answers at once, and is in the ledger; but nobody before `let_go`."""

    def __init__(self) -> None:
        self._text = items("They talked about the plan, and agreed on it.")
        self._asked, self._going = asyncio.Event(), asyncio.Event()

    @property
    def name(self) -> str:
        return "at-once"

    @property
    def input_limit(self) -> int:
        return 100_000

    async def asked(self) -> None:
        """Returns when somebody waits for an answer."""
        await self._asked.wait()

    def let_go(self) -> None:
        self._going.set()

    async def complete(self, prompt: Prompt) -> Completion:
        if not self._going.is_set():
            self._asked.set()
            await self._going.wait()
        return Completion(text=self._text, tokens_in=300, tokens_out=15)

    async def aclose(self) -> None:
        pass


def place(memory: Memory, number: int) -> hitherto.Conversation:
    """One of a fleet's conversations, ten of them to a user and a hundred users to a tenant."""
    user = number // 10
    scope = Scope(tenant=f"tenant {user // 100}", user=f"user {user}", agent="bench")
    return memory.conversation(f"conversation {number}", scope=scope, policy=sliding_window())


async def work(url: str, *, held: bool) -> None:
    """Make digests; where it is `held`, it is ready once it has one in hand and goes on only when told."""
    model = AtOnce()
    if not held:
        model.let_go()
    async with hitherto.open(url, model=model, encoding=CANONICAL, worker=True):
        if held:
            await model.asked()
        await _told()
        model.let_go()
        _say({})
        await _told()


async def write(url: str, *, first: int, last: int, rounds: int) -> None:
    """Append a question and its answer to each of the conversations, then the next to each, and so on."""
    random, seconds = Random(first), list[float]()
    async with hitherto.open(url, model=AtOnce(), encoding=CANONICAL, worker=False) as memory:
        await _told()
        chats = [place(memory, number) for number in range(first, last)]
        for number in range(rounds):
            for chat in chats:
                pair = turn(random, TEXT)
                begun = time.perf_counter()
                await chat.append(*pair, key=f"round {number}")
                seconds.append(time.perf_counter() - begun)
        _say({"seconds": seconds})
        await _told()


async def _told() -> None:
    """Ready, until the next line of standard input, or its end."""
    _say({"ready": True})
    await asyncio.to_thread(sys.stdin.readline)


def _say(what: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def main() -> None:
    role, url, *numbers = sys.argv[1:]
    if role == "write":
        first, last, rounds = map(int, numbers)
        asyncio.run(write(url, first=first, last=last, rounds=rounds))
    else:
        asyncio.run(work(url, held=role == "held"))


if __name__ == "__main__":
    main()
