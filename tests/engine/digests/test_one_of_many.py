"""Whoever needs one digest of a conversation reads that one, however many there are."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from psycopg import AsyncCursor

from hitherto import assistant, chunks, user
from hitherto.core.changes import Changes
from hitherto.core.digests.digest import DigestOutcome, FailedDigest
from hitherto.engine.calls import Calls
from hitherto.engine.digests.attempt import Attempt
from hitherto.engine.digests.fire import resumed
from hitherto.providers.scripted import Scripted
from hitherto.store import rows
from hitherto.store.store import Store
from tests.acceptance.dialogue import ONE_TRY, says_each
from tests.acceptance.test_injection import talked
from tests.conftest import SCOPE
from tests.memories import open_on
from tests.store.digests.samples import add_failed, begun

MANY = [10] * 200


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many digests each statement has read."""
    numbers, fetched = list[int](), rows.fetched

    async def counted(cursor: AsyncCursor[Any]) -> list[Any]:
        read = await fetched(cursor)
        numbers.append(len([one for one in read if hasattr(one, "prompt_version")]))
        return read

    monkeypatch.setattr(rows, "fetched", counted)
    return numbers


async def test_expanding_it(store: Store, at_once: list[int]) -> None:
    async with open_on(store) as memory:
        digest = await talked(memory, "c", "router")
        await add_failed(store, "c", MANY)
        at_once.clear()
        assert (await memory.conversation("c", scope=SCOPE).expand(digest)).seqs
    assert max(at_once) == 1


async def test_a_context_that_had_it_in_its_instructions(store: Store, at_once: list[int]) -> None:
    async with open_on(store, cross_session="latest") as memory:
        await talked(memory, "monday", "router")
        await add_failed(store, "monday", MANY)
        at_once.clear()
        chat = memory.conversation("tuesday", scope=SCOPE)
        context = await chat.context(user("Hello."))
        assert context.manifest.injected is not None
        assert await chat.rebuild(context.manifest) == context
    assert max(at_once) == 1


async def test_a_context_that_recalled_the_newest_chunk(store: Store, at_once: list[int]) -> None:
    async with open_on(store, model=Scripted(then=says_each), **ONE_TRY) as memory:
        earlier = memory.conversation("monday", scope=SCOPE, policy=chunks(threshold=4, batch=2, context=1))
        for number in range(6):
            await earlier.append(user(f"Question {number}"), assistant(f"Answer {number}"))
            await memory.wait_for_digests()
        newest = (await earlier.digests())[-1].id
        await add_failed(store, "monday", MANY)
        at_once.clear()
        chat = memory.conversation("tuesday", scope=SCOPE)
        context = await chat.context(user("What did we discuss last time?"), cross_session="triggers", recall="own")
        assert [one.digest for one in context.manifest.recalled] == [newest]
        assert await chat.rebuild(context.manifest) == context
    assert max(at_once) == 1


async def test_the_one_after_which_a_conversation_rested(store: Store, at_once: list[int]) -> None:
    async with open_on(store) as memory:
        digest = await talked(memory, "c", "router")
        await add_failed(store, "c", MANY)
        async with store.write(SCOPE, "c") as unit:
            await unit.commit(Changes(head=replace(unit.head, resume_at=unit.head.clock)))
        at_once.clear()
        await resumed(memory._services, FailedDigest(scope=SCOPE, conversation="c", digest=digest))
        head = await memory.conversation("c", scope=SCOPE).head()
    assert head is not None
    assert head.resume_at is None
    assert max(at_once) == 1


async def test_the_one_that_may_have_ended_already(store: Store, at_once: list[int]) -> None:
    async with open_on(store) as memory:
        outcome = DigestOutcome(digest=await begun(store), text="They talked.", tokens=3)
        work = await store.claim(SCOPE.tenant, outcome.digest, lease=timedelta(minutes=1))
        assert work is not None
        await add_failed(store, "c", MANY)
        attempt = Attempt(memory._services, Calls(memory._services), work, impatient=lambda: False)
        assert await attempt._finish(outcome, None)
        at_once.clear()
        assert await attempt._finish(outcome, None), "as after a commit whose answer was lost"
    assert max(at_once) == 1
