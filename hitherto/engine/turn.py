"""A turn in one piece: the question, what the model answers, and what tools say, appended together at its end."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Protocol, Self, TypeVar, cast

from hitherto.core.context.request import WireFormat
from hitherto.core.context.stream import StreamedAnswer
from hitherto.core.log.message import Call, Message, Payload, Role, plain_message
from hitherto.core.policy.policy import Policy
from hitherto.core.policy.presets import none
from hitherto.engine.context.context import Context
from hitherto.engine.handle import Handle
from hitherto.engine.log.append import AppendResult, check_key
from hitherto.engine.log.rewind import Rewinder
from hitherto.errors import IdempotencyKeyReused, InvalidInput, InvalidMessage, NotFound
from hitherto.logs import logger
from hitherto.ports.log import MessageRange
from hitherto.uninterrupted import uninterrupted

Event = TypeVar("Event")

Partial = Literal["keep", "drop"]

log = logger("hitherto")


class ModelDump(Protocol):
    """An object of an SDK, such as a completion or an event: a pydantic model."""

    def model_dump(self) -> dict[str, Any]: ...


Answer = Message | Mapping[str, Any] | ModelDump | str


class Turn:
    """One turn of a conversation; made by `Conversation.turn`, used once, with `async with`.

    Inside, `request` are the arguments for the API call. `add` takes the answer, or `stream` its events; where the
    answer calls tools, `calls` are those without a result, `add` takes their results too, and `request` is made anew.
    `done` says that the answer is there. At the end of the block everything is appended at once; `result` is what the
    append answered.
    """

    def __init__(
        self,
        handle: Handle,
        question: Sequence[Message],
        *,
        codec: WireFormat,
        key: str | None,
        partial: Partial,
        contexts: Callable[[Sequence[Message]], Coroutine[Any, Any, Context]],
        append: Callable[[Sequence[Message], str | None, Policy | None], Coroutine[Any, Any, AppendResult]],
    ) -> None:
        check_key(key)
        if partial not in ("keep", "drop"):
            raise InvalidInput(f"partial is {partial!r}; give 'keep' or 'drop'")
        if not question:
            raise InvalidInput("the turn has no question; give a text, a message, or several")
        self._handle, self._codec, self._contexts, self._appended = handle, codec, contexts, append
        self._question = tuple(question)
        self._key, self._partial = key, partial
        self._answer: list[Message] = []
        self._context: Context | None = None
        self._streaming: StreamedAnswer | None = None
        self._state: Literal["new", "open", "over"] = "new"
        self._replayed = False
        self._broken = False
        self._result: AppendResult | None = None

    @property
    def context(self) -> Context:
        """The context of the next request, with its manifest. Raises InvalidInput where there is no next request: the
        turn is done, or calls wait for their results."""
        if self._state != "open":
            raise InvalidInput("this turn is over or did not begin; use it inside of `async with chat.turn(…) as turn`")
        if self._context is None:
            waits = ", ".join(call.id for call in self.calls)
            raise InvalidInput(
                f"no request is due: the calls {waits} wait for their results; add them first"
                if waits
                else "no request is due: the turn has its answer; see `done`"
            )
        return self._context

    @property
    def request(self) -> Mapping[str, Any]:
        """The arguments for the API call. Raises InvalidInput as `context` does."""
        return self.context.request

    @property
    def done(self) -> bool:
        """Whether the answer is there: the model's last message calls no tool, its stream broke off, or the turn's key
        was answered before."""
        last = self._answer[-1].role if self._answer else None
        return self._replayed or self._broken or (last is Role.ASSISTANT and not self.calls)

    @property
    def replayed(self) -> bool:
        """Whether the key was answered before: the turn has the stored answer, and nothing is appended."""
        return self._replayed

    @property
    def calls(self) -> tuple[Call, ...]:
        """The tool calls of this turn that have no result yet, in their order."""
        answered = {call for message in self._answer for call in message.answers}
        made = [call for message in self._answer for call in self._codec.calls(message)]
        return tuple(call for call in made if call.id not in answered)

    @property
    def text(self) -> str:
        """What the assistant's last message says; "" before there is one."""
        said = [one.text for one in self._answer if one.role is Role.ASSISTANT]
        return said[-1] if said else ""

    @property
    def messages(self) -> tuple[Message, ...]:
        """What has been added since the question, in its order."""
        return tuple(self._answer)

    @property
    def result(self) -> AppendResult | None:
        """What the append at the end of the block answered; None before, and where nothing was appended."""
        return self._result

    async def add(self, *answers: Answer) -> None:
        """Take the model's answer, or results of the tools that it calls: a completion, a response or a message as the
        SDK of the turn's API gives it, or as a dict; an item of the API; a `Message`; or the text of an answer.

        When no call waits for its result any more and the answer is not there, the next request is made: raises what
        `Conversation.context` does. Raises InvalidMessage for what is none of these, InvalidInput once the turn is
        done.
        """
        if self._state != "open" or self.done:
            raise InvalidInput("this turn has its answer already; begin the next one with chat.turn(…)")
        given = [message for answer in answers for message in self._read(answer)]
        if not given:
            raise InvalidMessage("there is nothing to add; give an answer, or the result of a call")
        self._answer += given
        await self._go_on()

    async def stream(self, events: AsyncIterable[Event]) -> AsyncIterator[Event]:
        """The events of a streamed answer as they come; at their end the answer is added, as by `add`. Raises what the
        events raise."""
        take = self.reading()
        async for event in events:
            take(event)
            yield event
        await self.read()

    def reading(self) -> Callable[[object], None]:
        """What `stream` begins with: a function that takes each event."""
        if self._state != "open" or self.done or self._streaming is not None:
            raise InvalidInput("no answer is due in this turn; stream one for each request")
        answer = self._streaming = self._codec.streamed()
        return lambda event: answer.take(_dumped(event))

    async def read(self) -> None:
        """What `stream` ends with: the answer whose events have been taken is added. One that the API did not complete
        is a partial one. Raises InvalidMessage if the events said nothing at all in the turn's format."""
        before = len(self._answer)
        self._take_streamed()
        if len(self._answer) == before:
            raise InvalidMessage(
                f"the stream ended and said nothing in the format {self._codec.name!r}; is it the one of the API that "
                "was asked? Give the turn wire=…"
            )
        if not self._broken:
            await self._go_on()

    async def __aenter__(self) -> Self:
        if self._state != "new":
            raise InvalidInput("this turn was used already; make another one with chat.turn(…)")
        self._state = "open"
        if self._key is not None and not await self._find_answer(self._key):
            await self._take_back_partial(self._key)
        await self._go_on()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._take_streamed()
        self._broken = self._broken or (kind is not None and not self.done)
        self._state, self._context = "over", None
        if not self._replayed:
            await uninterrupted(self._append())

    async def _append(self) -> None:
        answer = _without_open_calls(self._answer, {call.id for call in self.calls}) if self._broken else self._answer
        if not answer or (self._broken and self._partial == "drop"):
            log.debug("A turn of %s left nothing: it has no answer", self._handle.id)
            return
        if self._broken:
            batch = [*self._question, *answer[:-1], self._marked(answer[-1], len(self._question) + len(answer))]
            self._result = await self._appended(batch, None, none())  # under which nothing is due
            return
        try:
            self._result = await self._appended([*self._question, *answer], self._key, None)
        except IdempotencyKeyReused:
            if self._key is None or not await self._find_answer(self._key):
                raise
            log.warning("Two turns of %s with one key were answered at once; the first is kept", self._handle.id)

    async def _go_on(self) -> None:
        """Make the next request if one is due: nothing waits for a result, and the answer is not there."""
        self._context = None
        if not self.done and not self.calls:
            self._context = await self._contexts([*self._question, *self._answer])

    def _take_streamed(self) -> None:
        """Add the answer that is being streamed, if one is: all of it, or the text that has come so far."""
        answer, self._streaming = self._streaming, None
        if answer is None:
            return
        self._context = None
        if answer.complete:
            self._answer += [self._handle.services.read(item, self._codec.name) for item in answer.items()]
            return
        self._broken = True
        if answer.text:
            self._answer.append(plain_message(Role.ASSISTANT, answer.text))

    def _read(self, answer: Answer) -> list[Message]:
        if isinstance(answer, str):
            return [plain_message(Role.ASSISTANT, answer)]
        if isinstance(answer, Message):
            return [answer]
        given = _dumped(answer)
        items = self._codec.answered(given)
        wire = self._codec.name if items is not None else None
        return [self._handle.services.read(item, wire) for item in ([given] if items is None else items)]

    def _marked(self, message: Message, size: int) -> Message:
        """The last message of a partial answer. Its metadata says so, with the key and the number of messages."""
        return message.with_metadata(
            {**json.loads(message.metadata), "partial": True, "key": self._key, "messages": size}
        )

    async def _find_answer(self, key: str) -> bool:
        """Take the stored answer of the key, if there is one; returns whether there is.

        Raises IdempotencyKeyReused if the key was used for another question, NotFound if its answer was erased.
        """
        store, scope, name = self._handle.services.store, self._handle.scope, self._handle.id
        receipt = await store.receipt(scope, name, key)
        if receipt is None:
            return False
        head = await self._handle.head()
        stored = await store.messages(scope, name, head.ref, MessageRange(start=receipt.start, stop=receipt.end + 1))
        if not stored or any(one.erased for one in stored):
            raise NotFound(f"key={key!r} was answered before, and the answer was erased since; use another key")
        count = len(self._question)
        if [one.message.raw for one in stored[:count]] != [one.raw for one in self._question]:
            raise IdempotencyKeyReused(
                f"key={key!r} was used for another question (seq {receipt.start} to {receipt.end}); give every turn a "
                "key of its own, and the same key only to a retry of the same turn"
            )
        self._replayed, self._answer = True, [one.message for one in stored[count:]]
        self._result = AppendResult(start=receipt.start, end=receipt.end, rev=receipt.rev, replayed=True)
        return True

    async def _take_back_partial(self, key: str) -> None:
        """Take back what an earlier turn with this key left when it broke off, if nothing was said since."""
        store, scope, name = self._handle.services.store, self._handle.scope, self._handle.id
        head = await self._handle.head()
        if head.next_seq <= head.view_start:
            return
        newest = MessageRange(start=head.last_seq, stop=head.next_seq, live_at=head.rev)
        for last in await store.messages(scope, name, head.ref, newest):
            mark = json.loads(last.message.metadata)
            if mark.get("partial") is True and mark.get("key") == key:
                await Rewinder(self._handle).rewind(max(last.seq - int(mark["messages"]), head.view_start - 1))


def _without_open_calls(answer: Sequence[Message], left: set[str]) -> list[Message]:
    """The messages up to the first that makes a call without a result; reasoning before it goes too."""
    at = next((at for at, one in enumerate(answer) if left & set(one.calls)), len(answer))
    kept = list(answer[:at])
    while kept and kept[-1].role is Role.ASSISTANT and not kept[-1].text and not kept[-1].answers:
        kept.pop()
    return kept


def _dumped(value: object) -> Payload:
    """A dict, or what an SDK's object is as one. Raises InvalidMessage for anything else."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    dump = getattr(value, "model_dump", None)
    found: object = dump() if callable(dump) else None
    if not isinstance(found, dict):
        raise InvalidMessage(f"an answer is {value!r:.80}; give a completion, its events, a message, or a text")
    return cast("Payload", found)
