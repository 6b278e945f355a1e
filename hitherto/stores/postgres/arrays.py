"""Arrays that statements bind, as PostgreSQL reads them.

They are built in a fraction of the time that psycopg takes, and of one type whatever the size of the numbers, so that a
statement is prepared once.
"""

from __future__ import annotations

from collections.abc import Iterable


def integers(values: Iterable[int | None]) -> str:
    """The literal of an array of whole numbers."""
    return f"{{{','.join(['NULL' if one is None else str(one) for one in values])}}}"


def texts(values: Iterable[str]) -> str:
    """The literal of an array of texts, for an array that has arrays of different lengths in it."""
    return f"{{{','.join([_quoted(one) for one in values])}}}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
