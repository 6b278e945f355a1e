"""Replays a transcript under a policy, request by request."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from hitherto.core.context.budget import TokenCounter
from hitherto.core.context.request import WireFormat
from hitherto.core.digests.digest import Digest, Status
from hitherto.core.log.frontier import DigestAction
from hitherto.core.log.message import ANTHROPIC, CHAT, Message, Role, Wire
from hitherto.core.policy.parts import Drop, LastTokens, Redact, Summarize, SystemMessage
from hitherto.core.policy.policy import Policy, Stage
from hitherto.core.policy.span import Fate
from hitherto.core.policy.trigger import AnyOf, Messages, Tokens
from hitherto.core.price import Price
from hitherto.core.prompt import Prompt
from hitherto.core.scope import Scope
from hitherto.engine.context.context import Context
from hitherto.engine.conversation import Conversation
from hitherto.engine.memory import Memory
from hitherto.engine.pages import in_pages
from hitherto.errors import BudgetExceeded
from hitherto.ports.models import Completion, Model
from hitherto.simulation.figures import Figures, Labeled, Repeats, SentRequest, evidence_shown
from hitherto.wire import codec
from hitherto.wire.cost import compact

# The trigger and what is kept are far apart on purpose: each firing changes the start of the context, and what is sent
# between two firings comes from the provider's cache.
_OLD_RESULTS = Stage(Tokens(3_000), LastTokens(1_000), Redact())
_LONG = AnyOf((Tokens(6_000), Messages(60)))


def redact_summarize() -> Policy:
    """Old tool results become placeholders first; what still grows long becomes a short digest."""
    summarize = Stage(_LONG, LastTokens(800), Summarize(max_tokens=400), SystemMessage())
    return Policy("redact_summarize", (_OLD_RESULTS, summarize))


def redact_trim() -> Policy:
    """The same without a model: what still grows long is dropped."""
    return Policy("redact_trim", (_OLD_RESULTS, Stage(_LONG, LastTokens(1_000), Drop())))


_CHAT = codec(CHAT)


class Counting(Model):
    """Passes everything on to `model`, and counts the tokens of prompts (the schema of the answer included) and of
    answers: those that `counter` counts, whatever the model itself reports. A call that fails is not counted."""

    def __init__(self, model: Model, counter: TokenCounter) -> None:
        self._model, self._counter = model, counter
        self.calls = 0
        self.tokens_in = 0
        self.tokens_out = 0

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def input_limit(self) -> int:
        return self._model.input_limit

    async def complete(self, prompt: Prompt) -> Completion:
        answer = await self._model.complete(prompt)
        items = [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}]
        self.calls += 1
        self.tokens_in += _CHAT.framing + sum(_CHAT.tokens(item, self._counter) for item in items)
        self.tokens_in += self._counter.count(compact(dict(prompt.schema))) if prompt.schema else 0
        self.tokens_out += self._counter.count(answer.text)
        return answer

    async def aclose(self) -> None:
        await self._model.aclose()


@dataclass(frozen=True, slots=True)
class Step:
    """One request: what had come in since the one before, from the message `seq` on, and what the model answered."""

    seq: int
    asked: tuple[Message, ...]
    answered: tuple[Message, ...]

    @property
    def incoming(self) -> range:
        """The seqs of what had come in."""
        return range(self.seq, self.seq + len(self.asked))


def steps(messages: Sequence[Message]) -> Iterator[Step]:
    """The transcript as requests, in order.

    Consecutive messages of the assistant, tool calls included, are the answer to one request, which held everything
    before them. What came in before them is that request's `asked`: a user's messages, or a batch of tool results.
    Messages at the end that nobody answered are a request too. What comes before the first message of a user or a tool,
    rules and greetings, is a step with empty `asked`: no request was made for it.
    """
    before = (Role.SYSTEM, Role.ASSISTANT)
    seq = next((at for at, message in enumerate(messages) if message.role not in before), len(messages))
    if seq:
        yield Step(0, (), tuple(messages[:seq]))
    asked: list[Message] = []
    answered: list[Message] = []
    for at, message in enumerate(messages[seq:], seq):
        if message.role is Role.ASSISTANT:
            answered.append(message)
            continue
        if answered:
            yield Step(seq, tuple(asked), tuple(answered))
            seq, asked, answered = at, [], []
        asked.append(message)
    if asked or answered:
        yield Step(seq, tuple(asked), tuple(answered))


def full_tokens(messages: Sequence[Message], of: WireFormat, counter: TokenCounter) -> list[int]:
    """The tokens of a request with the first messages of a log, for each number of them from 0 on.

    A running sum: each message counts as if it stood alone. Where the API wants several in one item, as Anthropic wants
    the results of a message's calls, the request takes less: the frame of an item for each.
    """
    costs = (sum(of.tokens(item, counter) for item in of.write([message])) for message in messages)
    return list(accumulate(costs, initial=of.framing))


def full_history(
    messages: Sequence[Message],
    into: Figures,
    *,
    counter: TokenCounter,
    instructions: str | None = None,
    questions: Sequence[Labeled] = (),
) -> None:
    """Add to `into` what a conversation costs with all messages so far in each request, however many. A request goes on
    where the one before ended, with a cache breakpoint at its own end; `full_tokens` says how it counts."""
    of = codec(_wire(into.price))
    instructions_tokens = 0 if instructions is None else of.system_tokens(instructions, counter)
    tokens = [instructions_tokens + one for one in full_tokens(messages, of, counter)]
    end = 0
    for step in steps(messages):
        if step.asked:
            before, end = end, tokens[step.incoming.stop] - of.framing
            into.sent.append(
                SentRequest(
                    seq=step.seq,
                    tokens=end + of.framing,
                    repeated=before,
                    cached=into.price.cached(before, breakpoints=(before,), end=before),
                    breakpoints=(end,),
                )
            )
    into.fates[Fate.IN] += len(messages)
    into.evidence += [(1.0, 1.0)] * len(questions)


def _wire(price: Price) -> Wire:
    return ANTHROPIC if price.cache_breakpoints == "explicit" else CHAT


async def requests(
    memory: Memory,
    chat: Conversation,
    messages: Sequence[Message],
    context: Callable[[Sequence[Message]], Awaitable[Context]],
) -> AsyncIterator[tuple[Step, Context | BudgetExceeded]]:
    """Append a transcript to an empty conversation as an agent does: a context is made for every answer, with what came
    in since the one before, and then both are appended. Yields each request, or why it could not be made.

    Digests are waited for, and the index if the policy recalls, so that the outcome is the same each time.
    """
    policy = await chat.policy()
    recalls = policy.recalls or policy.recall
    for step in steps(messages):
        if step.asked:
            try:
                made = await context(step.asked)
            except BudgetExceeded as error:
                made = error
            yield step, made
        await chat.append(*step.asked, *step.answered, expect=step.seq)
        await memory.wait_for_digests()
        if recalls:
            await memory.wait_for_index()  # what is recalled depends on what is found


def sendable(name: str, step: Step, made: Context | BudgetExceeded) -> Context:
    """The context of a request. Raises BudgetExceeded naming the conversation and the message where there is none."""
    if isinstance(made, BudgetExceeded):
        message = f"{name}: the request with the message of seq {step.seq} cannot be sent: {made}"
        raise BudgetExceeded(message, over_by=made.over_by) from made
    return made


SCOPE = Scope(tenant="simulation", user="simulation", agent="simulation")


async def simulate(
    memory: Memory,
    name: str,
    messages: Sequence[Message],
    into: Figures,
    *,
    model: Counting,
    budget: int,
    counter: TokenCounter,
    instructions: str | None = None,
    questions: Sequence[Labeled] = (),
    advance: Callable[[], None] = lambda: None,
) -> None:
    """Add to `into` what the conversation `name` costs and keeps under the policy of `memory`.

    `memory` is in use for nothing else and makes its digests with `model`; each is waited for before the next request,
    so that the outcome is the same each time. `counter` counts as the memory does, or as the model that the price is
    of, where its cache goes by breakpoints. `advance` is called after each request. In the end the `questions` are
    asked. Raises BudgetExceeded naming the message whose request does not fit.
    """
    chat, price = memory.conversation(name, scope=SCOPE), into.price
    wire = _wire(price)
    agent = None if price.cache_breakpoints == "none" else price.model
    repeats = Repeats(codec(wire), counter)
    calls, tokens_in, tokens_out = model.calls, model.tokens_in, model.tokens_out
    policy = await chat.policy()
    recall = "own" if policy.recall else None  # of the others it knows nothing
    sent = list[tuple[SentRequest, int]]()

    async def ask(incoming: Sequence[Message]) -> Context:
        return await chat.context(
            incoming, budget=budget, instructions=instructions, wire=wire, model=agent, recall=recall
        )

    async for step, made in requests(memory, chat, messages, ask):
        context = sendable(name, step, made)
        breakpoints, end = repeats.breakpoints, repeats.end  # of the request before
        repeated = repeats.of(context.request)
        request = SentRequest(
            seq=step.seq,
            tokens=context.tokens,
            repeated=repeated,
            cached=price.cached(repeated, breakpoints=breakpoints, end=end),
            breakpoints=tuple(repeats.breakpoints),
            recalled=context.manifest.sections.get("recalled", 0),
        )
        sent.append((request, context.manifest.rev))
        advance()
    for question in questions:
        shares: list[float] = []
        for wanted in (recall, False) if policy.recalls or policy.recall else (recall,):
            context = await chat.context(question.text, budget=budget, instructions=instructions, recall=wanted)
            shares.append(evidence_shown(context, messages, question.evidence))
        into.evidence.append((shares[0], shares[-1]))
    into.count((await chat.context(budget=budget, instructions=instructions)).manifest.fates)
    into.digest_calls += model.calls - calls
    into.digest_tokens_in += model.tokens_in - tokens_in
    into.digest_tokens_out += model.tokens_out - tokens_out
    digests = [one async for one in in_pages(chat.digests, lambda last: last.id, None)]
    into.failed += [one.error or "no reason given" for one in digests if one.status is Status.FAILED]
    fired = sorted(one.visible_rev for one in digests if one.visible_rev is not None and _changes_contexts(one))
    before = 0
    for request, rev in sent:
        until = bisect_right(fired, rev)
        into.sent.append(replace(request, fired=until - before))
        before = until


def _changes_contexts(digest: Digest) -> bool:
    """A redaction that found no tool results does not."""
    found_nothing = digest.action is DigestAction.REDACT and not digest.tokens
    return digest.action is not DigestAction.CLEAR and not found_nothing
