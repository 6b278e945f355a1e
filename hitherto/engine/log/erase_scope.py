"""Erasing a user or a tenant: conversation by conversation, so that nobody waits, and a crash does not end it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hitherto.core.log.conversations import Erasure

if TYPE_CHECKING:
    from hitherto.store.store import Store

_AT_ONCE = 100
"""Conversations that are looked up at once."""

_REST = 4
"""After each conversation, so many times as long as that took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureReport:
    """How much was erased, or would be. `facts` are those that are current."""

    conversations: int = 0
    messages: int = 0
    documents: int = 0
    facts: int = 0


async def erase_all(store: Store, *, tenant: str, user: str | None) -> ErasureReport:
    """See `Memory.erase_user` and `Memory.erase_tenant`."""
    # Counted first: documents and facts go with their conversations too, and workers erase some of these.
    kept = await store.scopes("tenant" if user is None else "user", tenant=tenant, user=user, limit=1)
    await _end(store, await store.begin_erasure(tenant=tenant, user=user))
    return ErasureReport(
        conversations=sum(one.conversations for one in kept),
        messages=sum(one.messages for one in kept),
        documents=sum(one.documents for one in kept),
        facts=sum(one.facts for one in kept),
    )


async def kept_about(store: Store, *, tenant: str, subject: str) -> ErasureReport:
    """See `Memory.kept_about`."""
    conversations, messages, documents, facts = await store.kept_about(tenant=tenant, subject=subject)
    return ErasureReport(conversations=conversations, messages=messages, documents=documents, facts=facts)


async def erase_about(store: Store, *, tenant: str, subject: str) -> ErasureReport:
    """See `Memory.erase_subject`."""
    kept = await kept_about(store, tenant=tenant, subject=subject)
    conversations = messages = 0
    while found := await store.conversations_about(tenant=tenant, subject=subject):  # one may be forked meanwhile
        for scope, conversation, ref in found:
            began = time.perf_counter()
            async with store.write(scope, conversation) as unit:
                if unit.head.ref == ref and unit.head.subject == subject:
                    conversations, messages = conversations + 1, messages + unit.head.next_seq
                    await unit.delete(facts=True)
            await asyncio.sleep(_REST * (time.perf_counter() - began))
    await store.erase_subject(tenant=tenant, subject=subject)
    return replace(kept, conversations=conversations, messages=messages)


async def resume_erasures(store: Store, tenant: str | None = None) -> None:
    """Go on with the erasures, of any tenant or of one, that a process has begun and not ended."""
    for one in await store.erasures():
        if tenant in (None, one.tenant):
            await _end(store, one)


async def _end(store: Store, erasing: Erasure) -> None:
    """Erase what is left, to the end."""
    while found := await store.conversations_of(erasing, limit=_AT_ONCE):
        for one in found:
            began = time.perf_counter()
            async with store.write(one.scope, one.conversation) as unit:
                if unit.head.ref == one.ref:  # else it was deleted meanwhile, and perhaps another has its name
                    await unit.delete(facts=True)
            # Others' appends wait for the same disk: most of the time belongs to them.
            await asyncio.sleep(_REST * (time.perf_counter() - began))
    await store.end_erasure(erasing)
