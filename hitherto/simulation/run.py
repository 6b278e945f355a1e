"""Replays a transcript under a policy, request by request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from hitherto.core.context.budget import TokenCounter
from hitherto.core.digests.digest import Digest, Status
from hitherto.core.log.frontier import DigestAction
from hitherto.core.log.message import ANTHROPIC, CHAT, Message
from hitherto.core.scope import Scope
from hitherto.engine.memory import Memory
from hitherto.errors import BudgetExceeded
from hitherto.simulation.counting import Counting
from hitherto.simulation.evidence import Labeled, evidence_shown
from hitherto.simulation.figures import Figures, SentRequest
from hitherto.simulation.repeats import Repeats
from hitherto.simulation.steps import steps
from hitherto.wire import codec

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
    wire = ANTHROPIC if price.cache_breakpoints == "explicit" else CHAT
    agent = None if price.cache_breakpoints == "none" else price.model
    repeats = Repeats(codec(wire), counter)
    calls, tokens_in, tokens_out = model.calls, model.tokens_in, model.tokens_out
    policy = await chat.policy()
    recalls = policy.recalls or policy.recall
    sent = list[tuple[SentRequest, int]]()
    seq = 0
    for step in steps(messages):
        if step.asked:
            try:
                context = await chat.context(
                    step.asked, budget=budget, instructions=instructions, wire=wire, model=agent
                )
            except BudgetExceeded as error:
                message = f"{name}: the request with the message of seq {seq} cannot be sent: {error}"
                raise BudgetExceeded(message, over_by=error.over_by) from error
            breakpoints, end = repeats.breakpoints, repeats.end  # of the request before
            repeated = repeats.of(context.request)
            request = SentRequest(
                seq=seq,
                tokens=context.tokens,
                repeated=repeated,
                cached=price.cached(repeated, breakpoints=breakpoints, end=end),
                breakpoints=tuple(repeats.breakpoints),
                recalled=context.manifest.sections.get("recalled", 0),
            )
            sent.append((request, context.manifest.rev))
        await chat.append(*step.asked, *step.answered)
        await memory.wait_for_digests()
        if recalls:
            await memory.wait_for_index()  # what is recalled depends on what is found
        seq += len(step.asked) + len(step.answered)
        if step.asked:
            advance()
    for question in questions:
        shares: list[float] = []
        for recall in (None, False) if recalls else (None,):
            context = await chat.context(question.text, budget=budget, instructions=instructions, recall=recall)
            shares.append(evidence_shown(context, messages, question.evidence))
        into.evidence.append((shares[0], shares[-1]))
    into.count((await chat.context(budget=budget, instructions=instructions)).manifest.fates)
    into.digest_calls += model.calls - calls
    into.digest_tokens_in += model.tokens_in - tokens_in
    into.digest_tokens_out += model.tokens_out - tokens_out
    digests = await chat.digests()
    into.failed += [one.error or "no reason given" for one in digests if one.status is Status.FAILED]
    fired = [one.visible_rev for one in digests if one.visible_rev is not None and _changes_contexts(one)]
    before = -1
    for request, rev in sent:
        into.sent.append(replace(request, fired=sum(before < one <= rev for one in fired)))
        before = rev


def _changes_contexts(digest: Digest) -> bool:
    """A redaction that found no tool results does not."""
    found_nothing = digest.action is DigestAction.REDACT and not digest.tokens
    return digest.action is not DigestAction.CLEAR and not found_nothing
