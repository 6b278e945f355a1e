"""Adding a tree of messages, which are told by their ids, to the log of a conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING

from hitherto.core.log.message import Message, Role, id_hash
from hitherto.errors import Conflict, InvalidInput
from hitherto.importers.imported import ImportedConversation, ImportedMessage, shown_end
from hitherto.importers.writers.log import (
    CLEARED,
    READ,
    ImportLog,
    ImportNotes,
    dated,
    fitting,
    leave_out,
    mark_of,
    messages,
    note_erased,
    note_hidden,
    pages_of,
)

if TYPE_CHECKING:
    from hitherto.engine.conversation import Conversation


async def import_tree(chat: Conversation, conversation: ImportedConversation, policy: str | None) -> int | None:
    """See `import_conversation`. The branches that are not to be shown come first."""
    fitted = await asyncio.to_thread(_fitted, conversation.messages)
    if not fitted:
        return 0
    head = await chat.head()
    log, notes = ImportLog.of(chat, policy, head), await ImportNotes.of(chat, head)
    tree = _Tree.of(fitted, await _KnownMessages.of(log), conversation.current)
    if log.next and not tree.in_common and len(tree.seqs) < log.next:
        return None
    cut_off = notes.unfinished and (log.end in tree.seqs.values() or not log.next)
    shown = notes.shows if cut_off and notes.shows is not None else log.end
    runs, new = tree.runs(), tree.new_on_the_shown_branch()
    moves = not log.next or (cut_off and notes.shows is None) or await _goes_on(chat, tree, new, shown)
    straight = moves and len(runs) == 1 and tree.behind(runs[0][0]) == log.end
    await notes.begin(conversation.title, marked=bool(runs) and not straight, shows=None if moves else shown)
    count = await _append(log, tree, runs, conversation)
    last = tree.seqs.get(tree.shown[-1])
    if moves and last is not None:
        await log.show(last, last=False)
    elif shown is not None and (runs or cut_off):
        await log.show(shown, last=True)
    await notes.end()
    note_erased(conversation, tree.erased)
    if newer := sum(one in tree.seqs for one in tree.others):
        conversation.notes.append(
            f"{conversation.id!a:.80}: {messages(newer)} with another text in the file than here; the file's came "
            "as branches beside"
        )
    of_the_shown = set(tree.shown).difference(new if moves else ())
    if hidden := [one for run in runs for one in run if one in of_the_shown and one in tree.seqs]:
        note_hidden(conversation, len(hidden), tree.seqs[hidden[-1]])
    return count


async def _goes_on(chat: Conversation, tree: _Tree, new: list[str], shown: int | None) -> bool:
    """Whether new messages go on from the last one that is shown: they come behind it, or say the same and more."""
    if not new or tree.behind(new[0]) == shown:
        return bool(new)
    older = await chat.get(shown) if shown is not None and shown in tree.others.get(new[0], ()) else None
    return older is not None and tree.messages[new[0]].message.text.startswith(older.message.text)


async def _append(log: ImportLog, tree: _Tree, runs: list[list[str]], conversation: ImportedConversation) -> int:
    """Append the runs; returns how many messages they were. What cannot be appended is told."""
    count = 0
    for number, run in enumerate(runs):
        at, rest, done = tree.behind(run[0]), [tree.messages[one] for one in run], 0
        if not log.takes(at):
            leave_out(conversation, rest[0], len(rest), CLEARED)
            continue
        for page in pages_of(rest):
            try:
                seqs = await log.append([one.message for one in page], at)
            except (Conflict, InvalidInput) as error:
                left = [tree.messages[one] for part in runs[number:] for one in part if one not in tree.seqs]
                leave_out(conversation, left[0], len(left), error)
                return count + done
            tree.seqs |= zip(run[done : done + len(page)], seqs, strict=True)
            done, at = done + len(page), seqs[-1]
        count += done
    return count


@dataclass(eq=False)
class _KnownMessages:
    """The messages with ids of a log, by the hashes of these: their seqs, and what they say, None of erased ones."""

    by_hash: dict[str, tuple[int, bytes | None]] = field(default_factory=dict[str, tuple[int, bytes | None]])

    @classmethod
    async def of(cls, log: ImportLog) -> _KnownMessages:
        known = cls()
        for start in range(0, log.next, READ):
            for one in await log.chat.messages(start=start, stop=min(start + READ, log.next)):
                key = one.id_hash if one.message.id is None else id_hash(one.message.id)
                if key is not None:
                    known.by_hash[key] = (one.seq, None if one.erased else mark_of(one.message))
        return known

    def find(self, message: Message) -> tuple[int | None, str, tuple[int, ...]]:
        """The seq of the message that says the same under this id, or one with `~2`, `~3` … behind it, or was erased;
        without one, None and the id under which it can be appended. Last, the seqs of those that say something else."""
        free, others = message.id or "", list[int]()
        while (there := self.by_hash.get(id_hash(free))) is not None:
            if there[1] in (None, mark_of(message)):
                return there[0], free, tuple(others)
            others.append(there[0])
            free = f"{message.id}~{len(others) + 1}"
        return None, free, tuple(others)


@dataclass(eq=False)
class _Tree:
    """The messages of a file by their ids, as they can be appended, and the seqs of those that are in the log. `shown`
    is the branch that the file shows; `others` are the seqs of messages that have the id of one and say something
    else."""

    messages: dict[str, ImportedMessage]
    shown: list[str]
    seqs: dict[str, int] = field(default_factory=dict[str, int])
    others: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    erased: int = 0
    in_common: bool = False

    @classmethod
    def of(cls, messages: dict[str, ImportedMessage], known: _KnownMessages, current: str | None) -> _Tree:
        shown, at = list[str](), shown_end(messages, current)
        while at is not None:
            shown.append(at)
            at = messages[at].parent
        tree = cls(dict(messages), shown[::-1])
        for own, one in messages.items():
            seq, free, others = known.find(one.message)
            if seq is not None:
                tree.seqs[own] = seq
                tree.erased += known.by_hash[id_hash(free)][1] is None
                tree.in_common = tree.in_common or one.message.role is not Role.SYSTEM
            elif others:
                tree.others[own] = others
                tree.messages[own] = replace(one, message=one.message.with_id(free))
        return tree

    def behind(self, id: str) -> int:
        """Behind which message one comes: the nearest before it that is in the log; -1 without one."""
        before = self.messages[id].parent
        while before is not None and before not in self.seqs:
            before = self.messages[before].parent
        return -1 if before is None else self.seqs[before]

    def new_on_the_shown_branch(self) -> list[str]:
        """The messages with which the branch that the file shows goes on from what is in the log."""
        known = [place for place, one in enumerate(self.shown) if one in self.seqs]
        return self.shown[known[-1] + 1 :] if known else self.shown

    def runs(self) -> list[list[str]]:
        """The messages that are to be appended, in runs of which each follows the one before. New ones before known
        ones become a branch behind what comes before them."""
        segments = [groupby(segment, lambda own: own in self.seqs) for segment in self._segments()]
        return [list(run) for segment in segments for known, run in segment if not known]

    def _segments(self) -> list[list[str]]:
        """For each end of a branch the messages that no other branch before it has; the branch that is shown last."""
        followed = {one.parent for one in self.messages.values()}
        ends = [one for one in self.messages if one not in followed and one != self.shown[-1]]
        segments, placed = list[list[str]](), set[str]()
        for end in [*ends, self.shown[-1]]:
            segment, at = list[str](), end
            while at is not None and at not in placed:
                placed.add(at)
                segment.append(at)
                at = self.messages[at].parent
            segments.append(segment[::-1])
        return segments


def _fitted(messages: Iterable[ImportedMessage]) -> dict[str, ImportedMessage]:
    """The messages of a tree by their ids, as they can be appended. Each comes behind its parent, before what follows
    the next sibling of it."""
    fitted: dict[str, ImportedMessage] = {}
    open_calls, way = set[str](), list[tuple[str, set[str], set[str]]]()
    for one in messages:
        while way and way[-1][0] != one.parent:
            _, answered, calls = way.pop()
            open_calls -= calls
            open_calls |= answered
        before = None if one.parent is None else fitted[one.parent].message
        message, answered, calls = fitting(dated(one.message, before), open_calls)
        assert message.id is not None
        way.append((message.id, answered, calls))
        fitted[message.id] = replace(one, message=message)
    return fitted
