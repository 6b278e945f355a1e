"""Sessions of the OpenAI Agents SDK: `SQLiteSession`, and `AdvancedSQLiteSession` with its branches."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from hitherto.core.log.message import RESPONSES, Message
from hitherto.errors import InvalidMessage
from hitherto.importers.imported import (
    ImportedConversation,
    Node,
    Unreadable,
    UnreadableList,
    conversation_of,
    message_of,
    time_of,
    try_message,
)
from hitherto.importers.sqlite_file import Tables

NAME = "Agents SDK"

TABLES = frozenset({"agent_sessions", "agent_messages"})
ROWS = TABLES | {"message_structure"}


def conversations(tables: Tables) -> Iterator[ImportedConversation | Unreadable]:
    """The sessions of a file, each message with the number of its row as its id."""
    branched = "message_structure" in tables.names
    sessions = tables.rows("select session_id from agent_sessions order by created_at, session_id")
    for (session,) in sessions:
        unreadable = UnreadableList()
        rows = tables.rows(
            "select id, message_data, created_at from agent_messages where session_id = ? order by id", session
        )
        parents = _parents(tables, session) if branched else None
        nodes, before = list[Node](), None
        for row, data, at in rows:
            place = f"{session!a:.80}, row {row}"
            kept = try_message(partial(_message, str(row), data, at), place, unreadable)
            nodes.append(Node(str(row), before if parents is None else parents.get(row), place, kept))
            before = str(row)
        yield conversation_of(NAME, session, nodes, title=None, current=before, unreadable=unreadable)


def _parents(tables: Tables, session: str) -> dict[int, str]:
    """The row before each, where a session has branches: a branch begins with the rows of another."""
    found, before, branch = dict[int, str](), None, None
    rows = tables.rows(
        "select branch_id, message_id from message_structure where session_id = ? order by branch_id, sequence_number",
        session,
    )
    for of, row in rows:
        if of == branch and before != row:
            found.setdefault(row, str(before))
        before, branch = row, of
    return found


def _message(id: str, data: Any, at: object) -> Message:
    try:
        item = json.loads(data)
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidMessage(f"this is not JSON ({error})") from error
    return message_of(item, time_of(at), wire=RESPONSES, id=id)
