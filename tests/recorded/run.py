"""Runs a history under a policy and collects its output as JSON values."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from hitherto import (
    Conversation,
    Memory,
    Policy,
    Scope,
    balanced,
    chunks,
    native,
    none,
    redact,
    rolling,
    sliding_window,
    summarize,
    token_threshold,
    trim,
    wire,
)
from hitherto.core.log.message import Wire
from tests.acceptance.dialogue import ONE_TRY, PLENTY
from tests.acceptance.family import ANA, ROSA
from tests.memories import open_on
from tests.recorded import internals
from tests.recorded.histories import HISTORIES, AddFact, Append, Checkpoint, Clear, History, Pop, Wait, tool_schemas
from tests.recorded.internals import Backend, BudgetExceeded

Value = Any
"""A JSON value; tuples, enums, mappings and times stand in it too."""

WIRES: dict[Wire, str | None] = {"openai.chat": None, "openai.responses": "gpt-5.2", "anthropic": "claude-sonnet-4-5"}
"""The wire formats, each with the model whose tokens are counted."""

AT: dict[str, Wire] = {
    "first": "openai.chat",
    "second": "openai.responses",
    "third": "anthropic",
    "before": "openai.responses",
}
"""The wire format of the contexts at a checkpoint; at the end of a history they are in all."""

MINUTE = timedelta(minutes=1)
"""Passes before each step."""

NOTHING_ELSE: dict[str, Any] = {"cross_session": (), "facts": False}
EVERYTHING: dict[str, Any] = {"facts": True, "recall": True, "cross_session": ("latest", "always")}


def policies(*, facts: bool) -> dict[str, Policy]:
    """Every preset, with small numbers. `facts`: those that can extract facts do."""
    return {
        "balanced": balanced(max_tokens=300, facts=facts),
        "none": none(),
        "sliding_window": sliding_window(window=10, after_seq=5, max_tokens=300, facts=facts),
        "token_threshold": token_threshold(threshold=800, keep_messages=6, max_tokens=300, facts=facts),
        "token_threshold_archive": token_threshold(800, 6, archive=True, max_tokens=300, facts=facts),
        "chunks": chunks(threshold=12, batch=8, context=6, top_k=2, max_tokens=200, facts=facts),
        "trim": trim(max_turns=7, keep_turns=3),
        "summarize": summarize(context_limit=7, keep_turns=3, max_tokens=300, facts=facts),
        "redact": redact(trigger_turns=4, keep=2),
        "redact_calls": redact(trigger_turns=4, keep=1, calls=True, at_least=100),
        "native": native(fraction=0.5, keep_messages=4),
        "rolling": rolling(threshold=14, keep_last=5, max_tokens=300, facts=facts),
    }


POLICIES = tuple(policies(facts=True))

_LEFT_OUT = {
    *(("plain", name) for name in ("token_threshold_archive", "redact_calls")),
    *(("two", name) for name in ("redact", "redact_calls")),
    ("agent", "token_threshold_archive"),
}
"""Left out: without tool calls there is nothing to redact, and one archive with long messages is enough."""

CASES = tuple(f"{history}/{name}" for history in HISTORIES for name in POLICIES if (history, name) not in _LEFT_OUT)
"""Each is a history under a policy."""


class Run:
    """One run; `pieces` is its output, piece by piece, each under a name."""

    def __init__(
        self, memory: Memory, history: History, policy: Policy, backend: Backend, wires: Collection[str]
    ) -> None:
        self.pieces: dict[str, Value] = {}
        self._memory, self._history, self._policy, self._backend = memory, history, policy, backend
        self._wires: dict[Wire, str | None] = {name: model for name, model in WIRES.items() if name in wires}
        self._chats: dict[str, Conversation] = {}
        self._steps: list[Value] = []

    async def run(self) -> None:
        for step in self._history.steps:
            await self._backend.wait(step.by if isinstance(step, Wait) else MINUTE)
            match step:
                case Append():
                    self._steps.append(await self._append(step))
                case Pop():
                    self._steps.append(["pop", await self._chat(step.to).pop()])
                case Clear():
                    self._steps.append(["clear", await self._chat(step.to).clear()])
                case AddFact():
                    await self._add(step)
                case Wait():
                    pass
                case Checkpoint():
                    await self._check(step)
            await self._memory.wait_for_digests()
        await self._end()

    def _chat(self, name: str) -> Conversation:
        if name not in self._chats:
            subject = ROSA if self._history.told else None
            chat = self._memory.conversation(name, scope=ANA, policy=self._policy, subject=subject)
            self._chats[name] = chat
        return self._chats[name]

    async def _append(self, step: Append) -> Value:
        batch = [wire.read(item, take_id=False) for item in step.items]
        if step.expires_in is not None:
            batch[-1] = batch[-1].expiring(datetime.now(UTC) + step.expires_in)
        done = await self._chat(step.to).append(*batch, key=step.key)
        return ["append", done.start, done.end, done.rev, done.replayed, done.digest, done.fired]

    async def _add(self, step: AddFact) -> None:
        facts = self._memory.facts(Scope(tenant=ANA.tenant, user=step.user, agent=ANA.agent), subject=ROSA)
        added = await facts.add(step.content, category=step.category)
        if step.shared:
            await facts.share(added.id)

    async def _check(self, point: Checkpoint) -> None:
        chat, small = self._chat(point.of), self._history.small
        await chat.view()  # erases what has expired, before the index is brought up to date
        await self._memory.wait_for_index()
        for to, model in self._wires.items():
            if AT.get(point.name, to) != to:
                continue
            given: dict[str, Any] = {"wire": to, "model": model, "instructions": "Be brief, be kind.", "reserve": 50}
            given |= {"tools": tool_schemas(to)} if self._history.tools else {}
            incoming = {**given, "incoming": point.incoming}
            for how, asked in {
                "large/no_incoming": {**given, "budget": PLENTY},
                "large/incoming_recall": {**incoming, **EVERYTHING, "budget": PLENTY},
                "small/no_incoming": {**given, "budget": small},
                "small/incoming": {**incoming, **NOTHING_ELSE, "budget": small},
                "small/incoming_recall": {**incoming, **EVERYTHING, "budget": small},
            }.items():
                self.pieces[f"{point.name}/{to}/{how}"] = await _context(chat, asked)
        chats = self._chats.items()
        self.pieces[f"{point.name}/log"] = {
            name: [internals.message(one) for one in await chat.messages()] for name, chat in chats
        }
        self.pieces[f"{point.name}/digests"] = {
            name: [internals.digest(row) for row in await chat.digests()] for name, chat in chats
        }

    async def _end(self) -> None:
        await self._memory.wait_for_index()
        self.pieces["steps"] = self._steps
        for to, model in self._wires.items():
            items = {name: await chat.items(wire=to, model=model) for name, chat in self._chats.items()}
            self.pieces[f"items/{to}"] = items
        self.pieces["injected"] = {name: await chat.injected() for name, chat in self._chats.items()}
        self.pieces["known"] = {name: await chat.known() for name, chat in self._chats.items()}
        self.pieces["facts"] = [internals.fact(one) for one in await self._memory.facts(ANA).list(state=None)]
        self.pieces["documents"] = [internals.document(one) for one in await self._memory.documents(ANA).list()]
        for number, question in enumerate(self._history.questions, 1):
            found = (await self._memory.recall(question, scope=ANA)).to_json()
            for one in found["hits"]:
                one["score"] = _rounded(one["score"])
                del one["scores"]
            self.pieces[f"recall/{number}"] = found


async def run_case(case: str, backend: Backend, *, wires: Collection[str] = WIRES) -> dict[str, Value]:
    """The output of a case on an empty store, with contexts in these wire formats; without times."""
    history, _, policy = case.partition("/")
    given = HISTORIES[history]
    settings: dict[str, Any] = {**ONE_TRY, "context_window": 2_000, "relevance_threshold": 0.3, "embedder_timeout": 60}
    settings |= {"cross_session": ("latest",) if given.told else (), **internals.doubles(given.told, given.failing)}
    async with open_on(backend.store, **settings) as memory:
        if given.told:
            await memory.configure_subject(tenant=ANA.tenant, subject=ROSA, name="Rosa", members=["ana", "ben"])
        run = Run(memory, given, policies(facts=bool(given.told))[policy], backend, wires)
        await run.run()
    return {name: timeless(piece) for name, piece in run.pieces.items()}


async def _context(chat: Conversation, asked: dict[str, Any]) -> Value:
    try:
        context = await chat.context(**asked)
    except BudgetExceeded as error:
        return {"over_by": error.over_by, "says": str(error)}
    manifest = context.manifest.to_json()
    for one in (*manifest["recalled"], *manifest["left_out"]):
        one["score"] = _rounded(one["score"])
    return {"request": context.request, "manifest": manifest}


_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?( UTC|Z|\+00:00)?)?")


def timeless(piece: Value) -> Value:
    """A piece with "TIME" in the place of each time, and without the hashes of requests, which may have times."""
    match piece:
        case datetime():
            return "TIME"
        case str():
            return _TIME.sub("TIME", piece)
        case Mapping():
            return {
                key: timeless(value) for key, value in cast("Mapping[str, Value]", piece).items() if key != "sha256"
            }
        case list() | tuple():
            return [timeless(one) for one in cast("Sequence[Value]", piece)]
        case _:
            return piece


def _rounded(score: float) -> float:
    """Rounded so far that processors agree: PostgreSQL keeps vectors in half precision."""
    return round(score, 1)
