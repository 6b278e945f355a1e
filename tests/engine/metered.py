"""A model that says what each call took, and parts to call it with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hitherto import tokens, wire
from hitherto.core.ledger import ModelCall
from hitherto.engine.digests.tasks import TaskQueue
from hitherto.engine.services import Services
from hitherto.ports.models import Completion
from hitherto.ports.watch import Watch
from hitherto.pricing import shipped
from hitherto.providers.scripted import Reply, Scripted
from hitherto.settings import Settings
from hitherto.store.store import Store
from hitherto.tokens import CANONICAL

PRICED = "gpt-4.1-mini"
"""A model of the shipped price list."""


class Metered(Scripted):
    """`Scripted`, of which each answer took 900 tokens in, 500 of them from the cache, and 100 out."""

    def __init__(self, replies: Sequence[Reply] = (), *, then: Reply | None = None, name: str = PRICED) -> None:
        super().__init__(replies, then=then, name=name)

    async def complete(self, prompt: Any) -> Completion:
        return replace(await super().complete(prompt), tokens_in=900, tokens_cached=500, tokens_out=100, asked=True)


@dataclass
class Told(Watch):
    """Remembers the calls it was told of."""

    calls: list[ModelCall] = field(default_factory=list[ModelCall])

    def called(self, call: ModelCall) -> None:
        self.calls.append(call)


def services_of(store: Store, watch: Told, **settings: Any) -> Services:
    """All that calls need; nothing is made in the background."""
    return Services(
        store=store,
        model=Scripted(),
        queue=TaskQueue(store),
        settings=Settings.load(**settings),
        canonical=tokens.counter_for(CANONICAL),
        counter=lambda _: tokens.counter_for(CANONICAL),
        codec=wire.codec,
        read=wire.read,
        price=shipped().of,
        watch=watch,
    )
