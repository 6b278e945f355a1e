"""A trigger and actions of somebody else's, used from the first append to the stored row."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import pytest

from hitherto import Policy
from hitherto.core.digests.digest import Status
from hitherto.core.log.frontier import DigestAction
from hitherto.core.policy import policy as policies
from hitherto.core.policy.component import _KNOWN
from hitherto.core.policy.span import Fate
from hitherto.policies import (
    LastTurns,
    Nothing,
    Redact,
    Stage,
    Summarize,
    SystemMessage,
    Tokens,
    Trigger,
    TriggerInput,
    Turns,
    register,
)
from hitherto.providers.scripted import Scripted
from hitherto.store.store import Store
from tests.acceptance.dialogue import PLENTY, Opened, each, looked_up, opener, ranges, round_, rounds, said, says_each
from tests.conftest import SCOPE
from tests.memories import open_on


@register
@dataclass(frozen=True)
class Wordy(Trigger):
    """Due when the turns in view are at least `tokens` long on average."""

    tokens: int
    word: ClassVar[str] = "tests.wordy"

    def due(self, seen: TriggerInput) -> bool:
        return seen.turns > 1 and seen.tokens >= self.tokens * seen.turns


@register
@dataclass(frozen=True)
class Truncate(Redact):
    """Shows the first `characters` of a long result."""

    characters: int = 30
    word: ClassVar[str] = "tests.truncate"

    def replacement(self, tool: str, text: str) -> str | None:
        if tool in self.never or len(text) <= self.characters:
            return None
        return f"{text[: self.characters]}… ({len(text)} characters)"


@register
@dataclass(frozen=True)
class Minutes(Summarize):
    """A summary under a word of its own."""

    word: ClassVar[str] = "tests.minutes"


@register
@dataclass(frozen=True)
class Broken(Trigger):
    """Never answers."""

    word: ClassVar[str] = "tests.broken"

    def due(self, seen: TriggerInput) -> bool:
        raise ZeroDivisionError


POLICY = Policy(
    "mine",
    (
        Stage(Wordy(100), LastTurns(1), Truncate(never=("read_plan",))),
        Stage(Turns(6), LastTurns(2), Minutes(max_tokens=400)),
    ),
)


@pytest.fixture
def opened(store: Store) -> Opened:
    return opener(store, POLICY)


async def test_a_trigger_of_ones_own_fires_a_truncation_of_ones_own(opened: Opened) -> None:
    async with opened(Scripted(then=says_each)) as (memory, chat):
        await chat.append(*looked_up(1, words=20))
        await chat.append(*looked_up(2, words=20))
        assert await chat.digests() == [], "short turns"
        await chat.append(*looked_up(3, words=400))
        await chat.append(*looked_up(4, tool="read_plan", words=400))
        rows = await chat.digests()
        assert [(row.action, row.status) for row in rows] == [(DigestAction.REDACT, Status.COMPLETED)] * len(rows)
        assert ranges(rows) == [(0, 7), (8, 11)]
        assert json.loads(rows[0].spec)["action"]["is"] == "tests.truncate"
        context = await chat.context(budget=PLENTY)
        shown = {item["tool_call_id"]: item["content"] for item in context.messages if item["role"] == "tool"}
        full = looked_up(3, words=400)[2].text
        assert shown["call_3"] == f"{full[:30]}… ({len(full)} characters)"
        assert shown["call_4"] == looked_up(4, words=400)[2].text
        assert [span.fate for span in context.manifest.fates] == [Fate.IN, Fate.REDACTED] * 3 + [Fate.IN]
        assert (await chat.messages())[10].message.text == full, "the log has it in full"
        await memory.wait_for_digests()


async def test_what_the_action_leaves_alone_is_not_called_redacted(opened: Opened) -> None:
    async with opened(Scripted(then=says_each)) as (_, chat):
        await chat.append(*looked_up(1, words=2), *looked_up(2, words=600))
        (row,) = await chat.digests()
        assert (row.start, row.end) == (0, 3)
        context = await chat.context(budget=PLENTY)
        assert [span.fate for span in context.manifest.fates] == [Fate.IN]
        assert context.messages[2] == looked_up(1, words=2)[2].payload


async def test_a_summary_of_ones_own(opened: Opened) -> None:
    async with opened(Scripted(then=says_each)) as (memory, chat):
        await rounds(memory, chat, range(1, 7))
        (row,) = await chat.digests()
        assert (row.action, row.status, row.text) == (DigestAction.SUMMARIZE, Status.COMPLETED, each(0, 7))
        assert json.loads(row.spec)["action"] == {"is": "tests.minutes", "max_tokens": 400, "archive": False}
        context = await chat.context(budget=PLENTY)
        assert [item["content"] for item in context.messages][1:] == said(5, 6)


async def test_it_is_stored_and_read_again(store: Store) -> None:
    async with opener(store, POLICY)(Scripted(then=says_each)) as (memory, chat):
        await rounds(memory, chat, range(1, 4))
        await memory.configure_agent(tenant=SCOPE.tenant, agent=SCOPE.agent, policy=POLICY)
    async with opener(store)(Scripted(then=says_each)) as (memory, chat):
        assert await chat.policy() == POLICY
        assert await memory.conversation("another", scope=SCOPE).policy() == POLICY
        await rounds(memory, chat, range(4, 8))
        context = await chat.context(budget=PLENTY)
        assert context.manifest.policy == POLICY.to_json()
        assert (await chat.rebuild(context.manifest)).request == context.request


async def test_what_a_truncation_leaves_counts(store: Store) -> None:
    """What is shown of a result is in view, so a trigger that counts the view's tokens counts it."""
    stages = (
        Stage(Turns(4), LastTurns(1), Truncate(characters=700)),
        Stage(Tokens(1_500), LastTurns(1), Summarize()),
    )
    async with opener(store, Policy("long", stages))(Scripted(then=says_each)) as (memory, chat):
        for number in range(1, 15):
            await chat.append(*looked_up(number, words=200))
            await memory.wait_for_digests()
            assert (await chat.context(budget=PLENTY)).tokens < 2_200, f"after turn {number}"


