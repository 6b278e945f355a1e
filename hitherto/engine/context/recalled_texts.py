"""The pieces of text that a context recalls: made from hits, and made again from a manifest."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from operator import attrgetter

from hitherto.core.context.manifest import RecalledEntry
from hitherto.core.context.recalled import RecalledPiece, RecallReason
from hitherto.core.digests.digest import Digest
from hitherto.core.log.conversations import ConversationFilter, MessageRange, RangesRead
from hitherto.core.log.frontier import DigestAction
from hitherto.core.log.group import Group, groups
from hitherto.core.log.head import Head, StandingSummary
from hitherto.core.log.message import Logged, Role
from hitherto.core.log.ranges import Ranges, all_in, joined, ranges
from hitherto.core.log.speaker import Voice, parts_of, speaker_label, speaker_of
from hitherto.core.plain_text import beside_data, without_data
from hitherto.core.policy.key_values import key_values
from hitherto.core.recall.filter import EntryKind
from hitherto.core.recall.index import TEXT
from hitherto.core.recall.passages import CharRange, narrowed, passage_ranges
from hitherto.engine.handle import Handle
from hitherto.engine.recall.recall import Hit
from hitherto.errors import NotReproducible

_NEAR, _FAR = 8, 64
"""Messages before and after a tool message that are searched for its group: few first, more where it is not whole."""

_LOOKED_AT = 20
"""The newest conversations among which summaries are looked for."""


_CALLS = "[calls "
"""Begins a tool's call in a message's text."""

_RESULT = 300
"""Characters of a result that is JSON."""


class GroupReader:
    """Reads messages and their groups, of any conversation of the user: `where` is its agent and its id."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._read: dict[tuple[str, str], tuple[Ranges, RangesRead]] = {}

    async def read_around(self, hits: Sequence[Hit]) -> None:
        """Read at once what the groups of these hits are looked for in first."""
        await self.read(
            ((hit.agent, hit.conversation), *_around(hit.start, _NEAR))
            for hit in hits
            if _in_group(hit) and hit.conversation is not None and hit.start is not None
        )

    async def read(self, wanted: Iterable[_MessageRange]) -> None:
        """Read these ranges at once, in place of what was read before."""
        parts = defaultdict[tuple[str, str], list[tuple[int, int]]](list)
        for where, first, last in wanted:
            parts[where].append((first, last))
        once = {where: joined(some) for where, some in parts.items()}
        found = await self._handle.services.store.messages_of(self._handle.scope, once)
        self._read = {where: (once[where], read) for where, read in found.items()}

    async def messages(self, where: tuple[str, str], first: int, last: int) -> RangesRead:
        """The messages of a range, which is read now unless it was before."""
        covered, found = self._read.get(where, _NOTHING)
        if not all_in(covered, first, last):
            read = await self._handle.services.store.messages_of(self._handle.scope, {where: ((first, last),)})
            return read[where]
        begin = bisect_left(found.messages, first, key=attrgetter("seq"))
        end = bisect_right(found.messages, last, key=attrgetter("seq"))
        return found._replace(messages=found.messages[begin:end])

    async def group(self, agent: str, conversation: str, seq: int) -> list[Logged]:
        """The live messages of the group of message `seq`, without others in between; empty if there are none."""
        found: Group | None = None
        view_start = 0
        for reach in (_NEAR, _FAR):
            first, last = _around(seq, reach)
            view_start, read = await self.messages((agent, conversation), first, last)
            found = next((one for one in _grouped(read) if any(member.seq == seq for member in one.members)), None)
            if found is not None and not found.open and not found.orphan and found.first > first:
                break
        return [] if found is None else [member for member in found.members if member.seq >= view_start]


_MessageRange = tuple[tuple[str, str], int, int]
"""A conversation, by its agent and its id, and the first and the last of some messages there."""

_NOTHING: tuple[Ranges, RangesRead] = ((), RangesRead(0, []))


def _around(seq: int, reach: int) -> tuple[int, int]:
    return max(seq - reach, 0), seq + reach


def _grouped(read: Sequence[Logged], at: int | None = None) -> list[Group]:
    """The groups of those that are live now, or were at a revision."""
    live = [one for one in read if (one.retracted_rev is None if at is None else one.live(at))]
    return groups(live, ranges(one.seq for one in read if one.retracted_rev is not None))


