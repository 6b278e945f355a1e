"""Checks of the arguments of verbs. Those of facts are in `facts/arguments.py`; values of the core check themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, cast

from hitherto.core.recall.filter import EntryKind
from hitherto.errors import InvalidInput

MOST = 1_000
"""The most entries of a list, and the most hits, that can be asked for."""

_DAY = 86_400
"""Seconds."""


def checked_limit(value: object, *, minimum: int = 1, most: int = MOST, name: str = "limit") -> int:
    """The number. Raises InvalidInput for anything but a whole number from `minimum` to `most`."""
    if not isinstance(value, int) or isinstance(value, bool) or not minimum <= value <= most:
        raise InvalidInput(f"{name} is {value!r}; give a whole number from {minimum} to {most}")
    return value


def checked_share(share: object, name: str, *, ends: bool) -> float:
    """The number. Raises InvalidInput for anything but a number from 0 to 1; without `ends`, for 0 and 1 too."""
    usable = isinstance(share, int | float) and not isinstance(share, bool)
    if not usable or not (0 <= cast(float, share) <= 1) or (not ends and share in (0, 1)):
        span = "from 0 to 1" if ends else "between 0 and 1"
        raise InvalidInput(f"{name} is {share!r}; give a number {span}")
    return float(cast(float, share))


def checked_kinds(kinds: Iterable[EntryKind | str] | None) -> frozenset[EntryKind]:
    """The kinds; all for None. Raises InvalidInput for an unknown kind, and for none at all."""
    if kinds is None:
        return frozenset(EntryKind)
    known = ", ".join(EntryKind)
    try:
        found = frozenset(EntryKind(one) for one in ([kinds] if isinstance(kinds, str) else kinds))
    except (ValueError, TypeError):
        raise InvalidInput(f"kinds is {kinds!r}; kinds are {known}") from None
    if not found:
        raise InvalidInput(f"kinds is empty; name at least one of {known}, or leave it out for all")
    return found


def checked_time(time: object, name: str) -> datetime | None:
    """The time. Raises InvalidInput for anything but a datetime with a zone, or None."""
    if time is None:
        return None
    if not isinstance(time, datetime) or time.utcoffset() is None:
        raise InvalidInput(f"{name} is {time!r}, no time with a zone; give one, e.g. datetime.now(timezone.utc)")
    return time


def checked_seq(seq: object, name: str) -> int | None:
    """The seq. Raises InvalidInput for anything but a whole number, or None."""
    if seq is None:
        return None
    if not isinstance(seq, int) or isinstance(seq, bool):
        raise InvalidInput(f"{name} is {seq!r}; give the seq of a message")
    return seq


def checked_switch(value: object, name: str) -> bool:
    """The switch. Raises InvalidInput for anything but True and False."""
    if not isinstance(value, bool):
        raise InvalidInput(f"{name} is {value!r}; give True or False")
    return value


def checked_wait(value: object) -> float:
    """The seconds: 30 for True, 0 for False. Raises InvalidInput for anything else but a number of at most a day."""
    if isinstance(value, bool):
        return 30.0 if value else 0.0
    if not isinstance(value, int | float) or not 0 <= value <= _DAY:
        raise InvalidInput(f"wait is {value!r}; give True, False, or a number of seconds from 0 to {_DAY}")
    return float(value)


def checked_words(value: object, name: str) -> str | None:
    """The text. Raises InvalidInput for anything but a text, or None."""
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"{name} is {value!r}; give a text")
    return value


def checked_text(value: object, name: str, *, most: int) -> str:
    """The text. Raises InvalidInput for anything but a text of at most `most` characters."""
    if not isinstance(value, str):
        raise InvalidInput(f"{name} is {value!r}; give a text")
    if len(value) > most:
        raise InvalidInput(f"{name} has {len(value):,} characters; give at most {most:,}")
    return value


def checked_list(value: object, name: str, of: str) -> list[Any]:
    """The entries. Raises InvalidInput for a text and for what is no list."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise InvalidInput(f"{name} is {str(cast(object, value))[:80]!r}; give a list of {of}")
    return list(cast("Iterable[Any]", value))


def checked_revision(given: object, name: str = "at") -> int | None:
    """The revision. Raises InvalidInput for anything but a whole number, or None."""
    if given is not None and (not isinstance(given, int) or isinstance(given, bool)):
        raise InvalidInput(f"{name} is {given!r}; give the number of a revision, as append returns it (rev)")
    return given


def check_key(key: object) -> None:
    """Raises InvalidInput for what cannot be an idempotency key."""
    if key is not None and (not isinstance(key, str) or not key):
        raise InvalidInput(f"key={key!r} cannot be an idempotency key; give a non-empty string, unique for this batch")
