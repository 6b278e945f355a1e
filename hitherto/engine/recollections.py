"""What a context shows of what it recalls: of a hit, and once more of what a manifest says of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hitherto.core.group import groups
from hitherto.core.head import Head
from hitherto.core.manifest import Recalled
from hitherto.core.message import Logged, Role
from hitherto.core.recalled import Recollection, Why
from hitherto.core.scope import Scope
from hitherto.core.speaker import speaker_of
from hitherto.core.wanted import EntryKind
from hitherto.engine.place import Place
from hitherto.engine.recall import Hit
from hitherto.errors import Unreproducible
from hitherto.ports.index import TEXT
from hitherto.ports.store import Reading

_GROUP = 64
"""So many messages before and after a tool's are looked at for its group."""


async def recollection_of(place: Place, hit: Hit, why: Why) -> Recollection | None:
    """A hit as a context shows it; of a tool's message the whole group. None if it is gone meanwhile."""
    if hit.kind is EntryKind.MESSAGE and _of_a_tool(hit):
        assert hit.conversation is not None, "a message has its conversation"
        assert hit.start is not None, "and its place there"
        whole = await _group(place, hit.agent, hit.conversation, hit.start)
        return None if not whole else _of_messages(whole, hit.conversation, hit.agent, why, hit.score)
    return Recollection(
        why=why,
        kind=hit.kind,
        text=_cut(hit.text),
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
        speaker=hit.author or hit.role,
    )


def _of_a_tool(hit: Hit) -> bool:
    return hit.role == Role.TOOL or "[calls " in hit.text


def _cut(text: str) -> str:
    return text if len(text) < TEXT else text[: TEXT - 1] + "…"


def _of_messages(
    members: Sequence[Logged], conversation: str, agent: str | None, why: Why, score: float
) -> Recollection:
    first = members[0]
    return Recollection(
        why=why,
        kind=EntryKind.MESSAGE,
        text=_cut("\n".join(one.message.text for one in members if one.message.text.strip())[:TEXT]),
        said_at=first.created_at,
        score=score,
        conversation=conversation,
        agent=agent or None,
        start=first.seq,
        end=members[-1].seq,
        speaker=speaker_of(first.message),
        members=tuple(one.seq for one in members),
    )


async def _group(place: Place, agent: str, conversation: str, seq: int) -> list[Logged]:
    """The live messages of the group that the message belongs to, without what stands between them."""
    scope = replace(place.scope, agent=agent or place.scope.agent)
    store = place.parts.store
    head = await store.head(scope, conversation)
    if head is None:
        return []
    reading = Reading(start=seq - _GROUP, stop=seq + _GROUP + 1, live_at=head.rev)
    near = [one for one in await store.messages(scope, conversation, head.ref, reading) if not one.erased]
    for group in groups(near, head.retracted):
        if any(member.seq == seq for member in group.members):
            return [member for member in group.members if member.seq >= head.view_start]
    return []


async def again(place: Place, says: Sequence[Recalled]) -> list[Recollection]:
    """What a manifest says was recalled. Raises Unreproducible where something of it is gone."""
    return [await _again(place, one) for one in says]


async def _again(place: Place, says: Recalled) -> Recollection:
    kind, scope = EntryKind(says.kind), replace(place.scope, agent=says.agent or place.scope.agent)
    found: Recollection | None = None
    match kind:
        case EntryKind.MESSAGE:
            found = await _messages_again(place, scope, says)
        case EntryKind.DIGEST:
            found = await _digest_again(place, scope, says)
        case EntryKind.PASSAGE:
            found = await _passage_again(place, scope, says)
        case EntryKind.FACT:
            found = None  # no context recalls any
    if found is None:
        raise Unreproducible(
            f"a {says.kind} that this context recalled ({says.conversation or says.document}, {says.start}) was erased "
            "since"
        )
    return found


async def _messages_again(place: Place, scope: Scope, says: Recalled) -> Recollection | None:
    name, start, end = says.conversation, says.start, says.end
    if name is None or start is None or end is None:
        return None
    head: Head | None = await place.parts.store.head(scope, name)
    if head is None:
        return None
    members = await place.parts.store.messages(scope, name, head.ref, Reading(start=start, stop=end + 1))
    if members and start != end:
        # As the group was when its last message came: results may have come since, and messages been taken back.
        then = members[-1].rev
        grouped = groups([one for one in members if one.live(then)], head.retracted)
        members = next((group.members for group in grouped if group.first == start), list[Logged]())
    if not members or any(one.erased for one in members):
        return None
    return _of_messages(members, name, says.agent, Why(says.why), says.score)


async def _digest_again(place: Place, scope: Scope, says: Recalled) -> Recollection | None:
    if says.conversation is None:
        return None
    rows = await place.parts.store.digests(scope, says.conversation)
    row = next((row for row in rows if row.id == says.digest), None)
    if row is None or row.completed_at is None or row.hidden_rev == 0:
        return None
    head = await place.parts.store.head(scope, says.conversation)
    if head is None:
        return None
    reading = Reading(start=row.end, stop=row.end + 1)
    (last,) = await place.parts.store.messages(scope, says.conversation, head.ref, reading)
    return Recollection(
        why=Why(says.why),
        kind=EntryKind.DIGEST,
        text=_cut(row.text[:TEXT]),
        said_at=last.created_at,
        score=says.score,
        conversation=says.conversation,
        agent=says.agent,
        start=row.start,
        end=row.end,
        digest=row.id,
    )


async def _passage_again(place: Place, scope: Scope, says: Recalled) -> Recollection | None:
    library = place.parts.library
    if library is None or says.document is None or says.passage is None:
        return None
    document = await library.document(scope, says.document, every_agent=True)
    passages = await library.passages(scope, says.document, every_agent=True)
    if document is None or says.passage >= len(passages):
        return None
    archived = document.archived
    return Recollection(
        why=Why(says.why),
        kind=EntryKind.PASSAGE,
        text=_cut(passages[says.passage].text[:TEXT]),
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