async def recollection_of(
    handle: Handle, reader: GroupReader, hit: Hit, why: RecallReason, question: str
) -> RecalledPiece | None:
    """A hit as a context shows it; for a tool message, its whole group. None if it no longer exists, or is
    nothing but data."""
    if _in_group(hit):
        assert hit.conversation is not None, "a message has its conversation"
        assert hit.start is not None, "and its place there"
        whole = await reader.group(hit.agent, hit.conversation, hit.start)
        if not whole:
            return None
        found = _of_messages(handle, whole, hit, why)
        shown = _shown(found.text)
        if shown is None:
            return None
        passages = _passages_in(handle, whole, hit, question)
        return replace(found, here=_here(handle, found), characters=shown, passages=passages)
    shown = _shown(hit.text)
    if shown is None:
        return None
    return RecalledPiece(
        why=why,
        kind=hit.kind,
        text=hit.text,
        said_at=hit.said_at,
        score=hit.score,
        conversation=hit.conversation,
        agent=hit.agent or None,
        start=hit.start,
        end=hit.end,
        digest=hit.digest,
        document=hit.document,
        passage=hit.passage,
        title=hit.title,
        speaker=speaker_label(hit.role or "", hit.author),
        here=_here(handle, hit),
        passages=hit.passages,
        characters=shown,
    )


def _shown(text: str) -> tuple[CharRange, ...] | None:
    """What the context shows of a text, without data: `RecalledPiece.characters`; None if it is nothing else."""
    ranges = [*beside_data(text)]
    shown = tuple(one for one in ranges if one[0] < one[1]) if len(ranges) > 1 else ()
    return shown if shown or len(ranges) == 1 else None


def _here(handle: Handle, one: Hit | RecalledPiece) -> bool:
    """Whether it is of the conversation that the context is of."""
    return (one.agent, one.conversation) == (handle.scope.agent, handle.id)


def _passages_in(handle: Handle, members: Sequence[Logged], hit: Hit, question: str) -> tuple[CharRange, ...]:
    """The passages of a group's text: those of the hit, then those of the messages beside it."""
    mine: list[CharRange] = []
    others: list[CharRange] = []
    at = 0
    for one in _with_text(members):
        matching = one.seq == hit.start
        text = "\n".join(voice.words for voice in _voices_of(handle, one))
        same = text == one.message.text
        known = matching and hit.passages and same
        ranges = narrowed(text, hit.passages, question) if known else passage_ranges(text)
        (mine if matching else others).extend((at + start, at + end) for start, end in ranges)
        at += len(text) + 1
    return (*mine, *others)


def _with_text(members: Sequence[Logged]) -> list[Logged]:
    return [one for one in members if one.message.text.strip()]


def _voices_of(handle: Handle, one: Logged) -> list[Voice]:
    """The pieces of a message's text; of a long result that is JSON, what later calls may name."""
    voices = handle.services.voices(one.message)
    return [voice._replace(words=_result(voice)) for voice in voices] if one.message.answers else voices


def _result(voice: Voice) -> str:
    text = voice.words
    json = voice.role is Role.TOOL and text.lstrip()[:1] in ("{", "[") and len(text) > _RESULT
    return key_values(without_data(text), _RESULT) if json else text


def _in_group(hit: Hit) -> bool:
    """Whether the messages of its group are shown for it: it is of a tool, or longer than the text of a hit."""
    of_a_tool = hit.role == Role.TOOL or _CALLS in hit.text
    return hit.kind is EntryKind.MESSAGE and (of_a_tool or len(hit.text) == TEXT)


def _of_messages(
    handle: Handle, members: Sequence[Logged], of: Hit | RecalledEntry, why: RecallReason
) -> RecalledPiece:
    first = members[0]
    voices = [voice for one in _with_text(members) for voice in _voices_of(handle, one)]
    return RecalledPiece(
        why=why,
        kind=EntryKind.MESSAGE,
        text="\n".join(voice.words for voice in voices),
        said_at=first.said_at,
        score=of.score,
        conversation=of.conversation,
        agent=of.agent or None,
        start=first.seq,
        end=members[-1].seq,
        title=of.title,
        speaker=speaker_of(first.message),
        parts=parts_of(voices),
        members=tuple(one.seq for one in members),
    )


async def again(handle: Handle, says: Sequence[RecalledEntry]) -> list[RecalledPiece]:
    """The pieces that a manifest says were recalled. Raises NotReproducible where one of them is gone."""
    others = {(one.conversation, one.agent) for one in says if one.kind != EntryKind.MESSAGE and one.conversation}
    heads = {there: await handle.beside(*there).head() for there in others}  # which erases what has expired
    reader = GroupReader(handle)
    asked = [_range_of(handle, one) for one in says]
    await reader.read(one for one in asked if one is not None)
    return [await _again(handle, one, where, reader, heads) for one, where in zip(says, asked, strict=True)]


def _range_of(handle: Handle, says: RecalledEntry) -> _MessageRange | None:
    """The messages that an entry stands for; None for an entry of another kind, and where no group can be."""
    start, end = says.start, says.end
    if says.kind != EntryKind.MESSAGE or says.conversation is None or start is None or end is None:
        return None
    if not 0 <= start <= end <= start + 2 * _FAR or end >= 2**63:
        return None
    return (handle.beside(says.conversation, says.agent).scope.agent, says.conversation), start, end


