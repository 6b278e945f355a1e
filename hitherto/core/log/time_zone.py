"""Time zones: on which day something was said."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from hitherto.errors import InvalidInput


def zone_named(name: str) -> tzinfo:
    """The zone of a name of the IANA database, such as "Pacific/Auckland". Raises ValueError for what names none."""
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise ValueError(
            f"{name!r} is no time zone; give the name of one, such as Europe/Berlin (where the system has no list of "
            "them, install the package tzdata)"
        ) from None


def in_zone(at: datetime, zone: tzinfo) -> datetime:
    """The time in its own zone, or in `zone` if its own is UTC, in which clocks of computers tell time. It stays as it
    is where that would be outside of the years 2 to 9998, in which every zone has all times."""
    try:
        there = at if at.utcoffset() else at.astimezone(zone)
    except OverflowError:
        return at
    return there if 2 <= there.year <= 9998 else at


def offset_of(at: datetime | None) -> int | None:
    """By how many seconds its zone is ahead of UTC; None for UTC, and for no time."""
    offset = None if at is None else at.utcoffset()
    return int(offset.total_seconds()) if offset else None


def in_utc(at: datetime | None) -> datetime | None:
    """The same time in UTC: PostgreSQL takes no zone that is 16 hours away from it, or more."""
    return None if at is None else at.astimezone(UTC)


def with_offset(at: datetime, seconds: int) -> datetime:
    """The time in the zone of such an offset."""
    return at.astimezone(timezone(timedelta(seconds=seconds)))


def moment(name: str, text: object, of_day: time) -> datetime | None:
    """The time that the argument `name` says; for a day, its time `of_day`, in UTC. Raises InvalidInput."""
    if text is None:
        return None
    try:
        return datetime.combine(date.fromisoformat(str(text)), of_day, UTC)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(str(text))
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidInput(f"{name} is {text!r:.80}; give a day or a time, like 2026-11-30T09:15") from None
