"""The content of a message, independent of any API's format.

Each wire format reads its items into this form. The engine takes from it what it must know of a message, and items are
converted from one format to another through it. The log keeps the original item.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any, cast

from hitherto.core.log.message import Call, Kind, Message, Payload, Role, storable
from hitherto.core.log.speaker import Voice, author_in
from hitherto.core.plain_text import RECORD, THINKING, fenced, one_line, statements
from hitherto.errors import InvalidInput, InvalidMessage
from hitherto.wire.fields import citations_of, item_of, shown, text_in, words_of

NO_RESULT = "[no result yet]"
"""Stands in for the result of a call that has none."""

NO_MESSAGE = "[no message]"
"""A user's message in a request that has no other message, which APIs refuse."""

NO_SCREENSHOT = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNoAAAAggCB2kUIOwAAAABJRU5ErkJggg=="
)
"""One gray pixel: stands in for a screenshot."""


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Image:
    """`url` is an address or a data: URL with the image itself; `detail` is OpenAI's word for its resolution."""

    url: str
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """`arguments` is JSON text as the model wrote it, so perhaps broken; for a `custom` tool it is free text."""

    id: str
    name: str
    arguments: str
    custom: bool = False


@dataclass(frozen=True, slots=True)
class File:
    """`url` is an address or a data: URL with the file itself."""

    url: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class FileText(Text):
    """A text that came as a file: `text` begins with its name, `url` is the data: URL."""

    url: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class OtherPart:
    """A part that only some APIs have: a sound, an image or a file stored at the provider, sources. Others get
    `[label]`, with the `words` that there are of it. `sound` is the `input_audio` of OpenAI's formats, which only chat
    sends."""

    label: str
    words: str = ""
    sound: Payload | None = None


Shown = Text | Image | File | OtherPart


@dataclass(frozen=True, slots=True)
class ToolResult:
    call_id: str
    parts: tuple[Shown, ...]
    is_error: bool = False

    @property
    def parts_with_error_mark(self) -> tuple[Shown, ...]:
        """The parts for a format without an error flag: if the tool failed, they say so."""
        return marked("[error]", self.parts) if self.is_error else self.parts


@dataclass(frozen=True, slots=True)
class Hosted:
    """A tool that ran at the provider: what it was called with (None where that stands elsewhere), and what it gave; or
    what is said of such a call (`verb`), by a user too. Other formats get it as a record."""

    name: str
    arguments: str | None
    output: str = ""
    verb: str = "calls"


@dataclass(frozen=True, slots=True)
class Reasoning:
    """What only the API it came from accepts: thinking, its encrypted form, items of its bookkeeping.

    Other formats leave it out. `text` is the readable part of it.
    """

    text: str


@dataclass(frozen=True, slots=True)
class CompactionItem:
    """An item that stands for the messages before it, opaque or not. Other formats leave it out too."""

    text: str


Part = Shown | ToolCall | ToolResult | Hosted | Reasoning | CompactionItem


@dataclass(frozen=True, slots=True)
class NeutralMessage:
    """One item: who says what. Its results answer calls; everything else is said by `role`. `name` is the speaker's,
    where several share a role."""

    role: Role
    parts: tuple[Part, ...]
    name: str = ""

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple([part for part in self.parts if isinstance(part, ToolCall)])

    @property
    def results(self) -> tuple[ToolResult, ...]:
        return tuple([part for part in self.parts if isinstance(part, ToolResult)])

    @property
    def shown(self) -> tuple[Shown, ...]:
        """The parts that every format can express, in order."""
        return tuple([part for part in self.parts if isinstance(part, Text | Image | File | OtherPart)])

    @property
    def kind(self) -> Kind:
        types = {*map(type, self.parts)}
        if ToolResult in types:
            return Kind.TOOL_RESULT
        if ToolCall in types:
            return Kind.TOOL_CALL
        if not types.isdisjoint((Text, Image, File, OtherPart)):
            return Kind.TEXT
        if Hosted in types:
            return Kind.TOOL_CALL
        return Kind.COMPACTION if CompactionItem in types else Kind.REASONING

    @property
    def text(self) -> str:
        return storable("\n".join(filter(None, map(readable, self.parts))))


