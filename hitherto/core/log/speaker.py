"""The name of a message's speaker."""

from __future__ import annotations

import json
from collections.abc import Iterable

from hitherto.core.log.message import Message, Role, storable
from hitherto.core.plain_text import escaped
from hitherto.core.prompt import json_line
from hitherto.core.scope import LONGEST_NAME


def author_in(role: str | None, raw: str) -> str | None:
    """The `name` field of an item (JSON text), at most LONGEST_NAME characters of it; None if there is no usable name.
    The name of a tool is not a speaker's: neither that of a result, nor that of an item that is a call."""
    if role == Role.TOOL or '"name"' not in raw:
        return None
    item = json.loads(raw)
    name = item.get("name") if "role" in item else None
    return storable(name)[:LONGEST_NAME] if isinstance(name, str) and name and not name.isspace() else None


def speaker_of(message: Message) -> str:
    """With whom a message is shown; results with the names of their tools."""
    tools = dict.fromkeys(message.tools) if message.answers else ()
    return speaker_label(message.role, author_in(message.role, message.raw), tools)


def speaker_label(role: str, author: str | None = None, tools: Iterable[str] = ()) -> str:
    """The author's name, or else the role, with the names of `tools`. Names are in quotes: they may be a role's."""
    if author is not None:
        return escaped(json_line(author))
    return " ".join([role, ", ".join(escaped(json_line(one)) for one in tools)]).rstrip()
