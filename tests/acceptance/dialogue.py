"""What the seeds' acceptance tests share: rounds of a conversation, a model whose digests tell what is in them, and
short forms of what a context and its manifest say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import hitherto
from hitherto import Call, Context, Conversation, Memory, Message, assistant, tool_result, user
from hitherto.core.context.recalled import LEAD
from hitherto.core.digests.digest import Digest
from hitherto.core.digests.prompts import DigestTask, FactsOnlyTask
from hitherto.core.plain_text import END, RECORD
from hitherto.core.policy.span import Fate, Reason
from hitherto.ports.models import Prompt
from hitherto.providers.scripted import Scripted, items
from hitherto.store.store import Store
from tests.conftest import SCOPE
from tests.memories import open_on

Opened = Callable[..., AbstractAsyncContextManager[tuple[Memory, Conversation]]]
ONE_TRY: dict[str, Any] = {"model_max_attempts": 1, "digest_max_attempts": 1, "backoff": 0}
"""Settings with which a fault of the model fails the digest at once, and the next round begins another."""

PLENTY = 100_000
"""A budget that nothing here exceeds."""


def opener(store: Store, policy: hitherto.Policy | str | None = None) -> Opened:
    """Opens a memory on `store` with the conversation "conv_123" in it; `policy` is that conversation's."""

    @asynccontextmanager
    async def make(
        model: Scripted, *, of: hitherto.Policy | str | None = policy, **settings: Any
    ) -> AsyncGenerator[tuple[Memory, Conversation]]:
        async with open_on(store, model=model, **{**ONE_TRY, **settings}) as memory:
            yield memory, memory.conversation("conv_123", scope=SCOPE, policy=of)

    return make


async def made(memory: Memory) -> None:
    """Returns when no digest waits or is being made, whichever process set it off."""
    while (backlog := await memory.backlog()).due or backlog.claimed:  # noqa: ASYNC110 (another process sets no event)
        await asyncio.sleep(0.01)


def asks(number: int) -> Message:
    return user(f"question {number}")


def answers(number: int) -> Message:
    return assistant(f"answer {number}")


def said(first: int, last: int) -> list[str]:
    """The bodies of plain rounds `first` to `last`, numbered from 1: round n is seq 2n-2 and 2n-1."""
    return [f"{kind} {number}" for number in range(first, last + 1) for kind in ("question", "answer")]


async def round_(chat: Conversation, number: int, **options: Any) -> hitherto.AppendResult:
    """A plain round in one append."""
    return await chat.append(asks(number), answers(number), **options)


async def rounds(memory: Memory, chat: Conversation, numbers: Iterable[int], **options: Any) -> None:
    """Plain rounds, one append each; every digest is made before the next."""
    for number in numbers:
        await round_(chat, number, **options)
        await memory.wait_for_digests()


def looked_up(number: int, *, tool: str = "search", words: int = 60) -> list[Message]:
    """A turn with a tool: seq 4n-4 asks, 4n-3 calls, 4n-2 is the result, 4n-1 answers."""
    call = Call(id=f"call_{number}", name=tool, arguments=json.dumps({"query": f"topic {number}"}))
    return [
        asks(number),
        assistant(calls=[call]),
        tool_result(call.id, f"result {number}: " + "found " * words),
        answers(number),
    ]


def says_each(prompt: Prompt) -> str:
    """A model that makes one statement a message: which messages are in the digest can be read off its text. It finds
    no facts."""
    if isinstance(prompt.task, FactsOnlyTask):
        return items(facts=[])
    assert isinstance(prompt.task, DigestTask)
    return items(*((f"<{line.seq}>", [line.seq]) for line in prompt.task.lines))


def each(first: int, last: int) -> str:
    """What `says_each` makes of messages `first` to `last`."""
    return "\n".join(f"<{seq}>" for seq in range(first, last + 1))


def summary_of(first: int, last: int) -> str:
    """The same as a system message shows it: a line a statement, in a fence."""
    lines = "".join(f"- <{seq}>\n" for seq in range(first, last + 1))
    return f"Summary of the conversation so far:\n{RECORD}\n{lines}{END}"


def new_to(model: Scripted) -> list[int]:
    """The messages that the model was shown as new, call by call; pieces of a long one once."""
    found: list[int] = []
    for prompt in model.calls:
        if isinstance(prompt.task, DigestTask):
            found += dict.fromkeys(line.seq for line in prompt.task.lines)
    return found


def bodies(context: Context) -> list[str]:
    """What its items say, but for what was recalled: when a chunk is found depends on when it is indexed."""
    said = [str(item["content"]) for item in context.messages]
    return [text for text in said if not text.startswith(LEAD)]


def fates(context: Context) -> list[tuple[int, int, Fate, Reason]]:
    """Its fates, those next to each other as one that differ only in which chunk is shown in their place."""
    found: list[tuple[int, int, Fate, Reason]] = []
    for span in context.manifest.fates:
        if found and found[-1][2:] == (span.fate, span.reason):
            found[-1] = (found[-1][0], span.end, span.fate, span.reason)
        else:
            found.append((span.start, span.end, span.fate, span.reason))
    return found


def ranges(rows: Iterable[Digest]) -> list[tuple[int, int]]:
    return [(row.start, row.end) for row in rows]


def bytes_of(context: Context) -> list[str]:
    """Its items but for what was recalled, which has a zone of its own behind the verbatim ones."""
    return [json.dumps(item) for item in context.messages if not str(item.get("content")).startswith(LEAD)]


def check_begins_with(later: Context, earlier: Context) -> None:
    """The later one's items begin with those of the earlier one, to the byte, its incoming message included."""
    before = bytes_of(earlier)
    assert bytes_of(later)[: len(before)] == before
