"""Numbers of digests: those of a store, and those of an export."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from hitherto.core.cross_session import CrossSession
from hitherto.core.export.records import DocumentRecord, KeptConversation
from hitherto.core.log.head import HeadWithCalls, LatestDigest
from hitherto.core.log.message import Sums


def renumbered(kept: KeptConversation, ids: Sequence[int] = ()) -> KeptConversation:
    """The conversation with `ids` for its digests, ascending, as many as there are; by default 1, 2, 3 …. What a store
    derives from other rows is left out of the head. Raises KeyError for a digest that is named and not there."""
    there = sorted(one.id for one in kept.digests)
    numbers = dict(zip(there, ids or range(1, len(there) + 1), strict=True))
    digests = (
        replace(
            one,
            id=numbers[one.id],
            base=None if one.base is None else numbers[one.base],
            claimed=False,
            due_at=None,
        )
        for one in kept.digests
    )
    frontiers = {
        stage: replace(one, digest=None if one.digest is None else numbers[one.digest])
        for stage, one in kept.record.head.frontiers.items()
    }
    head = replace(
        _own(kept.record.head), frontiers=frontiers, now=kept.record.updated_at, clock=kept.record.updated_at
    )
    return replace(
        kept,
        record=replace(kept.record, head=head, metadata=canonical(kept.record.metadata)),
        digests=tuple(sorted(digests, key=lambda one: one.id)),
        archived=tuple(_of(one, numbers) for one in kept.archived),
    )


def canonical(metadata: str) -> str:
    """The JSON text in one form: a database may keep it in another than it was given."""
    return json.dumps(json.loads(metadata), sort_keys=True)


def _own(head: HeadWithCalls) -> HeadWithCalls:
    """What a conversation's own row has of a head."""
    return replace(
        head,
        ref=0,
        digest=None,
        digest_sums=Sums(),
        agent_policy=None,
        agent_cross_session=CrossSession(),
        latest=LatestDigest(),
        running=(),
        retracted=(),
        ttl=None,
    )


def _of(record: DocumentRecord, numbers: dict[int, int]) -> DocumentRecord:
    document = record.document
    archived = document.archived and replace(document.archived, digest=numbers[document.archived.digest])
    return replace(record, document=replace(document, id=0, archived=archived))
