"""`hitherto export` and `hitherto import`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import hitherto
from hitherto import Scope, assistant, user
from tests.acceptance.cli.commands import SUPPORT, Cli, Ran, bare, written

MINE = Scope(tenant="local", user="me", agent="cli")


@pytest.fixture
async def cli(database: str) -> Callable[..., Ran]:
    async with hitherto.open(database, worker=False) as memory:
        for scope in (MINE, Scope(tenant="local", user="ann", agent="cli")):
            await memory.conversation("keys", scope=scope).append(user("Where are the keys?"), assistant("There."))
        await memory.documents(MINE).add("# Codes\n\nA text.")
        await memory.facts(MINE).add("Sails.")
        await memory.runs(MINE).begin("keys")
    return partial(bare, HITHERTO_DATABASE=database)


@pytest.fixture
async def other_database(make_database: Callable[[], Coroutine[Any, Any, str]]) -> str:
    return await make_database()


@pytest.fixture
def elsewhere(other_database: str) -> Callable[..., Ran]:
    return partial(bare, HITHERTO_DATABASE=other_database)


def test_out_and_in(cli: Callable[..., Ran], elsewhere: Callable[..., Ran], tmp_path: Path) -> None:
    file = tmp_path / "all.jsonl"
    assert cli("export", file).out == "Exported: 2 conversations, 4 messages, 1 document, 1 fact, 1 run.\n"
    assert list(tmp_path.iterdir()) == [file]
    imported = elsewhere("import", file).out
    assert imported == "Imported: 2 conversations, 4 messages, 1 document, 1 fact, 1 run, 0 skipped.\n"
    again = elsewhere("import", file, "--json").json
    assert again == {
        "imported": {"conversations": 0, "messages": 0, "documents": 0, "facts": 0, "runs": 0, "skipped": 5},
        "refused": [],
    }
    assert cli("log", "keys", "--json").json == elsewhere("log", "keys", "--json").json
    mine = cli("export", "-", "--user", "me").out
    assert json.loads(mine.splitlines()[0])["export"]["user"] == "me"
    assert "ann" not in mine
    assert cli("export", file, "--user", "ann", "--json").json["exported"]["conversations"] == 1


def test_through_a_pipe(cli: Callable[..., Ran], other_database: str) -> None:
    """The documented command that moves everything to another database."""
    out = cli("export", "-").out
    command = Cli().command("import", "-")
    done = subprocess.run(
        command,
        input=out.encode(),
        capture_output=True,
        check=True,
        env=Cli().surroundings(HITHERTO_DATABASE=other_database),
    )
    assert done.stdout.startswith(b"Imported: 2 conversations")


def test_what_goes_wrong(cli: Callable[..., Ran], elsewhere: Callable[..., Ran], tmp_path: Path) -> None:
    file, cut, chat = tmp_path / "all.jsonl", tmp_path / "cut.jsonl", tmp_path / "chat.jsonl"
    cli("export", file)
    cut.write_bytes(file.read_bytes()[:-40])
    chat.write_text('{"role": "user", "content": "Hi"}\n{"role": "user"}\n')
    elsewhere("import", SUPPORT, "--conversation", "keys")
    assert "cut off" in elsewhere("import", cut).failed(1)
    partly = elsewhere("import", chat)
    assert (partly.code, partly.out) == (1, "Imported: 1 conversation, 1 message, 0 facts, 0 skipped, 1 left out.\n")
    assert "line 2" in partly.err
    assert "no such file" in elsewhere("import", tmp_path / "none").failed(1)
    assert "is an export of Hitherto's" in elsewhere("import", tmp_path).err
    assert "--user" in cli("export", file, "--agent", "cli").failed(2)
    assert "--json" in cli("export", "-", "--json").failed(2)
    assert cli("export", tmp_path / "none" / "x").code == 1
    cli("import", SUPPORT, "--conversation", "mine")
    refused = elsewhere("import", file)
    assert refused.code == 1
    assert "another conversation 'keys' of me with cli" in " ".join(refused.err.split())
    refused = cli("import", SUPPORT, "--conversation", "keys")
    assert (refused.code, "another conversation 'keys'" in refused.err) == (1, True)


def test_ids_of_messages(cli: Callable[..., Ran], tmp_path: Path) -> None:
    chat = tmp_path / "chat.jsonl"
    lines = ['{"role": "user", "content": "Hi", "id": "m-1"}\n', '{"role": "assistant", "content": "Yes."}\n']
    chat.write_text("".join(lines))
    assert cli("import", chat).code == 0
    listed = cli("log", "chat", "--json").json["messages"]
    assert [one["id"] for one in listed] == ["m-1", None]
    chat.write_text("".join([*lines, lines[0]]))
    again = cli("import", chat)
    assert again.code == 1
    assert "line 3: it has the id 'm-1', as" in " ".join(again.err.split())
    assert len(cli("log", "chat", "--json").json["messages"]) == 2


def test_digests_are_made_only_if_asked_for(cli: Callable[..., Ran]) -> None:
    wanted = {"HITHERTO_MODEL": "extractive", "HITHERTO_BUDGET": "1000"}
    cli("import", SUPPORT, **wanted)
    assert cli("digests", "support", "--json").json["digests"] == []


async def test_digests_of_a_conversation(cli: Callable[..., Ran], database: str, tmp_path: Path) -> None:
    async with hitherto.open(database, worker=False) as memory:
        await memory.configure_agent(tenant="local", agent="cli", policy="rolling:threshold=6,keep_last=2")
    assert cli("import", SUPPORT, "--digest").code == 0
    found = cli("digests", "support", "--json").json["digests"]
    assert found
    assert {one["status"] for one in found} == {"completed"}


def test_a_conversation_from_elsewhere_has_its_title_and_its_place(cli: Callable[..., Ran], tmp_path: Path) -> None:
    """A list has imported conversations where they were, whichever came first."""

    def file(name: str, *lines: object) -> Path:
        return written(tmp_path / f"{name}.jsonl", *lines)

    def listed() -> list[tuple[str, str, str]]:
        found = cli("conversations", "--user", "me", "--json").json["conversations"]
        return [(one["conversation"], one["title"], one["said_at"]) for one in found if one["conversation"] != "keys"]

    asked = {"role": "user", "content": "Where is it?", "at": "2025-05-01T09:00:00Z"}
    later = file("later", {"title": "Bikes"}, asked, {**asked, "at": "2025-05-03T09:00:00Z"})
    earlier = file("earlier", asked, {**asked, "at": "2025-05-02T09:00:00Z"})
    for one in (later, earlier):
        assert cli("import", one).code == 0
    places = [
        ("later", "Bikes", "2025-05-03T09:00:00+00:00"),
        ("earlier", "Where is it?", "2025-05-02T09:00:00+00:00"),
    ]
    assert listed() == places
    cli("import", file("later", {"title": "Boats"}, asked, {**asked, "at": "2025-05-03T09:00:00Z"}, asked))
    assert listed()[-1][:2] == ("later", "Boats"), "nobody renamed it here"
    for lines in ([{"title": "x" * 501}, asked], [{"title": 7}, asked], [asked, {"title": "Late"}]):
        bad = cli("import", file("bad", *lines))
        assert (bad.code, "line" in bad.err) == (1, True)
    assert "holds no messages" in cli("import", file("empty", {"title": "Nothing"})).failed(1)
    assert "empty" not in [name for name, *_ in listed()]
