"""Replaying transcripts: each round takes a context, then appends, as an application would."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from hitherto.cli.transcript import Transcript
from hitherto.core.budget import TokenCounter
from hitherto.core.digest import Digest, Done, Status
from hitherto.core.manifest import Fate, Manifest
from hitherto.core.message import CHAT, RESPONSES, Message
from hitherto.core.policy import Policy
from hitherto.core.scope import Scope
from hitherto.engine.context import Context
from hitherto.engine.conversation import Conversation
from hitherto.engine.memory import Memory
from hitherto.errors import Conflict, OverBudget
from hitherto.simulation.figures import share
from hitherto.simulation.repeats import Repeats
from hitherto.wire import codec

_MARK = "hitherto_replay"
_AT_ONCE = 4
_CHAT = codec(CHAT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One request of a replay: the seq of its user message, what it costs with and without a memory, and how many of
    its first tokens repeat the request before."""

    seq: int
    full_tokens: int
    context_tokens: int
    repeated: int
    digest_end: int | None
    asked: str


@dataclass(slots=True, kw_only=True)
class Replayed:
    """What a replay of one conversation found. `gaps` and `overlaps` count, over all contexts, messages without a
    fate and with two; `over_budget` counts contexts. `digests` are all firings of stages, in order."""

    id: str
    messages: int = 0
    rounds: list[Round] = field(default_factory=list[Round])
    over_budget: int = 0
    gaps: int = 0
    overlaps: int = 0
    digests: list[Digest] = field(default_factory=list[Digest])
    last: Context | None = None

    @property
    def full_tokens(self) -> int:
        return sum(one.full_tokens for one in self.rounds)

    @property
    def context_tokens(self) -> int:
        return sum(one.context_tokens for one in self.rounds)

    @property
    def max_context_tokens(self) -> int:
        return max((one.context_tokens for one in self.rounds), default=0)

    @property
    def failed(self) -> list[Digest]:
        return [digest for digest in self.digests if digest.status is Status.FAILED]

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "messages": self.messages,
            "rounds": len(self.rounds),
            "full_tokens": self.full_tokens,
            "context_tokens": self.context_tokens,
            "max_context_tokens": self.max_context_tokens,
            "repeated": round(repeated([self]), 6),
            "over_budget": self.over_budget,
            "gaps": self.gaps,
            "overlaps": self.overlaps,
            "digests": [
                {
                    "id": digest.id,
                    "start": digest.start,
                    "end": digest.end,
                    "base": digest.base,
                    "done": digest.done.value,
                    "status": digest.status.value,
                    "tokens": digest.tokens,
                }
                for digest in self.digests
            ],
            "per_round": [
                {
                    "seq": one.seq,
                    "full_tokens": one.full_tokens,
                    "context_tokens": one.context_tokens,
                    "digest_end": one.digest_end,
                }
                for one in self.rounds
            ],
        }


def repeated(found: Sequence[Replayed]) -> float:
    """The share of the tokens of all requests that repeats the request before, of the same conversation."""
    rounds = [one for replayed in found for one in replayed.rounds]
    return share(sum(one.repeated for one in rounds), sum(one.context_tokens for one in rounds))


async def replay(
    memory: Memory,
    transcripts: Sequence[Transcript],
    *,
    scope: Scope,
    policy: Policy,
    budget: int,
    counter: TokenCounter,
    advance: Callable[[], None] = lambda: None,
) -> list[Replayed]:
    """Replay conversations from their beginning, a few at once; earlier replays of the same names are replaced.

    Digests are waited for after every round, so that the outcome is the same each time; `advance` is called then.
    Everything is checked before anything is changed. Raises OverBudget naming the round whose message does not fit,
    Conflict when a conversation of that name exists that no replay made.
    """
    costs = [[_CHAT.tokens(message.payload, counter) for message in one.messages] for one in transcripts]
    chats = [memory.conversation(one.id, scope=scope, policy=policy) for one in transcripts]
    for transcript, own, chat in zip(transcripts, costs, chats, strict=True):
        _check_fits(transcript, own, budget)
        await _check_replaceable(chat)
    room = asyncio.Semaphore(_AT_ONCE)

    async def one(transcript: Transcript, own: Sequence[int], chat: Conversation) -> Replayed:
        async with room:
            await chat.delete()
            return await _replayed(memory, transcript, own, chat, budget=budget, counter=counter, advance=advance)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(*each)) for each in zip(transcripts, costs, chats, strict=True)]
    except ExceptionGroup as failures:
        # The first failure cancelled the others; who called sees it as if there had been one conversation only.
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


