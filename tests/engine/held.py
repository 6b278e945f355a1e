"""A queue, a model and a compactor that a test holds in its hands: a digest begins and ends when the test says so."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field

from hitherto.core.digests.digest import DigestJob
from hitherto.core.digests.prompts import DigestTask
from hitherto.core.log.message import Payload
from hitherto.core.prompt import Prompt
from hitherto.engine.digests.tasks import TaskQueue
from hitherto.errors import ModelRejected, ModelUnavailable
from hitherto.ports.models import CompactionResult, Completion
from hitherto.providers.scripted import items
from hitherto.store.store import Store

OUTCOMES = ("good", "good", "good", "good", "plain", "down", "nothing", "nonsense", "defect")
"""How a model's answer turns out; the first is the rule."""


@dataclass(eq=False)
class Hold:
    """One job in hand: it waits at its first model call until `how` is known. `shown` are the seqs that the model saw
    as new, in the order of its prompts."""

    job: DigestJob
    how: str | None = None
    shown: list[int] = field(default_factory=list[int])
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    async def passed(self) -> str:
        self.reached.set()
        await self.opened.wait()
        assert self.how is not None
        return self.how


_hold: ContextVar[Hold] = ContextVar("hold")


class HeldQueue(TaskQueue):
    """Jobs wait until `begin`, and once begun at the model until `finish`."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.waiting: list[DigestJob] = []
        self.begun: list[Hold] = []
        self.all: list[Hold] = []

    def submit(self, job: DigestJob) -> None:
        self.waiting.append(job)

    def take(self, job: DigestJob) -> bool:
        return False

    def has_turn(self) -> bool:
        return False  # what the sweep finds is other tests' conversations

    async def begin(self) -> None:
        """Work on the oldest waiting job up to its first model call, or to its end if it needs none."""
        if not self.waiting:
            return
        assert self._work is not None
        hold = Hold(self.waiting.pop(0))
        self.all.append(hold)
        token = _hold.set(hold)
        hold.task = asyncio.create_task(self._run(hold))
        _hold.reset(token)
        await hold.reached.wait()
        if not hold.task.done():
            self.begun.append(hold)

    async def finish(self, how: str) -> None:
        """Let the oldest job in hand end, its model calls answered as `how` says."""
        if not self.begun:
            return
        hold = self.begun.pop(0)
        hold.how = how
        hold.opened.set()
        assert hold.task is not None
        await hold.task

    async def wait_for_digests(self, tenant: str | None = None, *, how: str = "good") -> None:
        while self.waiting or self.begun:
            await self.begin()
            await self.finish(how)

    async def aclose(self, *, grace: float) -> None:
        for hold in self.begun:
            assert hold.task is not None
            hold.task.cancel()
            await asyncio.wait([hold.task])

    async def _run(self, hold: Hold) -> None:
        assert self._work is not None
        try:
            await self._work(hold.job)
        finally:
            hold.reached.set()


class HeldModel:
    """`Model`: answers as the job in hand was told to end."""

    name = "held"
    input_limit = 3_000

    async def complete(self, prompt: Prompt) -> Completion:
        hold = _hold.get()
        if isinstance(prompt.task, DigestTask):
            hold.shown = list(dict.fromkeys([*hold.shown, *(line.seq for line in prompt.task.lines)]))
        how = await hold.passed()
        match how:
            case "down":
                raise ModelUnavailable("gone")
            case "nothing":
                return Completion(text="  ")
            case "nonsense":
                return Completion(text='{"add": [{"te')
            case "defect":
                raise RuntimeError("a defect in an adapter")
            case "plain":
                return Completion(text="They talk.")
            case _ if not isinstance(prompt.task, DigestTask):
                return Completion(text="They went on talking.")
            case _:
                seqs = dict.fromkeys(line.seq for line in prompt.task.lines)
                return Completion(text=items(*((f"<{seq}>", [seq]) for seq in seqs)))

    async def aclose(self) -> None:
        pass


class HeldCompactor:
    """`Compactor`: one opaque item for everything, numbered by what it was given."""

    name = "gpt-5.2"
    family = "gpt-5.2"

    async def check(self) -> None:
        pass

    async def compact(self, items: Sequence[Payload], *, instructions: str | None = None) -> CompactionResult:
        how = await _hold.get().passed()
        match how:
            case "down" | "nothing" | "nonsense":
                raise ModelRejected("no")
            case "defect":
                raise RuntimeError("a defect in an adapter")
            case _:
                return CompactionResult(items=({"type": "compaction", "encrypted_content": f"{len(items)} items"},))

    async def aclose(self) -> None:
        pass
