"""Cutting documents into passages as the settings say."""

from __future__ import annotations

from hitherto.core.document import Passage
from hitherto.core.passages import passages
from hitherto.engine.parts import Parts


def cut(parts: Parts, text: str, *, markdown: bool) -> tuple[Passage, ...]:
    """The passages of a document."""
    return passages(
        text,
        limit=parts.settings.passage_tokens,
        overlap=parts.settings.passage_overlap,
        count=parts.canonical.count,
        markdown=markdown,
    )
