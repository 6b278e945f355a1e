"""A memory belongs to the event loop that it was opened in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

import hitherto
from hitherto import Memory, user
from hitherto.errors import InvalidInput
from tests.conftest import SCOPE
from tests.patience import PATIENCE

Found = TypeVar("Found")
ELSEWHERE = "another event loop"


def in_a_loop(work: Callable[[], Coroutine[Any, Any, Found]]) -> Found:
    """What `work` gives in a loop of its own, which ends without a word to whatever still runs in it."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(asyncio.wait_for(work(), timeout=PATIENCE))
    finally:
        loop.close()


async def apart(work: Callable[[], Coroutine[Any, Any, Found]]) -> Found:
    return await asyncio.to_thread(in_a_loop, work)


async def begun(memory: Memory) -> Memory:
    """With a message, and with everything that runs in the background at rest."""
    await memory.conversation("c", scope=SCOPE).append(user("first"))
    await asyncio.sleep(0.4)
    return memory


VERBS: dict[str, Callable[[Memory], Coroutine[Any, Any, object]]] = {
    "append": lambda memory: memory.conversation("c", scope=SCOPE).append(user("second")),
    "context": lambda memory: memory.conversation("c", scope=SCOPE).context(user("x")),
    "recall": lambda memory: memory.recall("first", scope=SCOPE),
    "facts": lambda memory: memory.facts(SCOPE).add("Plays the cello."),
    "documents": lambda memory: memory.documents(SCOPE).add("Cellos.", title="Cellos"),
}


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS.keys())
async def test_another_loop_is_refused_before_anything_is_done(
    database: str, verb: Callable[[Memory], Coroutine[Any, Any, object]]
) -> None:
    async with hitherto.open(database) as memory:
        await begun(memory)

        async def there() -> None:
            with pytest.raises(InvalidInput, match=ELSEWHERE):
                await verb(memory)

        await apart(there)
        assert len(await memory.conversation("c", scope=SCOPE).messages()) == 1
        assert await memory.facts(SCOPE).list() == []
        await verb(memory)


async def test_closing_in_another_loop_is_refused(database: str) -> None:
    """At once; where it was opened it can still be closed, and then everywhere again."""
    async with hitherto.open(database) as memory:
        await begun(memory)

        async def there() -> None:
            async with asyncio.timeout(PATIENCE):
                with pytest.raises(InvalidInput, match=ELSEWHERE):
                    await memory.aclose()

        await apart(there)
        await memory.conversation("c", scope=SCOPE).append(user("second"))
        await memory.aclose()
        await apart(memory.aclose)


async def abandoned() -> Memory:
    return await begun(await hitherto.open("memory:"))


async def test_closing_when_its_loop_has_ended_is_refused() -> None:
    memory = await apart(abandoned)
    with pytest.raises(InvalidInput, match=ELSEWHERE):
        async with asyncio.timeout(PATIENCE):
            await memory.aclose()
