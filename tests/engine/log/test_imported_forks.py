"""Forks that are imported: what they have in common is erased in all that are there, whatever was there before."""

from __future__ import annotations

from io import BytesIO

import pytest

import hitherto
from hitherto import Memory, assistant, user
from tests.conftest import SCOPE


async def exported(memory: Memory) -> BytesIO:
    file = BytesIO()
    await memory.export_to(file, tenant=SCOPE.tenant)
    file.seek(0)
    return file


async def erased(memory: Memory, name: str) -> list[int]:
    return [one.seq for one in await memory.conversation(name, scope=SCOPE).messages() if one.erased]


@pytest.mark.parametrize("differs", [0, 2])
async def test_forks_of_what_is_refused_are_forks_of_each_other(memory: Memory, database: str, differs: int) -> None:
    """And of the conversation that has the name, as far as that is the same. Of a fork that is refused too, the forks
    are those of what it was forked from."""
    chat = memory.conversation("c", scope=SCOPE)
    await chat.append(user("Which day?"), assistant("Monday."))
    early = await exported(memory)
    await chat.append(user("Which month?"), assistant("May."))
    await chat.fork(at=1, id="f")
    middle = await chat.fork(at=2, id="refused")
    for at, name in ((2, "g"), (1, "h")):
        await middle.fork(at=at, id=name)
    await chat.fork(id="i")
    async with hitherto.open(database, worker=False) as other:
        if differs:
            await other.import_from(early)
        for name in ("c", "refused"):
            await other.conversation(name, scope=SCOPE).append(user("Something else."), assistant("And more."))
        done = await other.import_from(await exported(memory))
        assert len(done.refused) == 2
        assert await other.conversation("h", scope=SCOPE).erase(1) == 1
        assert await other.conversation("g", scope=SCOPE).erase(2) == 1
        found = {name: await erased(other, name) for name in ("c", "refused", "f", "g", "h", "i")}
    assert found == {"c": [1] if differs else [], "refused": [], "f": [1], "g": [1, 2], "h": [1], "i": [1, 2]}


async def test_what_is_erased_comes_back_in_no_fork(memory: Memory, database: str) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    await chat.append(user("Which day?"), assistant("Monday."))
    early = await exported(memory)
    await chat.fork(id="f")
    await chat.fork(id="g")
    async with hitherto.open(database, worker=False) as other:
        await other.import_from(early)
        await other.conversation("c", scope=SCOPE).erase(0)
        await other.import_from(await exported(memory))
        assert [await erased(other, name) for name in ("c", "f", "g")] == [[0]] * 3
