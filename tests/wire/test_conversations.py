"""The drawn conversations: they could be an agent's, and what the properties are meant to meet does occur."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from hitherto.core.log.append import extended
from hitherto.core.log.group import groups
from hitherto.core.log.head import empty
from hitherto.core.log.message import ANTHROPIC, CHAT, RESPONSES, Kind, Logged, Message
from hitherto.wire import codec, read
from tests.wire.conversations import WIRES, Conversation, conversations, long_log
from tests.wire.rules import assert_paired, assert_valid, blocks

EMPTY = empty(datetime(2026, 1, 1, tzinfo=UTC))


def logged(messages: list[Message]) -> list[Logged]:
    """The messages as they enter a log one by one."""
    head, log = EMPTY, list[Logged]()
    for message in messages:
        entered, head = extended(head, [message], [1])
        log += entered
    return log


@given(conversation=conversations())
def test_any_of_them_can_be_appended_message_by_message(conversation: Conversation) -> None:
    log = logged(conversation.messages)
    assert [one.message.payload for one in log] == conversation.items
    assert log[0].message.opens_turn


@given(conversation=conversations(CHAT, RESPONSES))
def test_the_apis_own_types_take_its_items(conversation: Conversation) -> None:
    assert_valid(conversation.wire, conversation.items)


@given(conversation=conversations(), target=st.sampled_from(WIRES))
def test_its_groups_are_whole_in_every_format(conversation: Conversation, target: str) -> None:
    found = groups(logged(conversation.messages))
    assert not any(group.orphan for group in found)
    written = [
        codec(target).write([member.message for member in group.members], unanswered=sorted(group.open))
        for group in found
    ]
    assert_paired(target, [item for group in written for item in group])


def calls_at(conversation: Conversation) -> dict[str, int]:
    return {call: at for at, message in enumerate(conversation.messages) for call in message.calls}


def turns_between(conversation: Conversation) -> list[int]:
    """For each result, how many turns its call is away."""
    messages, made = conversation.messages, calls_at(conversation)
    return [
        sum(one.opens_turn for one in messages[made[call] : at])
        for at, message in enumerate(messages)
        for call in message.answers
    ]


def kinds(conversation: Conversation) -> list[Kind]:
    return [message.kind for message in conversation.messages]


def follows(first: Kind, then: Kind) -> Callable[[Conversation], bool]:
    return lambda one: (first, then) in zip(kinds(one), kinds(one)[1:], strict=False)


def merged(conversation: Conversation) -> bool:
    """Whether one message answers calls of several."""
    made = calls_at(conversation)
    return any(len({made[call] for call in message.answers}) > 1 for message in conversation.messages)


OCCUR: list[tuple[str, str, Callable[[Conversation], bool]]] = [
    *((wire, "a result two turns late", lambda one: max(turns_between(one), default=0) >= 2) for wire in WIRES),
    *((wire, "a call without a result", lambda one: len(calls_at(one)) > len(turns_between(one))) for wire in WIRES),
    *(
        (wire, "users who speak twice", lambda one: [m.opens_turn for m in one.messages][:2] == [True] * 2)
        for wire in WIRES
    ),
    *((wire, "twelve turns", lambda one: sum(m.opens_turn for m in one.messages) >= 12) for wire in WIRES),
    (CHAT, "parallel calls in one message", lambda one: any(len(m.calls) > 1 for m in one.messages)),
    (CHAT, "a custom tool", lambda one: '"custom"' in str(one.messages)),
    (RESPONSES, "parallel calls", follows(Kind.TOOL_CALL, Kind.TOOL_CALL)),
    (RESPONSES, "reasoning before a call", follows(Kind.REASONING, Kind.TOOL_CALL)),
    (RESPONSES, "reasoning before a text", follows(Kind.REASONING, Kind.TEXT)),
    (RESPONSES, "reasoning between calls", follows(Kind.TOOL_CALL, Kind.REASONING)),
    (RESPONSES, "text before a call", follows(Kind.TEXT, Kind.TOOL_CALL)),
    *(
        (RESPONSES, kind, lambda one, kind=kind: any(item.get("type") == kind for item in one.items))
        for kind in ("custom_tool_call_output", "shell_call_output", "computer_call_output", "apply_patch_call_output")
    ),
    (ANTHROPIC, "several results in one message", lambda one: any(len(m.answers) > 1 for m in one.messages)),
    (ANTHROPIC, "results of several messages in one", merged),
    (
        ANTHROPIC,
        "text beside results",
        lambda one: any(m.answers and blocks(m.payload["content"])[-1]["type"] == "text" for m in one.messages),
    ),
]


@pytest.mark.parametrize(("wire", "what", "occurs"), OCCUR, ids=lambda value: value if isinstance(value, str) else "")
def test_it_occurs(wire: str, what: str, occurs: Callable[[Conversation], bool]) -> None:
    often = settings(max_examples=1_000, derandomize=True, phases=[Phase.generate], database=None)
    assert find(conversations(wire), occurs, settings=often).wire == wire, what


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("tools", [False, True])
def test_a_long_log_is_the_same_each_time_and_can_be_appended(wire: str, tools: bool) -> None:
    items = long_log(40, tools, wire=wire)
    assert items == long_log(40, tools, wire=wire)
    log = logged([read(item, wire=wire) for item in items])
    assert log[-1].sums.turns == 40
    assert {message.kind for message in (one.message for one in log)} >= (
        {Kind.TEXT, Kind.TOOL_CALL, Kind.TOOL_RESULT} if tools else {Kind.TEXT}
    )
    fewer = long_log(23, tools, wire=wire)
    assert items[: len(fewer)] == fewer
