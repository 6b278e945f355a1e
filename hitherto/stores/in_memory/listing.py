"""Lists in memory: of conversations, and of tenants, users and agents."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime

from hitherto.core.documents.checks import has
from hitherto.core.log.message import Kind, Role
from hitherto.core.log.title import OPENING, title_of
from hitherto.core.scope import Scope
from hitherto.ports.log import ConversationFilter, ConversationInfo, ScopeCounts, ScopePart
from hitherto.stores.in_memory.claims import Name
from hitherto.stores.in_memory.conversation import StoredConversation

Kept = Iterable[tuple[Name, StoredConversation]]
Owner = tuple[str, str, str | None]
"""A tenant, a user and, where there is one, an agent."""

_PARTS: tuple[ScopePart, ...] = ("tenant", "user", "agent")


def listed(kept: Kept, asked: ConversationFilter, now: datetime) -> list[ConversationInfo]:
    """See `LogStore.listed`; all of them."""
    found = [(name, one) for name, one in kept if _wanted(name[0], one, asked)]
    found.sort(key=lambda one: (one[1].updated_at, one[1].head.ref), reverse=True)
    return [described(name, one, now) for name, one in found]


def described(name: Name, kept: StoredConversation, now: datetime) -> ConversationInfo:
    """A conversation as a list shows it."""
    return info(name, kept, title=kept.title or title_of(_opening(kept, now)), now=now)


def scopes(
    kept: Kept,
    *,
    documents: Iterable[Owner],
    facts: Iterable[Owner],
    by: ScopePart,
    tenant: str | None,
    user: str | None,
) -> list[ScopeCounts]:
    """See `LogStore.scopes`; all of them. `documents` and `facts` are the owners of each of these."""

    def name_of(owner: Owner) -> str | None:
        """What is counted under; None if it is not asked for, or belongs to no agent."""
        if tenant not in (None, owner[0]) or user not in (None, owner[1]):
            return None
        return owner[_PARTS.index(by)]

    chats = [(name_of((scope.tenant, scope.user, scope.agent)), one) for (scope, _), one in kept]
    papers, known = [name_of(owner) for owner in documents], [name_of(owner) for owner in facts]
    found: list[ScopeCounts] = []
    for name in sorted({name for name in (*(one for one, _ in chats), *papers, *known) if name is not None}):
        its = [one for whose, one in chats if whose == name]
        found.append(
            ScopeCounts(
                name=name,
                conversations=len(its),
                messages=sum(one.head.next_seq for one in its),
                tokens=sum(one.head.sums.tokens for one in its),
                documents=papers.count(name),
                facts=known.count(name),
                updated_at=max((one.updated_at for one in its), default=None),
            )
        )
    return found


def _wanted(scope: Scope, kept: StoredConversation, asked: ConversationFilter) -> bool:
    return (
        scope.tenant == asked.tenant
        and asked.user in (None, scope.user)
        and asked.agent in (None, scope.agent)
        and (asked.after is None or kept.updated_at >= asked.after)
        and (asked.before is None or kept.updated_at <= asked.before)
        and (asked.beyond is None or (kept.updated_at, kept.head.ref) < asked.beyond)
        and has(json.loads(kept.metadata), asked.metadata)
    )


def info(name: Name, kept: StoredConversation, *, title: str, now: datetime | None = None) -> ConversationInfo:
    """The conversation as lists show it, under that title, with its summary at the time `now`."""
    summary, count = ("", 0) if now is None else kept.summary(now)
    return ConversationInfo(
        scope=name[0],
        conversation=name[1],
        title=title,
        metadata=json.loads(kept.metadata),
        messages=kept.head.next_seq,
        tokens=kept.head.sums.tokens,
        rev=kept.head.rev,
        created_at=kept.created_at,
        updated_at=kept.updated_at,
        ref=kept.head.ref,
        summary=summary,
        summarized_count=count,
    )


def _opening(kept: StoredConversation, now: datetime) -> str | None:
    """How the first user message begins that is shown."""
    for seq in kept.live:
        message = kept.log[seq].message
        shown = seq >= kept.head.view_start and not kept.log[seq].erased
        shown = shown and (message.expires_at is None or message.expires_at > now)
        if shown and message.kind is Kind.TEXT and message.role is Role.USER:
            return message.text[:OPENING]
    return None