async def test_a_trigger_that_breaks_fires_nothing(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    """The messages are worth more: they are there, and the log says what went wrong."""
    policy = Policy("broken", (Stage(Broken(), Nothing(), Summarize()),))
    async with opener(store)(Scripted()) as (memory, chat):
        await rounds(memory, chat, range(1, 3))
        await rounds(memory, chat, [3], policy=policy)
        assert len(await chat.messages()) == 6
        assert await chat.digests() == []
        assert "The policy broken of conv_123 failed" in caplog.text


@pytest.fixture
def forgotten() -> Iterator[Callable[[], None]]:
    """Makes this process one where the package with `Wordy` and `Minutes` is not installed."""

    def forget() -> None:
        del _KNOWN["trigger"]["tests.wordy"], _KNOWN["action"]["tests.minutes"]
        policies._policy.cache_clear()

    yield forget
    register(Wordy)
    register(Minutes)


async def test_a_part_that_this_process_does_not_know(store: Store, forgotten: Callable[[], None]) -> None:
    """What was stored is refused by name where it counts; the conversation's messages are none the worse for it."""
    async with opener(store, POLICY)(Scripted(then=says_each)) as (memory, chat):
        await rounds(memory, chat, range(1, 9))
        await memory.configure_agent(tenant=SCOPE.tenant, agent=SCOPE.agent, policy=POLICY)
    forgotten()
    async with open_on(store, model=Scripted()) as memory:
        chat = memory.conversation("conv_123", scope=SCOPE)
        assert len(await chat.messages()) == 16, "the log can be read"
        for policy in ("none", "trim"):
            context = await chat.context(budget=PLENTY, policy=policy)
            assert context.messages[-1] == {"role": "assistant", "content": "answer 8"}
        await chat.configure(policy="trim", create=True)
        await round_(chat, 9)
        assert await chat.clear() == 18
        await memory.configure_agent(tenant=SCOPE.tenant, agent=SCOPE.agent, policy="none")
        assert await chat.delete() == 18


HOSTILE = ["\x00{text}", "\ud800{text}", "<|endoftext|>{text}", "'; drop table message; --{text}", "{}{text}"]


@pytest.mark.parametrize("template", HOSTILE)
async def test_hostile_text_in_a_policy_is_stored_as_given(store: Store, template: str) -> None:
    name = template.replace("{text}", "") or "x"
    stage = Stage(Turns(3), LastTurns(1), Summarize(), SystemMessage(template))
    policy = Policy(name, (stage, Stage(Turns(9), LastTurns(2), Redact(never=(name,)))))
    async with opener(store)(Scripted(then=says_each)) as (memory, chat):
        await chat.configure(policy=policy, create=True)
        await memory.configure_agent(tenant=SCOPE.tenant, agent=SCOPE.agent, policy=policy)
        await rounds(memory, chat, range(1, 5))
        assert await memory.conversation("conv_123", scope=SCOPE).policy() == policy
        assert await memory.conversation("new", scope=SCOPE).policy() == policy
        context = await chat.context(budget=PLENTY)
        assert context.manifest.digest is not None
        assert (await chat.rebuild(context.manifest)).request == context.request
