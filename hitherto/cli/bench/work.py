"""Appends transcripts as an agent does, and asks for the context of each of its steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hitherto.cli.transcripts.transcript import FileConversation
from hitherto.core.context.budget import TokenCounter
from hitherto.core.log.message import Message, Wire
from hitherto.core.scope import Scope
from hitherto.engine.context.context import Context
from hitherto.engine.conversation import Conversation
from hitherto.engine.memory import Memory
from hitherto.errors import BudgetExceeded
from hitherto.simulation.run import requests
from hitherto.simulation.work import WorkCounter, WorkFigures, needs
from hitherto.testing.requests import refusals


async def measure(
    memory: Memory,
    transcripts: Sequence[FileConversation],
    into: WorkFigures,
    *,
    wire: Wire,
    model: str | None,
    counter: TokenCounter,
    advance: Callable[[], None] = lambda: None,
) -> None:
    """Add to `into` what the contexts of the transcripts show and cost, each in a scope of its own in an empty memory;
    see `requests`. What nobody answered is left out. `counter` counts as the memory does for `model`. `advance` is
    called after each answer."""

    def refused(request: Mapping[str, Any]) -> list[str]:
        return refusals(request, wire=wire, model=model)

    for number, transcript in enumerate(transcripts):
        chat = memory.conversation(transcript.id, scope=Scope(tenant="bench", user=str(number), agent="bench"))

        async def ask(incoming: Sequence[Message], chat: Conversation = chat) -> Context:
            return await chat.context(incoming, budget=into.budget, wire=wire, model=model)

        work = WorkCounter(transcript.messages, into, wire=wire, counter=counter, refusals=refused)
        needed = needs(transcript.messages)
        async for step, made in requests(memory, chat, transcript.messages, ask):
            if not step.answered:
                continue
            if isinstance(made, BudgetExceeded):
                work.refused(next(needed))
            else:
                work.made(next(needed), made.request, made.tokens)
            advance()
