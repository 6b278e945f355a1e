"""Every model call of a run within a token budget, tool loops too."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from agents import Agent, AgentOutputSchema, AgentOutputSchemaBase, FunctionTool, Handoff, RunContextWrapper, handoff
from agents.run import CallModelData, ModelInputData

from hitherto.core.context.budget import TokenCounter, checked_budget
from hitherto.core.log.group import Group, groups, newest
from hitherto.core.log.message import RESPONSES, Logged, Message, Payload, Role, Sums
from hitherto.core.policy.parts import placeholder
from hitherto.errors import BudgetExceeded
from hitherto.tokens import CANONICAL, counter_for
from hitherto.wire import codec

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
_RESPONSES = codec(RESPONSES)

_LONGEST_TOKEN = 128
"""Characters: the longest run of blanks that one token stands for."""

Filter = Callable[[CallModelData[Any]], Awaitable[ModelInputData]]


def within_budget(budget: int, *, model: str | None = None, reserve: int = 0) -> Filter:
    """A function for `RunConfig(call_model_input_filter=…)`: what each call of the model is sent takes at most `budget`
    tokens, instructions and tools included, with `reserve` tokens kept free for the answer. Tokens are counted as
    `model` does, by default with o200k_base; the tools that an endpoint runs itself count by their names.

    Where all fits, nothing changes, but for halves of characters, which become U+FFFD. Where it does not, what came
    before the newest user message goes first, the oldest groups first; system messages go last. Then, of the calls
    since that message, all but the newest get placeholders for their results, then go. Then the newest results are cut,
    the longest first, and say so. A call and its results stay together; the log keeps everything. Raises InvalidBudget
    for unusable numbers; the filter BudgetExceeded where the user's message and the newest calls do not fit beside
    instructions and tools.
    """
    budget, reserve = checked_budget(budget, reserve)
    counter = counter_for(model or CANONICAL)

    async def fitted(data: CallModelData[Any]) -> ModelInputData:
        found = data.model_data
        taken = _RESPONSES.framing + await fixed_tokens(data.agent, found.instructions, data.context, counter)
        room = budget - reserve - taken
        # In a thread: counting a megabyte takes a while.
        items = await asyncio.to_thread(fit_items, cast("list[Payload]", found.input), room, counter)
        return ModelInputData(input=_sendable(items), instructions=_sendable(found.instructions))

    return fitted


def _sendable(value: Any) -> Any:
    """The value with U+FFFD for each half of a character: no request can have one, and the log has what was said."""
    text = json.dumps(value, ensure_ascii=False)
    sendable = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value if sendable == text else json.loads(sendable)


def fit_items(items: Sequence[Payload], room: int, counter: TokenCounter) -> list[Payload]:
    """The items of a request, as `within_budget` leaves them in `room` tokens. Raises BudgetExceeded."""
    costs = [_RESPONSES.tokens(item, counter) for item in items]
    if sum(costs) <= room:
        return list(items)
    return _Fit(items, costs, room, counter).items()


class _Fit:
    """The items of one request while they are cut. `shown` are the messages that are left, by their place."""

    def __init__(self, items: Sequence[Payload], costs: Sequence[int], room: int, counter: TokenCounter) -> None:
        self._given, self._room, self._counter = items, room, counter
        self._read = [_RESPONSES.read(item) for item in items]
        logged = [
            Logged(seq=at, message=one, tokens=cost, sums=Sums(), rev=0, created_at=_LONG_AGO)
            for at, (one, cost) in enumerate(zip(self._read, costs, strict=True))
        ]
        self._groups = groups(logged)
        self._shown: dict[int, Message] = dict(enumerate(self._read))
        self._costs = dict(enumerate(costs))
        self._asked = max((at for at, one in enumerate(self._read) if one.opens_turn), default=0)

    def items(self) -> list[Payload]:
        last = newest(self._groups)
        before = [one for one in self._groups if one.last < self._asked]
        since = [one for one in self._groups if one.first > self._asked and one is not last]
        for group in sorted(before, key=_instructs):
            if self._fits():
                break
            self._drop(group)
        for group in since:
            if self._fits():
                break
            self._redact(group, lambda tool, _: placeholder(tool))
        for group in since:
            if self._fits():
                break
            self._drop(group)
        if not self._fits() and last is not None:
            self._cut(last)
        if not self._fits():
            over = self._size() - self._room
            raise BudgetExceeded(
                f"the newest messages take {over:,} tokens more than the run's budget leaves beside instructions and "
                "tools; raise the budget, or send less",
                over_by=over,
            )
        return [self._item(at) for at in sorted(self._shown)]

    def _size(self) -> int:
        return sum(self._costs.values())

    def _fits(self) -> bool:
        return self._size() <= self._room

    def _drop(self, group: Group) -> None:
        for one in group.members:
            del self._shown[one.seq], self._costs[one.seq]

    def _redact(self, group: Group, replacement: Callable[[str, str], str | None]) -> None:
        called = {
            call: tool
            for one in group.members
            for call, tool in zip(one.message.calls, one.message.tools, strict=False)
        }
        for one in group.members:
            tools = tuple(called.get(call, "tool") for call in one.message.answers)
            message = dataclasses.replace(one.message, tools=tools) if tools else one.message
            made = _RESPONSES.redacted(message, replacement, calls=False)
            self._shown[one.seq] = made
            self._costs[one.seq] = _RESPONSES.tokens(made.payload, self._counter)

    def _cut(self, group: Group) -> None:
        """Cut the results of the newest calls to as many characters each as fit."""
        shortest, longest = 0, max((len(one.message.text) for one in group.members if one.message.answers), default=0)
        longest = min(longest, _LONGEST_TOKEN * max(self._room, 0))
        while shortest < longest:
            middle = (shortest + longest + 1) // 2
            self._redact(group, lambda _, text, most=middle: shortened(text, most))
            if self._fits():
                shortest = middle
            else:
                longest = middle - 1
        self._redact(group, lambda _, text: shortened(text, shortest))

    def _item(self, at: int) -> Payload:
        """The item as it was given, unless it was changed: the SDK may have fields in it that no API has."""
        message = self._shown[at]
        return self._given[at] if message is self._read[at] else message.payload


def shortened(text: str, most: int) -> str | None:
    """The first `most` characters, and how many are left out; None if the text is not longer."""
    return None if len(text) <= most else f"{text[:most]}…\n⟦cut: {len(text) - most:,} characters⟧"


def _instructs(group: Group) -> tuple[bool, int]:
    return group.members[0].message.role is Role.SYSTEM, group.first


async def fixed_tokens(agent: Agent[Any], instructions: str | None, context: Any, counter: TokenCounter) -> int:
    """The tokens of what is sent beside the items: instructions, tools and the form of the answer."""
    wrapper = RunContextWrapper(context=context)
    tools: list[Mapping[str, Any]] = [schema_of(one) for one in await agent.get_all_tools(wrapper)]
    for one in agent.handoffs:
        to = one if isinstance(one, Handoff) else handoff(one)
        tools.append(_function(to.tool_name, to.tool_description, to.input_json_schema))
    tokens = _RESPONSES.tools_tokens(tools, counter) if tools else 0
    if instructions:
        tokens += _RESPONSES.system_tokens(instructions, counter)
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
