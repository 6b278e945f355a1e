"""What a reader finds in a file, whatever its format: conversations, facts, and what cannot be read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, cast

from hitherto.core.context.blocks import HEADING
from hitherto.core.log.message import CHAT, RESPONSES, Message, storable
from hitherto.core.log.title import LONGEST_TITLE
from hitherto.core.plain_text import END, NAMED_END, NAMED_RECORD, NOTE, RECORD
from hitherto.core.scope import checked_name
from hitherto.errors import InvalidMessage, InvalidScope, InvalidTranscript
from hitherto.wire import read

LARGEST = 2**26
"""The most bytes of a line, and characters of a value in a list, which are read as a whole."""

_TOLD = 1_000
"""Of what cannot be read of a conversation, so much is told one by one."""

_LINES = re.compile(r"(\n|\\n)")
"""What ends a line in a text, and in JSON that is one."""

_FACTS = tuple(HEADING.split("{name}"))
_NAMED_LEAD = re.compile(
    re.escape(NAMED_RECORD)
    .replace('"', r'\\?"')
    .replace(r"\{\}", "(" + re.escape(NAMED_END).replace(r"\{\}", r"\w+") + ")")
)
_ECHO_IN_JSON = re.compile(r'\s*\{\s*"note"\s*:\s*"[^"]*' + re.escape(NOTE))
_NO_ECHO = "[what Hitherto showed here of its memory is left out]"
_KEPT_AS_IS = ("arguments", "input")


@dataclass(frozen=True, slots=True)
class Unreadable:
    """What cannot be read of a file, or not be kept: where it stands and why, in words, its line if it has one of its
    own, and how many messages it is."""

    words: str
    line: int | None = None
    count: int = 1
    """How many such things it stands for."""


class UnreadableList(list[Unreadable]):
    """What cannot be read of a conversation: all that is more than a thousand is counted in the last entry."""

    def append(self, one: Unreadable, /) -> None:
        if len(self) <= _TOLD:
            super().append(one)
        else:
            count = self[-1].count + one.count
            self[-1] = Unreadable(f"{count:,} more that cannot be read, up to here: {one.words}", one.line, count)

    def extend(self, more: Iterable[Unreadable], /) -> None:
        for one in more:
            self.append(one)


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
    unreadable: list[Unreadable] = field(default_factory=UnreadableList)
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
    parents go in a circle begins the conversation. One whose parent is not there follows the node before it in the
    file. Circles, parents that are not there, and of two messages with one id the second, which is left out, are told
    in `unreadable`."""
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
    _find_missing_parents(by_id, unreadable)
    parents = _parents(by_id, unreadable)
    placed = _in_order(by_id, parents)
    end = None if current not in by_id else current if by_id[current].message is not None else parents[current]
    return ImportedConversation(format, name, placed, title_of(title), end, unreadable=unreadable)


def missing_parent(place: str, parent: str, words: str, line: int | None = None) -> Unreadable:
    """Tells what the message does whose parent is not there. It is not counted: the message is."""
    return Unreadable(f"{place}: the message before it, {parent!a:.80}, cannot be read; {words}", line, 0)


def _find_missing_parents(nodes: dict[str, Node], unreadable: list[Unreadable]) -> None:
    """Put a node whose parent is not there behind the one before it, unless that follows from it."""
    begins = dict[str, str]()

    def beginning(of: str) -> str:
        """What the way to a node begins with."""
        way, at = dict[str, None](), of
        while at not in way and at in nodes:
            way[at] = None
            at = begins.get(at) or nodes[at].parent or at
        begin = list(way)[-1]
        begins.update(dict.fromkeys(way, begin))
        return begin

    before: str | None = None
    for own, node in list(nodes.items()):
        if node.parent is not None and node.parent not in nodes and before is not None:
            begin = beginning(before)
            follows = before if begin != own else None
            if follows is not None:
                nodes[own] = replace(node, parent=follows)
                begins[own] = begin
            words = "it follows the one before it in the file" if follows else "it begins a branch"
            unreadable.append(missing_parent(node.place, node.parent, words, node.line))
        before = own


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
    message = read(without_echoes(item), wire, take_id=False)
    message = message if id is None else message.with_id(id)
    return message if at is None else message.dated(at)


def without_echoes(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """The item without what Hitherto showed of its memory: results of its tools, and what it put into a context. It is
    in the memory already, and would be remembered twice. What an assistant says stays, also where it quotes that."""
    if not isinstance(item, dict):
        return item
    results = any(text_of(block.get("type")).endswith("tool_result") for block in objects_of(item.get("content")))
    if item.get("role") == "assistant" and not results:
        return item
    fields: Mapping[str, Any] = _without_echoes(item, 100)
    return fields


def _without_echoes(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        if END in value or _NAMED_LEAD.search(value):
            return _without_fences(value)
        return _NO_ECHO if _ECHO_IN_JSON.match(value) else value
    if isinstance(value, list) and depth:
        return [_without_echoes(one, depth - 1) for one in cast("list[Any]", value)]
    if isinstance(value, dict) and depth:
        fields = cast("dict[str, Any]", value).items()
        return {key: one if key in _KEPT_AS_IS else _without_echoes(one, depth - 1) for key, one in fields}
    return cast("object", value)


def _without_fences(text: str) -> str:
    kept, begin, end = list[str](), None, END
    for piece in _LINES.split(text):
        if begin is not None and piece.startswith(end):
            kept[begin:] = [_NO_ECHO, piece.removeprefix(end)]
            begin = None
            continue
        named = _NAMED_LEAD.search(piece)
        is_lead = piece.endswith(RECORD) or (piece.startswith(_FACTS[0]) and piece.endswith(_FACTS[1]))
        if (named or is_lead) and not piece.startswith(("- ", " ")):
            begin, end = len(kept), named[1] if named else END
        kept.append(piece)
    return "".join(kept)


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


def name_of_type(value: object) -> str:
    """What kind of JSON a value is."""
    names: dict[type, str] = {dict: "an object", list: "a list", str: "a text", bool: "a truth value"}
    return "nothing" if value is None else names.get(type(value), "a number")


def text_of(value: object) -> str:
    """`value` if it is a text, else ""."""
    return value if isinstance(value, str) else ""


def file_id(name: str, path: object) -> str:
    """`name`, if it is a valid name of a conversation. Raises InvalidTranscript."""
    try:
        return checked_name(name, "conversation")
    except InvalidScope as error:
        raise InvalidTranscript(f"{path} names its conversation so that none can be kept under it: {error}") from error
