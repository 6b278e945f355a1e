"""Runs an agent of the SDK on a conversation: within the budget, under a memory strategy, with an audit trail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from agents import Agent, Model, RunConfig, Runner, Tool, TResponseInputItem
from agents.models.interface import ModelProvider

from hitherto.core.context.budget import checked_budget
from hitherto.core.cross_session import CrossSession
from hitherto.core.digests.digest import Digest, Status
from hitherto.core.log.frontier import DigestAction
from hitherto.core.log.message import RESPONSES, Message
from hitherto.core.policy.policy import Policy
from hitherto.core.policy.presets import none
from hitherto.core.run import EventKind, Run
from hitherto.core.scope import Scope
from hitherto.engine.conversation import Conversation
from hitherto.engine.log.append import AppendResult
from hitherto.engine.memory import Memory
from hitherto.errors import InvalidInput, NotFound
from hitherto.integrations.openai_agents.event_loop import loop_of
from hitherto.integrations.openai_agents.fit import fixed_tokens, within_budget
from hitherto.integrations.openai_agents.memory_strategy import MemoryStrategy, strategy_of
from hitherto.integrations.openai_agents.recorder import OnEvent, Recorder
from hitherto.integrations.openai_agents.session import HithertoSession, Wrapper
from hitherto.sync.facade import SyncMemory
from hitherto.tokens import CANONICAL, counter_for
from hitherto.uninterrupted import uninterrupted
from hitherto.wire import codec


@dataclass(frozen=True, kw_only=True)
class AgentSpec:
    """An agent as `run_agent` runs it. `model` is a name or a model of the SDK. `memory_strategy` and
    `memory_injection` apply where neither the request nor the conversation says anything. `max_turns` is how often the
    model is called at most."""

    name: str
    instructions: str = ""
    model: str | Model | None = None
    tools: Sequence[Tool] = ()
    memory_strategy: MemoryStrategy | None = None
    memory_injection: bool | None = None
    max_turns: int = 10


@dataclass(frozen=True, kw_only=True)
class RunOutcome:
    """What a run came to: the agent's final `output`, and the `run` as it is recorded."""

    output: Any
    run: Run


async def run_agent(
    memory: Memory | SyncMemory,
    spec: AgentSpec,
    message: str,
    *,
    scope: Scope,
    conversation: str,
    memory_strategy: MemoryStrategy | None = None,
    memory_injection: bool | None = None,
    budget: int | None = None,
    reserve: int = 0,
    on_event: OnEvent | None = None,
    model_provider: ModelProvider | None = None,
) -> RunOutcome:
    """Answer `message` in the conversation: one run of the SDK's Runner, with a session of the conversation.

    `memory_strategy` and `memory_injection` say how memory is shown in this run; without them the conversation's own
    apply, then the agent's (those of `spec`, then those stored by `Memory.configure_agent`), then the memory's setting
    `policy`, else everything is shown. Each call of the model is sent at most `budget` tokens (by default the setting)
    with `reserve` kept free: see `within_budget`. A user message of the same text that the log ends with is the one
    that is answered: it is not appended again.

    The run is recorded, event by event (see `Memory.runs`), and `on_event` is called with each. If it fails, the last
    event is an error, and the error is raised: those of the SDK, BudgetExceeded, and those of the store. What the log
    has by then stays. `model_provider` finds the model of a name; by default OpenAI's does. Nothing is traced.
    """
    if not isinstance(cast(object, message), str) or not message:
        raise InvalidInput(f"the message is {message!r}; give the text of a user message")
    home = loop_of(memory)
    request, injecting = strategy_of(memory_strategy)
    injecting = memory_injection if memory_injection is not None else injecting
    agent = Agent[Any](name=spec.name, model=spec.model, tools=list(spec.tools))
    model = spec.model if isinstance(spec.model, str) else getattr(spec.model, "model", None)

    async def begin(opened: Memory) -> tuple[_Plan, Run]:
        chat = opened.conversation(conversation, scope=scope)
        plan = await _planned(chat, spec, message, request, injecting)
        start = plan.next_seq - 1 if plan.stored else None
        run = await opened.runs(scope).begin(
            conversation, strategy=plan.strategy, injection=plan.injected is not None, start=start
        )
        return plan, run

    plan, run = await home.arun(begin)
    recorder = Recorder(home, scope, run.id, on_event=on_event)
    counter = counter_for(model or CANONICAL)
    most, reserve = checked_budget(plan.budget if budget is None else budget, reserve)
    instructions = "\n\n".join(part for part in (spec.instructions, plan.injected, plan.known) if part) or None
    agent.instructions = instructions
    incoming = codec(RESPONSES).tokens({"role": "user", "content": message}, counter)
    taken = incoming + reserve + await fixed_tokens(agent, instructions, None, counter)
    session = _RunSession(
        conversation,
        memory,
        scope=scope,
        policy=plan.policy,
        model=model,
        budget=max(most - taken, 1),
        stored=message if plan.stored else None,
    )
    config = RunConfig(
        tracing_disabled=True,
        call_model_input_filter=within_budget(most, model=model, reserve=reserve),
    )
    if model_provider is not None:
        config = replace(config, model_provider=model_provider)

    async def ended(failed: bool) -> Run:
        freed = await home.arun(lambda opened: _freed(opened.conversation(conversation, scope=scope), session.fired))
        if freed:
            await recorder.add({"kind": EventKind.FREED, "payload": {"tokens": freed}})
        try:
            return await home.arun(lambda opened: opened.runs(scope).end(run.id, failed=failed, freed=freed))
        except NotFound:  # deleted meanwhile, with its conversation
            return run

    try:
        result = await Runner.run(
            agent, message, session=session, hooks=recorder, run_config=config, max_turns=spec.max_turns
        )
    except BaseException as error:
        told = {"type": type(error).__name__, "message": str(error) or type(error).__name__}
        await uninterrupted(recorder.add({"kind": EventKind.ERROR, "payload": told}))
        await uninterrupted(ended(failed=True))
        raise
    return RunOutcome(output=result.final_output, run=await uninterrupted(ended(failed=False)))


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """What a run is begun with. `policy` is None where the conversation or the stored agent has one. `stored` is
    whether the log ends with the message."""

    policy: Policy | None
    strategy: str
    injected: str | None
    known: str | None
    budget: int
    stored: bool
    next_seq: int


