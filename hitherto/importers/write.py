"""Writing what was read by the public verbs of a memory, embedded or over HTTP, so that it can be repeated."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING

from hitherto.core.log.message import Message, id_hash
from hitherto.errors import Conflict, InvalidInput, InvalidTranscript
from hitherto.importers.files import Progress, read_file
from hitherto.importers.imported import (
    Found,
    ImportedConversation,
    ImportedFact,
    ImportedMessage,
    Unreadable,
    made,
    shown_end,
)

if TYPE_CHECKING:
    from hitherto.core.scope import Scope
    from hitherto.engine.conversation import Conversation
    from hitherto.engine.memory import Memory

_PAGE, _SIZE = 200, 2_000_000
"""Messages that are appended together, and characters of these, but for one."""

_READ = 500
"""Messages of a log that are read at once."""

_TOLD = 100
"""Of what cannot be read, so much is told; the rest is counted."""

_NO_CALL = "[the result of a tool call that is not here]"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSummary:
    """How much of a file is new. `skipped` counts conversations and facts that were there already; `refused` names
    conversations of which there are others of that name; `unreadable` says of the first 100 that could not be read
    where they stand and why, and `left_out` how many it were."""

    conversations: int = 0
    messages: int = 0
    facts: int = 0
    skipped: int = 0
    left_out: int = 0
    refused: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()


async def import_file(
    memory: Memory,
    path: Path,
    *,
    scope: Scope,
    conversation: str | None = None,
    digest: bool = False,
    progress: Progress | None = None,
) -> ImportSummary:
    """Import the conversations and facts of a file or a folder of another system into the scope.

    What is there already is skipped, so that an import that was cut off goes on when it is repeated, and one of a file
    that has grown adds what is new. `conversation` is the only one that is imported; one that has its name of the file
    gets this name. Without `digest` no stage of a policy fires. `progress` is told the bytes that were read.

    Raises InvalidTranscript for a file that cannot be read at all, and InvalidInput where it has no such
    `conversation`; what cannot be read of it is in the summary, and the rest is imported.
    """
    done, seen, empty = ImportSummary(), set[str](), True
    found = read_file(path, progress=progress)
    try:
        while (one := await asyncio.to_thread(next, found, None)) is not None:
            empty = False
            done = await _import_found(memory, one, scope, conversation, seen=seen, done=done, digest=digest)
    finally:
        with suppress(ValueError):  # it is being read still, as this was cancelled
            found.close()
    if conversation is not None and conversation not in seen:
        raise InvalidInput(f"{path} has no conversation {conversation!r}; hitherto import --list shows which it has")
    if empty or done == ImportSummary():
        raise InvalidTranscript(
            f"{path} holds no messages; give one JSON object with role and content a line, or another file that "
            "docs/importing.md names"
        )
    return done


async def _import_found(
    memory: Memory,
    found: Found,
    scope: Scope,
    wanted: str | None,
    *,
    seen: set[str],
    done: ImportSummary,
    digest: bool,
) -> ImportSummary:
    if isinstance(found, Unreadable):
        return _with_unreadable(done, [found])
    if isinstance(found, ImportedFact):
        return done if wanted is not None else await _add_fact(memory, found, scope, done)
    name = wanted if wanted is not None and found.named_by_file else found.id
    if wanted not in (None, name):
        return done
    seen.add(name)
    return await _add_conversation(memory.conversation(name, scope=scope), found, done, digest=digest)


async def _add_conversation(
    chat: Conversation, found: ImportedConversation, done: ImportSummary, *, digest: bool
) -> ImportSummary:
    new = await import_conversation(chat, found, digest=digest)
    done = _with_unreadable(done, found.unreadable)
    if new is None:
        return replace(done, refused=(*done.refused, f"{chat.id!r} in {chat.scope}"))
    if new:
        return replace(done, conversations=done.conversations + 1, messages=done.messages + new)
    return done if await chat.head() is None else replace(done, skipped=done.skipped + 1)


def _with_unreadable(done: ImportSummary, more: Sequence[Unreadable]) -> ImportSummary:
    words = [one.words for one in more[: _TOLD - len(done.unreadable)]]
    return replace(done, unreadable=(*done.unreadable, *words), left_out=done.left_out + sum(one.count for one in more))


async def _add_fact(memory: Memory, fact: ImportedFact, scope: Scope, done: ImportSummary) -> ImportSummary:
    try:
        added = await memory.facts(scope).add(fact.content, category=fact.category)
    except InvalidInput as error:
        return _with_unreadable(done, [Unreadable(f"{fact.place}: {error}")])
    return replace(done, facts=done.facts + added.new, skipped=done.skipped + (not added.new))


async def import_conversation(chat: Conversation, found: ImportedConversation, *, digest: bool = False) -> int | None:
    """Append the messages that `chat` does not have yet, and show the branch that the file shows; returns how many that
    were, None if `chat` is another conversation. A new one gets the title. What cannot be appended is told in
    `found.unreadable`. A result whose call is not there is kept as a text of the assistant's."""
    policy = None if digest else "none"
    try:
        return await (_append_tree if found.tree else _append_line)(chat, found, policy)
    except (Conflict, InvalidInput) as error:
        found.unreadable.append(Unreadable(f"{found.id!a:.80}: {error}; what comes before it is imported"))
        return 0


