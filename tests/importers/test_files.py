"""Files and folders: which are read, and how far the reading is."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from zipfile import ZIP_STORED, ZipFile

import pytest
from agents import SQLiteSession

from hitherto.importers import read_file
from hitherto.importers.files import other_files
from tests.importers.looked_at import conversations, written
from tests.importers.test_chatgpt import TRIP


def test_other_files_of_a_folder(tmp_path: Path) -> None:
    written(tmp_path / "s.jsonl", [{"role": "user", "content": "Hi."}])
    assert other_files(tmp_path) is None
    (tmp_path / ".git").mkdir()
    for name in ("notes.md", "a.png", "b.png", "c.png", ".git/config", ".git/HEAD"):
        (tmp_path / name).write_bytes(b"\0")
    assert other_files(tmp_path) == "6 other files are not read: 3 like a.png, 2 hidden, notes.md"
    assert other_files(tmp_path / "s.jsonl") is None


@pytest.mark.parametrize("kind", ["zip", "sqlite", "json"])
def test_how_far_it_is(tmp_path: Path, kind: str) -> None:
    """It begins near the begin, never goes back, and ends with the size of the file."""
    file, listed = tmp_path / "x", [{**TRIP, "padding": "x" * 3_000}] * 1_500
    if kind == "zip":
        with ZipFile(file, "w", ZIP_STORED) as to:
            to.writestr("conversations.json", json.dumps(listed))
            to.writestr("chats/conversations-1.json", json.dumps(listed))
    elif kind == "json":
        written(file, listed)
    else:
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("create table agent_sessions (session_id, created_at)")
            connection.execute("create table agent_messages (id integer, session_id, message_data, created_at)")
            connection.executemany("insert into agent_sessions values (?, 1)", [(f"s{n}",) for n in range(300)])
            connection.commit()
    places: list[int] = []
    for _ in read_file(file, progress=places.append):
        pass
    size = file.stat().st_size
    assert places == sorted(places)
    assert places[0] < size / 2
    assert 0.95 * size < places[-1] <= size


async def test_a_link_to_a_file_that_its_program_writes(tmp_path: Path) -> None:
    """The program's log stands beside the file, not beside the link."""
    (tmp_path / "a").mkdir()
    session, link = SQLiteSession("s-1", tmp_path / "a" / "sessions.db"), tmp_path / "link.db"
    await session.add_items([{"role": "user", "content": "Hi."}])
    link.symlink_to(tmp_path / "a" / "sessions.db")
    (one,) = conversations(link)
    assert [each.message.text for each in one.messages] == ["Hi."]
    session.close()