async def _planned(
    chat: Conversation, spec: AgentSpec, message: str, request: Policy | None, injecting: bool | None
) -> _Plan:
    services = chat._services  # pyright: ignore[reportPrivateUsage] — runs are part of Hitherto
    head = await chat.head()
    defaults = await services.store.defaults(tenant=chat.scope.tenant, agent=chat.scope.agent)
    own = None if head is None else head.policy
    of_agent, agent_injects = strategy_of(spec.memory_strategy)
    policy = request
    if policy is None and own is None:
        policy = of_agent
        if policy is None and defaults.policy is None and services.policy is None:
            policy = none()
    if injecting is None and (head is None or head.cross_session.latest is None):
        injecting = spec.memory_injection if spec.memory_injection is not None else agent_injects
    last = await chat.messages(start=head.next_seq - 1) if head is not None and head.next_seq > head.view_start else []
    return _Plan(
        policy=policy,
        strategy=(policy or await chat.policy()).name,
        injected=await chat.injected(cross_session=CrossSession(latest=injecting)),
        known=await chat.known(),
        budget=services.settings.budget,
        stored=bool(last) and last[-1].retracted_rev is None and _asks(last[-1].message, message),
        next_seq=0 if head is None else head.next_seq,
    )


def _asks(last: Message, message: str) -> bool:
    return last.opens_turn and last.text == message


class _RunSession(HithertoSession):
    """The session of one run. `fired` are the digests that it set off. `stored` is the message that the log ends with,
    which the Runner adds anew: it is neither shown twice nor appended again."""

    def __init__(self, *given: Any, stored: str | None, **options: Any) -> None:
        super().__init__(*given, **options)
        self._stored = stored
        self.fired: list[int] = []

    async def get_items(self, limit: int | None = None, *, wrapper: Wrapper | None = None) -> list[TResponseInputItem]:
        items = await super().get_items(limit, wrapper=wrapper)
        return items[:-1] if self._stored is not None and items else items

    async def add_items(self, items: list[TResponseInputItem], *, wrapper: Wrapper | None = None) -> None:
        if self._stored is not None and items and items[0].get("content") == self._stored:
            items, self._stored = items[1:], None
        await super().add_items(items, wrapper=wrapper)

    async def _appended(self, conversation: Conversation, appended: AppendResult) -> None:
        self.fired += appended.fired


async def _freed(chat: Conversation, fired: Sequence[int]) -> int:
    """The tokens that left what the model sees by the digests `fired`, as far as they are made."""
    if not fired:
        return 0
    made = [one for one in await chat.digests() if one.id in fired and one.status is Status.COMPLETED]
    return sum([await _freed_by(chat, one) for one in made])


async def _freed_by(chat: Conversation, digest: Digest) -> int:
    if digest.action in (DigestAction.DROP, DigestAction.REDACT):
        return digest.tokens
    messages = await chat.messages(start=digest.start, stop=digest.end + 1)
    kept = digest.end + 1 if digest.kept_from is None else digest.kept_from
    return max(sum(one.tokens for one in messages if one.seq < kept) - digest.tokens, 0)
