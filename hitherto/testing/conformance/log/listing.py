"""Conformance cases for the list of conversations, and for those with expired messages to erase."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from hitherto.core.log.append import extended
from hitherto.core.scope import Scope
from hitherto.ports.log import Changes, ConversationInfo, ExpiredConversation
from hitherto.ports.store import Store
from hitherto.testing.conformance.samples import HOUR, SCOPE, assistant, dialogue, fire, head_of, user, write

ELSEWHERE = Scope(tenant="another", user="u", agent="a")


async def names(store: Store, *, limit: int = 100) -> list[str]:
    return [one.conversation for one in await store.listed(SCOPE, limit=limit)]


class ListingCases:
    async def test_listed_most_recently_written_first(self, store: Store) -> None:
        assert await store.listed(SCOPE) == []
        for name in ("a", "b", "c", "d"):
            await write(store, name, *dialogue(1))
        await write(store, "e", *dialogue(1), scope=ELSEWHERE)
        assert await names(store) == ["d", "c", "b", "a"]
        await write(store, "b", user())
        assert await names(store) == ["b", "d", "c", "a"]
        async with store.write(SCOPE, "a"):
            pass
        assert await names(store) == ["b", "d", "c", "a"], "a unit that was left wrote nothing"
        assert await names(store, limit=2) == ["b", "d"]
        assert await names(store, limit=0) == []
        assert await names(store, limit=4) == await names(store)

    async def test_listed_tells_size_and_revision(self, store: Store) -> None:
        await write(store, "c", *dialogue(2), tokens=[1, 2, 3, 4])
        written = await write(store, "c", user(), tokens=[5])
        assert await store.listed(SCOPE) == [
            ConversationInfo(conversation="c", messages=5, tokens=15, rev=2, updated_at=written.head.now)
        ]

    async def test_listed_gives_a_hundred_unless_told(self, store: Store) -> None:
        for n in range(103):
            await write(store, f"{n}", user())
        assert await names(store) == [f"{n}" for n in range(102, 2, -1)]
        assert len(await names(store, limit=1_000)) == 103

    async def test_due_are_messages_whose_time_has_come(self, store: Store) -> None:
        now = datetime.now(UTC)
        await write(store, "late", replace(user(), expires_at=now - HOUR), assistant())
        await write(store, "soon", replace(user(), expires_at=now + HOUR), assistant())
        await write(store, "both", replace(user(), expires_at=now - HOUR), scope=ELSEWHERE)
        await fire(store, "both", 0, 0, scope=ELSEWHERE)
        await write(store, "quiet", *dialogue(3))
        await fire(store, "quiet", 0, 5)
        found = await store.due()
        assert sorted(found, key=str) == sorted(
            [ExpiredConversation(SCOPE, "late"), ExpiredConversation(ELSEWHERE, "both")], key=str
        )
        assert len(await store.due(limit=1)) == 1
        assert await store.due(limit=0) == await store.due(limit=-1) == []
        async with store.write(SCOPE, "late") as unit:
            erase, following = await unit.expired()
            head = replace(unit.head, rev=unit.head.rev + 1, erased=erase, next_expiry=following)
            await unit.commit(Changes(head=head, erase=erase))
        assert await store.due() == [ExpiredConversation(ELSEWHERE, "both")]

    async def test_the_next_expiry_is_the_earliest(self, store: Store) -> None:
        now = datetime.now(UTC)
        async with store.write(SCOPE, "c") as unit:
            batch = [replace(user(), expires_at=now + time) for time in (3 * HOUR, HOUR, 2 * HOUR)]
            logged, head = extended(unit.head, batch, [1, 1, 1])
            await unit.commit(Changes(head=head, messages=logged))
        assert (await head_of(store, "c")).next_expiry == now + HOUR
