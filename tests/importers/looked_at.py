"""What tests look at: a file's conversations, and the tree that a conversation's log is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hitherto import Conversation
from hitherto.importers import ImportedConversation, ImportedFact, Unreadable, read_file
from hitherto.importers.imported import shown_messages


def written(path: Path, value: object) -> Path:
    """A file with this JSON, or these JSON lines."""
    lines = value if path.suffix == ".jsonl" and isinstance(value, list) else [value]
    path.write_text("\n".join(json.dumps(line) for line in lines))
    return path


def conversations(path: Path) -> list[ImportedConversation]:
    """The conversations of a file in which all can be read."""
    found = [one for one in read_file(path) if isinstance(one, ImportedConversation)]
    assert [one for one in read_file(path) if isinstance(one, Unreadable)] == []
    for one in found:
        one.messages = list(one.messages)
        assert one.unreadable == []
    return found


def unreadable(path: Path) -> list[str]:
    """What is told of a file that cannot be read, in words."""
    words: list[str] = []
    for one in read_file(path):
        match one:
            case Unreadable():
                words.append(one.words)
            case ImportedConversation():
                _ = list(one.messages)
                words += [which.words for which in one.unreadable]
            case ImportedFact():
                pass
    return words


def shown(found: ImportedConversation) -> list[tuple[str, str]]:
    """Who says what on the branch that is shown."""
    return [(one.message.role.value, one.message.text) for one in shown_messages(found)]


def payloads(found: ImportedConversation) -> list[dict[str, Any]]:
    return [one.message.payload for one in shown_messages(found)]


async def tree(chat: Conversation) -> dict[str | None, str | None]:
    """The id of the message before each message, by its id."""
    messages = await chat.messages()
    parents = {one.seq: one.seq - 1 for one in messages}
    after = -1
    while page := await chat.branches(after=after):
        parents |= {branch.seq: branch.parent for branch in page}
        after = page[-1].seq
    ids = {one.seq: one.message.id for one in messages}
    return {ids[seq]: ids.get(parent) for seq, parent in parents.items()}
