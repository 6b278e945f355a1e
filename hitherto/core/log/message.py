"""Messages, as they are appended and as the log returns them.

A `Message` keeps the caller's own item to the byte (`raw`), and beside it the few things that the engine must know of
it. The codec of the item's wire format reads these once.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from itertools import islice, repeat
from typing import Annotated, Any, Final, Literal, NamedTuple, cast

from pydantic import (
    AliasChoices,
    BeforeValidator,
    Field,
    PlainSerializer,
    SerializationInfo,
    ValidationInfo,
    WithJsonSchema,
    computed_field,
)

from hitherto.errors import InvalidMessage

Payload = dict[str, Any]
"""One item as an API sends or accepts it: a JSON object."""

Wire = Literal["openai.chat", "openai.responses", "anthropic"]
"""Message formats, named by their APIs."""

CHAT: Final = "openai.chat"
RESPONSES: Final = "openai.responses"
ANTHROPIC: Final = "anthropic"

LONGEST_CALL_ID = 10_000
"""Characters of a tool call's id. Some gateways put a model's signature into it."""

LONGEST_ID = 10_000
"""Characters of a message's own id."""

LONGEST_METADATA = 100_000
"""Characters of metadata as JSON."""

CANONICAL: Final = "o200k_base"
"""The name of the counter of the tokens that the log keeps, whatever the model."""

_SHOWN_ID = 60
"""Characters of an id that errors show."""

_EACH = 100
"""Characters that take as long as a message beside its own."""

_MANY = 1_000
"""Messages that take long, whatever is in them."""

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class Role(StrEnum):
    """Who speaks. A tool's answer is `tool` here, whatever role its wire format gives it."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class Kind(StrEnum):
    """What an item is for the rules of grouping: a message with text and tool calls is a tool call. So is an item of a
    tool that ran at the provider, which makes no call that waits."""

    TEXT = "text"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    REASONING = "reasoning"
    COMPACTION = "compaction"


def to_json(value: object, *, what: str) -> str:
    """`value` as ASCII JSON text, keys in their given order. Raises InvalidMessage for a value that JSON cannot
    express.

    ASCII, because PostgreSQL's `json` keeps the escapes of NUL and of lone surrogates that its text cannot hold.
    """
    try:
        return json.dumps(value, ensure_ascii=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidMessage(f"{what} is not JSON: {error}; pass only what json.dumps can write") from error


DEPTH = 100
"""How deeply an item, or another JSON value of a caller's, may be nested. Items of the APIs stay far below it. Python's
JSON fails at a depth that depends on the caller's stack; within this limit, whatever was read can be written."""


def shallow_json(value: object, *, what: str) -> str:
    """As `to_json`. Raises InvalidMessage also for a value that is nested beyond DEPTH."""
    if too_deep(value):
        raise InvalidMessage(f"{what} is nested deeper than {DEPTH} levels; pass a part of it as JSON text")
    return to_json(value, what=what)


def too_deep(value: object) -> bool:
    """Whether `value` is nested beyond DEPTH."""
    return any(depth > DEPTH for _, depth in containers(value))


def containers(value: object) -> Iterator[tuple[object, int]]:
    """Every mapping and list in `value` with its depth, the outermost at 1; endless if `value` contains itself."""
    todo: list[tuple[object, int]] = [(value, 1)]
    while todo:
        one, depth = todo.pop()
        if isinstance(one, Mapping):
            children = cast("Iterable[object]", one.values())
        elif isinstance(one, list | tuple):
            children = cast("Iterable[object]", one)
        else:
            continue
        yield one, depth
        todo += zip(children, repeat(depth + 1))


NESTED: Final = "nested"
"""Pydantic's context of JSON in which a `JsonText` stands as the value that it is the text of."""


def _loaded(text: str | None, info: SerializationInfo) -> object:
    return text if text is None or info.context != NESTED else json.loads(text)


def _dumped(value: object, info: ValidationInfo) -> object:
    return value if info.context != NESTED else json.dumps(value, ensure_ascii=True)


JsonText = Annotated[str, BeforeValidator(_dumped), PlainSerializer(_loaded)]
"""The text of a JSON value."""

PAYLOAD: Final[Any] = Field(validation_alias=AliasChoices("raw", "payload"), serialization_alias="payload")
"""The name of a `raw` text in JSON where names have aliases."""


def _metadata_text(value: object) -> str:
    if not isinstance(value, dict):
        raise InvalidMessage("give an object")
    return shallow_json(cast("dict[str, object]", value), what="metadata")


