"""What mem0's `get_all` returns: facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from hitherto.importers.imported import ImportedFact, Unreadable, mapping_of, text_of, time_of

NAME = "mem0"


def fact(value: Mapping[str, Any], number: int) -> ImportedFact | Unreadable:
    """A memory as a fact, of its first category."""
    place, content = f"memory {number}", value.get("memory")
    if not isinstance(content, str):
        return Unreadable(f"{place}: it has no text in `memory`")
    categories: object = value.get("categories") or mapping_of(value.get("metadata")).get("category")
    listed = cast("list[object]", categories) if isinstance(categories, list) else [categories]
    category = next((one for one in listed if isinstance(one, str) and one), None)
    return ImportedFact(
        content,
        category,
        place,
        id=text_of(value.get("id")) or None,
        user=text_of(value.get("user_id")) or None,
        created_at=time_of(value.get("created_at")),
        updated_at=time_of(value.get("updated_at")),
    )
