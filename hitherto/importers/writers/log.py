"""The log that a conversation of a file is added to, and what the conversation's metadata say of its import."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from hitherto.core.log.message import Message
from hitherto.errors import Conflict
from hitherto.importers.imported import ImportedConversation, ImportedMessage, Unreadable, mapping_of, message_of

if TYPE_CHECKING:
    from hitherto.core.log.head import Head
    from hitherto.engine.conversation import Conversation

PAGE, SIZE = 200, 2_000_000
"""Messages that are appended together, and characters of these, but for one."""

READ = 500
"""Messages of a log that are read at once."""

CLEARED = "it follows what was cleared here: left out"

_AT_ONCE = "another import, or a program, wrote here meanwhile; run this import again"

_NO_CALL = "[the result of a tool call that is not here]"

_IMPORT, _TITLE, _UNFINISHED = "import", "title", "unfinished"


@dataclass(eq=False)
class ImportLog:
    """The log of a conversation: its next seq, the first seq that was not cleared, and the last message that is shown:
    -1 if there is none, None where that is not known."""

    chat: Conversation
    policy: str | None
    next: int = 0
    first: int = 0
    end: int | None = -1

    @classmethod
    def of(cls, chat: Conversation, policy: str | None, head: Head | None) -> ImportLog:
        if head is None:
            return cls(chat, policy)
        end = head.next_seq - 1
        for first, last in sorted(head.retracted, reverse=True):
            end = first - 1 if last == end else end
        return cls(chat, policy, head.next_seq, head.view_start, end)

    def takes(self, at: int) -> bool:
        """Whether something can follow message `at`: it was not cleared, or is the last that is shown."""
        return at == self.end or at >= self.first or at < 0 == self.first

    async def append(self, page: Sequence[Message], at: int) -> list[int]:
        """Append the messages behind message `at`, and show them; returns their seqs."""
        if self.end == at:
            done = await self.chat.append(*page, expect=self.next, policy=self.policy)
        else:
            self.end = None
            if at >= 0:
                await self.chat.switch(at)
            done = await self.chat.append(*page, at=at, expect=self.next, policy=self.policy)
        self.next, self.end = done.end + 1, done.end
        return [*range(done.start, done.end + 1)]

    async def show(self, seq: int, *, last: bool) -> None:
        """Show message `seq`; with `last`, as the last one."""
        if self.end != seq and seq >= self.first:
            await self.chat.switch(seq)
        if self.end != seq and last:
            await self.chat.rewind(to=max(seq, self.first - 1))
        self.end = seq


@dataclass(eq=False)
class ImportNotes:
    """What the title and the metadata of a conversation say of its import. In the metadata, `import` has the title that
    an import gave; and, while messages are added on other branches than the one that is to be shown, as `unfinished`
    the last message of that one, null for the file's. `shows` is that message of an import that was cut off."""

    chat: Conversation
    title: str | None = None
    metadata: Mapping[str, Any] | None = None
    unfinished: bool = False
    shows: int | None = None

    @classmethod
    async def of(cls, chat: Conversation, head: Head | None) -> ImportNotes:
        info = None if head is None else await chat.info()
        if info is None:
            return cls(chat)
        noted = mapping_of(info.metadata.get(_IMPORT))
        shows = noted.get(_UNFINISHED)
        last = shows if isinstance(shows, int) else None
        return cls(chat, info.title, info.metadata, unfinished=_UNFINISHED in noted, shows=last)

    async def begin(self, title: str | None, *, marked: bool = False, shows: int | None = None) -> None:
        """Give the conversation the title, if it is new or has that of an earlier import; with `marked`, note what is
        to be shown at the end."""
        noted = dict(mapping_of((self.metadata or {}).get(_IMPORT)))
        own = self.metadata is not None and noted.get(_TITLE) != self.title
        title = None if own or title == self.title else title
        if title is not None:
            noted[_TITLE] = title
        if marked:
            noted[_UNFINISHED], self.unfinished = shows, True
        if marked or title is not None:
            await self._write(noted, title)

    async def end(self) -> None:
        """The import is over."""
        if self.unfinished:
            noted = dict(mapping_of((self.metadata or {}).get(_IMPORT)))
            noted.pop(_UNFINISHED, None)
            await self._write(noted, None)

    async def _write(self, noted: Mapping[str, Any], title: str | None) -> None:
        others = {key: value for key, value in (self.metadata or {}).items() if key != _IMPORT}
        new, self.metadata = self.metadata is None, {**others, _IMPORT: noted} if noted else others
        await self.chat.configure(title=title, metadata=self.metadata, create=new)


def mark_of(message: Message) -> bytes:
    """What tells whether messages say the same: who says it, and what one can read of it."""
    return sha256(f"{message.role.value} {message.text}".encode()).digest()


def pages_of(messages: Iterable[ImportedMessage]) -> Iterator[list[ImportedMessage]]:
    """The messages in pages that are appended together."""
    page, size = list[ImportedMessage](), 0
    for one in messages:
        page.append(one)
        size += len(one.message.raw)
        if len(page) >= PAGE or size >= SIZE:
            yield page
            page, size = [], 0
    if page:
        yield page


def dated(message: Message, before: Message | None) -> Message:
    """The message, with the time of the one before it if it has none."""
    if message.said_at is not None or before is None or before.said_at is None:
        return message
    return message.dated(before.said_at)


def fitting(message: Message, open_calls: set[str]) -> tuple[Message, set[str], set[str]]:
    """The message as it can be appended where these calls wait for a result, which are changed; and the calls that do
    not wait any more, and that wait now."""
    answers = set(message.answers)
    if len(answers) < len(message.answers) or not answers <= open_calls:
        item = {"role": "assistant", "content": f"{_NO_CALL}\n{message.text}"}
        return message_of(item, message.said_at, id=message.id), set(), set()
    open_calls -= answers
    calls = set(message.calls) - open_calls
    open_calls |= calls
    return message, answers, calls


def leave_out(conversation: ImportedConversation, first: ImportedMessage, count: int, why: object) -> None:
    """Tell that so many messages, of which this is the first, are left out."""
    more = f" (and {count - 1:,} behind it)" if count > 1 else ""
    conversation.unreadable.append(Unreadable(f"{first.place}{more}: {why_not(why)}", first.line, count))


def why_not(why: object) -> str:
    """The reason, or the error, in words for one who imports. A conflict is one with others who write meanwhile."""
    return _AT_ONCE if isinstance(why, Conflict) else str(why)


def messages(count: int) -> str:
    return f"{count:,} message{'s' if count != 1 else ''}"


def note_erased(conversation: ImportedConversation, count: int) -> None:
    if count:
        words = f"{messages(count)} of the file erased here, and not imported again"
        conversation.notes.append(f"{conversation.id!a:.80}: {words}")


def note_hidden(conversation: ImportedConversation, count: int, last: int) -> None:
    conversation.notes.append(
        f"{conversation.id!a:.80}: {messages(count)} came as a branch that is not shown, as another one is shown here; "
        f"to show it: hitherto branches {shlex.quote(conversation.id)} --switch {last}"
    )
