"""Checks of the arguments of a session's methods."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import cast

from hitherto.core.log.message import Payload
from hitherto.errors import InvalidInput, InvalidMessage


def checked_limit(limit: object) -> int | None:
    """`limit` if it is None or a number of items. Raises InvalidInput."""
    if limit is None or (isinstance(limit, int) and not isinstance(limit, bool) and limit >= 0):
        return limit
    raise InvalidInput(f"limit is {limit!r}; give a whole number of items of at least 0, or None for all")


def checked_items(items: object) -> list[Payload]:
    """Copies of the items as dicts. Raises InvalidMessage for anything but a list of dicts."""
    if not isinstance(items, Sequence) or isinstance(items, str | bytes):
        raise InvalidMessage(f"items are {items!r}; give a list of items as the Responses API takes them")
    for at, item in enumerate(cast("Sequence[object]", items)):
        if not isinstance(item, Mapping):
            raise InvalidMessage(f"item {at} is {item!r}; give an item as the Responses API takes it, a dict")
    return [dict(item) for item in cast("Sequence[Payload]", items)]


def checked_seconds(wait: object) -> float:
    """`wait` as a float. Raises InvalidInput unless it is a finite number of seconds, at least 0."""
    if isinstance(wait, int | float) and not isinstance(wait, bool) and 0 <= wait <= sys.float_info.max:
        return float(wait)
    raise InvalidInput(f"wait is {wait!r}; give a number of seconds of at least 0")
