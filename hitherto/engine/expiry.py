"""Erasing messages whose time has come, and what was derived from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hitherto.core.budget import TokenCounter
from hitherto.core.digest import Digest, Done, Ranges, Status, joined, render_items
from hitherto.core.head import Head
from hitherto.core.scope import Scope
from hitherto.engine.frontiers import frontiers
from hitherto.ports.store import Changes, Outcome, Rewritten, Store


def is_due(head: Head) -> bool:
    return head.next_expiry is not None and head.next_expiry <= head.now


async def erase_expired(store: Store, scope: Scope, conversation: str, counter: TokenCounter) -> int:
    """Erase what is due in a conversation, from the log and from every digest; returns how many messages it was.

    A digest loses the statements that rest on erased messages only. One with a statement that rests on others too is
    superseded, so that the next one is made from the messages that are left. A digest in progress over erased messages
    loses its claim.
    """
    head = await store.head(scope, conversation)
    if head is None or not is_due(head):
        return 0
    async with store.write(scope, conversation) as unit:
        head = unit.head
        if not is_due(head):
            return 0
        erased, following = await unit.expired()
        digests = await unit.digests() if erased else []
        after = replace(
            head,
            rev=head.rev + (1 if erased else 0),
            erased=joined((*head.erased, *erased)),
            next_expiry=following,
            open_calls={call: o for call, o in head.open_calls.items() if not _within(o.seq, erased)},
        )
        rewritten = tuple(_rewritten(digests, erased, counter))
        gone = {one.digest for one in rewritten if one.superseded}
        if gone:
            left = [row for row in digests if row.id not in gone and row.visible(head.rev)]
            after = replace(after, frontiers=await frontiers(unit, left, head.view_start))
        changes = Changes(
            head=after,
            erase=erased,
            rewritten=rewritten,
            outcomes=tuple(
                Outcome(digest=digest.id, superseded=True, error="messages of its range expired")
                for digest in digests
                if digest.status is Status.PROCESSING and _overlaps(digest, erased)
            ),
        )
        await unit.commit(changes)
    return sum(last - first + 1 for first, last in erased)


def _rewritten(digests: Iterable[Digest], erased: Ranges, counter: TokenCounter) -> Iterable[Rewritten]:
    for digest in digests:
        if digest.status is not Status.COMPLETED or digest.done not in (Done.SUMMARISE, Done.CHUNK, Done.COMPACT):
            continue
        if digest.done is Done.COMPACT:
            # What an opaque item says of which message, nobody can tell.
            if _overlaps(digest, erased):
                yield Rewritten(digest=digest.id, superseded=True)
            continue
        touched = [item for item in digest.items if item.rests_on(erased)]
        if not touched:
            continue
        if any(not _covered(item.sources, erased) for item in touched):
            yield Rewritten(digest=digest.id, superseded=True)
            continue
        items = tuple(item for item in digest.items if item not in touched)
        text = render_items(items)
        yield Rewritten(digest=digest.id, items=items, text=text, tokens=counter.count(text))


def _overlaps(digest: Digest, erased: Ranges) -> bool:
    return any(first <= digest.end and digest.start <= last for first, last in erased)


def _covered(sources: Ranges, erased: Ranges) -> bool:
    return all(any(a <= first and last <= b for a, b in erased) for first, last in sources)


def _within(seq: int, erased: Ranges) -> bool:
    return any(first <= seq <= last for first, last in erased)