def size_of(messages: Iterable[Message]) -> int:
    """What it takes to go through the messages, in characters; of many, at least that much."""
    return sum([_EACH + len(one.raw) for one in islice(messages, _MANY)])


def storable(text: str) -> str:
    """`text` with NUL and lone surrogates replaced by U+FFFD: the readable copy; `raw` keeps the original."""
    try:
        if "\0" not in text:
            text.encode()
            return text  # the pattern takes sixty times as long
    except UnicodeEncodeError:
        pass
    return _UNSTORABLE.sub("\ufffd", text)


@dataclass(frozen=True, kw_only=True)
class Message:
    """One item of a conversation, in its own wire format.

    `raw` is the item as JSON text and is what the log keeps; `payload` parses it anew at each access, so nobody can
    change a stored item through an alias. `calls` are the ids of the tool calls it makes, `answers` the ids of those it
    answers, in their order; `tools` are the names of the tools. `text` is its readable content (never shown to a model
    as if it were the item). `raw_metadata` is the application's notes as JSON text, which `metadata` parses, like
    `payload`. `said_at` is when it was said, where that is not when it is appended. `id` is the application's or an
    API's own, which only one message of a conversation has.
    """

    raw: Annotated[JsonText, WithJsonSchema({"type": "object", "additionalProperties": True}), PAYLOAD]
    wire: str
    role: Role
    kind: Kind
    text: str
    calls: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    raw_metadata: Annotated[str, BeforeValidator(_metadata_text), Field(validation_alias="metadata", exclude=True)] = (
        "{}"
    )
    expires_at: datetime | None = None
    said_at: datetime | None = None
    id: str | None = None

    @property
    def payload(self) -> Payload:
        return json.loads(self.raw)

    @computed_field
    @property
    def metadata(self) -> dict[str, Any]:
        return json.loads(self.raw_metadata)

    @property
    def opens_turn(self) -> bool:
        """Whether it begins a turn: a user message does, a tool result that is sent in the user's role does not."""
        return self.role is Role.USER and self.kind is Kind.TEXT

    @property
    def goes_on(self) -> bool:
        """Whether the model's answer goes on after it: it is reasoning, or a tool that ran at the provider."""
        return self.kind is Kind.REASONING or (self.kind is Kind.TOOL_CALL and not self.calls)

    @property
    def counts(self) -> bool:
        """Whether `Messages(n)` and a window count it: user messages and the assistant's final ones."""
        return self.kind is Kind.TEXT and self.role in (Role.USER, Role.ASSISTANT)

    def with_metadata(self, metadata: Mapping[str, Any]) -> Message:
        """The same message with metadata of the application, which is never shown to a model.

        Raises InvalidMessage when it is not a JSON object, is nested deeper than 100 levels, or has more than 100,000
        characters as JSON.
        """
        text = shallow_json(dict(metadata), what="metadata")
        if (
            len(text) > LONGEST_METADATA
            and (size := len(json.dumps(json.loads(text), ensure_ascii=False))) > LONGEST_METADATA
        ):
            raise InvalidMessage(
                f"metadata has {size:,} characters as JSON; at most {LONGEST_METADATA:,} are kept, so keep the rest "
                "elsewhere"
            )
        return replace(self, raw_metadata=text)

    def with_id(self, id: str | None) -> Message:
        """The same message with an id of the application's own, or (None) without one. Raises InvalidMessage for a text
        that is empty, has more than 10,000 characters, or NUL or a lone surrogate in it."""
        return replace(self, id=None if id is None else checked_id(id))

    def expiring(self, at: datetime) -> Message:
        """The same message, to be erased once `at` has passed. Raises InvalidMessage for a time without a zone."""
        return replace(self, expires_at=_time(at, "expires_at", "datetime.now(timezone.utc) + timedelta(days=30)"))

    def dated(self, at: datetime) -> Message:
        """The same message, said at `at`: any time, in any order. What is recalled and what digests are made from tell
        that time; the order of the log, expiry and every trigger go by when it is appended. Raises InvalidMessage for a
        time without a zone."""
        return replace(self, said_at=_time(at, "at", "datetime(2026, 5, 8, 13, 30, tzinfo=timezone.utc)"))


