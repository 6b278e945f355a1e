"""What the tests of extraction share: a subject, and the making of a digest with facts, driven by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from hitherto.core.digests.make import DigestContent, Digesting, digest
from hitherto.core.facts.extract import FactsTask
from hitherto.core.facts.fact import CATEGORIES, KnownFact
from hitherto.core.prompt import Prompt, PromptLine
from hitherto.tokens import counter_for

count = counter_for("o200k_base").count

anything_at_all = st.text(st.characters(exclude_categories=()))

CELLO = KnownFact(id=71, category="hobby", content="Plays the cello.", confidence=0.9)
OSLO = KnownFact(id=40, category="current city", content="Lives in Oslo.", confidence=0.6)
TASK = FactsTask(
    subject="Nana Rose", categories=(*CATEGORIES, "current city"), single=("current city",), known=(CELLO, OSLO)
)


def lines(*texts: str, first: int = 3) -> list[PromptLine]:
    return [PromptLine(seq, "user", text) for seq, text in enumerate(texts, first)]


def made(
    answer: Callable[[Prompt], str],
    *,
    shown: Sequence[PromptLine] = (),
    facts: FactsTask | None = TASK,
    limit: int = 300,
    input_limit: int = 100_000,
) -> tuple[DigestContent, list[Prompt]]:
    shown = shown or lines("a", "b", "c")
    making = digest(
        base=(),
        lines=shown,
        start=shown[0].seq,
        limit=limit,
        input_limit=input_limit,
        count=count,
        facts=facts,
        prose=True,
    )
    return driven(making, answer)


def driven(making: Digesting, answer: Callable[[Prompt], str]) -> tuple[DigestContent, list[Prompt]]:
    """What comes of a digest's generator, and the prompts that the model got."""
    prompts: list[Prompt] = []
    try:
        prompts.append(next(making))
        while True:
            prompts.append(making.send(answer(prompts[-1])))
    except StopIteration as stop:
        return stop.value, prompts
