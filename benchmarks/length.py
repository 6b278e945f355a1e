"""Whether a context gets dearer as its conversation gets longer."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from benchmarks.ground import BUDGET, Ground, carried, memory_on, text, turn
from benchmarks.measure import Side, in_turns
from benchmarks.report import Bar, Findings, ratio
from hitherto import Context, Conversation, Memory, Policy, Scope, none, sliding_window, user

_BAR = Bar(limit=1.3)
_SCOPE = Scope(tenant="tenant", user="user", agent="bench")
_TEXT = 121
"""With 4 tokens around it a message has 125. As lengths that are a multiple of 20 apart are then a whole number of the
budget's steps apart, the cut falls at the same place in both conversations."""
_BATCH = 100


async def run(ground: Ground) -> Findings:
    """The context of a long conversation ÷ that of a short one, both longer than the budget."""
    long, short = ground.size(10_000, quick=200), 20
    repetitions, warm_up = ground.size(500, quick=10), ground.size(50, quick=3)
    policies: list[Callable[[], Policy]] = [none, sliding_window]
    incoming = user(text(Random(3), 30))
    findings = Findings()
    async with ground.database() as url, memory_on(url) as memory:
        chats = [await _filled(memory, messages, policy()) for policy in policies for messages in (long, short)]
        await ground.settle(url)

        async def context(chat: Conversation) -> Context:
            return await chat.context(incoming, budget=BUDGET)

        def side(chat: Conversation) -> Side:
            return Side(f"context, {chat.id}", lambda _: context(chat))

        measured = await in_turns([side(chat) for chat in chats], repetitions=repetitions, warm_up=warm_up)
        findings.notes.append(
            f"{repetitions} contexts a side, budget {BUDGET:,}. What each carried: "
            + "; ".join([f"{chat.id}: {carried(await context(chat))}" for chat in chats])
            + "."
        )
    for at in range(0, len(measured), 2):
        findings.figures.append(ratio(measured[at], measured[at + 1], bar=_BAR))
    return findings


async def _filled(memory: Memory, messages: int, policy: Policy) -> Conversation:
    """A conversation of so many messages, and no digest in progress."""
    random = Random(2)
    chat = memory.conversation(f"{policy.name}, {messages:,} messages", scope=_SCOPE, policy=policy)
    for start in range(0, messages, _BATCH):
        turns = [turn(random, _TEXT) for _ in range(min(_BATCH, messages - start) // 2)]
        await chat.append(*(message for pair in turns for message in pair))
        await memory.wait_for_digests()
    return chat
