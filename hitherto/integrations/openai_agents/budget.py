"""The items of a session within a token budget."""

from __future__ import annotations

from collections.abc import Sequence

from hitherto.core.context.request import ContextRequest
from hitherto.core.cross_session import cross_session_of
from hitherto.core.log.message import RESPONSES, Message, Payload, Role, plain_message
from hitherto.core.policy.policy import Policy
from hitherto.core.policy.span import Reason
from hitherto.engine.context.context import Context
from hitherto.engine.context.fit import ContextBuilder
from hitherto.engine.conversation import Conversation
from hitherto.errors import BudgetExceeded
from hitherto.logs import logger

log = logger("hitherto.session")

_STAND_IN = plain_message(Role.SYSTEM, "")
_LEFT_OUT = (Reason.BUDGET, Reason.CALL_NOT_IN)


async def items_within(
    budget: int, conversation: Conversation, *, policy: Policy | None, model: str | None, limit: int | None
) -> list[Payload]:
    """The newest `limit` items of what the policy leaves, at most `budget` tokens of them, counted as `model` does.

    Where all fit, they are the items as they are. Where the budget cuts, they are those of a context: whole groups, a
    result right behind its call, a placeholder for the result of a call that has none; a digest that is a system
    message is the first item. Where not even the newest group fits, what stands for the older part is shown alone, and
    where that does not fit, nothing.
    """
    try:
        made = await _context((), budget, conversation, policy, model)
    except BudgetExceeded as error:
        log.warning(
            "The newest items take %d tokens more than the session's budget of %d; the model is shown none of them",
            error.over_by,
            budget,
            tenant=conversation.scope.tenant,
            conversation=conversation.id,
        )
        return await _digest_within(budget, conversation, policy, model, limit)
    if not any(span.reason in _LEFT_OUT for span in made.manifest.fates):
        return await conversation.items(wire=RESPONSES, policy=policy, model=model, limit=limit, at=made.manifest.rev)
    return _newest(_items(made), limit)


async def _digest_within(
    budget: int, conversation: Conversation, policy: Policy | None, model: str | None, limit: int | None
) -> list[Payload]:
    """What stands for the older part alone; empty where that does not fit. A context has the incoming message or the
    newest group in it: here an empty message that is left out again."""
    try:
        made = await _context((_STAND_IN,), budget, conversation, policy, model)
    except BudgetExceeded:
        return []
    return _newest(_items(made)[:-1], limit)


async def _context(
    incoming: Sequence[Message], budget: int, conversation: Conversation, policy: Policy | None, model: str | None
) -> Context:
    """A context of the conversation's own messages and digests. `Conversation.context` would add cache breakpoints and
    what a policy recalls, which are for a request and not for a list of items."""
    handle = conversation._handle  # pyright: ignore[reportPrivateUsage]
    services = handle.services
    request = ContextRequest(
        incoming=tuple(incoming),
        instructions=None,
        tools=(),
        budget=budget,
        reserve=0,
        counter=services.counter(model),
        codec=services.codec(RESPONSES),
        family=services.family(model),
    )
    return await ContextBuilder(handle).fitted(
        request, services.usable(policy), None, recall=False, cross_session=cross_session_of(()), facts=False
    )


def _items(made: Context) -> list[Payload]:
    digest = made.request.get("instructions")
    return [*([] if digest is None else [{"role": "system", "content": digest}]), *made.messages]


def _newest(items: list[Payload], limit: int | None) -> list[Payload]:
    return items if limit is None else items[max(len(items) - limit, 0) :]
