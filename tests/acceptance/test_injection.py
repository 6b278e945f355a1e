"""Memory of a scope's earlier conversations in the instructions of the next one (seed 003 §2)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import hitherto
from hitherto import Memory, Scope, assistant, rolling, user
from hitherto.core.context.budget import LEAD
from hitherto.core.cross_session import CrossSession, CrossSessionLike
from hitherto.errors import InvalidInput, NotReproducible
from hitherto.store.store import Store
from tests.conftest import SCOPE
from tests.memories import open_on

SUMS_UP = rolling(threshold=2, keep_last=1)


async def talked(memory: Memory, name: str, about: str, scope: Scope = SCOPE) -> int:
    """A conversation that ends with a summary about something; returns the summary's id."""
    chat = memory.conversation(name, scope=scope, policy=SUMS_UP)
    for n in range(2):
        await chat.append(user(f"My {about} is broken, part {n}."), assistant("I see."))
    await memory.wait_for_digests()
    (digest,) = await chat.digests()
    return digest.id


def instructions(context: hitherto.Context) -> str:
    first = context.messages[0]
    return str(first["content"]) if first["role"] == "system" else ""


async def test_it_is_off_by_default(store: Store) -> None:
    async with open_on(store) as memory:
        await talked(memory, "monday", "router")
        context = await memory.conversation("tuesday", scope=SCOPE).context(user("Hello."), instructions="Be kind.")
        assert instructions(context) == "Be kind."
        assert context.manifest.injected is None
        assert context.manifest.sections["injection"] == 0


async def test_the_latest_summary_goes_to_the_end_of_the_instructions(store: Store) -> None:
    async with open_on(store, cross_session="latest") as memory:
        await talked(memory, "monday", "router")
        newest = await talked(memory, "tuesday", "printer")
        chat = memory.conversation("wednesday", scope=SCOPE)
        context = await chat.context(user("Hello."), instructions="Be kind.")
        assert instructions(context).startswith(f"Be kind.\n\n{LEAD}")
        assert "printer" in instructions(context)
        assert "router" not in instructions(context)
        said = context.manifest.injected
        assert said is not None
        assert (said.conversation, said.digest, said.limit) == ("tuesday", newest, 500)
        assert context.manifest.sections["injection"] > 0
        assert sum(context.manifest.sections.values()) == context.manifest.total

        # Neither the log nor the items are changed by it.
        await chat.append(user("Hello."), assistant("Hello again."))
        assert [one["content"] for one in await chat.items(wire="openai.chat")] == ["Hello.", "Hello again."]
        assert all(LEAD not in logged.message.raw for logged in await chat.messages())

        # Without instructions it stands alone.
        assert instructions(await chat.context(user("And?"))).startswith(LEAD)


async def test_a_conversation_keeps_what_it_began_with(store: Store) -> None:
    async with open_on(store, cross_session="latest") as memory:
        await talked(memory, "monday", "router")
        chat = memory.conversation("tuesday", scope=SCOPE)
        await chat.append(user("Hello."), assistant("Hello."))
        before = await chat.context(user("And?"), instructions="Be kind.")
        await talked(memory, "meanwhile", "printer")
        after = await chat.context(user("And?"), instructions="Be kind.")
        assert instructions(after) == instructions(before)
        assert "router" in instructions(after)
        assert (await chat.rebuild(before.manifest)).request == before.request


async def test_request_conversation_agent_and_setting(store: Store) -> None:
    async with open_on(store) as memory:
        await talked(memory, "monday", "router")
        tuesday = memory.conversation("tuesday", scope=SCOPE)

        async def shown(cross_session: CrossSessionLike | None = None) -> bool:
            context = await tuesday.context(user("Hello."), instructions="x", cross_session=cross_session)
            return LEAD in instructions(context)

        assert not await shown()
        assert await shown("latest")
        await memory.configure_agent(tenant=SCOPE.tenant, agent=SCOPE.agent, cross_session=CrossSession(latest=True))
        assert await shown()
        assert not await shown(())
        await tuesday.configure(cross_session=CrossSession(latest=False), create=True)
        assert not await shown()
        assert await shown(["triggers", "latest"])
        await tuesday.configure(cross_session="latest", create=True)
        await memory.configure_agent(tenant=SCOPE.tenant, agent=SCOPE.agent, cross_session=())
        assert await shown()


