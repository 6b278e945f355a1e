"""Reading what any model answers in JSON."""

from __future__ import annotations

from typing import cast


def numbers(value: object, allowed: set[int]) -> list[int]:
    """The numbers of `value` that are allowed; a model's other numbers are not believed."""
    if not isinstance(value, list):
        return []
    return [one for one in cast(list[object], value) if type(one) is int and one in allowed]
