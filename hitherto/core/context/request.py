"""The request for a context, and the wire format it is written in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from typing import Any, Protocol

from hitherto.core.context.budget import TokenCounter
from hitherto.core.log.message import Call, Message, Payload, Role, plain_message, size_of
from hitherto.core.log.speaker import Voice
from hitherto.core.model_family import family_of


class StreamedAnswer(Protocol):
    """Takes the events of one answer as they come. `text` is what it has said so far, and `complete` whether the API
    has ended it; one that fails or breaks off never is. `items` are the answer as items of the API, once it is
    complete. Events of no interest are passed over."""

    @property
    def text(self) -> str: ...
    @property
    def complete(self) -> bool: ...
    def take(self, event: Mapping[str, Any]) -> None: ...
    def items(self) -> list[Payload]: ...


class WireFormat(Protocol):
    """One wire format: how its items are read into messages, and how messages are written for its API."""

    @property
    def name(self) -> str: ...
    @property
    def framing(self) -> int:
        """The tokens of a request beside its items, system texts and tools."""
        ...

    @property
    def system_apart(self) -> bool:
        """Whether it has no place for a system message among the items."""
        ...

    def read(self, payload: Mapping[str, Any]) -> Message:
        """Raises InvalidMessage for an item that the API would not send or accept."""
        ...

    def write(self, messages: Sequence[Message], *, unanswered: Sequence[str] = ()) -> list[Payload]:
        """The items of one whole group, in order: a message that came in this format comes back equal, one of another
        is converted. For each call in `unanswered` a placeholder result is added, as the API wants one."""
        ...

    def as_it_is(self, message: Message) -> Payload | None:
        """The item of a message that is no more than a role and a text, as most are, which needs neither writing nor
        mending; None for another."""
        ...

    def redacted(self, message: Message, replace: Callable[[str, str], str | None], *, calls: bool) -> Message:
        """The message, in its own format whichever that is, with the content of each tool result in it, and with
        `calls` the arguments of each call, replaced by what `replace(tool, readable text)` gives (None: that one
        stays). Ids, types, names, error flags, other fields and the order of keys stay, so that its API still accepts
        it; what has no room for a text stays as it is. The same object where nothing changes."""
        ...

    def sendable(self, items: Sequence[Payload], *, halves: bool = True, framework: bool = False) -> list[Payload]:
        """The written items of a group as the API takes them, the same ones where nothing is to be mended. `halves` is
        whether there may be halves of characters in them, which takes long to find out; `framework` whether a framework
        is given the items, which takes out itself what the API refuses of its own."""
        ...

    def distinct(
        self, items: list[Payload], used: dict[tuple[str, str], int], *, framework: bool = False
    ) -> list[Payload]:
        """The items with ids that are not in `used`, the ids of the request so far, to which it adds theirs."""
        ...

    def within_limits(self, messages: Sequence[Message]) -> dict[int, Message]:
        """The places of the messages that must give up pictures or files so that all of them fit into a request, the
        oldest first, with what is sent in their place."""
        ...

    def attachments(self, message: Message) -> list[Payload]:
        """The pictures and files of a message, in order, each as its API has it."""
        ...

    def is_sealed(self, message: Message) -> bool:
        """Whether it has something that its model sealed for itself."""
        ...

    def opened(self, message: Message) -> Message | None:
        """The message without what its model sealed; None where that is all."""
        ...

    def joining(self) -> WireFormat:
        """The same format with neighbors of one role in one message, where that makes a difference."""
        ...

    def joined(self, items: Sequence[Payload]) -> Sequence[Payload]:
        """All items of a request as `request` has them: joined, or the same object."""
        ...

    def is_user(self, item: Payload) -> bool:
        """Whether it is a user's own item, and no tool result that travels as one."""
        ...

    def prefixed(self, item: Payload, text: str) -> Payload:
        """A user's item with `text` in front of its own."""
        ...

    def opening(self, first: Payload | None, system: Sequence[str | Payload]) -> Payload | None:
        """What the API demands before `first` at the start of a request, if anything. `first` is None where the request
        has no items beside it."""
        ...

    def tokens(self, item: Payload, counter: TokenCounter) -> int: ...
    def system_tokens(self, text: str, counter: TokenCounter) -> int: ...
    def tools_tokens(self, tools: Sequence[Mapping[str, Any]], counter: TokenCounter) -> int: ...
    def answered(self, response: Mapping[str, Any]) -> list[Payload] | None:
        """The items of a whole response of the API; None if it is none."""
        ...

    def finish_reason(self, said: Mapping[str, Any]) -> str | None:
        """Why the model ended, in the API's word, by a whole response or an event; None where that does not say."""
        ...

    def streamed(self) -> StreamedAnswer:
        """What takes the events of one response."""
        ...

    def calls(self, message: Message) -> tuple[Call, ...]:
        """The tool calls that a message makes, whatever its own format."""
        ...

    def spoken(self, message: Message) -> str:
        """Its words, without calls and reasoning."""
        ...

    def voices(self, message: Message) -> list[Voice]:
        """The pieces of a message's text, between which is a line break, with who says each."""
        ...

    def takes_breakpoints(self, model: str | None) -> bool:
        """Whether the API takes cache breakpoints for the model (None: not known)."""
        ...

    def request(
        self,
        *,
        system: Sequence[str | Payload],
        items: Sequence[Payload],
        tools: Sequence[Mapping[str, Any]],
        stable: StablePart | None = None,
        cache_key: str = "",
    ) -> dict[str, Any]:
        """The arguments for the API call. `system` are system texts and items of system messages, which come before the
        others. With `stable` they have cache breakpoints where that part of the request ends, and `cache_key` where the
        API has a field for it, unless `items` or `tools` bring breakpoints of their own."""
        ...


