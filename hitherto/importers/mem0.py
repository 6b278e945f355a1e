"""What mem0's `get_all` returns: facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from hitherto.importers.imported import ImportedFact, Unreadable, mapping_of

NAME = "mem0"


def fact(value: Mapping[str, Any], number: int) -> ImportedFact | Unreadable:
    """A memory as a fact, of its first category."""
    place, content = f"memory {number}", value.get("memory")
    if not isinstance(content, str):
        return Unreadable(f"{place}: it has no text in `memory`")
    categories: object = value.get("categories") or mapping_of(value.get("metadata")).get("category")
    listed = cast("list[object]", categories) if isinstance(categories, list) else [categories]
    named = [one for one in listed if isinstance(one, str) and one]
    return ImportedFact(content, named[0] if named else None, place)