async def _append_line(chat: Conversation, found: ImportedConversation, policy: str | None) -> int | None:
    """Without ids it is told by their places which messages are there."""
    head = await chat.head()
    there = 0 if head is None else head.next_seq
    messages, open_calls, start, new = iter(found.messages), set[str](), 0, 0
    while batch := await asyncio.to_thread(_page, messages, open_calls):
        known = batch[: max(there - start, 0)]
        for logged, message in zip(await chat.messages(start=start, stop=start + len(known)), known, strict=True):
            if logged.message.raw != message.raw and not logged.erased:
                pages = _pages(batch, messages, open_calls)
                return await _append_mended(chat, start, there, pages, policy)
        start, batch = start + len(known), batch[len(known) :]
        if batch:
            if head is None and not new and found.title:
                await chat.configure(title=found.title, create=True)
            try:
                await chat.append(*batch, expect=start, policy=policy)
            except (Conflict, InvalidInput) as error:
                found.unreadable.append(Unreadable(f"{found.id!a:.80}, from message {start} on: {error}"))
                break
            start, new = start + len(batch), new + len(batch)
    return new


async def _pages(
    first: list[Message], messages: Iterator[ImportedMessage], open_calls: set[str]
) -> AsyncIterator[list[Message]]:
    page = first
    while page:
        yield page
        page = await asyncio.to_thread(_page, messages, open_calls)


async def _append_mended(
    chat: Conversation, start: int, there: int, pages: AsyncIterator[list[Message]], policy: str | None
) -> int | None:
    """Append the messages from place `start` on, where some could not be read at first: what is new between others that
    are there becomes a branch behind the one before it. None if not all that is there is in the file."""
    seqs = dict[int, list[int]]()
    for begin in range(start, there, _READ):
        for one in await chat.messages(start=begin, stop=min(begin + _READ, there)):
            if one.erased:
                return None
            seqs.setdefault(hash(one.message.raw), []).append(one.seq)
    behind, between, new = start - 1, list[tuple[int, list[Message]]](), 0
    async for page in pages:
        runs = _new_between(page, behind, seqs)
        if between:
            between[-1][1].extend(runs.pop(0)[1])
        between += runs
        behind = between[-1][0]
        if seqs and sum(len(run) for _, run in between) > _PAGE:
            return None
        for at, run in between if not seqs else ():
            if run:
                done = await chat.append(*run, at=at, policy=policy)
                behind = done.end if at == behind else behind
                new += len(run)
        between = between if seqs else []
    if new:
        await chat.switch(behind)
    return None if seqs else new


def _new_between(page: list[Message], behind: int, seqs: dict[int, list[int]]) -> list[tuple[int, list[Message]]]:
    """The runs of messages that are new, each with the seq that it follows; of the others the seqs are taken out."""
    runs = [(behind, list[Message]())]
    for message in page:
        content = hash(message.raw)
        if content in seqs:
            runs.append((seqs[content].pop(0), []))
            if not seqs[content]:
                del seqs[content]
        else:
            runs[-1][1].append(message)
    return runs


def _page(messages: Iterator[ImportedMessage], open_calls: set[str]) -> list[Message]:
    page, size = list[Message](), 0
    for one in messages:
        page.append(_fitting(one.message, open_calls)[0])
        size += len(page[-1].raw)
        if len(page) >= _PAGE or size >= _SIZE:
            break
    return page


def _fitting(message: Message, open_calls: set[str]) -> tuple[Message, set[str], set[str]]:
    """The message as it can be appended where these calls wait for a result, which are changed; and the calls that do
    not wait any more, and that wait now."""
    answers = set(message.answers)
    if len(answers) < len(message.answers) or not answers <= open_calls:
        item = {"role": "assistant", "content": f"{_NO_CALL}\n{message.text}"}
        return made(item, message.said_at, id=message.id), set(), set()
    open_calls -= answers
    calls = set(message.calls) - open_calls
    open_calls |= calls
    return message, answers, calls


