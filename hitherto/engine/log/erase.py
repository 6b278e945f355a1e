"""Erasing messages that have expired or that a caller names, and what was derived from them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hitherto.core.changes import Changes
from hitherto.core.context.budget import TokenCounter
from hitherto.core.digests.digest import Digest, DigestOutcome, RewrittenDigest, Status, render_items
from hitherto.core.log.frontier import DigestAction
from hitherto.core.log.head import Head
from hitherto.core.log.message import id_hash, short_id
from hitherto.core.log.ranges import Ranges, all_in, any_in, joined, ranges, without
from hitherto.core.scope import Scope
from hitherto.engine.digests.frontiers_from_rows import frontiers
from hitherto.errors import InvalidInput

if TYPE_CHECKING:
    from hitherto.store.store import Store
    from hitherto.store.unit import Unit


def is_due(head: Head) -> bool:
    return head.next_expiry is not None and head.next_expiry <= head.clock


async def erase_expired(
    store: Store, scope: Scope, conversation: str, counter: TokenCounter, *, unread: int | None = None
) -> int:
    """Erase a conversation's expired messages from the log and from every digest; returns how many messages it erased.
    `unread` is a digest in progress that the caller has claimed and read nothing for yet."""
    head = await store.head(scope, conversation)
    if head is None or not is_due(head):
        return 0
    async with store.write(scope, conversation) as unit:
        if not is_due(unit.head):
            return 0
        erased, following = await unit.expired()
        changes = await _erasing(unit, erased, counter, why="messages of its range expired", unread=unread)
        await unit.commit(replace(changes, head=replace(changes.head, next_expiry=following)))
    return _count(erased)


async def erase_messages(
    store: Store,
    scope: Scope,
    conversation: str,
    asked: Collection[int],
    counter: TokenCounter,
    *,
    ids: Collection[str] = (),
    keep_facts: bool = False,
) -> int:
    """Erase these messages, those with these ids, in all forks that have them, what rests on them, and facts that only
    they say, confirmed ones too (with `keep_facts`, they stay); returns how many were not erased before in this
    conversation. Raises InvalidInput, and erases nothing, for a seq or an id that is not in the log."""
    async with store.write(scope, conversation, ids=ids) as unit:
        nobodys = next((one for one in ids if id_hash(one) not in unit.known), None)
        if nobodys is not None:
            raise InvalidInput(f"{conversation!r} has no message with the id {short_id(nobodys)}; nothing was erased")
        unknown = next((seq for seq in asked if not 0 <= seq < unit.head.next_seq), None)
        if unknown is not None:
            there = f"its log has 0 to {unit.head.last_seq}" if unit.head.next_seq else "its log is empty"
            raise InvalidInput(f"{conversation!r} has no message {unknown}: {there}; nothing was erased")
        seqs = [*asked, *unit.known.values()]
        relatives = {unit.head.ref: unit.head.last_seq, **await unit.relatives()}
        count = await _erase_in(unit, seqs, counter, keep_facts=keep_facts)
    # Whoever is cut off here asks again. What was forked before its turn came is found by the next round.
    while left := await store.relatives_with(scope, relatives, seqs):
        for ref, name, there in left:
            async with store.write(scope, name) as unit:
                if unit.head.ref == ref:  # else it was deleted meanwhile, and perhaps another has its name
                    relatives |= {ref: max(there)}
                    await _erase_in(unit, there, counter, keep_facts=keep_facts)
    return count


async def erase_as_relatives(store: Store, scope: Scope, conversation: str, counter: TokenCounter) -> None:
    """Erase the messages of a conversation that are erased where they are too, in all forks that have them."""
    async with store.write(scope, conversation) as unit:
        erased, _ = await unit.done_in_relatives()
        left = without(erased, unit.head.erased)
    if left:
        seqs = [seq for first, last in left for seq in range(first, last + 1)]
        await erase_messages(store, scope, conversation, seqs, counter)


async def _erase_in(unit: Unit, seqs: Collection[int], counter: TokenCounter, *, keep_facts: bool) -> int:
    """Erase these messages of one conversation. Returns how many were not erased before."""
    erased = without(ranges(seqs), unit.head.erased)
    if erased:
        changes = await _erasing(unit, erased, counter, why="messages of its range were erased")
        await unit.commit(replace(changes, forget=True, keep_facts=keep_facts))
    return _count(erased)


async def undigest(store: Store, scope: Scope, conversation: str, start: int, counter: TokenCounter) -> bool:
    """Take what rests on the messages from seq `start` on out of the digests, as if they were erased; they stay.
    Returns whether there was anything."""
    async with store.write(scope, conversation) as unit:
        hidden = without(ranges(range(start, unit.head.next_seq)), unit.head.erased)
        changes = await _erasing(unit, hidden, counter, why="in its range something was to be forgotten")
        found = bool(changes.rewritten or changes.outcomes)
        if found:
            await unit.commit(replace(changes, head=replace(changes.head, erased=unit.head.erased), erase=()))
    return found


async def _erasing(
    unit: Unit, erased: Ranges, counter: TokenCounter, *, why: str, unread: int | None = None
) -> Changes:
    """The changes that erase these messages.

    A digest loses the statements that rest on erased messages only. A summary with a statement that rests on others too
    is superseded, so that the next one is made from the messages that are left; a chunk loses that statement. A digest
    in progress is superseded if its range has erased messages, if it is built on a superseded digest, or if a worker is
    making it from a base that changes. The last does not apply to `unread`, which nothing has been read for yet.
    """
    head = unit.head
    digests = await unit.digests() if erased else []
    after = replace(
        head,
        rev=head.rev + (1 if erased else 0),
        erased=joined((*head.erased, *erased)),
    )
    rewritten = tuple(_rewritten(digests, erased, counter))
    changed = {one.digest for one in rewritten}
    gone = {one.digest for one in rewritten if one.superseded}
    if gone:
        left = [row for row in digests if row.id not in gone and row.visible(head.rev)]
        after = replace(after, frontiers=await frontiers(unit, left, head.view_start))
    ended = [
        digest
        for digest in digests
        if digest.status is Status.PROCESSING
        and (
            any_in(erased, digest.start, digest.end)
            or gone & _bases(digest, digests)
            or (changed & _bases(digest, digests) and digest.claimed and digest.id != unread)
        )
    ]
    if any(digest.action is DigestAction.FACTS for digest in ended):
        after = replace(after, facts_due_at=head.clock)  # what is left of its messages is still unread
    return Changes(
        head=after,
        background=True,
        erase=erased,
        rewritten=rewritten,
        outcomes=tuple(DigestOutcome(digest=digest.id, superseded=True, error=why) for digest in ended),
    )


def _rewritten(digests: Sequence[Digest], erased: Ranges, counter: TokenCounter) -> list[RewrittenDigest]:
    """The digests that change, as they read afterwards.

    A chunk loses every statement that rests on erased messages: it stands between other digests and cannot be made
    again. If a summary is superseded, so are the chunks after it, as there would be a hole before them. One that was
    superseded before keeps nothing if it says anything of erased messages.
    """
    found: dict[int, RewrittenDigest] = {}
    gone: dict[int, Digest] = {}
    completed = [digest for digest in digests if digest.status is Status.COMPLETED]
    for digest in completed:
        touched = [item for item in digest.items if item.rests_on(erased)]
        within = any_in(erased, digest.start, digest.end)
        match digest.action:
            case DigestAction.SUMMARIZE if any(not _covered(item.rests, erased) for item in touched):
                gone[digest.id] = digest
            case DigestAction.COMPACT if within:  # nobody can tell what it says of which message
                gone[digest.id] = digest
            case DigestAction.SUMMARIZE | DigestAction.CHUNK if touched:
                items = tuple(item for item in digest.items if not item.rests_on(erased))
                text = render_items(items)
                found[digest.id] = RewrittenDigest(digest=digest.id, items=items, text=text, tokens=counter.count(text))
            case _:
                pass
    hole = min((one.end for one in gone.values() if one.action is DigestAction.SUMMARIZE), default=None)
    for digest in completed:
        behind = hole is not None and digest.start > hole
        if digest.id in gone or (digest.action is DigestAction.CHUNK and behind):
            found[digest.id] = RewrittenDigest(digest=digest.id, superseded=True)
    for digest in digests:
        opaque = digest.opaque and any_in(erased, digest.start, digest.end)
        if digest.status is Status.SUPERSEDED and (opaque or any(item.rests_on(erased) for item in digest.items)):
            found[digest.id] = RewrittenDigest(digest=digest.id, superseded=True)
    return list(found.values())


def _count(erased: Ranges) -> int:
    return sum(last - first + 1 for first, last in erased)


def _bases(digest: Digest, digests: Sequence[Digest]) -> set[int]:
    """The digests that `digest` is built on."""
    base_of = {one.id: one.base for one in digests}
    found: set[int] = set()
    base = digest.base
    while base is not None and base not in found:
        found.add(base)
        base = base_of.get(base)
    return found


def _covered(sources: Ranges, erased: Ranges) -> bool:
    return all(all_in(erased, first, last) for first, last in sources)
