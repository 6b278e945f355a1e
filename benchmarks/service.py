"""What the service adds to a verb, what row-level security does, and 200 conversations at once."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from random import Random

from psycopg.conninfo import make_conninfo

import hitherto
from benchmarks.ground import BUDGET, Ground, memory_on, turn
from benchmarks.measure import Side, Times, in_turns
from benchmarks.report import Bar, Figure, Findings
from hitherto import Conversation, Memory, Message, Scope, none
from hitherto.store.connections import row_security
from hitherto.store.embedded.server import SERVICE

_SCOPE = Scope(tenant="tenant", user="user", agent="bench")
_TEXT = 36
_ADDED, _ROW_SECURITY, _ERRORS, _HEALTH = Bar(limit=3), Bar(limit=0.2), Bar(limit=0), Bar(limit=50)

_ASK = """
import http.client, sys, time
url, seconds = sys.argv[1], float(sys.argv[2])
service, until = http.client.HTTPConnection(url.removeprefix("http://")), time.monotonic() + seconds
while time.monotonic() < until:
    before = time.perf_counter()
    service.request("GET", "/healthz")
    service.getresponse().read()
    print((time.perf_counter() - before) * 1_000)
    time.sleep(0.02)
"""
"""A program that asks for a service's health again and again, and prints how many milliseconds each answer took."""


async def run(ground: Ground) -> Findings:
    """The same verbs on the library as the tables' owner, on the library under row-level security, and over HTTP; then
    many conversations at once on the library and on the service, one after the other."""
    repetitions, warm_up = ground.size(1_000, quick=10), ground.size(100, quick=3)
    seconds, at_once = ground.size(60, quick=1), ground.size(200, quick=20)
    random = Random(47)
    turns = [turn(random, _TEXT) for _ in range(repetitions + warm_up)]
    figures = list[Figure]()
    async with ground.database() as url, memory_on(url, worker=False) as owner:
        await row_security.grant(url, SERVICE)
        address = make_conninfo(url, user=SERVICE)
        key = (await owner.keys(_SCOPE.tenant).create("bench")).secret
        async with (
            memory_on(address, worker=False) as secured,
            _serving(address) as service,
            hitherto.connect(service, key=key) as remote,
        ):
            sides = {"library": owner, "library, row-level security": secured, "service": remote}
            chats = {name: memory.conversation(name, scope=_SCOPE, policy=none()) for name, memory in sides.items()}
            for verb in ("append", "head", "context"):
                measured = await in_turns(
                    [Side(name, _Call(verb, chat, turns)) for name, chat in chats.items()],
                    repetitions=repetitions if verb != "context" else repetitions // 5,
                    warm_up=warm_up,
                )
                plain, under, over = (one.times.median * 1_000 for one in measured)
                figures += [
                    Figure(what=f"{verb}, library", value=plain, unit="ms"),
                    Figure(
                        what=f"added by row-level security to {verb}", value=under - plain, unit="ms", bar=_ROW_SECURITY
                    ),
                    Figure(what=f"added by the service to {verb}", value=over - under, unit="ms", bar=_ADDED),
                ]
            for name, memory in (("library", secured), ("service", remote)):
                asking = await _asking(service, seconds) if memory is remote else None
                times, errors = await _load(memory, name, turns, seconds=seconds, at_once=at_once)
                rounds = sorted(times.seconds)
                figures += [
                    Figure(what=f"{at_once} at once, {name}: errors", value=errors, bar=_ERRORS),
                    Figure(what=f"{at_once} at once, {name}: turns a second", value=len(rounds) / seconds),
                    Figure(
                        what=f"{at_once} at once, {name}: p99", value=rounds[len(rounds) * 99 // 100] * 1e3, unit="ms"
                    ),
                ]
                if asking is not None:
                    told = sorted(map(float, (await asking.communicate())[0].split()))
                    figures += [
                        Figure(what=f"{at_once} at once: /healthz, p50", value=told[len(told) // 2], unit="ms"),
                        Figure(what=f"{at_once} at once: /healthz, slowest", value=told[-1], unit="ms", bar=_HEALTH),
                    ]
    return Findings(
        figures,
        [
            f"Appends of two messages of {_TEXT} tokens with a key, {repetitions} of each; contexts of {BUDGET} "
            f"tokens. The service is a process of its own on the same cores, and asks for a key. For {seconds} s, "
            f"{at_once} conversations at once build a context and append two messages, again and again."
        ],
    )


class _Call:
    """A verb of a conversation, by the number of its repetition."""

    def __init__(self, verb: str, chat: Conversation, turns: list[tuple[Message, Message]]) -> None:
        self._verb, self._chat, self._turns = verb, chat, turns

    async def __call__(self, number: int) -> object:
        if self._verb == "append":
            return await self._chat.append(*self._turns[number], key=f"turn {number}")
        if self._verb == "head":
            return await self._chat.head()
        return await self._chat.context("What did we say?", budget=BUDGET, recall=False)


@asynccontextmanager
async def _serving(database: str) -> AsyncGenerator[str]:
    """The address of a service in a process of its own."""
    running = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "hitherto", "serve", "--database", database, "--port", "0"),
        *("--require-keys", "--no-worker"),
        stderr=asyncio.subprocess.PIPE,
    )
    assert running.stderr is not None
    try:
        while (found := re.search(rb"http://[\d.:]+\d", line := await running.stderr.readline())) is None:
            if not line:
                raise RuntimeError("the service has ended")
        yield found[0].decode()
    finally:
        running.terminate()
        await running.wait()


async def _asking(service: str, seconds: float) -> asyncio.subprocess.Process:
    """The program `_ASK`, in a process of its own: this one has enough to do."""
    words = (sys.executable, "-c", _ASK, service, str(seconds))
    return await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)


async def _load(
    memory: Memory, name: str, turns: list[tuple[Message, Message]], *, seconds: float, at_once: int
) -> tuple[Times, int]:
    """The times of turns, and how many ended with an error."""
    until = time.perf_counter() + seconds
    taken, errors = list[float](), 0

    async def talk(number: int) -> None:
        nonlocal errors
        chat = memory.conversation(f"{name} {number}", scope=_SCOPE)
        count = 0
        while (begun := time.perf_counter()) < until:
            try:
                await chat.context("What did we say?", budget=BUDGET, recall=False)
                await chat.append(*turns[count % len(turns)])
            except hitherto.HithertoError:
                errors += 1
            else:
                taken.append(time.perf_counter() - begun)
            count += 1

    await asyncio.gather(*(talk(number) for number in range(at_once)))
    return Times(tuple(taken)), errors
