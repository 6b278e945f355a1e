"""The list of conversations, and those with expired messages to erase."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hitherto.core.changes import Changes
from hitherto.core.digests.digest import Item
from hitherto.core.log.append import extended
from hitherto.core.log.conversations import (
    ConversationFilter,
    ConversationInfo,
    ExpiredConversation,
    ScopeCounts,
    ScopePart,
)
from hitherto.core.scope import Scope
from hitherto.store.store import Store
from tests.store.conftest import AS_OWNER
from tests.store.samples import (
    HOUR,
    LONG_AGO,
    SCOPE,
    assistant,
    call,
    clear,
    dialogue,
    digested,
    ending,
    fire,
    head_of,
    result,
    user,
    write,
)

ELSEWHERE = Scope(tenant="another", user="u", agent="a")


MINE = ConversationFilter.of(SCOPE)


async def listed(store: Store, *, limit: int = 100, **asked: Any) -> list[ConversationInfo]:
    found, _ = await store.listed(replace(MINE, **asked), limit=limit)
    return found


async def names(store: Store, *, limit: int = 100, **asked: Any) -> list[str]:
    return [one.conversation for one in await listed(store, limit=limit, **asked)]


async def described(store: Store, name: str, *, title: str | None = None, metadata: str | None = None) -> None:
    """Set its title or its metadata."""
    async with store.write(SCOPE, name) as unit:
        await unit.commit(Changes(head=unit.head, title=title, metadata=metadata))


async def title(store: Store, name: str = "c") -> str:
    (found,) = [one.title for one in await listed(store) if one.conversation == name]
    return found


class TestListing:
    async def test_listed_most_recently_written_first(self, store: Store) -> None:
        assert await listed(store) == []
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

    async def test_listed_tells_size_and_dates(self, store: Store) -> None:
        first = await write(store, "c", user("How  are\nyou?"), *dialogue(2)[1:], tokens=[1, 2, 3, 4])
        written = await write(store, "c", user(), tokens=[5])
        (found,) = await listed(store)
        assert found == ConversationInfo(
            scope=SCOPE,
            conversation="c",
            title="How are you?",
            metadata={},
            messages=5,
            tokens=15,
            rev=2,
            created_at=found.created_at,
            updated_at=written.head.now,
            said_at=found.said_at,
            ref=written.head.ref,
        )
        assert found.created_at <= first.head.now

    async def test_listed_tells_the_summary_and_what_it_covers(self, store: Store) -> None:
        """It covers user and final assistant messages, of which those taken back are none."""
        await write(store, "c", *dialogue(2), user("a"), call("x"), result("x"), assistant("b"), *dialogue(1))
        assert [(one.summary, one.summarized_count) for one in await listed(store)] == [("", 0)]
        first = await digested(store, "c", 0, 3, Item("They meet.", ((0, 1),)))
        await fire(store, "c", 0, 7, base=first)
        assert [(one.summary, one.summarized_count) for one in await listed(store)] == [("They meet.", 4)]
        await write(store, "c", outcomes=[ending("completed", first + 1)])
        assert [(one.summary, one.summarized_count) for one in await listed(store, agent=None)] == [("a", 6)]
        await digested(store, "c", 4, 9, Item("Later.", ((4, 9),)), stage="window")
        assert [(one.summary, one.summarized_count) for one in await listed(store)] == [("Later.", 4)]
        await clear(store, "c")
        assert [(one.summary, one.summarized_count) for one in await listed(store)] == [("", 0)]

    async def test_listed_shows_no_summary_that_may_rest_on_what_expired(self, store: Store) -> None:
        await write(store, "c", user().expiring(LONG_AGO), *dialogue(2))
        await digested(store, "c", 0, 3, Item("They meet.", ((1, 1),)))
        assert [one.summary for one in await listed(store)] == [""]

    async def test_info_is_what_lists_show_of_one_conversation(self, store: Store) -> None:
        await write(store, "c", user("Where?"), *dialogue(2))
        await digested(store, "c", 0, 3, Item("They meet.", ((0, 1),)))
        await described(store, "other", title="Another", metadata='{"a": 1}')
        await write(store, "c", user(), scope=ELSEWHERE)
        for found in await listed(store):
            assert await store.info(SCOPE, found.conversation) == found
        assert await store.info(SCOPE, "none") is None

    async def test_listed_of_a_user_an_agent_and_a_tenant(self, store: Store) -> None:
        others = [replace(SCOPE, agent="other"), replace(SCOPE, user="other"), replace(SCOPE, tenant="other")]
        for at, scope in enumerate([SCOPE, *others]):
            await write(store, f"{at}", user(), scope=scope)
        assert await names(store) == ["0"]
        assert await names(store, agent=None) == ["1", "0"]
        assert await names(store, user=None) == ["2", "0"]
        assert await names(store, user=None, agent=None) == ["2", "1", "0"]
        assert await names(store, user=None, agent=None, tenant="other") == ["3"]
        assert await names(store, user=None, agent=None, tenant="nobody") == []
        assert [one.scope for one in await listed(store, user=None, agent=None)] == [others[1], others[0], SCOPE]

    async def test_listed_by_time_and_metadata(self, store: Store) -> None:
        times = [(await write(store, name, user())).head.now for name in ("a", "b", "c")]
        found = {one.conversation: one.updated_at for one in await listed(store)}
        assert await names(store, after=found["b"]) == ["c", "b"]
        assert await names(store, before=found["b"]) == ["b", "a"]
        assert await names(store, after=times[-1] + HOUR) == []
        await described(store, "a", metadata='{"ticket": 7, "tags": ["vip", "late"]}')
        await described(store, "b", metadata='{"ticket": "7", "tags": "vip"}')
        assert await names(store, metadata={"ticket": 7}) == ["a"]
        assert await names(store, metadata={"tags": "vip"}) == ["b", "a"]
        assert await names(store, metadata={"tags": "vip", "ticket": 8}) == []
        assert await names(store, metadata={"ticket": None}) == []
        assert (await listed(store, metadata={"ticket": 7}))[0].metadata == {"ticket": 7, "tags": ["vip", "late"]}
        await described(store, "a", metadata="{}")
        assert await names(store, metadata={"ticket": 7}) == []

    async def test_what_nobody_asked_for_moves_no_conversation(self, store: Store) -> None:
        for name in ("a", "b"):
            await write(store, name, *dialogue(2))
        before = await listed(store)
        async with store.write(SCOPE, "a") as unit:
            await unit.commit(Changes(head=replace(unit.head, rev=unit.head.rev + 1), background=True))
        assert [(one.conversation, one.updated_at) for one in await listed(store)] == [
            (one.conversation, one.updated_at) for one in before
        ]
        assert (await head_of(store, "a")).now >= before[1].updated_at

    async def test_a_title_is_what_was_given_or_the_first_that_the_user_said(self, store: Store) -> None:
        await write(store, "c", assistant("Hello!"))
        assert await title(store) == ""
        await write(store, "c", user("word " * 50), user("Second."))
        assert await title(store) == ("word " * 12).strip() + "…"
        await described(store, "c", title="📦 <b>Boxes</b>")
        assert await title(store) == "📦 <b>Boxes</b>"
        await described(store, "c", metadata="{}")
        assert await title(store) == "📦 <b>Boxes</b>"
        await described(store, "c", title="")
        assert (await title(store)).startswith("word word")

    async def test_no_title_of_what_is_not_shown(self, store: Store) -> None:
        now = datetime.now(UTC)
        await write(store, "c", replace(user("Expired."), expires_at=now - HOUR), user("Cleared."))
        assert await title(store) == "Cleared."
        await clear(store, "c")
        assert await title(store) == ""
        await write(store, "c", user("Taken back."), assistant(), user("Shown."))
        async with store.write(SCOPE, "c") as unit:
            await unit.commit(Changes(head=replace(unit.head, rev=unit.head.rev + 1), retract=((2, 2),)))
        assert await title(store) == "Shown."

    async def test_scopes_and_what_is_kept_of_each(self, store: Store) -> None:
        other = replace(SCOPE, user="other", agent="another")
        await write(store, "a", *dialogue(2), tokens=[1, 2, 3, 4])
        last = await write(store, "b", user(), tokens=[5])
        await write(store, "c", user(), tokens=[6], scope=other)
        await write(store, "d", user(), tokens=[7], scope=ELSEWHERE)
        (found,) = [one for one in await store.scopes("user", tenant=SCOPE.tenant, limit=9) if one.name == SCOPE.user]
        assert found == ScopeCounts(
            name=SCOPE.user, conversations=2, messages=5, tokens=15, documents=0, facts=0, updated_at=last.head.now
        )

        async def of(by: ScopePart, *, limit: int = 9, **asked: str) -> list[str]:
            return [one.name for one in await store.scopes(by, limit=limit, **asked)]

        users = sorted([SCOPE.user, "other"])
        assert await of("user", tenant=SCOPE.tenant) == users
        assert await of("user", tenant=SCOPE.tenant, beyond=users[0]) == users[1:]
        assert await of("user", tenant="nobody") == await of("user", tenant=SCOPE.tenant, user="nobody") == []
        assert await of("user", tenant=SCOPE.tenant, user="other") == ["other"]
        assert await of("tenant", tenant=SCOPE.tenant) == [SCOPE.tenant]
        assert await of("agent", tenant=SCOPE.tenant) == sorted([SCOPE.agent, "another"])
        assert await of("agent", tenant=SCOPE.tenant, user="other") == ["another"]

    @AS_OWNER
    async def test_tenants_by_name(self, store: Store) -> None:
        async def of(*, limit: int = 9, beyond: str = "") -> list[str]:
            return [one.name for one in await store.scopes("tenant", limit=limit, beyond=beyond)]

        await write(store, "a", user())
        await write(store, "d", user(), scope=ELSEWHERE)
        tenants = sorted([SCOPE.tenant, "another"])
        assert await of() == tenants
        assert await of(limit=1) == tenants[:1]
        assert await of(beyond=tenants[0]) == tenants[1:]
        assert await of(beyond=tenants[1]) == await of(limit=0) == []

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
