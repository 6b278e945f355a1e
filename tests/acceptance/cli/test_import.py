"""`hitherto import` of what other systems have written."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.cli.commands import Cli, Ran, bare
from tests.importers.looked_at import written
from tests.importers.test_chatgpt import TRIP, exported, node
from tests.importers.test_claude_code import WORK
from tests.importers.test_mem0 import MEM0

BOAT = exported(
    node("q", None, "user", "We named our boat Ansa."), current="q", conversation_id="conv-2", title="The boat"
)


@pytest.fixture
def cli(database: str) -> Callable[..., Ran]:
    return partial(bare, HITHERTO_DATABASE=database)


def test_from_chatgpt(cli: Callable[..., Ran], tmp_path: Path) -> None:
    """What was told there is found here; a file that is there already adds nothing."""
    file = written(tmp_path / "conversations.json", [TRIP, BOAT])
    assert cli("import", tmp_path).out == "Imported: 2 conversations, 5 messages, 0 facts, 0 skipped, 0 left out.\n"
    again = cli("import", file, "--json").json
    counts = {"conversations": 0, "messages": 0, "facts": 0, "skipped": 2, "left_out": 0}
    assert again == {"imported": counts, "refused": [], "unreadable": [], "notes": []}
    listed = cli("conversations", "--json").json["conversations"]
    assert {one["conversation"]: one["title"] for one in listed} == {"conv-1": "Lisbon", "conv-2": "The boat"}
    assert "boat Ansa" in cli("recall", "What is our boat called?").out


def test_from_claude_code(cli: Callable[..., Ran], tmp_path: Path) -> None:
    folder = tmp_path / "projects" / "-code"
    folder.mkdir(parents=True)
    written(folder / "s-1.jsonl", WORK)
    (folder / "notes.md").write_text("Notes.")
    done = cli("import", tmp_path / "projects")
    assert (done.code, "1 other file is not read: notes.md" in done.err) == (0, True)
    assert "Find the tests" in cli("recall", "Where are the tests?").out


def test_a_list_of_what_is_in_it(cli: Callable[..., Ran], tmp_path: Path) -> None:
    file = written(tmp_path / "x", [TRIP, BOAT, 3])
    shown = cli("import", file, "--list")
    assert (shown.code, "entry 3 of its list is no conversation" in shown.err) == (1, True)
    assert "Lisbon" in shown.out
    found = cli("import", file, "--list", "--json").json
    assert found["conversations"][0] == {
        "format": "ChatGPT's export",
        "conversation": "conv-1",
        "title": "Lisbon",
        "messages": 4,
        "branches": 2,
        "first": "2023-11-14T22:13:20.500000+00:00",
        "last": "2023-11-14T22:14:20+00:00",
    }
    assert cli("conversations", "--json").json["conversations"] == [], "nothing was imported"


def test_one_conversation_of_it(cli: Callable[..., Ran], tmp_path: Path) -> None:
    file = written(tmp_path / "x", [TRIP, BOAT])
    assert "1 conversation, 1 message" in cli("import", file, "--conversation", "conv-2").out
    assert "--list shows which it has" in cli("import", file, "--conversation", "none").failed(2)


def test_facts_of_mem0(cli: Callable[..., Ran]) -> None:
    """Without --user, those of each user go to that user; with it, those of others are left out, and told."""
    assert "the user 'ada', to whom these facts went: 3;" in " ".join(cli("import", MEM0).err.split())
    for user, facts in (("ada", 3), ("bob", 1), ("me", 0)):
        assert len(cli("facts", "list", "--user", user, "--json").json["facts"]) == facts
    named = cli("import", MEM0, "--user", "bob", "--agent", "other")
    assert (named.code, "1 fact, 0 skipped, 3 left out" in named.out) == (1, True)
    assert "a fact of the user 'ada', and not of 'bob'" in " ".join(named.err.split())


def test_lists_of_messages_in_any_format(cli: Callable[..., Ran], tmp_path: Path) -> None:
    chat: list[Any] = [
        {"role": "user", "content": "Hi.", "timestamp": 1_700_000_000},
        {"role": "assistant", "content": "Ho."},
    ]
    responses = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi."}]}]
    claude = [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "late"}]}]
    for name, value, messages in (("a", chat, 2), ("b", [chat, responses], 3), ("c", {"messages": claude}, 1)):
        file = written(tmp_path / f"{name}.json", value)
        for count in (messages, 0):
            assert cli("import", file, "--json").json["imported"]["messages"] == count, name
    entries = cli("log", "c", "--json").json["messages"]
    assert entries[0]["payload"]["role"] == "assistant", "a result without its call is a text"
    assert "late" in entries[0]["payload"]["content"]


def test_two_files_with_a_session_of_one_name(cli: Callable[..., Ran], tmp_path: Path) -> None:
    """What to do is said, and what to do about a branch that is not shown."""
    for name, said in (("a", "Where is my bike?"), ("b", "What is for dinner?")):
        with closing(sqlite3.connect(tmp_path / f"{name}.db")) as db:
            db.execute("create table agent_sessions (session_id, created_at)")
            db.execute("create table agent_messages (id integer primary key, session_id, message_data, created_at)")
            db.execute("insert into agent_sessions values ('default', '2026-05-08')")
            item = json.dumps({"role": "user", "content": said})
            db.execute("insert into agent_messages values (1, 'default', ?, '2026-05-08')", [item])
            db.commit()
    assert cli("import", tmp_path / "a.db").code == 0
    refused = cli("import", tmp_path / "b.db")
    assert (refused.code, "import it for another user, agent or tenant" in " ".join(refused.err.split())) == (1, True)
    assert cli("import", tmp_path / "b.db", "--agent", "b").code == 0


def test_from_standard_input(cli: Callable[..., Ran], database: str, tmp_path: Path) -> None:
    for value in ([BOAT], [{"role": "user", "content": "Hi."}]):
        done = subprocess.run(
            Cli().command("import", "-"),
            input=written(tmp_path / "x", value).read_bytes(),
            capture_output=True,
            check=True,
            env=Cli().surroundings(HITHERTO_DATABASE=database),
        )
        assert done.stdout.startswith(b"Imported: 1 conversation, 1 message")
    assert len(cli("log", "standard input", "--json").json["messages"]) == 1
