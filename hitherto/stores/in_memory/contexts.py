"""Kept contexts in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from itertools import count
from typing import NamedTuple

from hitherto.core.context.kept import ContextRecord, KeptContext, manifest_of
from hitherto.core.log.ranges import Ranges, any_in
from hitherto.core.scope import Scope
from hitherto.stores.in_memory.claims import Name
from hitherto.stores.in_memory.conversation import StoredConversation


class _Kept(NamedTuple):
    name: Name
    at: datetime
    until: datetime | None
    record: ContextRecord

    def took_from(self, name: Name) -> bool:
        """Whether it took something from another conversation, of that name."""
        scope, conversation = name
        mine = (self.name[0].tenant, self.name[0].user) == (scope.tenant, scope.user)
        return mine and (scope.agent, conversation) in self.record.others


class InMemoryContexts:
    """`ContextStore` in this process's memory."""

    def __init__(self, conversations: Mapping[Name, StoredConversation], clock: Callable[[], datetime]) -> None:
        self._conversations = conversations
        self._clock = clock
        self._ids = count(1)
        self._kept: dict[int, _Kept] = {}

    async def keep(
        self,
        scope: Scope,
        conversation: str,
        record: ContextRecord,
        *,
        newest: int | None = None,
        lifetime: timedelta | None = None,
    ) -> None:
        name, now = (scope, conversation), self._clock()
        if record.next_seq > 0:
            kept = self._conversations.get(name)
            if kept is None or kept.head.next_seq < record.next_seq or _overlap(kept.head.erased, record.shown):
                return
        self._kept[next(self._ids)] = _Kept(name, now, None if lifetime is None else now + lifetime, record)
        if newest is not None:
            for number in sorted((n for n, one in self._kept.items() if one.name == name), reverse=True)[newest:]:
                del self._kept[number]

    async def kept(
        self, scope: Scope, conversation: str, *, before: int | None = None, limit: int
    ) -> list[KeptContext]:
        found = [
            KeptContext(
                id=number,
                kept_at=one.at,
                manifest=manifest_of(one.record.manifest, one.record.instructions, one.record.tools),
            )
            for number, one in reversed(self._kept.items())
            if one.name == (scope, conversation)
            and (before is None or number < before)
            and (one.until is None or one.until > self._clock())
        ]
        return found[: max(limit, 0)]

    async def forget(self, *, tenant: str | None = None) -> int:
        now = self._clock()
        return self._drop(
            lambda one: one.until is not None and one.until <= now and tenant in (None, one.name[0].tenant)
        )

    def forget_within(self, name: Name, erased: Ranges, hashes: set[bytes]) -> None:
        """Delete the contexts that showed any of these messages, or for which one with such a hash was incoming; of
        other conversations, all that took something from this one."""
        self._drop(
            lambda one: (
                one.took_from(name)
                or (
                    one.name == name
                    and (_overlap(erased, one.record.shown) or not hashes.isdisjoint(one.record.incoming))
                )
            )
        )

    def forget_all(self, name: Name) -> None:
        """Delete the contexts of a conversation, and those that took something from it."""
        self._drop(lambda one: one.name == name or one.took_from(name))

    def forget_owner(self, tenant: str, user: str | None, before: datetime) -> None:
        """Delete the contexts of a tenant, or of a user of it, that were kept by then or showed facts."""
        self._drop(
            lambda one: (
                one.name[0].tenant == tenant
                and user in (None, one.name[0].user)
                and (one.at <= before or json.loads(one.record.manifest)["facts"] is not None)
            )
        )

    def _drop(self, gone: Callable[[_Kept], bool]) -> int:
        numbers = [number for number, one in self._kept.items() if gone(one)]
        for number in numbers:
            del self._kept[number]
        return len(numbers)


def _overlap(some: Ranges, others: Ranges) -> bool:
    return any(any_in(others, first, last) for first, last in some)