async def _replayed(
    memory: Memory,
    transcript: Transcript,
    costs: Sequence[int],
    chat: Conversation,
    *,
    budget: int,
    counter: TokenCounter,
    advance: Callable[[], None],
) -> Replayed:
    found = Replayed(id=transcript.id)
    # Opaque items travel in this format alone.
    policy = await chat.policy()
    wire = RESPONSES if policy.doing(Done.COMPACT) else CHAT
    repeats = Repeats(codec(wire), counter)
    full = list(accumulate(costs, initial=_CHAT.framing))
    for portion in transcript.rounds():
        first = portion[0]
        if first.opens_turn:
            found.last = context = await chat.context(first, budget=budget, wire=wire)
            account(found, context.manifest)
            found.rounds.append(
                Round(
                    seq=found.messages,
                    full_tokens=full[found.messages + 1],
                    context_tokens=context.tokens,
                    repeated=repeats.of(context.request),
                    digest_end=_digest_end(context.manifest),
                    asked=first.text,
                )
            )
        head = _marked(first) if found.messages == 0 else first
        appended = await chat.append(head, *portion[1:], expect=found.messages)
        found.messages = appended.end + 1
        await memory.settled()
        if policy.recalls:
            await memory.indexed()  # what is recalled depends on what is found
        if first.opens_turn:
            advance()
    found.digests = [digest for digest in await chat.digests() if digest.done is not Done.CLEAR]
    return found


def _check_fits(transcript: Transcript, costs: Sequence[int], budget: int) -> None:
    for seq, (message, cost) in enumerate(zip(transcript.messages, costs, strict=True)):
        by = _CHAT.framing + cost - budget
        if message.opens_turn and by > 0:
            raise OverBudget(
                f"{transcript.id}: the user message with seq {seq} takes {budget + by:,} tokens, {by:,} more than the "
                f"budget of {budget:,}; raise --budget by at least {by:,}. Nothing was changed",
                over_by=by,
            )


async def _check_replaceable(chat: Conversation) -> None:
    first = await chat.messages(limit=1)
    if first and _MARK not in json.loads(first[0].message.metadata):
        raise Conflict(
            f"there is a conversation {chat.id!r} in scope {chat.scope} that was not made by a replay; choose another "
            "scope with --tenant, --user or --agent, or rename the transcript. Nothing was changed"
        )


def _marked(message: Message) -> Message:
    return message.with_metadata({**json.loads(message.metadata), _MARK: True})


def _digest_end(manifest: Manifest) -> int | None:
    return max((span.end for span in manifest.fates if span.fate is Fate.DIGESTED), default=None)


def account(found: Replayed, manifest: Manifest) -> None:
    """Count what is wrong with a context: over its budget, messages without a fate, messages with two."""
    if manifest.total + manifest.reserve > manifest.budget:
        found.over_budget += 1
    steps: Counter[int] = Counter()
    for span in manifest.fates:
        steps[span.start] += 1
        steps[span.end + 1] -= 1
    at = fates = 0
    for seq in sorted({*steps, found.messages}):
        found.gaps += (seq - at) * (fates == 0 and seq <= found.messages)
        found.overlaps += (seq - at) * (fates > 1)
        at, fates = seq, fates + steps[seq]
