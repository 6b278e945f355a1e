"""The name that a message's speaker goes by."""

from __future__ import annotations

import json

from hitherto.core.log.message import Message, Role, storable
from hitherto.core.scope import LONGEST_NAME


def author_in(role: str | None, raw: str) -> str | None:
    """The `name` field of an item (JSON text), if it has one that is a name; a tool's is none of a speaker."""
    if role == Role.TOOL or '"name"' not in raw:
        return None
    name = json.loads(raw).get("name")
    return storable(name)[:LONGEST_NAME] if isinstance(name, str) and name and not name.isspace() else None


def speaker_of(message: Message) -> str:
    """Whom a message is shown to be from: its author by name, or else its role."""
    return author_in(message.role, message.raw) or message.role.value
