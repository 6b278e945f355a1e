"""Cutting documents into passages as the settings say."""

from __future__ import annotations

from hitherto.core.documents.document import Passage
from hitherto.core.documents.passages import passages
from hitherto.engine.services import Services


def cut(services: Services, text: str, *, markdown: bool) -> tuple[Passage, ...]:
    """The passages of a document. To be called in a thread: how long it takes depends on what is in the text."""
    return passages(
        text,
        limit=services.settings.passage_tokens,
        overlap=services.settings.passage_overlap,
        count=services.canonical.count,
        markdown=markdown,
    )