async def test_each_way_is_decided_by_itself(store: Store) -> None:
    """By the first of request, conversation, agent and setting that says something of it."""
    async with open_on(store, cross_session="always", recall="own") as memory:
        tuesday = memory.conversation("tuesday", scope=SCOPE)
        await talked(memory, "monday", "router")
        await memory.wait_for_index()
        await memory.configure_agent(tenant=SCOPE.tenant, agent=SCOPE.agent, cross_session=CrossSession(latest=True))

        async def ways(cross_session: CrossSessionLike | None = None) -> tuple[bool, bool]:
            context = await tuesday.context(user("My router is broken."), cross_session=cross_session)
            return LEAD in instructions(context), bool(context.manifest.recalled)

        assert await ways() == (True, True)
        assert await ways(CrossSession(latest=False)) == (False, True)
        assert await ways("latest") == (True, False)
        await tuesday.configure(cross_session=CrossSession(always=False), create=True)
        assert await ways() == (True, False)
        assert await ways(CrossSession(always=True)) == (True, True)
        await tuesday.configure(cross_session=CrossSession(latest=False), create=True)
        assert await ways() == (False, False)


@pytest.mark.parametrize("given", [True, False, "sometimes", ["latest", 1], 7, {"latest": True, "now": True}])
async def test_anything_else_is_refused(store: Store, given: Any) -> None:
    async with open_on(store) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        with pytest.raises(InvalidInput, match="'latest', 'triggers', 'always'"):
            await chat.context(user("x"), cross_session=given)
        with pytest.raises(InvalidInput, match="'latest', 'triggers', 'always'"):
            await chat.configure(cross_session=given, create=True)


async def test_its_own_cap_and_age(store: Store) -> None:
    async with open_on(store, cross_session="latest", injection_tokens=40) as memory:
        chat = memory.conversation("monday", scope=SCOPE, policy=rolling(threshold=8, keep_last=1))
        for n in range(5):
            await chat.append(user(f"My router number {n} blinks red again today."), assistant("I see."))
        await memory.wait_for_digests()
        text = await memory.conversation("tuesday", scope=SCOPE).injected()
        assert text is not None
        assert "number 3" in text  # the newest statements are kept
        assert "number 0" not in text
    async with open_on(store, cross_session="latest", injection_age=timedelta(microseconds=1)) as memory:
        assert await memory.conversation("tuesday", scope=SCOPE).injected() is None


async def test_it_gives_way_before_the_incoming_message(store: Store) -> None:
    async with open_on(store, cross_session="latest") as memory:
        await talked(memory, "monday", "router")
        chat = memory.conversation("tuesday", scope=SCOPE)
        context = await chat.context(user("Hello there."), budget=20)
        assert context.tokens <= 20
        assert context.manifest.injected is None
        assert [item["content"] for item in context.messages] == ["Hello there."]


async def test_what_is_cleared_or_deleted_is_not_told_on(store: Store) -> None:
    async with open_on(store, cross_session="latest") as memory:
        await talked(memory, "monday", "router")
        chat = memory.conversation("tuesday", scope=SCOPE)
        await chat.append(user("Hello."), assistant("Hello."))
        context = await chat.context(user("And?"))
        assert LEAD in instructions(context)
        await memory.conversation("monday", scope=SCOPE).delete()
        assert LEAD not in instructions(await chat.context(user("And?")))
        with pytest.raises(NotReproducible, match="monday"):
            await chat.rebuild(context.manifest)
        await talked(memory, "wednesday", "printer")
        await memory.conversation("wednesday", scope=SCOPE).clear()
        assert LEAD not in instructions(await memory.conversation("thursday", scope=SCOPE).context(user("Hello.")))
