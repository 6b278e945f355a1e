"""Reads from a response's headers how long to wait before the next call."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST = 3600.0
"""Seconds. A longer wait is cut to this, so that no endpoint stops the digests for a day."""

_NUMBER = re.compile(r"\d+(?:\.\d*)?", re.ASCII)


def retry_after(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """Seconds until the same call may be made again, at most `LONGEST`; None if `headers` (looked up by lower-case
    names) do not say, or say nonsense or a time that has passed.

    `retry-after-ms`, which OpenAI and Azure send, comes before `retry-after` (RFC 9110, 10.2.3: a number of seconds,
    which some send with a fraction, or a date). A date is measured from the response's own `date`, whose clock it
    was written by, or from `now`.
    """
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return min(milliseconds / 1000, LONGEST)
    said = headers.get("retry-after")
    if (seconds := _number(said)) is not None:
        return min(seconds, LONGEST)
    then = _date(said)
    if then is None:
        return None
    seconds = (then - (_date(headers.get("date")) or now or datetime.now(UTC))).total_seconds()
    return min(seconds, LONGEST) if seconds > 0 else None


def _number(text: str | None) -> float | None:
    text = (text or "").strip()
    return float(text) if _NUMBER.fullmatch(text) else None


def _date(text: str | None) -> datetime | None:
    try:
        date = parsedate_to_datetime(text or "")
    except (ValueError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
