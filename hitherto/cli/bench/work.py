"""Appends transcripts as an agent does, and asks for the context of each of its steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hitherto.cli.transcripts.transcript import Transcript
from hitherto.core.context.budget import TokenCounter
from hitherto.core.log.message import Wire
from hitherto.core.scope import Scope
from hitherto.engine.memory import Memory
from hitherto.errors import BudgetExceeded
from hitherto.simulation.work import WorkCounter, WorkFigures, needs


async def measure(
    memory: Memory,
    transcripts: Sequence[Transcript],
    into: WorkFigures,
    *,
    wire: Wire,
    counter: TokenCounter,
    advance: Callable[[], None] = lambda: None,
) -> None:
    """Add to `into` what the contexts of the transcripts show and cost, each in a scope of its own in an empty memory.

    Each is appended as an agent does it: a context is made for every answer, with what came in since the one before,
    and then both are appended. Digests are waited for, and the index if the policy recalls, so that the outcome is the
    same each time. `counter` counts as the memory does. `advance` is called after each answer.
    """
    for number, transcript in enumerate(transcripts):
        messages = transcript.messages
        chat = memory.conversation(transcript.id, scope=Scope(tenant="bench", user=str(number), agent="bench"))
        policy = await chat.policy()
        work = WorkCounter(messages, into, wire=wire, counter=counter)
        appended = 0
        for need in needs(messages):
            start, end = need.incoming.start, need.incoming.stop
            if appended < start:  # the rules, or what no request was made for
                await chat.append(*messages[appended:start])
            incoming = messages[start:end]
            try:
                context = await chat.context(incoming, budget=into.budget, wire=wire)
            except BudgetExceeded:
                work.refused(need)
            else:
                work.made(need, context.request, context.tokens)
            appended = end + len(need.answered)
            await chat.append(*incoming, *need.answered)
            await memory.wait_for_digests()
            if policy.recalls or policy.recall:
                await memory.wait_for_index()
            advance()
