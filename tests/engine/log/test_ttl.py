"""Retention by rule: how long messages are kept that say nothing of it themselves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hitherto
from hitherto import Memory, Scope, assistant, user
from hitherto.errors import InvalidInput, InvalidScope, InvalidSettings
from hitherto.store.store import Store
from tests.conftest import SCOPE
from tests.lengths import examples, lasting
from tests.memories import open_on

DAY = timedelta(days=1)
BRIEF = timedelta(milliseconds=50)
SOME = st.none() | st.integers(0, 9).map(lambda days: days * DAY)


@pytest.fixture
async def memory(store: Store) -> AsyncIterator[Memory]:
    async with open_on(store, embedder="none") as opened:
        yield opened


async def lives(memory: Memory, scope: Scope = SCOPE, id: str = "c") -> list[timedelta | None]:
    """How long each message of a conversation is kept."""
    found = await memory.conversation(id, scope=scope).messages()
    times = [(one.message.expires_at, one.created_at) for one in found]
    return [None if expires is None else expires - created for expires, created in times]


@lasting
@settings(max_examples=examples(4))
@given(setting=st.none() | st.integers(1, 9).map(lambda days: days * DAY), tenant=SOME, agent=SOME, own=SOME)
async def test_the_nearest_rule_counts(
    setting: timedelta | None, tenant: timedelta | None, agent: timedelta | None, own: timedelta | None
) -> None:
    async with hitherto.open("memory:", embedder="none", ttl=setting) as memory:
        if tenant is not None:
            await memory.configure_tenant(tenant=SCOPE.tenant, ttl=tenant)
        await memory.configure_agent(tenant=SCOPE.tenant, agent=SCOPE.agent, ttl=agent, policy="none")
        chat = memory.conversation("c", scope=SCOPE)
        await chat.configure(ttl=own, title="A title")
        at = datetime.now(UTC) + 99 * DAY
        await chat.append(user("Hello."), assistant("Hello!").expiring(at))
        rule = next((one for one in (own, agent, tenant, setting) if one is not None), None)
        assert (await lives(memory))[0] == (rule or None)
        assert (await chat.messages())[1].message.expires_at == at, "its own"


async def test_it_counts_for_what_is_appended_from_then_on(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    await chat.append(user("Kept."), key="before")
    await chat.configure(ttl=7 * DAY)
    await chat.append(user("For a week."))
    await chat.configure(metadata={"a": 1}, policy="none")
    await chat.append(user("For a week too."))
    await chat.configure(ttl=timedelta(0))
    await chat.append(user("For ever."))
    replayed = await chat.append(user("Kept."), key="before")
    assert replayed.replayed
    assert await lives(memory) == [None, 7 * DAY, 7 * DAY, None]


async def test_what_is_due_is_erased_in_the_background(memory: Memory) -> None:
    await memory.configure_tenant(tenant=SCOPE.tenant, ttl=BRIEF)
    beside = Scope(tenant="beside", user="u", agent="a")
    for scope in (SCOPE, beside):
        await memory.conversation("c", scope=scope).append(user("My code is 4711."))
    await asyncio.sleep(BRIEF.total_seconds())
    assert await memory.purge_expired() == 1
    (gone,) = await memory.conversation("c", scope=SCOPE).messages()
    assert (gone.erased, gone.message.text) == (True, "")
    assert not (await memory.conversation("c", scope=beside).messages())[0].erased


async def test_a_ttl_that_is_none(memory: Memory) -> None:
    cases: list[Any] = [-DAY, 36_501 * DAY, 60, "1 week"]
    for ttl in cases:
        chat = memory.conversation("c", scope=SCOPE)
        for refused in (
            chat.configure(ttl=ttl),
            memory.configure_agent(tenant="t", agent="a", ttl=ttl),
            memory.configure_tenant(tenant="t", ttl=ttl),
        ):
            with pytest.raises(InvalidInput, match="give a timedelta"):
                await refused
        with pytest.raises(InvalidScope):
            await memory.configure_tenant(tenant="", ttl=DAY)
        assert await chat.head() is None


async def test_a_setting_of_zero_keeps_for_ever() -> None:
    async with hitherto.open("memory:", ttl=0) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user("Hello."))
        assert [one.message.expires_at for one in await chat.messages()] == [None]


@pytest.mark.parametrize("ttl", [-1, "soon"])
async def test_a_setting_that_is_none(ttl: Any) -> None:
    with pytest.raises(InvalidSettings, match="HITHERTO_TTL"):
        async with hitherto.open("memory:", ttl=ttl):
            pass