def _time(at: object, name: str, example: str) -> datetime:
    if not isinstance(at, datetime):
        raise InvalidMessage(f"{name} is {at!r}; give a time with a zone, e.g. {example}")
    if at.utcoffset() is None:
        raise InvalidMessage(f"{name} is {at!r}, a time without a zone; give one, e.g. {example}")
    # The time must be expressible in every zone and in PostgreSQL.
    if not 2 <= at.year <= 9998:
        raise InvalidMessage(f"{name} is {at!r}; give a time between the years 2 and 9998, or none at all")
    return at


def checked_id(id: object) -> str:
    """The id of a message. Raises InvalidMessage, see `Message.with_id`."""
    if not isinstance(id, str) or not id:
        raise InvalidMessage(f"a message has the id {id!r:.80}; give a text that is not empty, or leave it out")
    if len(id) > LONGEST_ID:
        raise InvalidMessage(f"a message has an id of {len(id):,} characters; at most {LONGEST_ID:,} are kept")
    if storable(id) != id:
        raise InvalidMessage(
            f"a message has the id {short_id(id)}, with NUL or a lone surrogate in it; give a plain one"
        )
    return id


def short_id(id: str) -> str:
    """An id in a message to a person."""
    return ascii(id) if len(id) <= _SHOWN_ID else f"{id[:_SHOWN_ID]!a}..."


def id_hash(id: str) -> str:
    """What is left of the id of an erased message, and what an index has of any: its SHA-256 in hexadecimal."""
    return hashlib.sha256(id.encode()).hexdigest()


def check_item(given: object) -> None:
    """Raises InvalidMessage for an item with `at`: it would be sent to APIs, and the message not be of that time."""
    if isinstance(given, Mapping) and "at" in given:
        raise InvalidMessage(
            "the item has `at`, which no API takes; to say when it was said, give a Message: "
            "hitherto.wire.read(item).dated(at), over HTTP an object with `item` and `said_at`"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call that a model makes. `arguments` is JSON text, as models write it; for a custom tool it is any
    text."""

    id: str
    name: str
    arguments: str = "{}"


def plain_message(role: Role, text: str) -> Message:
    """A text message that Hitherto writes itself, in OpenAI's chat format."""
    raw = json.dumps({"role": role.value, "content": text})
    return Message(raw=raw, wire=CHAT, role=role, kind=Kind.TEXT, text=storable(text))


class Sums(NamedTuple):
    """Running sums over the log, up to and including one message. They make every trigger and cut an index probe.

    `tokens`: canonical tokens (o200k_base) of the items as sent; `turns`: messages that open a turn; `dialogue`:
    messages that count (user and final assistant messages); `results`: the part of `tokens` that is in tool results.
    Over the messages that are live at one revision they never decrease.
    """

    tokens: int = 0
    turns: int = 0
    dialogue: int = 0
    results: int = 0

    def after(self, message: Message, tokens: int) -> Sums:
        return Sums(
            self.tokens + tokens,
            self.turns + message.opens_turn,
            self.dialogue + message.counts,
            self.results + (tokens if message.kind is Kind.TOOL_RESULT else 0),
        )


@dataclass(frozen=True, kw_only=True)
class Logged:
    """A message in the log. `tokens` are its own canonical tokens, `sums` those up to and including it.

    `rev` is the revision at which it was appended. `erased`: it has expired and only its place is left. `retracted_rev`
    is the revision at which it was retracted: it stays in the log, but views from that revision on do not show it.
    `id_hash` is what is left of the id of an erased message: its SHA-256 in hexadecimal, by which it is still known.
    """

    seq: int
    message: Message
    tokens: int
    sums: Sums
    rev: int
    created_at: datetime
    erased: bool = False
    retracted_rev: int | None = None
    id_hash: str | None = None

    @property
    def said_at(self) -> datetime:
        """When it was said: as its message tells, else when it was appended."""
        return self.message.said_at or self.created_at

    @property
    def before(self) -> Sums:
        """The running sums up to the message before it."""
        result = self.message.kind is Kind.TOOL_RESULT
        return Sums(
            tokens=self.sums.tokens - self.tokens,
            turns=self.sums.turns - self.message.opens_turn,
            dialogue=self.sums.dialogue - self.message.counts,
            results=self.sums.results - (self.tokens if result else 0),
        )

    def expired(self, now: datetime) -> bool:
        """Whether it has expired by `now`, erased or not."""
        return self.erased or (self.message.expires_at is not None and self.message.expires_at <= now)

    def live(self, at: int) -> bool:
        """Whether views at revision `at` can show it."""
        return self.rev <= at and (self.retracted_rev is None or self.retracted_rev > at)
