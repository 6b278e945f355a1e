"""Cutting documents into passages as the settings say."""

from __future__ import annotations

from hitherto.aside import in_thread
from hitherto.core.documents import Passage, passages, passages_in_parts, without_inner
from hitherto.engine.services import Services


def cut(
    services: Services, text: str, *, markdown: bool, tokens: int | None = None, overlap: int | None = None
) -> tuple[Passage, ...]:
    """The passages of a document, of `tokens` tokens that share `overlap` (None: as the settings say). To be called in
    a thread: how long it takes depends on what is in the text."""
    return passages(
        text,
        limit=tokens or services.settings.passage_tokens,
        overlap=services.settings.passage_overlap if overlap is None else overlap,
        count=services.canonical.count,
        markdown=markdown,
    )


async def cut_in_threads(services: Services, text: str, *, markdown: bool) -> tuple[Passage, ...]:
    """The same for a text that may be very long, each part of it in a thread's turn of its own: others get theirs in
    between, and a task that is cancelled waits for one part."""
    parts = passages_in_parts(
        text,
        limit=services.settings.passage_tokens,
        overlap=services.settings.passage_overlap,
        count=services.canonical.count,
        markdown=markdown,
    )
    found = list[Passage]()
    while (part := await in_thread(next, parts, None)) is not None:
        found += part
    return await in_thread(without_inner, found)
