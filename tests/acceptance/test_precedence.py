"""Whose policy counts: "Precedence: request > conversation > agent > the default", stored where it belongs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hitherto import Memory, Scope, balanced, redact, rolling, summarize, trim
from hitherto.core.cross_session import CrossSession
from hitherto.core.log.frontier import DigestAction
from hitherto.core.policy.policy import policy_json
from hitherto.errors import InvalidPolicy, InvalidScope
from hitherto.other_systems.session_strategies.memory_strategy import strategy
from hitherto.providers.scripted import Scripted
from hitherto.store.store import Store
from hitherto.wiring import Opening
from tests.acceptance.dialogue import PLENTY, answers, asks, bodies, each, round_, rounds, says_each
from tests.conftest import SCOPE
from tests.memories import open_on

AGENT: dict[str, Any] = {"tenant": SCOPE.tenant, "agent": SCOPE.agent}
TRIM, ROLLING, SUMMARIZE = trim(4, 2), rolling(4, 2), summarize(4, 2)


def memory_on(store: Store, **options: Any) -> Opening:
    return open_on(store, model=Scripted(then=says_each), **options)


async def test_the_stronger_one_counts(store: Store) -> None:
    async with memory_on(store, policy=redact()) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await round_(chat, 1)
        context = await chat.context(asks(2))
        assert (context.manifest.policy, context.manifest.policy_from) == (redact().to_json(), "memory")

        await memory.configure_agent(**AGENT, policy=TRIM)
        context = await chat.context(asks(2))
        assert (context.manifest.policy, context.manifest.policy_from) == (TRIM.to_json(), "agent")
        assert await chat.policy() == TRIM

        await chat.configure(policy=ROLLING, create=True)
        context = await chat.context(asks(2))
        assert (context.manifest.policy, context.manifest.policy_from) == (ROLLING.to_json(), "conversation")
        assert await chat.policy() == ROLLING

        context = await chat.context(asks(2), policy=SUMMARIZE)
        assert (context.manifest.policy, context.manifest.policy_from) == (SUMMARIZE.to_json(), "request")
        context = await chat.context(asks(2))
        assert context.manifest.policy_from == "conversation", "a request's policy is not stored"


async def test_what_is_not_given_stays_as_it_is(store: Store) -> None:
    async with memory_on(store) as memory:
        await memory.configure_agent(**AGENT, policy="trim:max_turns=4,keep_turns=2")
        chat = memory.conversation("c", scope=SCOPE)
        assert await chat.policy() == TRIM
        as_json: Any = ROLLING.to_json()
        await chat.configure(policy=as_json, cross_session=CrossSession(latest=True), create=True)
        assert await chat.policy() == ROLLING
        head = await chat.head()
        assert head is not None
        assert head.cross_session == CrossSession(latest=True)
        await chat.configure(cross_session=CrossSession(latest=False), create=True)
        head = await chat.head()
        assert head is not None
        assert (head.cross_session, head.policy) == (CrossSession(latest=False), policy_json(ROLLING))


async def test_switches_are_stored_too(store: Store) -> None:
    async with memory_on(store) as memory:
        await memory.configure_agent(**AGENT, **strategy({"memorySummarization": True}))
        chat = memory.conversation("c", scope=SCOPE)
        assert (await chat.policy()).name == "summarize"
        trimming = {"max_turns": 4, "keep_last_n_turns": 2}
        await chat.configure(**strategy({"memoryTrimming": trimming, "memoryInjection": True}), create=True)
        assert await chat.policy() == TRIM
        head = await chat.head()
        assert head is not None
        assert head.cross_session == CrossSession(latest=True)
        await chat.configure(**strategy({"memoryInjection": False}), create=True)
        assert await chat.policy() == TRIM


async def test_a_policy_that_goes(store: Store) -> None:
    """Then the next one applies: the agent's, and in the end the memory's."""
    async with memory_on(store, policy=ROLLING) as memory:
        await memory.configure_agent(**AGENT, policy=TRIM)
        chat = memory.conversation("c", scope=SCOPE, policy=SUMMARIZE)
        await round_(chat, 1)
        assert await chat.policy() == SUMMARIZE
        await chat.configure(policy="", create=True)
        assert await chat.policy() == TRIM
        assert await memory.conversation("c", scope=SCOPE).policy() == TRIM
        await memory.configure_agent(**AGENT, policy="")
        assert await chat.policy() == ROLLING


async def test_an_agents_policy_is_for_its_tenant_and_name_only(store: Store) -> None:
    async with memory_on(store) as memory:
        await memory.configure_agent(**AGENT, policy=TRIM)
        for scope, expected in (
            (SCOPE, TRIM),
            (Scope(tenant=SCOPE.tenant, user="somebody-else", agent=SCOPE.agent), TRIM),
            (Scope(tenant=SCOPE.tenant, user=SCOPE.user, agent="other"), balanced()),
            (Scope(tenant="other", user=SCOPE.user, agent=SCOPE.agent), balanced()),
        ):
            chat = memory.conversation("c", scope=scope)
            assert await chat.policy() == expected, "before there is a conversation"
            await rounds(memory, chat, range(1, 5))
            assert await chat.policy() == expected
            assert [row.action for row in await chat.digests()] == [DigestAction.DROP] * (expected == TRIM)


async def test_a_request_governs_its_context_alone(store: Store) -> None:
    """ "A request's policy governs that request; an append is told its policy by its own parameter"."""
    async with memory_on(store) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await rounds(memory, chat, range(1, 6))
        assert (await chat.context(asks(6), policy=TRIM)).manifest.policy_from == "request"
        await round_(chat, 6)
        assert await chat.digests() == []
        await round_(chat, 7, policy=TRIM)
        assert [row.action for row in await chat.digests()] == [DigestAction.DROP]
        # The append after that is nobody's request: `balanced` counts again, and shows everything.
        for number in range(8, 13):
            await round_(chat, number)
        assert len(await chat.digests()) == 1
        assert len((await chat.context(budget=PLENTY)).messages) == 24


async def test_an_append_can_say_it_itself(store: Store) -> None:
    async with memory_on(store) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        for number in range(1, 6):
            await round_(chat, number, policy=TRIM)
        assert [row.action for row in await chat.digests()] == [DigestAction.DROP]
        await chat.append(asks(6), answers(6), policy="none")
        assert len(await chat.digests()) == 1
        assert await chat.policy() == balanced()


async def test_the_object_a_policy_was_given_to(store: Store) -> None:
    """`memory.conversation(policy=…)` governs at once and is stored with the next append."""
    async with memory_on(store) as memory:
        chat = memory.conversation("c", scope=SCOPE, policy=TRIM)
        assert await chat.policy() == TRIM
        assert await memory.conversation("c", scope=SCOPE).policy() == balanced()
        await round_(chat, 1)
        assert await memory.conversation("c", scope=SCOPE).policy() == TRIM


async def test_configuring_counts_for_the_object_that_configured(store: Store) -> None:
    """Though it was made with another policy: the later word counts, and the next append does not undo it."""
    async with memory_on(store) as memory:
        chat = memory.conversation("c", scope=SCOPE, policy=TRIM)
        await round_(chat, 1)
        await chat.configure(policy=ROLLING, create=True)
        assert await chat.policy() == ROLLING
        await round_(chat, 2)
        assert await chat.policy() == ROLLING
        assert await memory.conversation("c", scope=SCOPE).policy() == ROLLING


async def test_the_policy_of_a_context_is_the_one_it_is_rebuilt_with(store: Store) -> None:
    async with memory_on(store) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await rounds(memory, chat, range(1, 7), policy=SUMMARIZE)
        context = await chat.context(asks(7), policy=SUMMARIZE, budget=PLENTY)
        assert each(0, 7) in bodies(context)
        await chat.configure(policy=TRIM, create=True)
        again = await chat.rebuild(context.manifest)
        assert again.request == context.request
        assert again.manifest == context.manifest


@pytest.mark.parametrize("policy", ["slide", {"version": 1}, 7, "trim:max_turns=2,keep_turns=2"])
async def test_an_unusable_policy_is_refused_wherever_it_is_given(store: Store, policy: Any) -> None:
    ways: list[Callable[[Memory], Any]] = [
        lambda memory: memory.configure_agent(**AGENT, policy=policy),
        lambda memory: memory.conversation("c", scope=SCOPE).configure(policy=policy, create=True),
        lambda memory: memory.conversation("c", scope=SCOPE).append(asks(1), policy=policy),
        lambda memory: memory.conversation("c", scope=SCOPE).context(asks(1), policy=policy),
        lambda memory: memory.conversation("c", scope=SCOPE).items(policy=policy),
        lambda memory: memory.conversation("c", scope=SCOPE).view(policy=policy),
    ]
    async with memory_on(store) as memory:
        for way in ways:
            with pytest.raises(InvalidPolicy):
                await way(memory)
        with pytest.raises(InvalidPolicy):
            memory.conversation("c", scope=SCOPE, policy=policy)
        assert (await memory.conversations(SCOPE)).conversations == (), "nothing was written"
        assert await memory.conversation("c", scope=SCOPE).policy() == balanced()


@pytest.mark.parametrize("name", ["", "  ", None, 7])
async def test_an_agent_has_a_name(store: Store, name: Any) -> None:
    async with memory_on(store) as memory:
        with pytest.raises(InvalidScope):
            await memory.configure_agent(tenant=SCOPE.tenant, agent=name, policy=TRIM)
        with pytest.raises(InvalidScope):
            await memory.configure_agent(tenant=name, agent=SCOPE.agent, policy=TRIM)
