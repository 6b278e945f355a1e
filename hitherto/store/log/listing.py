"""Lists: the values that their statements bind, and what their rows are."""

from __future__ import annotations

import json
from typing import Any

from hitherto.core.log.conversations import ConversationFilter, ConversationInfo, ScopeCounts
from hitherto.core.log.title import title_of
from hitherto.core.scope import Scope
from hitherto.store.rows import PAGE, Row


def listed_values(asked: ConversationFilter, limit: int) -> dict[str, Any]:
    beyond_at, beyond_ref = asked.beyond or (None, None)
    return {
        "tenant": asked.tenant,
        "user": asked.user,
        "agent": asked.agent,
        "after": asked.after,
        "before": asked.before,
        "metadata": json.dumps(asked.metadata),
        "beyond_at": beyond_at,
        "beyond_ref": beyond_ref,
        "limit": max(limit, 0),
        **PAGE,
    }


def info_from(tenant: str, row: Row) -> ConversationInfo:
    """A row of `listed`, or one that ends before the summary."""
    user, agent, name, title, opening, metadata, messages, tokens, rev, created_at, updated_at, said_at, ref, *rest = (
        row
    )
    summary, count, failures = rest or ("", 0, 0)
    return ConversationInfo(
        scope=Scope(tenant=tenant, user=user, agent=agent),
        conversation=name,
        title=title_of(opening) if title is None else title,
        metadata=json.loads(metadata),
        messages=messages,
        tokens=tokens,
        rev=rev,
        created_at=created_at,
        updated_at=updated_at,
        said_at=said_at,
        ref=ref,
        summary=summary,
        summarized_count=count,
        failures=failures,
    )


def counts_from(row: Row) -> ScopeCounts:
    name, conversations, messages, tokens, documents, facts, updated_at = row
    return ScopeCounts(
        name=name,
        conversations=conversations,
        messages=messages,
        tokens=tokens,
        documents=documents,
        facts=facts,
        updated_at=updated_at,
    )
