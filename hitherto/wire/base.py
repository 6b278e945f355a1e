"""What the wire formats have in common; OpenAI's two have most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from hitherto.core.context.budget import TokenCounter
from hitherto.core.context.request import WireFormat
from hitherto.core.log.message import Call, Kind, Message, Payload
from hitherto.core.log.speaker import Voice
from hitherto.core.model_family import takes_cache_breakpoints
from hitherto.wire import cost
from hitherto.wire.answers import finish_reason
from hitherto.wire.media import attachments, within_limits
from hitherto.wire.neutral import NO_MESSAGE, calls_of, message_from, spoken, voices
from hitherto.wire.redaction import Replace, redacted
from hitherto.wire.sealed import is_sealed, opened
from hitherto.wire.sendable import Used, distinct, is_plain_message, sendable


@dataclass(frozen=True)
class BaseFormat:
    """See `WireFormat`. `framing` is the cost of the start of the reply."""

    name = ""
    framing = cost.REPLY
    system_apart = False

    def read(self, payload: Mapping[str, Any]) -> Message:
        return message_from(payload, self.name)

    def as_it_is(self, message: Message) -> Payload | None:
        if message.wire != self.name or message.kind is not Kind.TEXT or "\\ud" in message.raw:
            return None
        item = message.payload
        return item if is_plain_message(item, self.name) else None

    def sendable(self, items: Sequence[Payload], *, halves: bool = True, framework: bool = False) -> list[Payload]:
        return sendable(items, self.name, halves=halves, framework=framework)

    def distinct(self, items: list[Payload], used: Used, *, framework: bool = False) -> list[Payload]:
        return distinct(items, used, self.name, framework=framework)

    def within_limits(self, messages: Sequence[Message]) -> dict[int, Message]:
        return within_limits(messages, self.name)

    def is_sealed(self, message: Message) -> bool:
        return is_sealed(message)

    def opened(self, message: Message) -> Message | None:
        return opened(message)

    def joining(self) -> WireFormat:
        return cast("WireFormat", self)

    def joined(self, items: Sequence[Payload]) -> Sequence[Payload]:
        return items

    def opening(self, first: Payload | None, system: Sequence[str | Payload]) -> Payload | None:
        has_message = first is not None or any(not isinstance(one, str) for one in system)
        return None if has_message else {"role": "user", "content": NO_MESSAGE}

    def redacted(self, message: Message, replace: Replace, *, calls: bool) -> Message:
        return redacted(message, replace, calls=calls)

    def tokens(self, item: Payload, counter: TokenCounter) -> int:
        """OpenAI's formula for text, a bound for anything else: see `cost`."""
        return cost.message_tokens(item, counter, free=("annotations", "parsed", "id"))

    def system_tokens(self, text: str, counter: TokenCounter) -> int:
        return cost.system_text(text, counter)

    def tools_tokens(self, tools: Sequence[Mapping[str, Any]], counter: TokenCounter) -> int:
        return cost.openai_tools(tools, counter)

    def calls(self, message: Message) -> tuple[Call, ...]:
        return calls_of(message)

    def attachments(self, message: Message) -> list[Payload]:
        return attachments(message)

    def finish_reason(self, said: Mapping[str, Any]) -> str | None:
        return finish_reason(said)

    def spoken(self, message: Message) -> str:
        return spoken(message)

    def voices(self, message: Message) -> list[Voice]:
        return voices(message)

    def takes_breakpoints(self, model: str | None) -> bool:
        return model is not None and takes_cache_breakpoints(model)
