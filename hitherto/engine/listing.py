"""Lists, page by page: of conversations, and of tenants, users and agents."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, get_args

from hitherto.core.documents import metadata_json
from hitherto.core.log.conversations import ConversationFilter, ConversationInfo, ScopeCounts, ScopePart
from hitherto.core.scope import Scope, checked_name
from hitherto.engine.arguments import checked_limit, checked_time
from hitherto.errors import InvalidInput, InvalidScope

if TYPE_CHECKING:
    from hitherto.store.log.log import LogStore


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationPage:
    """Some conversations of a list. `next` is the `cursor` with which the list goes on; None at its end."""

    conversations: tuple[ConversationInfo, ...]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopePage:
    """Some tenants, users or agents of a list. `next` is the `cursor` with which the list goes on; None at its end."""

    scopes: tuple[ScopeCounts, ...]
    next: str | None


def scope_parts(
    scope: Scope | None, *, tenant: str | None, user: str | None, agent: str | None
) -> tuple[str, str | None, str | None]:
    """The tenant, user and agent whose conversations are asked for. Raises InvalidScope unless there is either a scope
    or a tenant, and for what is no name."""
    if scope is not None:
        if (tenant, user, agent) != (None, None, None):
            raise InvalidScope("give a scope, or a tenant and perhaps user and agent, not both")
        of = Scope.checked(scope)
        return of.tenant, of.user, of.agent
    if tenant is None:
        raise InvalidScope("whose conversations? Give a scope, or tenant=…, perhaps with user=… and agent=…")
    return (
        checked_name(tenant, "tenant"),
        None if user is None else checked_name(user, "user"),
        None if agent is None else checked_name(agent, "agent"),
    )


def conversation_filter(
    scope: Scope | None,
    *,
    tenant: str | None,
    user: str | None,
    agent: str | None,
    after: datetime | None,
    before: datetime | None,
    metadata: Mapping[str, Any] | None,
) -> ConversationFilter:
    """What is asked for. Raises InvalidScope as `scope_parts` does, and InvalidInput."""
    tenant, user, agent = scope_parts(scope, tenant=tenant, user=user, agent=agent)
    return ConversationFilter(
        tenant=tenant,
        user=user,
        agent=agent,
        after=checked_time(after, "after"),
        before=checked_time(before, "before"),
        metadata=json.loads(metadata_json(metadata)),
    )


async def conversation_page(
    store: LogStore, asked: ConversationFilter, *, limit: int, cursor: str | None
) -> ConversationPage:
    """See `Memory.conversations`."""
    limit = checked_limit(limit)
    beyond = None if cursor is None else _beyond(cursor)
    shown, more = await store.listed(replace(asked, beyond=beyond), limit=limit)
    return ConversationPage(conversations=tuple(shown), next=_cursor(shown[-1]) if more else None)


async def scope_page(
    store: LogStore, by: ScopePart, *, tenant: str | None, user: str | None, limit: int, cursor: str | None
) -> ScopePage:
    """See `Memory.scopes`."""
    limit = checked_limit(limit)
    if by not in get_args(ScopePart):
        raise InvalidInput(f"by is {by!r}; give 'tenant', 'user' or 'agent'")
    if by != "tenant" and tenant is None:
        raise InvalidScope(f"whose {by}s? Name the tenant: tenant=…")
    if by == "tenant" and user is not None:
        raise InvalidScope("tenants have no user; leave user=… out, or list the users of a tenant: scopes('user', …)")
    found = await store.scopes(
        by,
        tenant=None if tenant is None else checked_name(tenant, "tenant"),
        user=None if user is None else checked_name(user, "user"),
        beyond="" if cursor is None else checked_name(cursor, "cursor"),
        limit=limit + 1,
    )
    shown = found[:limit]
    return ScopePage(scopes=tuple(shown), next=shown[-1].name if len(found) > limit else None)


def _cursor(last: ConversationInfo) -> str:
    place = json.dumps([last.said_at.astimezone(UTC).isoformat(), last.ref])
    return base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")


def _beyond(cursor: object) -> tuple[datetime, int]:
    wrong = InvalidInput(f"cursor is {str(cursor)[:80]!r}; give the `next` of an earlier page")
    if not isinstance(cursor, str):
        raise wrong
    try:
        at, ref = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        time = datetime.fromisoformat(at)
    except (ValueError, TypeError, RecursionError):
        raise wrong from None
    if time.tzinfo is None or type(ref) is not int or not 0 <= ref < 2**63:
        raise wrong
    return time, ref
