"""A turn: the question, what the model answers, and what tools say. A step of calls and results is appended before the
next request, the answer at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Coroutine, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Protocol, Self, TypeVar, cast, get_args

from pydantic import BaseModel

from hitherto.blocks import series
from hitherto.core.context.request import StreamedAnswer
from hitherto.core.log.message import Call, Message, Payload, Role, Wire, check_item, plain_message
from hitherto.core.policy.policy import Policy
from hitherto.core.policy.presets import none
from hitherto.core.scope import Scope
from hitherto.engine.arguments import check_key
from hitherto.engine.context.context import Context
from hitherto.engine.log.append import AppendResult
from hitherto.engine.services import Formats
from hitherto.engine.turn_retry import TurnProgress, marked, step_key
from hitherto.errors import BudgetExceeded, IdempotencyKeyReused, InvalidInput, InvalidMessage
from hitherto.logs import logger
from hitherto.uninterrupted import uninterrupted

Event = TypeVar("Event")

Partial = Literal["keep", "drop"]

log = logger("hitherto")


class TurnCheck(Protocol):
    """Raises where a turn cannot begin: see `Conversation.turn`."""

    async def __call__(self, at: int | None, expect: int | None, *, question: Sequence[Message]) -> None: ...


class ModelDump(Protocol):
    """An object of an SDK, such as a completion or an event: a pydantic model."""

    def model_dump(self) -> dict[str, Any]: ...


Answer = Message | Mapping[str, Any] | ModelDump | str


class Turn:
    """One turn of a conversation; made by `Conversation.turn`, used once, with `async with`.

    Inside, `request` are the arguments for the API call. `add` takes the answer, or `stream` its events; where the
    answer calls tools, `calls` are those without a result, and `add` takes their results too. When no call waits any
    more, the question, the calls and the results are appended as a step, and `request` is made anew. `done` says that
    the answer is there. At the end of the block what is left is appended at once. A turn that replaces what follows a
    message (`at`) appends nothing before the end, and nothing at all without a whole answer.
    """

    def __init__(
        self,
        question: Sequence[Message],
        *,
        scope: Scope,
        conversation: str,
        formats: Formats,
        wire: Wire,
        model: str | None,
        key: str | None,
        partial: Partial,
        at: int | None,
        expect: int | None,
        question_first: bool,
        contexts: Callable[[Sequence[Message]], Coroutine[Any, Any, Context]],
        append: Callable[[Sequence[Message], str | None, Policy | None, int | None], Coroutine[Any, Any, AppendResult]],
        retry: Callable[[Sequence[Message], str], Coroutine[Any, Any, TurnProgress | None]],
        check: TurnCheck,
    ) -> None:
        check_key(key)
        if partial not in ("keep", "drop"):
            raise InvalidInput(f"partial is {partial!r}; give 'keep' or 'drop'")
        if question_first and (at is not None or not question):
            raise InvalidInput(
                "question_first goes with a question, and not with at: nothing is replaced before the answer is there"
            )
        self._scope, self._conversation, self._formats, self._codec = scope, conversation, formats, formats.codec(wire)
        self._build_context, self._append_now, self._retry, self._check = contexts, append, retry, check
        self._at, self._expect, self._question_first = at, expect, question_first
        self._question = tuple(question)
        self._model = model
        """Who answers, as far as is known; what the API says counts."""
        self._key, self._partial = key, partial
        self._answer: list[Message] = []
        self._appended = self._steps = self._taken = 0
        """How many messages of the turn are in the log, the question's first; and in how many steps."""
        self._context: Context | None = None
        self._streaming: StreamedAnswer | None = None
        self._finish_reason: str | None = None
        self._rest = ""
        """What a stream that broke off had said, if no other answer has come since."""
        self._state: Literal["new", "open", "over"] = "new"
        self._replayed = self._overtaken = False
        self._broken = False
        self._result: AppendResult | None = None

    @property
    def context(self) -> Context:
        """The context of the next request, with its manifest. Raises InvalidInput where there is no next request: the
        turn is done, or calls wait for their results."""
        self._check_open()
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
        last = self._answer[-1] if self._answer else None
        said = last is not None and last.role is Role.ASSISTANT and not last.goes_on
        return self._replayed or self._broken or (said and not self.calls)

    @property
    def partial(self) -> bool:
        """Whether the answer broke off: `text` is what came of it."""
        return self._broken

    @property
    def finish_reason(self) -> str | None:
        """Why the model ended its newest answer, in its API's word, such as "stop" or "length"; None where a stream
        broke off before it said so, and for answers given as texts or messages."""
        return self._finish_reason

    @property
    def replayed(self) -> bool:
        """Whether the key was answered before: the turn has the stored answer, and nothing is appended."""
        return self._replayed

    @property
    def calls(self) -> tuple[Call, ...]:
        """The tool calls of this turn that have no result yet, in their order."""
        return tuple(call for _, call in self._open_calls())

    @property
    def text(self) -> str:
        """What the assistant's last message says, without its calls and its reasoning; "" before there is one."""
        said = [one for one in self._answer if one.role is Role.ASSISTANT and not one.goes_on]
        return self._codec.spoken(said[-1]) if said else ""

    @property
    def messages(self) -> tuple[Message, ...]:
        """What has been added since the question, in its order."""
        return tuple(self._answer)

    @property
    def result(self) -> AppendResult | None:
        """What the turn's newest append answered: that of a step, or at the end of the block that of the answer. None
        before, and where nothing was appended."""
        return self._result

    async def add(self, *answers: Answer) -> None:
        """Take the model's answer, or results of the tools that it calls: a completion, a response or a message as the
        SDK of the turn's API gives it, or as a dict; an item of the API; a `Message`; or the text of an answer.

        When no call waits for its result any more and the answer is not there, the next request is made and the step
        is appended: raises what `Conversation.context` and `append` do. Raises InvalidMessage for what is none of
        these, and for the result of a call that does not wait for one; InvalidInput once the turn is done. Nothing is
        added then, but for a step whose next request does not fit: it is in the log, and BudgetExceeded is raised.
        """
        self._check_due()
        given = [message for answer in answers for message in self._read(answer)]
        if not given:
            raise InvalidMessage("there is nothing to add; give an answer, or the result of a call")
        self._check_results(given)
        before = list(self._answer), self._context
        self._answer += given
        try:
            await self._go_on()
        except BaseException:
            if self._pending():  # else they are in the log: the task was canceled while they were appended
                self._answer, self._context = before
            raise
        self._streaming, self._rest = None, ""

    @series
    async def stream(self, events: AsyncIterable[Event]) -> AsyncGenerator[Event]:
        """The events of a streamed answer as they come; at their end the answer is added, as by `add`. Raises what the
        events raise."""
        take = self._begin_stream()
        mine = self._streaming
        try:
            async for event in events:
                take(event)
                yield event
        except BaseException:
            if self._streaming is mine:  # a generator may be closed late
                self._break_stream()
            raise
        await self._end_stream()

    def _begin_stream(self) -> Callable[[object], None]:
        """What `stream` begins with: a function that takes each event."""
        self._check_due()
        if self._context is None:
            raise InvalidInput("no answer is due: calls wait for their results; add them first")
        if self._streaming is not None:
            raise InvalidInput("another answer is being streamed in this turn; let it end first")
        answer = self._streaming = self._codec.streamed()
        self._finish_reason = None

        def take(event: object) -> None:
            said = _dumped(event)
            self._model = _model_of(said) or self._model
            self._finish_reason = self._codec.finish_reason(said) or self._finish_reason
            answer.take(said)

        return take

    def _break_stream(self) -> None:
        """What `stream` does when the events raise: the answer can be asked for again. If the block ends without
        another, the text that has come is what stays."""
        if self._streaming is not None:
            self._rest, self._streaming = self._streaming.text, None

    async def _end_stream(self) -> None:
        """What `stream` ends with: the answer whose events have been taken is added. One that the API did not complete
        is a partial one. Raises InvalidMessage if the events said nothing at all in the turn's format, or nothing that
        can be stored."""
        answer, self._streaming = self._streaming, None
        if answer is None:
            raise InvalidInput("no answer is being streamed in this turn")
        if not answer.complete:
            if not answer.text:
                raise InvalidMessage(
                    f"the stream ended and said nothing in the format {self._codec.name!r}: the API broke it off, or "
                    "it is that of another API; then give the turn wire=…"
                )
            self._break_off(answer.text)
            return
        try:
            items = self._with_own_ids(answer.items())
            given = self._sealed([self._codec.read(item) for item in items])
        except InvalidMessage:
            self._rest = answer.text
            raise
        if not given:
            raise InvalidMessage("the stream ended and said nothing; ask again")
        self._answer, self._rest = [*self._answer, *given], ""
        await self._go_on()

    async def __aenter__(self) -> Self:
        if self._state != "new":
            raise InvalidInput("this turn was used already; make another one with chat.turn(…)")
        self._state = "open"
        if self._key is not None:
            await self._take_progress(self._key)
        if self._appended:
            self._expect = None  # of the turn's own steps, the page knew nothing
        elif not self._replayed:
            await self._check(self._at, self._expect, question=self._question)
            if self._question_first:
                await uninterrupted(self._append_step(list(self._question)))
        await self._go_on()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._break_stream()
        if not self.done and self._rest:
            self._break_off(self._rest)
        # Also where a request is due that nobody sent: a loop that was left too early.
        self._broken = self._broken or (not self.done and (kind is not None or self._context is not None))
        self._state, self._context = "over", None
        if not self._replayed and not self._overtaken:
            await uninterrupted(self._append())

    async def _append_batch(
        self, batch: Sequence[Message], key: str | None, policy: Policy | None = None
    ) -> AppendResult:
        done = await self._append_now(batch, key, policy, self._expect)
        self._expect = None if self._expect is None else done.rev
        return done

    async def _append(self) -> None:
        if self._broken and self._at is not None:
            return
        if self._broken and self._partial != "drop":
            await self._append_results()
        answer = self._without_open_calls() if self._broken else self._answer
        name, whose = self._conversation, {"tenant": self._scope.tenant, "conversation": self._conversation}
        batch = self._pending(answer)
        if not answer or not batch or (self._broken and self._partial == "drop"):
            log.debug("A turn of %s ended without an answer", name, **whose)
            return
        if self._broken:
            if self._key is not None and self._question and not self._appended:
                await self._append_step(list(self._question), none())  # a retry takes back the answer alone
                batch = batch[len(self._question) :]
            batch[-1] = marked(batch[-1], self._key, len(batch))
            self._result = await self._append_batch(self._dated(batch), None, none())  # under which nothing is due
            return
        try:
            self._result = await self._append_batch(self._dated(batch), self._key)
        except IdempotencyKeyReused:
            if self._key is not None:
                await self._take_progress(self._key)
            if not self._replayed:
                raise
            log.warning("Two turns of %s with one key were answered at once; the first is kept", name, **whose)

    async def _append_results(self) -> None:
        """Append the results that came, with their calls, as a step, though others still wait: what the tools have done
        is not lost with the answer."""
        end = max((at + 1 for at, one in enumerate(self._answer) if one.answers), default=0)
        step = [*self._question, *self._answer[:end]][self._appended :]
        if any(one.answers for one in step):
            await self._append_step(step)

    async def _append_step(self, step: list[Message], policy: Policy | None = None) -> None:
        """Append the calls and results before the next request, with the question before the first."""
        key = None if self._key is None else step_key(self._key, self._steps)
        try:
            self._result = await self._append_batch(self._dated(step), key, policy)
        except IdempotencyKeyReused as error:
            self._overtaken = True
            raise IdempotencyKeyReused(
                f"another turn with key={self._key!r} is in progress and was faster; nothing of this one is kept. Call "
                "no more tools here; once the other one has ended, a retry with this key has its answer"
            ) from error
        self._appended, self._steps = self._appended + len(step), self._steps + 1

    async def _take_progress(self, key: str) -> None:
        """Take what turns with this key have appended."""
        found = await self._retry(self._question, key)
        if found is None:
            return
        self._answer, self._steps, self._taken = list(found.messages), found.steps, len(found.messages)
        self._appended = len(self._question) + len(self._answer) if self._answer or found.asked else 0
        if found.result is not None:
            self._replayed, self._result = True, found.result

    def _dated(self, batch: list[Message]) -> list[Message]:
        """The messages of an append. What has no time was said when the question was, and so on its day."""
        at = self._question[-1].said_at if self._question else None
        return batch if at is None else [one if one.said_at is not None else one.dated(at) for one in batch]

    def _pending(self, answer: Sequence[Message] | None = None) -> list[Message]:
        """The turn's messages that are not in the log yet."""
        return [*self._question, *(self._answer if answer is None else answer)][self._appended :]

    async def _go_on(self) -> None:
        """Make the next request if one is due: nothing waits for a result, and the answer is not there."""
        if self._answer and self._answer[-1].goes_on:
            return  # what it belongs to is still to come
        self._context = None
        if self.done or self.calls:
            return
        step = self._pending()
        appends = bool(self._answer and step and self._at is None)
        try:
            context = await self._build_context(step)
        except BudgetExceeded:
            if appends:
                await uninterrupted(self._append_step(step))  # what the tools have done is not lost with the request
            raise
        if appends:
            await uninterrupted(self._append_step(step))
        self._context = context

    def _check_open(self) -> None:
        if self._state != "open":
            raise InvalidInput(
                "this turn has not begun; use it inside of `async with chat.turn(…) as turn`"
                if self._state == "new"
                else "this turn is over; begin the next one with chat.turn(…)"
            )

    def _check_due(self) -> None:
        self._check_open()
        if self._replayed:
            raise InvalidInput("this turn's key was answered before; results of its calls go into another turn")
        if self._broken:
            raise InvalidInput("this turn's stream broke off; leave the block, and retry with the same key")
        if self.done:
            raise InvalidInput("this turn has its answer already; begin the next one with chat.turn(…)")

    def _check_results(self, given: Sequence[Message]) -> None:
        """Raises InvalidMessage for a result of a call that does not wait for one."""
        waiting = Counter(call.id for call in self.calls)
        for message in given:
            for call in message.answers:
                if not waiting[call]:
                    there = ", ".join(sorted(+waiting)) or "none"
                    raise InvalidMessage(f"no call {call!r} waits for a result in this turn; those that do: {there}")
                waiting[call] -= 1
            waiting.update(message.calls)

    def _open_calls(self) -> list[tuple[int, Call]]:
        """The calls without a result, each with the place of its message in the answer. Some models use an id again: a
        result is that of the oldest call with its id. One whose turn ended before waits no more."""
        found: list[tuple[int, Call]] = []
        for at, message in enumerate(self._answer):
            for answered in message.answers:
                found.remove(next(one for one in found if one[1].id == answered))
            found += [(at, call) for call in self._codec.calls(message)]
        return [one for one in found if one[0] >= self._taken]

    def _break_off(self, text: str) -> None:
        """The answer is no more than this text."""
        self._broken, self._context, self._rest = True, None, ""
        self._answer.append(plain_message(Role.ASSISTANT, text))

    def _without_open_calls(self) -> list[Message]:
        """The answer up to the first message that makes a call without a result, of which the words stay; reasoning
        that nothing follows goes too."""
        begin = self._appended - len(self._question)
        at = next((at for at, _ in self._open_calls() if at >= begin), None)
        kept = self._answer[:at]
        while kept and kept[-1].goes_on:
            kept.pop()
        words = "" if at is None else self._codec.spoken(self._answer[at])
        return [*kept, plain_message(Role.ASSISTANT, words)] if words else kept

    def _read(self, answer: Answer) -> list[Message]:
        if isinstance(answer, str):
            return [plain_message(Role.ASSISTANT, answer)]
        if isinstance(answer, Message):
            return [answer]
        given = _dumped(answer)
        items = self._codec.answered(given)
        if items is None:
            other = next(
                (name for name in get_args(Wire) if self._formats.codec(name).answered(given) is not None), None
            )
            if other is not None:
                raise InvalidMessage(f"this is an answer of another API; give the turn wire={other!r}")
        if not items and given.get("error"):
            raise InvalidMessage("the API answered with an error, which the field `error` tells; ask again")
        if items is None:
            check_item(given)
            return [self._formats.read(item, take_id=False) for item in self._with_own_ids([given])]
        self._model = _model_of(given) or self._model
        self._finish_reason = self._codec.finish_reason(given)
        return self._sealed([self._codec.read(item) for item in self._with_own_ids(items)])

    def _with_own_ids(self, items: list[Payload]) -> list[Payload]:
        """The items of an answer, whose calls have an id each: some models give one to several."""
        try:
            return self._codec.distinct(items, {})
        except (AttributeError, KeyError, TypeError):
            return items  # no such items, which reading them tells

    def _sealed(self, answer: list[Message]) -> list[Message]:
        """The messages of an answer, with its model in their metadata where it has sealed something for itself."""
        if self._model is None or not any(self._codec.is_sealed(one) for one in answer):
            return answer
        return [one.with_metadata({"model": self._model}) for one in answer]


def _model_of(answer: Payload) -> str | None:
    """The model that an answer, or an event of one, says it is of."""
    for where in (answer, answer.get("response"), answer.get("message")):
        model = cast("Payload", where).get("model") if isinstance(where, dict) else None
        if isinstance(model, str):
            return model
    return None


def _dumped(value: object) -> Payload:
    """A dict, or what an SDK's object is as one; what is not of the SDK's types in it, such as its usage, raises no
    warning. Raises InvalidMessage for anything else."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    if isinstance(value, BaseModel):
        return value.model_dump(warnings=False)
    raise InvalidMessage(f"an answer is {value!r:.80}; give a completion, its events, a message, or a text")