@dataclass(eq=False)
class _Log:
    """What a conversation has: the seqs of its messages by the hashes of their ids, the next seq, and the last message
    that is shown, -1 if there is none."""

    seqs: dict[str, int] = field(default_factory=dict[str, int])
    next: int = 0
    end: int = -1

    @classmethod
    async def of(cls, chat: Conversation) -> _Log:
        head = await chat.head()
        log = cls(next=0 if head is None else head.next_seq)
        for start in range(0, log.next, _READ):
            for one in await chat.messages(start=start, stop=min(start + _READ, log.next)):
                known = one.id_hash if one.message.id is None else id_hash(one.message.id)
                if known is not None:
                    log.seqs[known] = one.seq
                if one.retracted_rev is None:
                    log.end = one.seq
        return log

    def seq(self, id: str | None) -> int | None:
        return None if id is None else self.seqs.get(id_hash(id))

    async def append(self, chat: Conversation, messages: Sequence[Message], at: int, policy: str | None) -> None:
        """Append the messages behind message `at`, in pages."""
        rest = iter(messages)
        while page := list(_page_of(rest)):
            if self.end != at and at >= 0:
                await chat.switch(at)
            if self.end == at:
                done = await chat.append(*page, expect=self.next, policy=policy)
            else:
                done = await chat.append(*page, at=at, policy=policy)
            self.seqs.update((id_hash(one.id), seq) for seq, one in enumerate(page, done.start) if one.id is not None)
            self.next, self.end = done.end + 1, done.end
            at = done.end


def _page_of(messages: Iterator[Message]) -> Iterator[Message]:
    size = 0
    for one in islice(messages, _PAGE):
        yield one
        size += len(one.raw)
        if size >= _SIZE:
            return


async def _append_tree(chat: Conversation, found: ImportedConversation, policy: str | None) -> int | None:
    """The branches that are not shown come first, so that after the last append the one that is shown is."""
    messages = await asyncio.to_thread(_fitted, found.messages)
    log, head = await _Log.of(chat), await chat.head()
    if not messages or (log.next and all(log.seq(one) is None for one in messages)):
        return None if messages else 0
    if head is None and found.title:
        await chat.configure(title=found.title, create=True)
    new = 0
    segments = _segments(messages, found.current)
    for segment in segments:
        known = [place for place, one in enumerate(segment) if log.seq(one.message.id) is not None]
        begin = known[-1] + 1 if known else 0
        middle = groupby(segment[:begin], lambda one: log.seq(one.message.id) is None)
        for part in [*(list(run) for is_new, run in middle if is_new), segment[begin:]]:
            if part:
                parent = part[0].parent
                while parent is not None and log.seq(parent) is None:
                    parent = messages[parent].parent
                at = log.seq(parent)
                await log.append(chat, [one.message for one in part], -1 if at is None else at, policy)
                new += len(part)
    shown = log.seq(segments[-1][-1].message.id)
    if shown is not None and log.end != shown and (new or any(log.seq(one) == log.end for one in messages)):
        await chat.switch(shown)
    return new


def _fitted(messages: Iterable[ImportedMessage]) -> dict[str, ImportedMessage]:
    """The messages of a tree by their ids, as they can be appended. Each comes behind its parent, before what follows
    the next sibling of it."""
    found: dict[str, ImportedMessage] = {}
    open_calls, way = set[str](), list[tuple[str, set[str], set[str]]]()
    for one in messages:
        while way and way[-1][0] != one.parent:
            _, answered, called = way.pop()
            open_calls -= called
            open_calls |= answered
        message, answered, called = _fitting(one.message, open_calls)
        assert message.id is not None
        way.append((message.id, answered, called))
        found[message.id] = replace(one, message=message)
    return found


def _segments(messages: dict[str, ImportedMessage], current: str | None) -> list[list[ImportedMessage]]:
    """The messages in the order in which they are appended: for each end of a branch those that no other branch before
    it has; the branch with `current` last, without it the newest."""
    followed, shown = {one.parent for one in messages.values()}, shown_end(messages, current)
    ends = [one for one in messages if one not in followed]
    segments, placed = list[list[ImportedMessage]](), set[str]()
    for end in [*(one for one in ends if one != shown), *([shown] if shown is not None else [])]:
        segment, at = list[ImportedMessage](), end
        while at is not None and at not in placed:
            placed.add(at)
            segment.append(messages[at])
            at = messages[at].parent
        segments.append(segment[::-1])
    return segments