@dataclass(frozen=True, slots=True)
class StablePart:
    """What of a request the next one begins with too, as long as no stage fires and the budget does not cut anew: its
    first `system` texts and its first `items` (0 where a system text before them changes)."""

    system: int = 0
    items: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRequest:
    """The request for a context: everything but the conversation itself.

    `family` names the models whose opaque items the model understands. `opaque` are the items that the view's opaque
    digest stands for, `injected` is the memory of an earlier conversation for the instructions. `profile` is the
    text of facts about the subject at the end of the instructions, `facts` that of those in a message in front of the
    incoming ones. `tools_text` are the tool schemas as JSON, `tools_tokens` is what they cost. Where the budget cuts,
    `recall_tokens` are set aside for recalled content and `facts_room` for facts that stand ahead: so the cut does not
    depend on what was chosen this time. `cache_breakpoints` is whether the request has them, `join_neighbors` whether
    the codec joins neighbors. Without `lasting`, what is always there otherwise is not, and nothing is shortened: only
    the newest messages are shown, as they are, and where the newest group does not fit, none. `framework` is whether
    the items are for a framework: see `WireFormat`. `shorten_for` is the budget by which old results are shortened, if
    it is not `budget`. With `days`, those of the incoming messages, each user message begins with its day.
    `upto` is the message with which the conversation ends, where that is not its last.
    """

    incoming: tuple[Message, ...]
    instructions: str | None
    budget: int
    reserve: int
    counter: TokenCounter
    codec: WireFormat
    tools: tuple[Mapping[str, Any], ...] = ()
    model: str | None = None
    family: str | None = None
    opaque: tuple[Payload, ...] = ()
    injected: str | None = None
    recall_tokens: int = 0
    profile: str | None = None
    facts: str | None = None
    facts_room: int = 0
    cache_breakpoints: bool = False
    join_neighbors: bool = False
    lasting: bool = True
    framework: bool = False
    shorten_for: int | None = None
    days: tuple[date, ...] | None = None
    upto: int | None = None
    tools_text: tuple[str, ...] = ()
    tools_tokens: int = 0

    def with_tools(self, tools: Sequence[Mapping[str, Any]], texts: Sequence[str]) -> ContextRequest:
        """The same request with these tool schemas, which are these texts as JSON."""
        cost = self.codec.tools_tokens(tools, self.counter) if tools else 0
        return replace(self, tools=tuple(tools), tools_text=tuple(texts), tools_tokens=cost)

    @property
    def size(self) -> int:
        """What it takes to go through it, in characters."""
        texts = (self.instructions or "", self.injected or "", self.profile or "", self.facts or "", *self.tools_text)
        return size_of(self.incoming) + sum(map(len, texts))

    @property
    def room(self) -> int:
        return self.budget - self.reserve

    def fixed(self) -> dict[str, int]:
        """The sections that do not depend on the conversation."""
        texts = self.system(injection=False, facts=False)
        system = _counted(self.codec, self.counter, texts[0]) if texts else 0
        return {
            "framing": self.codec.framing,
            "instructions": system,
            "tools": self.tools_tokens,
        }

    def injection(self) -> int:
        """The tokens that the memory of an earlier conversation adds to the instructions."""
        if self.injected is None:
            return 0
        return self._system_tokens(injection=True, facts=False) - self.fixed()["instructions"]

    def facts_tokens(self, *, injection: bool) -> int:
        """The tokens that the facts add to the request; `injection`: with the memory of an earlier conversation in the
        instructions."""
        without, ahead = self._system_tokens(injection=injection, facts=False), self.cost(self.facts_items())
        return self._system_tokens(injection=injection, facts=True) - without + ahead

    def knowing(self, profile: str | None, facts: str | None, *, room: int = 0) -> ContextRequest:
        """The same request with these facts."""
        return replace(self, profile=profile, facts=facts, facts_room=room)

    def facts_items(self) -> list[Payload]:
        """The facts that stand in front of the incoming messages: as a user message, because what people said must not
        have the authority of instructions."""
        if self.facts is None:
            return []
        return self.codec.write([plain_message(Role.USER, self.facts)])

    def _system_tokens(self, *, injection: bool, facts: bool) -> int:
        texts = self.system(injection=injection, facts=facts)
        return sum(_counted(self.codec, self.counter, text) for text in texts)

    def system(self, *, injection: bool, facts: bool) -> list[str]:
        """The instructions as one text, with the memory of an earlier conversation and the profile at their end; an
        empty list if there is none of these."""
        parts = [self.instructions, self.injected if injection else None, self.profile if facts else None]
        texts = [part for part in parts if part is not None]
        return ["\n\n".join(texts)] if texts else []

    def sendable(self, items: Sequence[Payload], *, halves: bool = True) -> list[Payload]:
        """Written items as they are sent."""
        return self.codec.sendable(items, halves=halves, framework=self.framework)

    def opened(self, message: Message) -> Message | None:
        """The message without what a model of another family than the request's has sealed, None where that is all.
        The metadata says which: `model`."""
        # Without a model of its own the request has the family of the compactor, which may be another's.
        if self.model is None or self.family != family_of(self.model) or '"model"' not in message.raw_metadata:
            return message
        sealer: object = message.metadata.get("model")
        other = isinstance(sealer, str) and family_of(sealer) != self.family
        return self.codec.opened(message) if other else message

    def growth(self, system: Sequence[str | Payload], items: Sequence[Payload]) -> int:
        """The tokens that joining neighbors adds to a request; fewer than 0 where it saves some."""
        joined = self.codec.joined(items)
        if joined is items:
            return 0
        before, after = {id(one) for one in items}, {id(one) for one in joined}
        grown = self.cost(one for one in joined if id(one) not in before)
        grown -= self.cost(one for one in items if id(one) not in after)
        texts = [one for one in system if isinstance(one, str)]
        if len(texts) > 1:
            grown += self.codec.system_tokens("\n\n".join(texts), self.counter)
            grown -= sum(self.codec.system_tokens(one, self.counter) for one in texts)
        return grown

    def cost(self, items: Iterable[Payload]) -> int:
        return sum([self.codec.tokens(item, self.counter) for item in items])


@lru_cache(maxsize=64)
def _counted(codec: WireFormat, counter: TokenCounter, text: str) -> int:
    """What a system text costs: the same ones are asked for again and again while a context is fitted."""
    return codec.system_tokens(text, counter)
