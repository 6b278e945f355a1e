"""What the tests of the models share: prompts, and a digest made by a model without an engine."""

from __future__ import annotations

from collections.abc import Sequence

from hitherto.core.digests.digest import Item
from hitherto.core.digests.make import DigestContent, digest
from hitherto.core.digests.prompts import DigestTask, digest_prompt
from hitherto.core.facts.extract import FactsTask
from hitherto.core.facts.fact import CATEGORIES, KnownFact
from hitherto.core.prompt import Prompt, PromptLine
from hitherto.ports.models import Model
from hitherto.tokens.counters import BpeCounter

count = BpeCounter("o200k_base").count


FACTS = FactsTask(
    subject="Ada",
    categories=(*CATEGORIES, "current city"),
    single=("current city",),
    known=(KnownFact(id=71, category="hobby", content="Plays the cello.", confidence=0.9),),
    about_user=True,
)


def spoken(*texts: str, first: int = 0) -> tuple[PromptLine, ...]:
    """Lines in turn by user and assistant, numbered from `first`."""
    return tuple(PromptLine(first + at, ("user", "assistant")[at % 2], text) for at, text in enumerate(texts))


def prompt(
    *lines: PromptLine,
    known: Sequence[Item] = (),
    leaving: Sequence[int] = (),
    limit: int = 1_000,
    facts: FactsTask | None = None,
) -> Prompt:
    shown = lines or spoken("Let's take the Granary.")
    return digest_prompt(
        DigestTask(known=tuple(known), leaving=frozenset(leaving), lines=shown, limit=limit, facts=facts)
    )


async def digested(
    model: Model,
    lines: Sequence[PromptLine],
    *,
    base: Sequence[Item] = (),
    start: int = 0,
    limit: int = 1_000,
    facts: FactsTask | None = None,
) -> DigestContent:
    """What the core makes of the model's answers."""
    making = digest(
        base=base,
        lines=lines,
        start=start,
        limit=limit,
        input_limit=model.input_limit,
        count=count,
        facts=facts,
    )
    try:
        asked = next(making)
        while True:
            asked = making.send((await model.complete(asked)).text)
    except StopIteration as end:
        return end.value
