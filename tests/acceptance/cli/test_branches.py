"""`hitherto branches`, what has stood in the place of messages, and going from one to another; and `hitherto fork`."""

from __future__ import annotations

import hitherto
from hitherto import Scope, assistant, user
from tests.acceptance.cli.commands import bare

MINE = Scope(tenant="local", user="me", agent="cli")


async def test_they_are_listed_and_shown(database: str) -> None:
    async with hitherto.open(database, worker=False) as memory:
        chat = memory.conversation("days", scope=MINE)
        await chat.append(user("Which day?"), assistant("Monday."))
        await chat.append(assistant("Tuesday [bold]."), at=0)
        await memory.conversation("plain", scope=MINE).append(user("Hello."))
    ran = bare("branches", "days", HITHERTO_DATABASE=database)
    assert (ran.code, ran.err) == (0, "")
    assert [line.split()[:2] for line in ran.out.splitlines()[-2:]] == [["0", "1–1"], ["0", "2–2"]]
    assert "Tuesday [bold]." in ran.out
    switched = bare("branches", "days", "--switch", "1", "--json", HITHERTO_DATABASE=database).json
    assert [(one["seq"], one["shown"]) for one in switched["branches"]] == [(1, True), (2, False)]
    assert "no message" in bare("branches", "days", "--switch", "9", HITHERTO_DATABASE=database).failed(2)
    assert "one branch" in bare("branches", "plain", HITHERTO_DATABASE=database).out


async def test_a_fork(database: str) -> None:
    async with hitherto.open(database, worker=False) as memory:
        await memory.conversation("days", scope=MINE).append(user("Which day?"), assistant("Monday."))
    assert bare("fork", "days", "other", "--at", "0", HITHERTO_DATABASE=database).out == "The fork is other\n"
    forked = bare("fork", "days", "--json", HITHERTO_DATABASE=database).json
    assert forked["source"] == "days"
    logs = [bare("log", one, "--json", HITHERTO_DATABASE=database).json for one in ("other", forked["conversation"])]
    assert [len(one["messages"]) for one in logs] == [1, 2]
    assert "already" in bare("fork", "days", "days", HITHERTO_DATABASE=database).failed(1)
    assert "no conversation" in bare("fork", "none", HITHERTO_DATABASE=database).failed(1)
