"""A replay: a context for each request, and then its messages and their answer are appended, as an agent does."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from hitherto.cli.terminal.output import fields_of
from hitherto.cli.transcripts.transcript import FileConversation
from hitherto.core.context.budget import TokenCounter
from hitherto.core.context.manifest import Manifest
from hitherto.core.digests.digest import Digest, Status
from hitherto.core.log.frontier import DigestAction
from hitherto.core.log.message import CHAT, RESPONSES, Message
from hitherto.core.policy.policy import Policy
from hitherto.core.policy.span import Fate
from hitherto.core.scope import Scope
from hitherto.engine.context.context import Context
from hitherto.engine.conversation import Conversation
from hitherto.engine.memory import Memory
from hitherto.engine.pages import in_pages
from hitherto.errors import BudgetExceeded, Conflict
from hitherto.simulation.figures import Repeats, share
from hitherto.simulation.run import full_tokens, requests, sendable
from hitherto.wire import codec

_MARK = "hitherto_replay"
_AT_ONCE = 4
_CHAT = codec(CHAT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One request of a replay: the seq and the text of its first new message, its tokens with the full history and with
    the memory, and how many of its first tokens repeat the request before."""

    seq: int
    full_tokens: int
    context_tokens: int
    repeated: int
    digest_end: int | None
    text: str


@dataclass(slots=True, kw_only=True)
class Replayed:
    """What a replay of one conversation found. Over all contexts, `gaps` counts messages without a fate, `overlaps`
    those with two; `over_budget` counts contexts. `digests` are all firings of stages, in order. `last` is the context
    of the question that was asked in the end, if one was, and `full` what it takes with the full history."""

    id: str
    messages: int = 0
    sent: list[Sent] = field(default_factory=list[Sent])
    over_budget: int = 0
    gaps: int = 0
    overlaps: int = 0
    digests: list[Digest] = field(default_factory=list[Digest])
    last: Context | None = None
    later: Context | None = None
    full: int = 0

    @property
    def full_tokens(self) -> int:
        return sum(request.full_tokens for request in self.sent)

    @property
    def context_tokens(self) -> int:
        return sum(request.context_tokens for request in self.sent)

    @property
    def max_context_tokens(self) -> int:
        return max((request.context_tokens for request in self.sent), default=0)

    @property
    def failed(self) -> list[Digest]:
        return [digest for digest in self.digests if digest.status is Status.FAILED]

    def to_json(self) -> dict[str, Any]:
        digest_fields = ("id", "start", "end", "base", "action", "status", "tokens")
        return {
            "id": self.id,
            "messages": self.messages,
            "requests": len(self.sent),
            "full_tokens": self.full_tokens,
            "context_tokens": self.context_tokens,
            "max_context_tokens": self.max_context_tokens,
            "repeated": round(repeated([self]), 6),
            "over_budget": self.over_budget,
            "gaps": self.gaps,
            "overlaps": self.overlaps,
            "digests": [{name: getattr(one, name) for name in digest_fields} for one in self.digests],
            "per_request": [fields_of(request, "repeated", "text") for request in self.sent],
        }


def repeated(found: Sequence[Replayed]) -> float:
    """The share of the tokens of all requests that repeats the request before, of the same conversation."""
    sent = [request for replayed in found for request in replayed.sent]
    return share(sum(request.repeated for request in sent), sum(request.context_tokens for request in sent))


