"""What a reader finds in a file, whatever its format: conversations, facts, and what cannot be read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

from hitherto.core.log.message import CHAT, RESPONSES, Message, storable
from hitherto.core.log.title import LONGEST_TITLE
from hitherto.core.scope import checked_name
from hitherto.errors import InvalidMessage, InvalidScope, InvalidTranscript
from hitherto.wire import read

LARGEST = 2**28
"""The most bytes of a line, of a value in a list, and of a conversation with branches, which are read as a whole."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """What cannot be read of a file, or not be kept: where it stands and why, in words, its line if it has one of its
    own, and how many messages it is."""

    words: str
    line: int | None = None
    count: int = 1


@dataclass(frozen=True, slots=True)
class ImportedMessage:
    """A message of a file, with its id and its date where there are any. In a conversation with branches, `parent` is
    the id of the message before it, None at the beginning. `place` says where in the file it stands."""

    message: Message
    place: str
    parent: str | None = None
    line: int | None = None


@dataclass(eq=False, slots=True)
class ImportedConversation:
    """A conversation of a file.

    With `tree`, all `messages` have ids and follow their `parent`, which comes before them; `current` is the id of one
    on the branch that is shown. Else each follows the one before, and they are read while one goes through them, once.
    What could not be read is in `unreadable` then. `named_by_file`: its id is the file's name, as it has none. `notes`
    say of what was imported how it is there otherwise than in the file.
    """

    format: str
    id: str
    messages: Iterable[ImportedMessage]
    title: str | None = None
    current: str | None = None
    tree: bool = True
    named_by_file: bool = False
    unreadable: list[Unreadable] = field(default_factory=list[Unreadable])
    notes: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class ImportedFact:
    """A fact of a file, with its id, its user and its dates there, where it has any."""

    content: str
    category: str | None
    place: str
    id: str | None = None
    user: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None


Found = ImportedConversation | ImportedFact | Unreadable


@dataclass(frozen=True, slots=True)
class Node:
    """A place in a tree of messages as a file has it: its own id, that of its parent, and its message, if there is one
    to be kept. An error takes the message's place."""

    id: str
    parent: str | None
    place: str
    message: Message | None = None
    line: int | None = None


def conversation_of(
    format: str, id: object, nodes: Iterable[Node], *, title: object, current: str | None, unreadable: list[Unreadable]
) -> ImportedConversation | Unreadable:
    """The conversation with these nodes. What follows a node without a message follows what is before it. One whose
    parents go in a circle begins the conversation, and so does one whose parent is not there. Circles, and of two
    messages with one id the second, which is left out, are told in `unreadable`."""
    try:
        name = checked_name(id, "conversation")
    except InvalidScope as error:
        return Unreadable(f"a conversation of {format} has no name that can be kept: {error}")
    by_id: dict[str, Node] = {}
    for node in nodes:
        before = by_id.setdefault(node.id, node)
        same = before.message is not None and node.message is not None and before.message.raw == node.message.raw
        if before is not node and not same:
            unreadable.append(Unreadable(f"{node.place}: its id {node.id!a:.80} is another message's too", node.line))
    parents = _parents(by_id, unreadable)
    placed = _in_order(by_id, parents)
    end = None if current not in by_id else current if by_id[current].message is not None else parents[current]
    return ImportedConversation(format, name, placed, title_of(title), end, unreadable=unreadable)


def _parents(nodes: Mapping[str, Node], unreadable: list[Unreadable]) -> dict[str, str | None]:
    """For each node the nearest one before it that has a message."""
    found: dict[str, str | None] = {}

    def nearest(id: str | None) -> str | None:
        return id if id is None or nodes[id].message is not None else found[id]

    for start in nodes:
        way, at = dict[str, None](), cast("str | None", start)
        while at is not None and at in nodes and at not in found and at not in way:
            way[at] = None
            at = nodes[at].parent
        before = at if at is not None and at in nodes else None
        below = list(way)
        if before in way:
            node = nodes[before]
            unreadable.append(Unreadable(f"{node.place}: its parents go in a circle; it begins a branch", node.line))
            found[before] = None
            first = below.index(before)
            below = below[first + 1 :] + below[:first]
            circle = len(way) - 1 - first
        else:
            circle = len(below)
        for part in (below[:circle], below[circle:]):
            last = before
            for one in reversed(part):
                found[one] = nearest(last)
                last = one
    return found