async def _again(
    handle: Handle,
    says: RecalledEntry,
    asked: _MessageRange | None,
    reader: GroupReader,
    heads: Mapping[tuple[str, str | None], Head],
) -> RecalledPiece:
    found: RecalledPiece | None = None
    match EntryKind(says.kind):
        case EntryKind.MESSAGE if asked is not None:
            found = _messages_again(handle, (await reader.messages(*asked)).messages, says)
        case EntryKind.DIGEST if says.conversation:
            there = says.conversation, says.agent
            found = await _digest_again(handle.beside(*there), heads[there], says)
        case EntryKind.PASSAGE:
            found = await _passage_again(handle, says)
        case _:
            found = None  # no context recalls a fact
    if found is None:
        raise NotReproducible(
            f"a {says.kind} that this context recalled ({says.conversation or says.document}, {says.start}) was erased "
            "since"
        )
    return replace(found, here=_here(handle, found), characters=tuple(says.characters))


def _messages_again(handle: Handle, read: Sequence[Logged], says: RecalledEntry) -> RecalledPiece | None:
    members = read
    if read and says.start != says.end:
        # As the group was when its last message came: results may have come since, and messages been retracted.
        grouped = _grouped(read, read[-1].rev)
        members = next((group.members for group in grouped if group.first == says.start), list[Logged]())
    if not members or any(one.erased for one in members):
        return None
    return _of_messages(handle, members, says, RecallReason(says.why))


async def _digest_again(handle: Handle, head: Head, says: RecalledEntry) -> RecalledPiece | None:
    row = None if says.digest is None else await handle.services.store.digest(handle.scope, handle.id, says.digest)
    if row is None or row.completed_at is None or row.hidden_rev == 0:
        return None
    found = await _of_digest(handle, head, row, RecallReason(says.why), says.score)
    return None if found is None else replace(found, title=says.title)


async def _of_digest(
    handle: Handle,
    head: Head,
    row: Digest | StandingSummary,
    why: RecallReason,
    score: float,
    *,
    until: datetime | None = None,
) -> RecalledPiece | None:
    """A digest as a context shows it; None if its conversation has been deleted meanwhile, or it rests on a message
    that was appended after `until`."""
    reading = MessageRange(start=row.end, stop=row.end + 1)
    messages = await handle.services.store.messages(handle.scope, handle.id, head.ref, reading)
    if not messages or (until is not None and messages[0].created_at > until):
        return None
    last = messages[0]
    return RecalledPiece(
        why=why,
        kind=EntryKind.DIGEST,
        text=row.text[:TEXT],
        said_at=last.said_at,
        score=score,
        conversation=handle.id,
        agent=handle.scope.agent,
        start=row.start,
        end=row.end,
        digest=row.id,
    )


async def newest_summaries(
    handle: Handle, limit: int, why: RecallReason, until: datetime | None
) -> list[RecalledPiece]:
    """The summaries, or else the newest chunks, of the scope's other conversations that were written last and are not
    private, at most `limit`, the newest first; each once where forks have the same one, and not if this conversation
    has it too. `until`: none that rests on a later message."""
    found: list[RecalledPiece] = []
    own = await _newest_digest(handle, await handle.head())
    known = {(one.start, one.end, one.text) for one in (own,) if one is not None}
    others, _ = await handle.services.store.listed(ConversationFilter.of(handle.scope), limit=_LOOKED_AT)
    for one in others:
        if len(found) == limit:
            break
        if one.conversation != handle.id:
            other = handle.beside(one.conversation)
            head = await other.head()
            newest = None if head.private else await _newest_digest(other, head)
            if newest is None or (same := (newest.start, newest.end, newest.text)) in known:
                continue
            known.add(same)
            piece = await _of_digest(other, head, newest, why, 1.0, until=until)
            found += [] if piece is None else [piece]
    return found


async def _newest_digest(handle: Handle, head: Head) -> Digest | StandingSummary | None:
    """The standing summary, else the newest chunk."""
    if head.digest is not None:
        return head.digest
    frontiers = head.frontiers.values()
    chunks = [one.digest for one in frontiers if one.action is DigestAction.CHUNK and one.digest is not None]
    return await handle.services.store.digest(handle.scope, handle.id, max(chunks)) if chunks else None


async def _passage_again(handle: Handle, says: RecalledEntry) -> RecalledPiece | None:
    documents = handle.services.store.documents
    if says.document is None or says.passage is None:
        return None
    document = await documents.document(handle.scope, says.document, all_agents=True)
    passages = await documents.passages(handle.scope, says.document, all_agents=True)
    if document is None or says.passage >= len(passages):
        return None
    archived = document.archived
    return RecalledPiece(
        why=RecallReason(says.why),
        kind=EntryKind.PASSAGE,
        text=passages[says.passage].text[:TEXT],
        said_at=document.said_at,
        score=says.score,
        conversation=None if archived is None else archived.conversation,
        agent=says.agent,
        start=None if archived is None else archived.start,
        end=None if archived is None else archived.end,
        document=document.id,
        passage=says.passage,
        title=document.title,
    )