def readable(part: Part) -> str:
    """A part as readable text: for a message's `text`, and for formats that cannot express the part."""
    match part:
        case Text(text) | Reasoning(text) | CompactionItem(text):
            return text
        case Image() | File() | OtherPart():
            return _named(part)
        case ToolCall(name=name, arguments=arguments):
            return f"[calls {name}({arguments})]"
        case Hosted(name, arguments, output, verb):
            call = "" if arguments is None else f"[{verb} {name}({arguments})]"
            return "\n".join(filter(None, (call, output)))
        case ToolResult():
            return "\n".join(filter(None, map(readable, part.parts_with_error_mark)))


def _named(part: Image | File | OtherPart) -> str:
    label, words = "image", ""
    match part:
        case File(url, name):
            label, words = "file", f"{name} {url if url.startswith('http') else ''}"
        case OtherPart():
            label, words = part.label, part.words
        case _:
            pass
    label, said = " ".join(label.split()), " ".join(words.split())
    return f"[{label}: {said}]" if said else f"[{label}]"


def voices(message: Message) -> list[Voice]:
    """The pieces of a message's text, a line after the other, each of another speaker than the one before. A result is
    its tool's, and what stands beside it is not."""
    if not message.answers and message.role is not Role.ASSISTANT:
        return [Voice(message.text, message.role, author_in(message.role, message.raw))]
    says = said(message)
    own = Voice("", says.role, author_in(says.role, message.raw))
    tools = iter(message.tools)
    lines: list[Voice] = []
    for part in says.parts:
        match part:
            case Hosted(name, _, output) if name:
                called = replace(part, output="")
                lines += [own._replace(words=readable(called)), Voice(output, Role.TOOL, tool=name)]
            case ToolResult():
                lines.append(Voice(readable(part), Role.TOOL, tool=next(tools, "")))
            case _:
                lines.append(own._replace(words=readable(part)))
    lines = [line for line in lines if line.words] or lines[:1] or [own]
    pieces = groupby(lines, key=itemgetter(1, 2, 3))
    return [Voice(storable("\n".join(line.words for line in some)), *who) for who, some in pieces]


def converted(message: Message) -> NeutralMessage:
    """The content of a message for another format, where names are said in front of the words."""
    says = said(message)
    if not says.name:
        return says
    spoken = next((at for at, part in enumerate(says.parts) if isinstance(part, Text)), None)
    name = " ".join(says.name.split())
    if spoken is None:
        return replace(says, parts=(Text(f"{name}:"), *says.parts)) if says.shown else says
    words = readable(says.parts[spoken])
    return replace(says, parts=(*says.parts[:spoken], Text(f"{name}: {words}"), *says.parts[spoken + 1 :]))


def in_order(says: NeutralMessage) -> list[NeutralMessage]:
    """The same as several, so that each record stands where its tool ran; what follows a call is not parted from it."""
    called = next((at for at, part in enumerate(says.parts) if isinstance(part, ToolCall)), len(says.parts))
    runs = [tuple(run) for _, run in groupby(says.parts[:called], key=lambda part: isinstance(part, Hosted))]
    *before, last = runs or [()]
    return [replace(says, parts=parts) for parts in (*before, last + says.parts[called:])]


def record_of(says: NeutralMessage) -> str:
    """What tools gave that ran at the provider, and what a user decided of one, for formats without a place for it; ""
    where none did. Nobody can take it for words of the user or the assistant."""
    ran = [part for part in says.parts if isinstance(part, Hosted)]
    lines = [line for part in ran for line in statements(readable(part))]
    lead = "The user decided this" if says.role is Role.USER else "Tools of the assistant said this, not the user"
    return fenced(f"{lead}. {RECORD}", map("- {}".format, lines)) if lines else ""


def with_record(says: NeutralMessage) -> NeutralMessage:
    """The same message, but what a tool said without a call becomes a user message with the words between the lines of
    a fence: only Responses has a place for it."""
    if says.role is not Role.TOOL or not says.shown:
        return says
    words = "\n".join(readable(part) for part in says.shown if not isinstance(part, Image | File))
    record = fenced(f"A tool said this, not the user. {RECORD}", map("- {}".format, statements(words)))
    return NeutralMessage(Role.USER, (Text(record), *media_of(says.shown)))


def media_of(parts: tuple[Shown, ...]) -> tuple[Image | File, ...]:
    """The pictures and files that a tool gave, for a user's message: the name of a file speaks with nobody's
    authority."""
    found = [part for part in parts if isinstance(part, Image | File)]
    return tuple(replace(part, name=one_line(part.name)) if isinstance(part, File) else part for part in found)


def thoughts(text: str) -> Reasoning:
    """What a model thought: each line says so, that none of them is taken for what it said."""
    return Reasoning("\n".join(f"{THINKING}{line}" for line in text.splitlines() if line.strip()))


