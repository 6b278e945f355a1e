"""Reading values from a model's JSON answer."""

from __future__ import annotations

from typing import cast


def numbers(value: object, allowed: set[int]) -> list[int]:
    """The integers in the list `value` that are in `allowed`, in its order; [] if `value` is not a list."""
    if not isinstance(value, list):
        return []
    return [one for one in cast(list[object], value) if type(one) is int and one in allowed]