async def replay_all(
    memory: Memory,
    transcripts: Sequence[FileConversation],
    *,
    scope: Scope,
    policy: Policy,
    budget: int,
    counter: TokenCounter,
    question: str | None = None,
    advance: Callable[[], None] = lambda: None,
) -> list[Replayed]:
    """Replay conversations from their beginning, a few at once; earlier replays of the same names are replaced.

    `advance` is called for each request; see `requests`. In the end the `question` is asked of each. Before anything is
    changed, it is checked that there is no conversation of such a name that no replay made, and that the budget has
    room for each user message. Raises Conflict, and BudgetExceeded naming the message whose request cannot be made.
    """
    full = [full_tokens(transcript.messages, _CHAT, counter) for transcript in transcripts]
    conversations = [memory.conversation(transcript.id, scope=scope, policy=policy) for transcript in transcripts]
    for transcript, tokens, conversation in zip(transcripts, full, conversations, strict=True):
        _check_fits(transcript, tokens, budget)
        await _check_replaceable(conversation)
    room = asyncio.Semaphore(_AT_ONCE)

    async def replay(transcript: FileConversation, tokens: Sequence[int], conversation: Conversation) -> Replayed:
        async with room:
            await conversation.delete()
            if transcript.title is not None:
                await conversation.configure(title=transcript.title, create=True)
            found = await _replay(
                memory, transcript, tokens, conversation, budget=budget, counter=counter, advance=advance
            )
            if question is not None:
                asked = _CHAT.tokens({"role": "user", "content": question}, counter)
                found.full = tokens[-1] + asked
                found.last = await conversation.context(question, budget=budget)
                account(found, found.last.manifest)
                later = memory.conversation(f"after {transcript.id}", scope=scope, policy=policy)
                found.later = await later.context(question, budget=budget)
            return found

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(replay(*each)) for each in zip(transcripts, full, conversations, strict=True)]
    except ExceptionGroup as failures:
        # The first failure cancelled the others; it is raised as if there had been one conversation only.
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


async def _replay(
    memory: Memory,
    transcript: FileConversation,
    full: Sequence[int],
    conversation: Conversation,
    *,
    budget: int,
    counter: TokenCounter,
    advance: Callable[[], None],
) -> Replayed:
    found = Replayed(id=transcript.id)
    # Opaque items travel in this format alone.
    policy = await conversation.policy()
    wire = RESPONSES if policy.doing(DigestAction.COMPACT) else CHAT
    repeats = Repeats(codec(wire), counter)

    recall = "own" if policy.recall else None  # whatever else there is: each replay is the same

    async def ask(incoming: Sequence[Message]) -> Context:
        return await conversation.context(incoming, budget=budget, wire=wire, recall=recall)

    first, *rest = transcript.messages
    async for step, made in requests(memory, conversation, [_marked(first), *rest], ask):
        context, found.messages = sendable(transcript.id, step, made), step.seq
        account(found, context.manifest)
        found.sent.append(
            Sent(
                seq=step.seq,
                full_tokens=full[step.incoming.stop],
                context_tokens=context.tokens,
                repeated=repeats.of(context.request),
                digest_end=_digest_end(context.manifest),
                text=step.asked[0].text,
            )
        )
        advance()
    found.messages = len(transcript.messages)
    digests = in_pages(conversation.digests, lambda last: last.id, None)
    found.digests += [digest async for digest in digests if digest.action is not DigestAction.CLEAR]
    return found


def _check_fits(transcript: FileConversation, full: Sequence[int], budget: int) -> None:
    for seq, (message, (before, after)) in enumerate(zip(transcript.messages, pairwise(full), strict=True)):
        by = _CHAT.framing + after - before - budget
        if message.opens_turn and by > 0:
            raise BudgetExceeded(
                f"{transcript.id}: the user message with seq {seq} takes {budget + by:,} tokens, {by:,} more than the "
                f"budget of {budget:,}; raise --budget by at least {by:,}. Nothing was changed",
                over_by=by,
            )


async def _check_replaceable(conversation: Conversation) -> None:
    first = await conversation.messages(limit=1)
    if first and _MARK not in first[0].message.metadata:
        raise Conflict(
            f"there is a conversation {conversation.id!r} in scope {conversation.scope} that was not made by a replay; "
            "choose another scope with --tenant, --user or --agent, or rename the transcript. Nothing was changed"
        )


def _marked(message: Message) -> Message:
    return message.with_metadata({**message.metadata, _MARK: True})


def _digest_end(manifest: Manifest) -> int | None:
    return max((span.end for span in manifest.fates if span.fate is Fate.DIGESTED), default=None)


def account(found: Replayed, manifest: Manifest) -> None:
    """Count what is wrong with a context: a total over the budget, messages without a fate, messages with two."""
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