def ran(name: str, arguments: str | None, output: str, *, failed: bool, verb: str = "calls") -> Hosted:
    """A tool that ran at the provider. If it failed, what it gave says so."""
    return Hosted(name, arguments, f"[error] {output}".rstrip() if failed else output, verb)


def listed(server: object, tools: object, error: object = None) -> Hosted:
    """The tools of an MCP server, by their names: what each takes says nothing in a conversation."""
    each = cast("list[Any]", tools) if isinstance(tools, list) else []
    names = [cast("Payload", tool).get("name") for tool in each if isinstance(tool, dict)]
    name = ".".join(filter(None, (words_of(server), "list_tools")))
    return ran(name, "{}", words_of([error, names]), failed=bool(error))


def file_of(url: str, name: str) -> File | FileText:
    """A file at an address, or given as data. What cannot be read as a text is known by its name alone."""
    words = text_in(url)
    return FileText("\n".join(filter(None, (name, words))), url, name) if words.strip() else File(url, name)


def sound(part: Payload) -> OtherPart:
    """A user's sound in a part of OpenAI's formats, and what was said in it, where that is known."""
    own = cast("Payload", inner) if isinstance(inner := part.get("input_audio"), dict) else {}
    data = {key: own[key] for key in ("data", "format") if key in own}
    return OtherPart("audio", words_of([part.get("transcript"), own.get("transcript")]), data or None)


def sources(cited: object) -> OtherPart | None:
    """What a text cites; None where it cites nothing. `cited` is what its API says of that."""
    words = citations_of(cited)
    return OtherPart("sources", "; ".join(filter(None, map(str.strip, words.splitlines())))) if words else None


def marked(mark: str, parts: tuple[Shown, ...]) -> tuple[Shown, ...]:
    """`parts` with `mark` in front, which says what the target format has no field for."""
    if parts and isinstance(parts[0], Text):
        return (Text(f"{mark} {parts[0].text}"), *parts[1:])
    return (Text(mark), *parts)


Reader = Callable[[Payload], NeutralMessage]
_READERS: dict[str, Reader] = {}


def reads(wire: str) -> Callable[[Reader], Reader]:
    """Marks the function that reads the items of `wire`, so that other formats can be written from them."""

    def mark(reader: Reader) -> Reader:
        _READERS[wire] = reader
        return reader

    return mark


def said(message: Message) -> NeutralMessage:
    """The content of a message. Raises InvalidInput for a wire format that is not known."""
    return reader(message.wire)(message.payload)


def calls_of(message: Message) -> tuple[Call, ...]:
    """The tool calls that a message makes."""
    calls = said(message).calls if message.calls else ()
    return tuple(Call(id=call.id, name=call.name, arguments=call.arguments) for call in calls)


def spoken(message: Message) -> str:
    """The words of a message, without calls, reasoning and images."""
    return "\n".join(part.text for part in said(message).parts if isinstance(part, Text))


def reader(wire: str) -> Reader:
    """The function that reads the items of `wire`. Raises InvalidInput for a wire format that is not known."""
    try:
        return _READERS[wire]
    except KeyError:
        known = ", ".join(_READERS)
        raise InvalidInput(f"the message's wire is {wire!r}; it must be one of {known}") from None


def text_of(item: Payload, wire: str) -> str:
    """What the `text` of a message with this item is. Raises InvalidInput for an item that cannot be read."""
    return reader(wire)(item).text


def message_from(payload: Mapping[str, Any], wire: str) -> Message:
    """A caller's item of `wire` as a message. Raises InvalidMessage for what its API would not accept."""
    raw, item = item_of(payload)
    says = _READERS[wire](item)
    kind = says.kind
    made = says.calls if kind in (Kind.TOOL_CALL, Kind.TOOL_RESULT) else ()
    calls = tuple(map(attrgetter("id"), made))
    answers = tuple([result.call_id for result in says.results]) if kind is Kind.TOOL_RESULT else ()
    for ids, verb in ((calls, "makes"), (answers, "answers")):
        if len({*ids}) < len(ids):
            twice = next(one for one, times in Counter(ids).items() if times > 1)
            raise InvalidMessage(f"the message {verb} the call {shown(twice)} twice; each call needs its own id")
    return Message(
        raw=raw,
        wire=wire,
        role=Role.TOOL if answers else says.role,
        kind=kind,
        text=says.text,
        calls=calls,
        answers=answers,
        tools=tuple(map(storable, map(attrgetter("name"), made))),
    )
