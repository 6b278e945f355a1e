"""The items of a session within a token budget."""

from __future__ import annotations

from dataclasses import replace

from hitherto.core.context.request import ContextRequest
from hitherto.core.cross_session import cross_session_of
from hitherto.core.log.message import RESPONSES, Payload, Role, plain_message
from hitherto.core.policy.policy import Policy
from hitherto.core.policy.span import Reason
from hitherto.engine.context.context import Context
from hitherto.engine.context.fit import ContextBuilder
from hitherto.engine.conversation import Conversation
from hitherto.errors import BudgetExceeded
from hitherto.logs import logger

log = logger("hitherto.session")

_STAND_IN = plain_message(Role.SYSTEM, "")


async def items_within(
    budget: int, conversation: Conversation, *, policy: Policy | None, model: str | None, limit: int | None
) -> list[Payload]:
    """The newest `limit` items of what the policy leaves, at most `budget` tokens of them, counted as `model` does.

    Where all fit, they are the items as they are. Where the budget cuts, they are those of a context: whole groups, a
    result right behind its call, a placeholder for the result of a call that has none; a digest that is a system
    message is the first item. Where not even the newest group fits, what stands for the older part is shown alone, and
    where that does not fit, nothing.
    """
    request = _request(budget, conversation, model)
    try:
        made = await _context(request, conversation, policy)
    except BudgetExceeded as error:
        log.warning(
            "The newest items take %d tokens more than the session's budget of %d; the model is shown none of them",
            error.over_by,
            budget,
            tenant=conversation.scope.tenant,
            conversation=conversation.id,
        )
        return await _digest_within(request, conversation, policy, limit)
    items = _items(made)
    if not any(span.reason is Reason.BUDGET for span in made.manifest.fates):
        whole = await conversation.items(wire=RESPONSES, policy=policy, model=model, at=made.manifest.rev)
        # What stands for messages that were all retracted is left out without a trace in the fates.
        items = whole if request.codec.framing + request.cost(whole) <= budget else items
    return _newest(items, limit)


async def _digest_within(
    request: ContextRequest, conversation: Conversation, policy: Policy | None, limit: int | None
) -> list[Payload]:
    """What stands for the older part alone; empty where that does not fit. A context has the incoming message or the
    newest group in it: here an empty message that is left out again."""
    try:
        made = await _context(replace(request, incoming=(_STAND_IN,)), conversation, policy)
    except BudgetExceeded:
        return []
    return _newest(_items(made)[:-1], limit)


def _request(budget: int, conversation: Conversation, model: str | None) -> ContextRequest:
    services = conversation._handle.services  # pyright: ignore[reportPrivateUsage]
    return ContextRequest(
        incoming=(),
        instructions=None,
        tools=(),
        budget=budget,
        reserve=0,
        counter=services.counter(model),
        codec=services.codec(RESPONSES),
        family=services.family(model),
    )


async def _context(request: ContextRequest, conversation: Conversation, policy: Policy | None) -> Context:
    """A context of the conversation's own messages and digests. `Conversation.context` would add cache breakpoints and
    what a policy recalls, which are for a request and not for a list of items."""
    handle = conversation._handle  # pyright: ignore[reportPrivateUsage]
    return await ContextBuilder(handle).fitted(
        request, handle.services.usable(policy), None, recall=False, cross_session=cross_session_of(()), facts=False
    )


def _items(made: Context) -> list[Payload]:
    digest = made.request.get("instructions")
    return [*([] if digest is None else [{"role": "system", "content": digest}]), *made.messages]


def _newest(items: list[Payload], limit: int | None) -> list[Payload]:
    return items if limit is None else items[max(len(items) - limit, 0) :]
