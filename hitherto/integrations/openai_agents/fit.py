"""Every model call of a run within a token budget, tool loops too."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

from agents import Agent, AgentOutputSchema, AgentOutputSchemaBase, FunctionTool, Handoff, RunContextWrapper, handoff
from agents.run import CallModelData, ModelInputData

from hitherto.core.context.budget import TokenCounter, checked_budget
from hitherto.core.context.fit import Fitting
from hitherto.core.context.gathered import Gathered, read_from
from hitherto.core.context.request import ContextRequest
from hitherto.core.log.head import empty
from hitherto.core.log.message import RESPONSES, Logged, Message, Payload, Sums
from hitherto.core.log.tail import ending
from hitherto.core.policy.presets import none
from hitherto.core.policy.view import view
from hitherto.errors import BudgetExceeded
from hitherto.tokens import CANONICAL, counter_for
from hitherto.wire import codec
from hitherto.wire.sendable import encodable

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)

Filter = Callable[[CallModelData[Any]], Awaitable[ModelInputData]]


def within_budget(budget: int, *, model: str | None = None, reserve: int = 0) -> Filter:
    """A function for `RunConfig(call_model_input_filter=…)`: what each call of the model is sent takes at most `budget`
    tokens, instructions and tools included, with `reserve` tokens kept free for the answer. Tokens are counted as
    `model` does, by default with o200k_base; the tools that an endpoint runs itself count by their names.

    What the API would refuse is mended, as in a context. Where all fits, nothing else changes. Where it does not, it is
    cut as a context of these items would be: see `hitherto.core.context.fit`. A call and its results stay together, and
    a result whose call is not among the items is left out; the log keeps everything. Raises InvalidBudget for unusable
    numbers; the filter BudgetExceeded where what must be there does not fit.
    """
    budget, reserve = checked_budget(budget, reserve)
    counter = counter_for(model or CANONICAL)

    async def fitted(data: CallModelData[Any]) -> ModelInputData:
        given = data.model_data
        request = ContextRequest(
            incoming=(),
            instructions=given.instructions or None,
            budget=budget,
            reserve=reserve,
            counter=counter,
            codec=codec(RESPONSES),
            framework=True,
            tools_tokens=await tools_tokens(data.agent, data.context, counter),
        )
        # In a thread: counting a megabyte takes a while.
        items = await asyncio.to_thread(fit_items, cast("list[Payload]", given.input), request)
        return ModelInputData(input=cast("list[Any]", items), instructions=encodable(given.instructions))

    return fitted


def fit_items(items: Sequence[Payload], request: ContextRequest) -> list[Payload]:
    """The items of a request, as `within_budget` leaves them: `request` has what is sent beside them. Raises
    BudgetExceeded."""
    items = request.codec.distinct(request.sendable(items), {}, framework=request.framework)
    costs = [request.codec.tokens(item, request.counter) for item in items]
    over = sum(costs) + sum(request.fixed().values()) - request.room
    if over <= 0:
        return items
    messages = [request.codec.read(item) for item in items]
    # Of the log even what the user said would be cut.
    incoming = [one for one in messages[-1:] if one.opens_turn]
    request = replace(request, incoming=tuple(incoming))
    made = Fitting(request, _gathered(messages[: len(messages) - len(incoming)], costs, request)).fit(request)
    left: list[Payload] = request.codec.request(system=made.system, items=made.items, tools=())["input"]
    if not left:
        raise BudgetExceeded(
            f"the results are {over:,} tokens more than the budget of {request.budget:,} leaves, and the calls that "
            f"they answer are not among the items, so none may be left out; raise the budget by at least {over:,}",
            over_by=over,
        )
    return left


def _gathered(messages: Sequence[Message], costs: Sequence[int], request: ContextRequest) -> Gathered:
    """The messages, which take `costs` in their order, as a log that has nothing else."""
    sums, logged = Sums(), list[Logged]()
    for seq, (one, cost) in enumerate(zip(messages, costs, strict=False)):
        sums = sums.after(one, cost)
        logged.append(Logged(seq=seq, message=one, tokens=cost, sums=sums, rev=0, created_at=_LONG_AGO))
    head = ending(replace(empty(_LONG_AGO), next_seq=len(logged), sums=sums), logged)
    shown = view(none(), head)
    return Gathered(view=shown, head=head, messages=logged, read_from=read_from(shown, head, request))


async def tools_tokens(agent: Agent[Any], context: Any, counter: TokenCounter) -> int:
    """The tokens of the tools and of the form of the answer."""
    wrapper = RunContextWrapper(context=context)
    tools: list[Mapping[str, Any]] = [schema_of(one) for one in await agent.get_all_tools(wrapper)]
    for one in agent.handoffs:
        to = one if isinstance(one, Handoff) else handoff(one)
        tools.append(_function(to.tool_name, to.tool_description, to.input_json_schema))
    tokens = codec(RESPONSES).tools_tokens(tools, counter) if tools else 0
    output = agent.output_type
    if output is not None and output is not str:
        is_schema = isinstance(output, AgentOutputSchemaBase)
        form = output if is_schema else AgentOutputSchema(output, strict_json_schema=False)
        tokens += 0 if form.is_plain_text() else counter.count(json.dumps(form.json_schema()))
    return tokens


def schema_of(tool: Any) -> Mapping[str, Any]:
    """A tool as the Responses API has it, for counting; of one that the endpoint runs itself, only the name."""
    if isinstance(tool, FunctionTool):
        return _function(tool.name, tool.description, tool.params_json_schema)
    return {"type": str(getattr(tool, "name", type(tool).__name__))}


def _function(name: str, description: str, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"type": "function", "name": name, "description": description, "parameters": dict(parameters)}
