"""The fourth seed's compacting: "Once the trigger is exceeded, walks oldest user turns first (excluding the last `keep`
turns) and replaces tool results (and optionally tool calls) with compact placeholders, preserving tool names and call
IDs"."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

import hitherto
from hitherto import Call, Message, Policy, assistant, tool_result, user
from hitherto.core.digests.digest import Status
from hitherto.core.log.frontier import DigestAction
from hitherto.core.policy.span import Fate, Reason
from hitherto.other_systems.session_strategies.policies import compacting
from hitherto.policies import LastTurns, Redact, Stage, Turns
from hitherto.providers.scripted.model import Scripted
from hitherto.store.store import Store
from tests.acceptance.dialogue import (
    PLENTY,
    Opened,
    answers,
    asks,
    bytes_of,
    check_begins_with,
    fates,
    looked_up,
    opener,
    ranges,
    round_,
)

POLICY = compacting(trigger={"turns": 4}, keep=2)


@pytest.fixture
def opened(store: Store) -> Opened:
    return opener(store, POLICY)


def redacting(**options: Any) -> Policy:
    return Policy("mine", (Stage(Turns(5), LastTurns(2), Redact(**options)),))


def payloads(messages: Sequence[Message]) -> list[dict[str, Any]]:
    return [message.payload for message in messages]


def removed(number: int, *, tool: str = "search") -> list[dict[str, Any]]:
    """The turn of `looked_up` as it is shown once its result is redacted."""
    items = payloads(looked_up(number, tool=tool))
    items[2]["content"] = f"⟦removed: {tool}⟧"
    return items


async def test_once_the_trigger_is_exceeded_the_oldest_results_are_placeholders(opened: Opened) -> None:
    model = Scripted()
    async with opened(model) as (_, chat):
        for number in range(1, 5):
            await chat.append(*looked_up(number))
        assert await chat.digests() == [], "4 turns are not more than 4"

        appended = await chat.append(asks(5))
        (row,) = await chat.digests()
        assert (row.start, row.end, row.base) == (0, 11, None), "turns 1 to 3; turns 4 and 5 are untouched"
        assert (row.action, row.status) == (DigestAction.REDACT, Status.COMPLETED)
        assert row.fired_rev == row.visible_rev == appended.rev
        results = [one.tokens for one in await chat.messages(stop=12) if one.seq % 4 == 2]
        assert 0 < row.tokens <= sum(results), "what it freed"

        context = await chat.context(budget=PLENTY)
        expected = [item for number in (1, 2, 3) for item in removed(number)]
        assert context.messages == [*expected, *payloads(looked_up(4)), asks(5).payload]
        assert fates(context) == [
            (0, 1, Fate.IN, Reason.VERBATIM),
            (2, 2, Fate.REDACTED, Reason.REDACTED),
            (3, 5, Fate.IN, Reason.VERBATIM),
            (6, 6, Fate.REDACTED, Reason.REDACTED),
            (7, 9, Fate.IN, Reason.VERBATIM),
            (10, 10, Fate.REDACTED, Reason.REDACTED),
            (11, 16, Fate.IN, Reason.VERBATIM),
        ]
        assert await chat.items(wire="openai.chat") == context.messages
        assert payloads([logged.message for logged in await chat.messages()]) == payloads(
            [message for number in range(1, 5) for message in looked_up(number)] + [asks(5)]
        ), "the log has them in full"
    assert model.calls == []


async def test_names_and_call_ids_are_preserved(opened: Opened) -> None:
    async with opened(Scripted()) as (_, chat):
        for number in range(1, 6):
            await chat.append(*looked_up(number, tool=f"tool_{number}"))
        shown = (await chat.context(budget=PLENTY)).messages
        original = payloads([message for n in range(1, 6) for message in looked_up(n, tool=f"tool_{n}")])
        assert len(shown) == len(original), "the same conversation structure"
        for now, before in zip(shown, original, strict=True):
            assert {**now, "content": None} == {**before, "content": None}, "nothing but a content is changed"
        assert [item["content"] for item in shown if item["role"] == "tool"][:3] == [
            f"⟦removed: tool_{n}⟧" for n in (1, 2, 3)
        ]


async def test_the_next_time_and_between(opened: Opened) -> None:
    async with opened(Scripted()) as (_, chat):
        before: hitherto.Context | None = None
        compared = 0
        for number in range(1, 13):
            fired = len(await chat.digests())
            context = await chat.context(asks(number), budget=PLENTY)
            if before is not None:
                check_begins_with(context, before)
                compared += 1
            await chat.append(*looked_up(number))
            before = context if len(await chat.digests()) == fired else None
        # Turns 4 and 5 were untouched; with turn 8 there are more than 4 such again.
        assert ranges(await chat.digests()) == [(0, 11), (12, 23), (24, 35)]
        assert compared == 8
        context = await chat.context(budget=PLENTY)
        assert context.messages[:36] == [item for number in range(1, 10) for item in removed(number)]
        assert context.messages[36:] == payloads([m for number in range(10, 13) for m in looked_up(number)])


async def test_calls_too_on_request(store: Store) -> None:
    async with opener(store, compacting(4, 2, calls=True))(Scripted()) as (_, chat):
        for number in range(1, 6):
            await chat.append(*looked_up(number))
        context = await chat.context(budget=PLENTY)
        call = context.messages[1]["tool_calls"][0]
        assert call["id"] == "call_1"
        assert call["function"]["name"] == "search"
        arguments = json.loads(call["function"]["arguments"])
        assert isinstance(arguments, dict), "what every API takes as arguments"
        assert "⟦removed: search⟧" in json.dumps(arguments, ensure_ascii=False)
        assert "topic 1" not in json.dumps(context.messages)
        assert context.messages[2]["content"] == "⟦removed: search⟧"
        assert context.messages[12:] == payloads([*looked_up(4), *looked_up(5)])
        assert fates(context)[1] == (1, 2, Fate.REDACTED, Reason.REDACTED)


async def test_tools_that_are_never_redacted(store: Store) -> None:
    async with opener(store, redacting(never=("search",), calls=True))(Scripted()) as (_, chat):
        for number in range(1, 6):
            await chat.append(*looked_up(number, tool="search" if number % 2 else "fetch"))
        shown = (await chat.context(budget=PLENTY)).messages
        assert shown[0:4] == payloads(looked_up(1))
        assert shown[6]["content"] == "⟦removed: fetch⟧"
        assert shown[8:12] == payloads(looked_up(3))


async def test_only_where_enough_is_freed(store: Store) -> None:
    async with opener(store, redacting(at_least=150))(Scripted()) as (memory, chat):
        measured = memory.conversation("measured", scope=chat.scope)
        await measured.append(*looked_up(1))
        size = (await measured.messages())[2].tokens
        assert 60 < size < 85, "two of these free less than 150 tokens, three of them more"
        number = 0
        while not await chat.digests():
            number += 1
            await chat.append(*looked_up(number, tool="search" if number % 2 else "look"))
            assert number < 12
        (row,) = await chat.digests()
        assert row.tokens >= 150
        assert ranges([row]) == [(0, 4 * (number - 2) - 1)]
        assert number > 4
        placeholders = [item for item in bytes_of(await chat.context(budget=PLENTY)) if "removed" in item]
        assert len(placeholders) == number - 2


async def test_at_least_counts_what_may_be_redacted(store: Store) -> None:
    async with opener(store, redacting(at_least=100, never=("search",)))(Scripted()) as (_, chat):
        for number in range(1, 9):
            await chat.append(*looked_up(number))
        assert await chat.digests() == []


async def test_the_freed_tokens_are_what_the_context_has_less(opened: Opened) -> None:
    """ "Context freed this turn"."""
    async with opened(Scripted()) as (_, chat):
        for number in range(1, 6):
            await chat.append(*looked_up(number, words=200))
        (row,) = await chat.digests()
        now = await chat.context(budget=PLENTY)
        raw = await chat.context(budget=PLENTY, policy="none")
        assert abs((raw.tokens - now.tokens) - row.tokens) <= 12 * 3, "but for the placeholders' own"
        assert now.tokens < raw.tokens


async def test_parallel_calls_and_late_results(opened: Opened) -> None:
    async with opened(Scripted()) as (_, chat):
        calls = [Call(id=f"p{n}", name=name) for n, name in enumerate(("weather", "traffic"))]
        await chat.append(user("both?"), assistant(calls=calls))
        await chat.append(tool_result("p1", "jam " * 40), asks(2), tool_result("p0", "rain " * 40), answers(2))
        for number in range(3, 8):
            await round_(chat, number)
        (row, *_) = await chat.digests()
        shown = {item["tool_call_id"]: item["content"] for item in (await chat.context(budget=PLENTY)).messages
                 if item["role"] == "tool"}  # fmt: skip
        assert shown == {"p0": "⟦removed: weather⟧", "p1": "⟦removed: traffic⟧"}
        assert row.start == 0


async def test_a_call_that_waits_for_approval_is_not_redacted_half(opened: Opened) -> None:
    async with opened(Scripted()) as (_, chat):
        for number in range(1, 4):
            await chat.append(*looked_up(number))
        await chat.append(user("delete it?"), assistant(calls=[Call(id="w", name="delete")]))
        await chat.append(asks(5))
        assert ranges(await chat.digests()) == [(0, 11)]
        await chat.append(tool_result("w", "deleted " * 20), answers(5), asks(6), answers(6), asks(7), answers(7))
        for number in (8, 9):
            await round_(chat, number)
        shown = [item for item in (await chat.context(budget=PLENTY)).messages if item.get("tool_call_id") == "w"]
        assert [item["content"] for item in shown] == ["⟦removed: delete⟧"]


RESPONSES: list[dict[str, Any]] = [
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
    {"type": "function_call", "id": "fc_1", "call_id": "f1", "name": "look", "arguments": '{"q": "a"}'},
    {"type": "custom_tool_call", "id": "ct_1", "call_id": "f2", "name": "run", "input": "ls"},
    {"type": "function_call_output", "call_id": "f1", "output": "found " * 50},
    {"type": "custom_tool_call_output", "call_id": "f2", "output": "listed " * 50},
]
ANTHROPIC: list[dict[str, Any]] = [
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look", "input": {"q": "a"}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "found " * 50}]},
]


async def test_in_the_format_of_responses(opened: Opened) -> None:
    async with opened(Scripted()) as (_, chat):
        await chat.append(asks(1))
        await chat.append(*RESPONSES, wire="openai.responses")
        await chat.append(answers(1))
        for number in range(2, 6):
            await round_(chat, number)
        shown = await chat.items()
        assert shown[1:4] == RESPONSES[:3], "reasoning, calls, ids and names stay"
        assert shown[4] == {**RESPONSES[3], "output": "⟦removed: look⟧"}
        assert shown[5] == {**RESPONSES[4], "output": "⟦removed: run⟧"}
        context = await chat.context(budget=PLENTY, wire="openai.responses")
        assert context.messages[1:6] == shown[1:6]


async def test_in_the_format_of_anthropic(opened: Opened) -> None:
    async with opened(Scripted()) as (_, chat):
        await chat.append(asks(1))
        await chat.append(*ANTHROPIC, wire="anthropic")
        await chat.append(answers(1))
        for number in range(2, 6):
            await round_(chat, number)
        shown = (await chat.context(budget=PLENTY, wire="anthropic")).messages
        assert shown[1] == ANTHROPIC[0]
        assert shown[2]["content"][0] == {**ANTHROPIC[1]["content"][0], "content": "⟦removed: look⟧"}


async def test_a_budget_counts_what_is_shown(opened: Opened) -> None:
    """Redacted results leave room for more of the conversation."""
    async with opened(Scripted()) as (_, chat):
        for number in range(1, 14):
            await chat.append(*looked_up(number, words=300))
        budget = 3_000
        context = await chat.context(budget=budget)
        assert context.tokens <= budget
        raw = await chat.context(budget=budget, policy="none")
        assert len(context.messages) > len(raw.messages)
        assert sum(span.tokens for span in context.manifest.fates) == context.manifest.sections["verbatim"]
