"""The fourth seed's compacting: "Once the trigger is exceeded, walks oldest user turns first (excluding the last `keep`
turns) and replaces tool results (and optionally tool calls) with compact placeholders, preserving tool names and call
IDs"."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from hitherto import Call, Message, Policy, assistant, tool_result, user
from hitherto.core.digests.digest import Status
from hitherto.core.log.frontier import DigestAction
from hitherto.core.policy.span import Fate, Reason
from hitherto.other_systems.session_strategies.policies import compacting
from hitherto.policies import LastTurns, Redact, Stage, Turns
from hitherto.providers.scripted import Scripted
from hitherto.store.store import Store
from tests.acceptance.dialogue import (
    PLENTY,
    Opened,
    answers,
    asks,
    bytes_of,
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
