"""Titles of conversations: given by the application, or the beginning of what the user said first (the part
`opening` in `store/shown.sql` says which message that is)."""

from __future__ import annotations

from hitherto.core.log.message import storable
from hitherto.errors import InvalidInput

LONGEST_TITLE = 500

_SHOWN = 60


def checked_title(title: object) -> str | None:
    """The title as it is stored; "" unsets it, None leaves it as it is. Raises InvalidInput for anything else than a
    text of at most LONGEST_TITLE characters."""
    if title is not None and not isinstance(title, str):
        raise InvalidInput(f"title is {title!r}; give a text")
    if title is not None and len(title) > LONGEST_TITLE:
        raise InvalidInput(f"the title has {len(title):,} characters; at most {LONGEST_TITLE} are kept")
    return None if title is None else storable(title).strip()


def title_of(opening: str | None) -> str:
    """The title of a conversation that was given none: how its first user message begins, on one line, cut between
    words. "" where there is none."""
    line = " ".join((opening or "").split())
    if len(line) <= _SHOWN:
        return line
    cut = line[: _SHOWN + 1].rpartition(" ")[0] or line[:_SHOWN]
    return f"{cut.rstrip()}…"