def _in_order(nodes: Mapping[str, Node], parents: Mapping[str, str | None]) -> list[ImportedMessage]:
    """The messages, each behind its parent, else in the order of the file."""
    children: dict[str | None, list[str]] = {}
    for own, node in nodes.items():
        if node.message is not None:
            children.setdefault(parents[own], []).append(own)
    placed: list[ImportedMessage] = []
    todo = list(reversed(children.get(None, [])))
    while todo:
        node = nodes[todo.pop()]
        assert node.message is not None
        placed.append(ImportedMessage(node.message, node.place, parents[node.id], node.line))
        todo += reversed(children.get(node.id, []))
    return placed


def shown_end(messages: Mapping[str, ImportedMessage], current: str | None) -> str | None:
    """The last message of the branch with message `current`; without it, of the newest one."""
    newest_child = {one.parent: own for own, one in messages.items()}
    shown = current if current in messages else None
    while (following := newest_child.get(shown)) is not None:
        shown = following
    return shown


def shown_messages(found: ImportedConversation) -> list[ImportedMessage]:
    """The messages of the branch that is shown. One that is no tree is read then."""
    messages = list(found.messages)
    if not found.tree:
        return messages
    by_id = {one.message.id or "": one for one in messages}
    way, at = list[ImportedMessage](), shown_end(by_id, found.current)
    while at is not None:
        way.append(by_id[at])
        at = by_id[at].parent
    return way[::-1]


def message_of(
    item: Mapping[str, Any], at: datetime | None = None, *, wire: str | None = CHAT, id: str | None = None
) -> Message:
    """The message of an item, with this id and date. Raises InvalidMessage."""
    message = read(item, wire, take_id=False)
    message = message if id is None else message.with_id(id)
    return message if at is None else message.dated(at)


def try_message(
    make: Callable[[], Message | None], place: str, unreadable: list[Unreadable], line: int | None = None
) -> Message | None:
    """What `make` makes; None for what it cannot, which is told in `unreadable`."""
    try:
        return make()
    except InvalidMessage as error:
        unreadable.append(Unreadable(f"{place}: {error}", line))
        return None


def tool_call(name: str, arguments: object, id: str, words: str | None = None) -> dict[str, Any]:
    """An assistant's item in chat shape that calls a tool. Arguments that are no object are its `input`."""
    given = cast("object", arguments) if isinstance(arguments, dict) else {"input": arguments}
    function = {"name": name, "arguments": json.dumps(given, default=str)}
    call = {"id": id, "type": "function", "function": function}
    return {"role": "assistant", "content": words or None, "tool_calls": [call]}


def reasoning_item(words: str) -> dict[str, Any]:
    """What a model thought, as an item of Responses."""
    return {"type": "reasoning", "summary": [{"type": "summary_text", "text": words}]}


REASONING = RESPONSES
"""The format of `reasoning_item`."""


def title_of(given: object) -> str | None:
    """A title as it can be kept; None for what is none."""
    title = storable(given).strip()[:LONGEST_TITLE] if isinstance(given, str) else ""
    return title or None


def time_of(given: object) -> datetime | None:
    """A time in ISO format or in seconds since 1970; UTC where it has no zone. None for what is none."""
    try:
        if isinstance(given, int | float) and not isinstance(given, bool):
            time = datetime.fromtimestamp(given, UTC)
        else:
            time = datetime.fromisoformat(given) if isinstance(given, str) else None
        if time is None or not 2 <= time.year <= 9998:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time


def mapping_of(value: object) -> Mapping[str, Any]:
    """`value` if it is an object, else an empty one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def objects_of(value: object) -> Iterator[Mapping[str, Any]]:
    """The objects in `value`, if it is a list."""
    listed = cast("list[object]", value) if isinstance(value, list) else []
    return (cast("Mapping[str, Any]", one) for one in listed if isinstance(one, dict))


def text_of(value: object) -> str:
    """`value` if it is a text, else ""."""
    return value if isinstance(value, str) else ""


def file_id(name: str, path: object) -> str:
    """`name`, if it is a valid name of a conversation. Raises InvalidTranscript."""
    try:
        return checked_name(name, "conversation")
    except InvalidScope as error:
        raise InvalidTranscript(f"{path} names its conversation so that none can be kept under it: {error}") from error
