"""Runs an agent of the SDK on a conversation: within the budget, under a memory strategy, with an audit trail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast, get_args

from agents import Agent, Model, RunConfig, Runner, Tool, TResponseInputItem
from agents.models.interface import ModelProvider
from agents.run import CallModelData, ModelInputData

from hitherto.core.context.budget import checked_budget
from hitherto.core.cross_session import CrossSession, CrossSessionLike, cross_session_of
from hitherto.core.digests.digest import Digest, Status
from hitherto.core.log.frontier import DigestAction
from hitherto.core.log.head import Head
from hitherto.core.log.message import RESPONSES, Message, Payload
from hitherto.core.policy.policy import Policy
from hitherto.core.policy.presets import PolicyLike, none, policy_of
from hitherto.core.run import EventKind, Run
from hitherto.core.scope import Scope
from hitherto.engine.context.context import Context
from hitherto.engine.conversation import Conversation
from hitherto.engine.log.append import AppendResult
from hitherto.engine.memory import Memory
from hitherto.errors import HithertoError, InvalidInput, NotFound
from hitherto.integrations.openai_agents.event_loop import MemoryLoop, loop_of
from hitherto.integrations.openai_agents.fit import schema_of, within_budget
from hitherto.integrations.openai_agents.recorder import OnEvent, Recorder
from hitherto.integrations.openai_agents.session import HithertoSession, Wrapper
from hitherto.integrations.openai_agents.tool_timeout import timed
from hitherto.logs import logger
from hitherto.sync.facade import SyncMemory
from hitherto.uninterrupted import uninterrupted
from hitherto.wire import codec

Stored = Literal["all", "answer"]

log = logger("hitherto.agents")


@dataclass(frozen=True, kw_only=True)
class AgentSpec:
    """An agent as `run_agent` runs it. `model` is a name or a model of the SDK. `policy` and `cross_session` (see
    `Conversation.context`) apply where neither the request nor the conversation says anything. `max_turns` is how
    often the model is called at most. A tool without a timeout of its own has one of 300 seconds: the model is told,
    and the run goes on. The thread of a synchronous tool goes on beside, and the process ends only after it."""

    name: str
    instructions: str = ""
    model: str | Model | None = None
    tools: Sequence[Tool] = ()
    policy: PolicyLike | None = None
    cross_session: CrossSessionLike | None = None
    max_turns: int = 10

    def agent(self) -> Agent[Any]:
        """It as an agent of the SDK, tools with their timeouts."""
        return Agent[Any](
            name=self.name, instructions=self.instructions or None, model=self.model, tools=timed(self.tools)
        )


@dataclass(frozen=True, kw_only=True)
class RunOutcome:
    """What a run came to: the agent's final `output`, and the `run` as it is recorded; None if it was deleted
    meanwhile, with its conversation, or if its end could not be recorded, which is logged."""

    output: Any
    run: Run | None


async def run_agent(
    memory: Memory | SyncMemory,
    spec: AgentSpec,
    message: str | Mapping[str, Any],
    *,
    scope: Scope,
    conversation: str,
    policy: PolicyLike | None = None,
    cross_session: CrossSessionLike | None = None,
    budget: int | None = None,
    reserve: int = 0,
    wait: bool | float = False,
    stored: Stored = "all",
    on_event: OnEvent | None = None,
    model_provider: ModelProvider | None = None,
) -> RunOutcome:
    """Answer `message` in the conversation: one run of the SDK's Runner, which begins with the conversation's context
    for that message (see `Conversation.context`) and appends what comes of it. The message is a text, or a user message
    as the Responses API takes it, such as one with images.

    `policy` and `cross_session` say how memory is shown in this run; without them the conversation's own apply, then
    the agent's (those of `spec`, then those stored by `Memory.configure_agent`), then the memory's setting `policy`,
    else everything is shown. Each call of the model is sent at most `budget` tokens (by default the setting)
    with `reserve` kept free: see `within_budget`. `wait` lets a digest in progress finish first, as for a context. The
    same message, if the log ends with it, is the one that is answered: it is not appended again.

    The run is recorded, event by event (see `Memory.runs`), and `on_event` is called with each. If it fails, the last
    event is an error, and the error is raised: those of the SDK, BudgetExceeded, and those of the store. What the log
    has by then stays; with `stored="answer"` that is nothing: only the message and the final answer are appended,
    together, at the end. `model_provider` finds the model of a name; by default OpenAI's does. Nothing is traced.
    """
    asked = _asked(message)
    if stored not in get_args(Stored):
        raise InvalidInput(f"stored is {stored!r}; give 'all' or 'answer'")
    home = loop_of(memory)
    request, crossing = policy_of(policy), cross_session_of(cross_session)
    agent = spec.agent()
    model = spec.model if isinstance(spec.model, str) else getattr(spec.model, "model", None)

    async def planned(opened: Memory) -> tuple[_Plan, list[int]]:
        chat = opened.conversation(conversation, scope=scope)
        plan = await _planned(chat, spec, asked, request=request, crossing=crossing, budget=budget)
        # What was said under another policy may be due under this one.
        return plan, await chat.start_digests(policy=plan.policy)

    plan, fired = await home.arun(planned)
    recorded = _Recorded(home, scope, conversation, on_event)
    recorded.fired += fired
    try:
        recorder = await uninterrupted(recorded.begin(plan))
        session = _RunSession(
            conversation, memory, scope=scope, policy=plan.policy, model=model, recorder=recorder, fired=recorded.fired
        )
        tools = [schema_of(one) for one in spec.tools]

        async def shown(opened: Memory) -> Context:
            return await opened.conversation(conversation, scope=scope).context(
                None if plan.start is not None and plan.at is None else asked,
                budget=plan.budget,
                reserve=reserve,
                instructions=spec.instructions or None,
                tools=tools,
                wire=RESPONSES,
                model=model,
                policy=plan.policy,
                cross_session=plan.crossing,
                at=plan.at,
                wait=wait,
            )

        made = await home.arun(shown)
        sent = dict(made.request)
        agent.instructions = sent.get("instructions")
        *session.shown, last = sent["input"]
        item = asked.payload
        session.stored = item["content"] if plan.start is not None else None
        config = RunConfig(
            tracing_disabled=True, call_model_input_filter=_filter(made.manifest.budget, reserve, model, last)
        )
        if model_provider is not None:
            config = replace(config, model_provider=model_provider)
        all_ = stored == "all"
        result = await Runner.run(
            agent,
            cast("list[TResponseInputItem]", [item] if all_ else sent["input"]),
            session=session if all_ else None,
            hooks=recorder,
            run_config=config,
            max_turns=spec.max_turns,
        )
        if not all_:
            answer = {"role": "assistant", "content": str(result.final_output)}
            await session.add_items(cast("list[TResponseInputItem]", [item, answer]))
    except BaseException as error:
        await uninterrupted(recorded.failed(error))
        raise
    return RunOutcome(output=result.final_output, run=await uninterrupted(recorded.ended()))


def _asked(message: object) -> Message:
    """The user message that is given. Raises InvalidInput, InvalidMessage."""
    item: object = {"role": "user", "content": message} if isinstance(message, str) and message else message
    found = codec(RESPONSES).read(dict(cast(Payload, item))) if isinstance(item, Mapping) else None
    if found is None or not found.opens_turn:
        raise InvalidInput(f"the message is {message!r:.200}; give the text of a user message, or its item")
    return found


class _Recorded:
    """The run as it is recorded, from its beginning to its end. `fired` are the digests that it sets off."""

    def __init__(self, home: MemoryLoop, scope: Scope, conversation: str, on_event: OnEvent | None) -> None:
        self._home, self._scope, self._conversation, self._on_event = home, scope, conversation, on_event
        self._recorder: Recorder | None = None
        self.fired: list[int] = []

    async def begin(self, plan: _Plan) -> Recorder:
        async def work(opened: Memory) -> Run:
            return await opened.runs(self._scope).begin(
                self._conversation, strategy=plan.strategy, injection=plan.injects, start=plan.start
            )

        run = await self._home.arun(work)
        self._recorder = Recorder(self._home, self._scope, run.id, on_event=self._on_event)
        return self._recorder

    async def ended(self) -> Run | None:
        """Record it, as far as that can be done: the answer is in the log."""
        assert self._recorder is not None, "it has begun"
        try:
            freed = await self._home.arun(lambda opened: _freed(self._chat(opened), self.fired))
            if freed:
                await self._recorder.add({"kind": EventKind.FREED, "payload": {"tokens": freed}})
            return await self._end(self._recorder, failed=False, freed=freed)
        except HithertoError:
            log.exception("The end of a run of %s could not be recorded", self._conversation)
            return None

    async def failed(self, error: BaseException) -> None:
        """Record it, as far as that can be done."""
        if self._recorder is None:
            return
        told = {"type": type(error).__name__, "message": str(error) or type(error).__name__}
        try:
            await self._recorder.add({"kind": EventKind.ERROR, "name": self._recorder.asked, "payload": told})
        except Exception:  # whatever fails here, the first error is what the caller needs
            log.exception("The error of a run of %s could not be recorded", self._conversation)
        try:
            await self._end(self._recorder, failed=True, freed=0)
        except Exception:  # likewise
            log.exception("The end of a run of %s could not be recorded", self._conversation)

    async def _end(self, recorder: Recorder, *, failed: bool, freed: int) -> Run | None:
        async def work(opened: Memory) -> Run:
            return await opened.runs(self._scope).end(recorder.run, failed=failed, freed=freed)

        try:
            return await self._home.arun(work)
        except NotFound:  # deleted meanwhile, with its conversation
            return None

    def _chat(self, opened: Memory) -> Conversation:
        return opened.conversation(self._conversation, scope=self._scope)


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """What a run is begun with. `policy` is None where the conversation has one. Where the log ends
    with the message, `start` is its seq and `at` the revision before it, None where others were appended with it."""

    policy: Policy | None
    strategy: str
    crossing: CrossSession
    injects: bool
    budget: int | None
    start: int | None
    at: int | None


async def _planned(
    chat: Conversation,
    spec: AgentSpec,
    asked: Message,
    *,
    request: Policy | None,
    crossing: CrossSession,
    budget: int | None,
) -> _Plan:
    head = await chat.head()
    policy = request
    if policy is None and (head is None or head.policy is None):
        policy = policy_of(spec.policy) or await chat.policy(default=none())
    stored = CrossSession() if head is None else head.cross_session
    crossing = crossing.over(stored).over(cross_session_of(spec.cross_session))
    start, at = await _stored(chat, head, asked)
    return _Plan(
        policy=policy,
        strategy=(policy or await chat.policy()).name,
        crossing=crossing,
        injects=await chat.injected(cross_session=crossing) is not None,
        budget=None if budget is None else checked_budget(budget, 0)[0],
        start=start,
        at=at,
    )


async def _stored(chat: Conversation, head: Head | None, asked: Message) -> tuple[int | None, int | None]:
    """The seq of the message if the log ends with it, and the revision before it."""
    if head is None or head.next_seq == head.view_start:
        return None, None
    *before, last = await chat.messages(start=max(head.last_seq - 1, head.view_start), stop=head.next_seq)
    if not (last.live(head.rev) and last.message.opens_turn and _same(last.message, asked)):
        return None, None
    alone = all(one.rev < last.rev for one in before)
    return last.seq, last.rev - 1 if alone else None


def _same(one: Message, asked: Message) -> bool:
    item = asked.payload
    return one.text == item["content"] if isinstance(item["content"], str) else one.payload == item


def _filter(budget: int, reserve: int, model: str | None, asked: Payload) -> Any:
    """What the context has in the place of the message (a policy may put a summary on it) is sent in its place."""
    fitted = within_budget(budget, model=model, reserve=reserve)

    async def filtered(data: CallModelData[Any]) -> ModelInputData:
        items = cast("list[Payload]", data.model_data.input)
        place = max((at for at, one in enumerate(items) if one.get("role") == "user"), default=None)
        if place is not None:
            items[place] = asked
        return await fitted(data)

    return filtered


class _RunSession(HithertoSession):
    """The session of one run. `shown` is what it begins with, `fired` are the digests that it sets off. `stored` is the
    message that the log ends with, which the Runner adds anew: it is not appended again. Once the run is deleted, with
    its conversation, nothing is appended."""

    def __init__(self, *given: Any, recorder: Recorder, fired: list[int], **options: Any) -> None:
        super().__init__(*given, **options)
        self._recorder = recorder
        self.shown: list[Any] = []
        self.stored: str | None = None
        self.fired = fired

    async def get_items(self, limit: int | None = None, *, wrapper: Wrapper | None = None) -> list[TResponseInputItem]:
        return list(self.shown)

    async def add_items(self, items: list[TResponseInputItem], *, wrapper: Wrapper | None = None) -> None:
        if self.stored is not None and items and items[0].get("content") == self.stored:
            items, self.stored = items[1:], None
        if self._recorder.deleted:
            return
        await super().add_items(items, wrapper=wrapper)

    async def _appended(self, conversation: Conversation, appended: AppendResult) -> None:
        self.fired += appended.fired


async def _freed(chat: Conversation, fired: Sequence[int]) -> int:
    """The tokens that left what the model sees by the digests `fired`, as far as they are made."""
    return sum([await _freed_by(chat, await _made(chat, one)) for one in fired])


async def _made(chat: Conversation, id: int | None) -> Digest | None:
    """The digest of that id, if it is completed."""
    found = [] if id is None else await chat.digests(after=id - 1, limit=1)
    return found[0] if found and found[0].id == id and found[0].status is Status.COMPLETED else None


async def _freed_by(chat: Conversation, digest: Digest | None) -> int:
    if digest is None:
        return 0
    if digest.action in (DigestAction.DROP, DigestAction.REDACT):
        return digest.tokens
    if digest.action is DigestAction.FACTS:
        return 0
    base = await _made(chat, digest.base)
    start, before = (digest.start, 0) if base is None else (base.end + 1, base.tokens)
    stop = digest.end + 1 if digest.kept_from is None else digest.kept_from
    messages = await chat.messages(start=start, stop=stop) if start < stop else []
    return max(before + sum(one.tokens for one in messages) - digest.tokens, 0)
