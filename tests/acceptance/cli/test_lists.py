"""`hitherto conversations`, `scopes` and `migrate`; and that what only shows something creates nothing."""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

import hitherto
from hitherto import Scope, assistant, user
from tests.acceptance.cli.commands import Cli, Ran, bare
from tests.databases import Server

READING = [
    ["conversations"],
    ["scopes"],
    ["log", "c"],
    ["context", "c"],
    ["digests", "c"],
    ["runs", "c"],
    ["recall", "the key"],
    ["facts", "list"],
    ["facts", "subjects"],
    ["documents", "list"],
    ["documents", "search", "the key"],
    ["costs"],
]


@pytest.fixture
async def empty_database(server: Server) -> AsyncIterator[str]:
    """The URL of a database without the schema."""
    async with await psycopg.AsyncConnection.connect(server.admin_url, autocommit=True) as admin:
        await admin.execute("create database lists owner hitherto")
        yield make_conninfo(server.url, dbname="lists")
        await admin.execute("drop database lists with (force)")


def at(database: str) -> Callable[..., Ran]:
    return partial(bare, HITHERTO_DATABASE=database)


async def filled(url: str) -> None:
    async with hitherto.open(url, worker=False) as memory:
        for tenant, person, name in (("local", "ann", "boats"), ("local", "me", "keys"), ("other", "bob", "books")):
            chat = memory.conversation(name, scope=Scope(tenant=tenant, user=person, agent="cli"))
            await chat.append(user(f"[bold]Where[/] are the {name}? \x1b[31m"), assistant("There."))
        await memory.conversation("keys", scope=Scope(tenant="local", user="me", agent="cli")).configure(
            metadata={"ticket": 7, "tag": "vip"}, create=True
        )


async def test_runs_of_a_conversation(database: str) -> None:
    cli, scope = at(database), Scope(tenant="local", user="me", agent="cli")
    none = cli("runs", "keys").out
    assert "No run of 'keys'" in none
    assert "--agent" in none
    await filled(database)
    async with hitherto.open(database, worker=False) as memory:
        runs = memory.runs(scope)
        first, last = await runs.begin("keys", strategy="trim"), await runs.begin("keys")
        hostile = {"kind": "tool_result", "name": "[red]look[/] \x1b[31m", "payload": "[bold]x[/] \x1b[31m"}
        await runs.add(first.id, hostile, {"kind": "error", "payload": {"why": "\ud800"}})
        await runs.end(first.id, failed=True, freed=1_234)
    listed = cli("runs", "keys", "--json").json
    assert [one["id"] for one in listed["runs"]] == [str(last.id), str(first.id)]
    assert (listed["runs"][1]["status"], listed["runs"][1]["freed"], listed["runs"][0]["end"]) == (
        "failed",
        1_234,
        None,
    )
    assert [one["id"] for one in cli("runs", "keys", "--before", str(last.id), "--json").json["runs"]] == [
        str(first.id)
    ]
    shown = cli("runs", "keys", str(first.id), "--json").json
    assert [(one["no"], one["payload"], one["erased"]) for one in shown["events"]] == [
        (0, "[bold]x[/] \x1b[31m", False),
        (1, {"why": "\ud800"}, False),
    ]
    for words in ((), (str(first.id),)):
        ran = cli("runs", "keys", *words)
        assert (ran.code, ran.err) == (0, "")
        assert str(first.id)[:8] in ran.out
        assert "1,234" in ran.out
    assert "[bold]x[/]" in cli("runs", "keys", str(first.id)).out
    assert "there is no run" in cli("runs", "keys", "4d3b6f0e-7f0a-4c9e-8f55-0a1b2c3d4e5f").failed(1)
    assert "--agent" in cli("runs", "boats", str(first.id)).failed(1)
    assert "the run's id is 'x'" in cli("runs", "keys", "x").failed(2)


async def test_conversations_of_a_tenant(database: str) -> None:
    cli = at(database)
    await filled(database)
    shown = cli("conversations").out
    assert "[bold]Where[/] are the keys?" in shown
    assert "\x1b" not in shown
    assert shown.index("keys") < shown.index("boats")
    assert "books" not in shown
    first = cli("conversations", "--limit", "1", "--json").json
    assert [(one["conversation"], one["metadata"]) for one in first["conversations"]] == [
        ("keys", {"ticket": 7, "tag": "vip"})
    ]
    assert f"--cursor {first['next']}" in cli("conversations", "--limit", "1").out
    rest = cli("conversations", "--cursor", first["next"], "--json").json
    assert ([one["conversation"] for one in rest["conversations"]], rest["next"]) == (["boats"], None)
    for wanted in (["--user", "me"], ["--metadata", "ticket=7"], ["--metadata", "tag=vip"]):
        found = cli("conversations", *wanted, "--json").json["conversations"]
        assert [one["conversation"] for one in found] == ["keys"], wanted
    assert cli("conversations", "--before", "2001-01-01").out.startswith("No conversation of the tenant local matches")
    assert "NAME=VALUE" in cli("conversations", "--metadata", "x").failed(2)
    assert "cursor" in cli("conversations", "--cursor", "x").failed(2)


async def test_scopes(database: str) -> None:
    cli = at(database)
    await filled(database)
    names = [one["name"] for one in cli("scopes", "--json").json["scopes"]]
    assert names == ["local", "other"]
    users = cli("scopes", "--tenant", "local", "--json").json
    assert (users["by"], [one["name"] for one in users["scopes"]]) == ("user", ["ann", "me"])
    agents = cli("scopes", "--tenant", "local", "--agents", "--json").json["scopes"]
    assert [(one["name"], one["conversations"]) for one in agents] == [("cli", 2)]
    assert "conversations" in cli("scopes").out
    assert "Give --tenant" in cli("scopes", "--user", "me").failed(2)


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_what_only_shows_something_creates_nothing(empty_database: str, words: list[str]) -> None:
    asked = ["--database", empty_database]
    assert "no Hitherto schema, and is only read here; to set it up, run: hitherto migrate" in bare(
        *words, *asked
    ).failed(1)
    with psycopg.connect(empty_database) as connection:
        assert connection.execute("select to_regnamespace('hitherto')").fetchone() == (None,)
    folder = Path(tempfile.mkdtemp()) / "pg"
    assert f"{folder} does not exist" in Cli(folder)(*words).failed(1)
    assert not folder.exists()


def test_migrate(empty_database: str) -> None:
    made = bare("migrate", "--database", empty_database, "--json").json
    assert (made["before"], made["revision"]) == (None, made["revision"])
    again = bare("migrate", "--database", empty_database)
    assert again.out == f"The schema is at revision {made['revision']} already.\n"
    assert "memory: is empty" in bare("migrate", "--database", "memory:").failed(2)
    assert "HITHERTO_READ_ONLY" in bare("migrate", "--database", empty_database, HITHERTO_READ_ONLY="1").failed(2)
    ran = bare("conversations", "--database", empty_database, "--json")
    assert json.loads(ran.out) == {"conversations": [], "next": None}
