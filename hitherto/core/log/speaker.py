"""The name of a message's speaker."""

from __future__ import annotations

import json

from hitherto.core.log.message import Message, Role, storable
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
    """The speaker with whom a message is shown: its author's name, or else its role."""
    return author_in(message.role, message.raw) or message.role.value
