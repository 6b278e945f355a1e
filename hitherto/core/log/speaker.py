"""Who says what in a message."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from hitherto.core.log.message import Message, Role, storable
from hitherto.core.plain_text import escaped
from hitherto.core.prompt import json_line
from hitherto.core.scope import LONGEST_NAME


class Voice(NamedTuple):
    """A piece of a message's text, and who says it: a role, with its `author` or the name of its `tool` if there is
    one. What a tool gave is the tool's, also where it ran at the provider and stands in the assistant's message."""

    words: str
    role: Role
    author: str | None = None
    tool: str = ""

    @property
    def label(self) -> str:
        """With whom it is shown."""
        return speaker_label(self.role, self.author, [self.tool] if self.tool else ())


def parts_of(voices: Iterable[Voice]) -> tuple[tuple[int, str], ...]:
    """Where in the pieces, a line after the other, another one begins to speak, and who."""
    parts: list[tuple[int, str]] = []
    at = 0
    for voice in voices:
        if not parts or parts[-1][1] != voice.label:
            parts.append((at, voice.label))
        at += len(voice.words) + 1
    return tuple(parts)


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
