"""Writing what was read by the public verbs of a memory, embedded or over HTTP, so that it can be repeated."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hitherto.errors import Conflict, InvalidInput, InvalidTranscript
from hitherto.importers.files import Progress, read_file
from hitherto.importers.imported import ImportedConversation, ImportedFact, Unreadable
from hitherto.importers.writers.facts import import_facts
from hitherto.importers.writers.lists import import_list
from hitherto.importers.writers.log import why_not
from hitherto.importers.writers.trees import import_tree

if TYPE_CHECKING:
    from hitherto.core.scope import Scope
    from hitherto.engine.conversation import Conversation
    from hitherto.engine.memory import Memory

TOLD = 100
"""Of what cannot be read, and of the notes, so many are told; the rest is counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSummary:
    """How much of a file is new. `skipped` counts conversations and facts that were there already; `refused` names
    conversations of which there are others of that name; `unreadable` says of the first 100 that could not be read or
    kept where they stand and why, and `left_out` how many it were; `notes` say what is there otherwise than in the
    file."""

    conversations: int = 0
    messages: int = 0
    facts: int = 0
    skipped: int = 0
    left_out: int = 0
    refused: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


async def import_file(
    memory: Memory,
    path: Path,
    *,
    scope: Scope,
    conversation: str | None = None,
    digest: bool = False,
    own_users: bool = False,
    progress: Progress | None = None,
) -> ImportSummary:
    """Import the conversations and facts of a file or a folder of another system into the scope.

    What is there already is skipped, so that an import that was cut off goes on when it is repeated, and one of a file
    that has grown adds what is new. `conversation` is the only one that is imported; one that has its name of the file
    gets this name. Without `digest` no stage of a policy fires. With `own_users`, facts of other users than the scope's
    go to these, else they are left out. `progress` is told the bytes that were read.

    Raises InvalidTranscript for a file that cannot be read at all, and InvalidInput where it has no such
    `conversation`; what cannot be read of it is in the summary, and the rest is imported.
    """
    done, seen, facts, empty = ImportSummary(), set[str](), list[ImportedFact](), True
    entries = read_file(path, progress=progress)
    try:
        while (one := await asyncio.to_thread(next, entries, None)) is not None:
            empty = False
            if isinstance(one, ImportedFact):
                facts.append(one)
                continue
            done = await _import_entry(memory, one, scope, conversation, seen=seen, done=done, digest=digest)
    finally:
        with suppress(ValueError):  # it is being read still, as this was cancelled
            entries.close()
    if facts and conversation is None:
        written = await import_facts(memory, facts, scope=scope, own_users=own_users)
        done = _with_told(done, written.unreadable, written.notes)
        done = replace(done, facts=written.new, skipped=done.skipped + written.skipped)
    if conversation is not None and conversation not in seen:
        raise InvalidInput(f"{path} has no conversation {conversation!r}; hitherto import --list shows which it has")
    if empty or done == ImportSummary():
        raise InvalidTranscript(
            f"{path} holds no messages; give one JSON object with role and content a line, or another file that "
            "docs/importing.md names"
        )
    return done


async def _import_entry(
    memory: Memory,
    entry: ImportedConversation | Unreadable,
    scope: Scope,
    wanted: str | None,
    *,
    seen: set[str],
    done: ImportSummary,
    digest: bool,
) -> ImportSummary:
    if isinstance(entry, Unreadable):
        return _with_told(done, [entry])
    name = wanted if wanted is not None and entry.named_by_file else entry.id
    if wanted not in (None, name):
        return done
    seen.add(name)
    return await _add_conversation(memory.conversation(name, scope=scope), entry, done, digest=digest)


async def _add_conversation(
    chat: Conversation, conversation: ImportedConversation, done: ImportSummary, *, digest: bool
) -> ImportSummary:
    new = await import_conversation(chat, conversation, digest=digest)
    done = _with_told(done, conversation.unreadable, conversation.notes)
    if new is None:
        return replace(done, refused=(*done.refused, f"{chat.id!r} in {chat.scope}"))
    if new:
        return replace(done, conversations=done.conversations + 1, messages=done.messages + new)
    return done if await chat.head() is None else replace(done, skipped=done.skipped + 1)


def _with_told(done: ImportSummary, unreadable: Sequence[Unreadable], notes: Sequence[str] = ()) -> ImportSummary:
    words = [one.words for one in unreadable[: TOLD - len(done.unreadable)]]
    return replace(
        done,
        unreadable=(*done.unreadable, *words),
        left_out=done.left_out + sum(one.count for one in unreadable),
        notes=(*done.notes, *notes[: TOLD - len(done.notes)]),
    )


async def import_conversation(
    chat: Conversation, conversation: ImportedConversation, *, digest: bool = False
) -> int | None:
    """Append the messages that `chat` does not have yet; returns how many that were, None if `chat` is another
    conversation, which has nothing in common with the file's.

    A message is there if one with its id, or in a list at its place, says the same, or was erased. One of a known id
    that says something else is appended beside that, with `~2` behind its id. A new conversation gets the title, and
    shows the branch that the file shows. In any other, what is shown stays, unless messages are added right behind it,
    or the last of it says more by now; and a new title replaces that of an earlier import. What cannot be appended is
    told in `conversation.unreadable`, and what is there otherwise than in the file in
    `conversation.notes`. A result whose call is not there is kept as a text of the assistant's, and a message without a
    time has that of the one before it."""
    policy = None if digest else "none"
    try:
        return await (import_tree if conversation.tree else import_list)(chat, conversation, policy)
    except (Conflict, InvalidInput) as error:
        conversation.unreadable.append(Unreadable(f"{conversation.id!a:.80}: {why_not(error)}"))
        return 0
