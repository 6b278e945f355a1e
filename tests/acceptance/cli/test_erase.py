"""`hitherto erase`: it says what would go, asks, and reports what went."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Callable
from functools import partial

import pytest

import hitherto
from hitherto import Scope, assistant, user
from tests.acceptance.cli.commands import Cli, Ran, bare

MINE = Scope(tenant="local", user="me", agent="cli")
OTHER = Scope(tenant="local", user="ann", agent="cli")


@pytest.fixture
async def cli(database: str) -> Callable[..., Ran]:
    async with hitherto.open(database, worker=False) as memory:
        for scope in (MINE, OTHER):
            for name in ("cards", "boats"):
                said = [user(f"My code {number} is [bold]471{number}[/].") for number in range(12)]
                await memory.conversation(name, scope=scope).append(*said, assistant("Noted."))
            await memory.documents(scope).add("# Codes\n\nA text.")
    return partial(bare, HITHERTO_DATABASE=database)


def in_terminal(*words: str, answer: str, **given: str) -> tuple[int, str]:
    """Run a command in a terminal, and answer its question; its exit code, and all that it says."""
    ours, its = pty.openpty()
    command, surroundings = Cli().command(*words), Cli().surroundings(**given)
    with subprocess.Popen(command, stdin=its, stdout=its, stderr=its, env=surroundings) as running:
        os.close(its)
        os.write(ours, answer.encode())
        said = b""
        while True:
            try:
                more = os.read(ours, 4_096)
            except OSError:  # the other end is closed
                break
            if not more:
                break
            said += more
    os.close(ours)
    return running.returncode, said.decode()


async def test_of_messages(cli: Callable[..., Ran], database: str) -> None:
    answer, shown = in_terminal("erase", "messages", "cards", "0-10", "12", answer="n\n", HITHERTO_DATABASE=database)
    assert answer == 1
    assert "My code 9 is [bold]4719[/]." in shown
    assert "… and 2 more" in shown
    assert "Erase 12 messages of 'cards'" in shown
    assert "Nothing was erased." in shown
    answer, shown = in_terminal("erase", "messages", "cards", "0-1", "3", answer="y\n", HITHERTO_DATABASE=database)
    assert (answer, "Erased: 3 messages." in shown) == (0, True)
    assert cli("erase", "messages", "cards", "0", "2", "--yes", "--json").json == {"erased": {"messages": 1}}
    erased = [one["seq"] for one in cli("log", "cards", "--json").json["messages"] if one["erased"]]
    assert erased == [0, 1, 2, 3]
    assert "(erased)" not in cli("log", "boats").out
    for words, why in (
        (["13"], "its log ends with 12"),
        (["0-99999999999999999"], "its log ends with 12"),
        (["7-4"], "write it as 4 or 4-7"),
        (["x"], "write it as"),
        (["9" * 5_000], "write it as"),
    ):
        assert why in cli("erase", "messages", "cards", *words, "--yes").failed(2)
    assert "there is no conversation" in cli("erase", "messages", "none", "0", "--yes").failed(1)


async def test_of_messages_with_ids_of_their_own(database: str) -> None:
    async with hitherto.open(database, worker=False) as memory:
        chat = memory.conversation("cards", scope=MINE)
        await chat.append(
            user("My code is 4711.").with_id("m-1"), user("And 4712.").with_id("m-2"), assistant("Noted.")
        )
    assert "m-2" in bare("log", "cards", HITHERTO_DATABASE=database).out
    assert bare("erase", "messages", "cards", "m-2", "2", "-y", HITHERTO_DATABASE=database).code == 0
    log = bare("log", "cards", "--json", HITHERTO_DATABASE=database).json["messages"]
    assert [one["erased"] for one in log] == [False, True, True]
    refused = bare("erase", "messages", "cards", "m-3", "-y", HITHERTO_DATABASE=database)
    assert (refused.code, "no message's own id" in refused.err) == (2, True)


async def test_of_a_user(cli: Callable[..., Ran], database: str) -> None:
    answer, shown = in_terminal("erase", "user", "ann", answer="n\n", HITHERTO_DATABASE=database)
    assert answer == 1
    assert "Erase everything of the user ann of the tenant local" in shown
    assert "2 conversations, 26 messages, 1 document, 0 facts" in " ".join(shown.split())
    assert "say it with --yes" in cli("erase", "user", "ann").failed(2)
    assert cli("erase", "user", "ann", "--yes").out == "Erased: 2 conversations, 26 messages, 1 document, 0 facts.\n"
    assert [one["name"] for one in cli("scopes", "--tenant", "local", "--json").json["scopes"]] == ["me"]


async def test_of_a_subject(cli: Callable[..., Ran], database: str) -> None:
    async with hitherto.open(database, worker=False) as memory:
        await memory.configure_subject(tenant="local", subject="rosa", name="Rosa", members=["me"])
        await memory.conversation("garden", scope=MINE, subject="rosa").append(user("Rosa grows roses."))
        await memory.facts(MINE, subject="rosa").add("Grows roses.")
    kept = "1 conversation, 1 message, 0 documents, 1 fact"
    answer, shown = in_terminal("erase", "subject", "rosa", answer="n\n", HITHERTO_DATABASE=database)
    assert answer == 1
    assert f"Erase everything about the subject rosa of the tenant local: {kept}?" in " ".join(shown.split())
    assert "say it with --yes" in cli("erase", "subject", "rosa").failed(2)
    assert cli("erase", "subject", "rosa", "--yes").out == f"Erased: {kept}.\n"


async def test_of_a_tenant(cli: Callable[..., Ran]) -> None:
    gone = {"conversations": 4, "messages": 52, "documents": 2, "facts": 0}
    assert cli("erase", "tenant", "local", "--yes", "--json").json == {"erased": gone}
    assert cli("erase", "tenant", "local", "--yes", "--json").json == {"erased": dict.fromkeys(gone, 0)}
    assert cli("scopes", "--json").json["scopes"] == []
