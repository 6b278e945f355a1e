"""Cutting documents into passages as the settings say."""

from __future__ import annotations

from hitherto.core.documents import Passage, passages
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
