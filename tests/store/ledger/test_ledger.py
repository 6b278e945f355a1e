"""The ledger: entries of model calls, and their sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, timedelta

from hitherto.core.changes import Changes
from hitherto.core.digests.digest import DigestOutcome
from hitherto.core.ledger import By, Costs, FailureCause, ModelCall, Purpose, Spending
from hitherto.core.scope import Scope
from hitherto.store.store import Store
from tests.store.conftest import AS_OWNER
from tests.store.digests.samples import entries
from tests.store.samples import SCOPE, dialogue, fire, write

OTHER_USER = replace(SCOPE, user="another")
ELSEWHERE = Scope(tenant="another", user=SCOPE.user, agent=SCOPE.agent)
DAY = timedelta(days=1)

FIRST = ModelCall(
    purpose=Purpose.DIGEST, model="m", latency_ms=900, tokens_in=1_000, tokens_cached=600, tokens_out=50, cost=0.25
)
SECOND = ModelCall(
    purpose=Purpose.CONDENSE, model="m", latency_ms=100, tokens_in=200, tokens_cached=0, tokens_out=25, cost=0.5
)
SILENT = ModelCall(purpose=Purpose.DIGEST, model="another", latency_ms=7)
FAILED = ModelCall(purpose=Purpose.CHECK, model="another", latency_ms=60_000, cause=FailureCause.UNREACHABLE)

NOTHING = Spending()
GROUPINGS: tuple[By, ...] = ("tenant", "user", "model", "day", "purpose")


def sums(group: str, *calls: ModelCall) -> Costs:
    """The expected sums of a group of these calls."""
    return Costs(
        group=group,
        calls=len(calls),
        failed=len([call for call in calls if call.cause is not None]),
        unpriced=len([call for call in calls if call.cost is None]),
        tokens_in=sum(call.tokens_in or 0 for call in calls),
        tokens_cached=sum(call.tokens_cached or 0 for call in calls),
        tokens_out=sum(call.tokens_out or 0 for call in calls),
        cost=sum(call.cost or 0 for call in calls),
        latency_ms=sum(call.latency_ms for call in calls),
    )


async def commit(store: Store, name: str, calls: Sequence[ModelCall], *, scope: Scope = SCOPE) -> None:
    """A unit of work that writes the calls and nothing else."""
    async with store.write(scope, name) as unit:
        await unit.commit(Changes(head=unit.head, calls=tuple(entries(calls))))


async def today(store: Store) -> date:
    """The current day in UTC, by the store's clock."""
    async with store.write(SCOPE, "clock") as unit:
        return unit.head.now.astimezone(UTC).date()


async def noted(store: Store, *, tenant: str = SCOPE.tenant) -> list[Costs]:
    """The whole ledger by model."""
    return await store.costs("model", tenant=tenant)


async def note(store: Store, scope: Scope, calls: list[ModelCall]) -> None:
    """Note calls for no conversation, of somebody of whom something is kept: only then is anybody named."""
    if await store.head(scope, "kept") is None:
        await write(store, "kept", *dialogue(1), scope=scope)
    await store.note_calls(scope, None, calls)


class TestLedger:
    async def test_an_entry_that_is_written_twice_is_there_once(self, store: Store) -> None:
        """As when the answer to a commit is lost and the commit is repeated."""
        await write(store, "c", *dialogue(1))
        for _ in range(2):
            await store.note_calls(SCOPE, "c", [FIRST])
        async with store.write(SCOPE, "c") as unit:
            await unit.commit(Changes(head=unit.head, calls=(FIRST,)))
        assert [one.calls for one in await store.costs("model", tenant=SCOPE.tenant)] == [1]

    async def test_calls_land_with_the_commit_and_only_with_it(self, store: Store) -> None:
        await write(store, "c", *dialogue(3))
        made = await fire(store, "c", 0, 5)
        calls = (replace(FIRST, digest=made), replace(SECOND, digest=made))
        async with store.write(SCOPE, "c") as unit:
            assert await noted(store) == []
        async with store.write(SCOPE, "c") as unit:
            outcome = DigestOutcome(digest=made, text="x", tokens=1, model="m")
            await unit.commit(Changes(head=replace(unit.head, rev=3), outcomes=(outcome,), calls=calls))
        assert await noted(store) == [sums("m", FIRST, SECOND)]
        assert await store.spent("acme") == Spending(cost=0.75, tokens=1_275)

    async def test_calls_that_no_digest_came_of(self, store: Store) -> None:
        await write(store, "c", *dialogue(1))
        await store.note_calls(SCOPE, "c", entries([FIRST, SECOND]))
        await note(store, SCOPE, entries([FAILED]))
        await store.note_calls(SCOPE, "nowhere", entries([replace(SILENT, digest=7)]))
        await store.note_calls(SCOPE, "c", [])
        assert await noted(store) == [sums("m", FIRST, SECOND), sums("another", FAILED, SILENT)]
        assert await store.head(SCOPE, "nowhere") is None

    async def test_noting_waits_for_no_unit(self, store: Store) -> None:
        async with store.write(SCOPE, "c") as unit:
            await unit.commit(Changes(head=replace(unit.head, rev=1)))
        async with store.write(SCOPE, "c"):
            await store.note_calls(SCOPE, "c", entries([FIRST]))
            assert await noted(store) == [sums("m", FIRST)]

    async def test_figures_that_nobody_gave(self, store: Store) -> None:
        await note(store, SCOPE, entries([SILENT, FAILED, replace(SILENT, tokens_in=5), replace(SILENT, cost=0.0)]))
        (found,) = await noted(store)
        assert (found.calls, found.failed, found.unpriced) == (4, 1, 3)
        assert (found.tokens_in, found.tokens_cached, found.tokens_out, found.cost) == (5, 0, 0, 0)
        assert await store.spent("acme") == Spending(cost=0, tokens=5)

    async def test_every_purpose_and_cause(self, store: Store) -> None:
        made = [replace(FIRST, purpose=one, cause=cause) for one in Purpose for cause in (None, *FailureCause)]
        await note(store, SCOPE, entries(made))
        await commit(store, "c", made)
        found = {one.group: one for one in await store.costs("purpose", tenant=SCOPE.tenant)}
        assert found == {
            purpose.value: sums(purpose.value, *2 * [one for one in made if one.purpose is purpose])
            for purpose in Purpose
        }

    async def test_large_and_small_figures(self, store: Store) -> None:
        large = replace(FIRST, tokens_in=2**53, tokens_out=2**53, latency_ms=2**40, cost=1e-9)
        await note(store, SCOPE, entries([large, large]))
        assert await noted(store) == [sums("m", large, large)]
        assert await store.spent("acme") == Spending(cost=2e-9, tokens=2**55)

    async def test_any_name_of_a_model(self, store: Store) -> None:
        names = ["m", "M", "openai/m", "m'; --", "%(tenant)s", "会話", "m" * 500]
        await note(store, SCOPE, entries([replace(SILENT, model=name) for name in names]))
        await commit(store, "c", [replace(SILENT, model=name) for name in ("m\x00", "m\ud800")])
        assert [one.group for one in await noted(store)] == sorted(
            {*names, "m\ufffd"}, key=lambda n: (n != "m\ufffd", n)
        )

    @AS_OWNER
    async def test_by_each(self, store: Store) -> None:
        await commit(store, "c", [FIRST])
        await note(store, OTHER_USER, entries([SECOND, SECOND]))
        await note(store, ELSEWHERE, entries([SILENT, FAILED]))
        now = (await today(store)).isoformat()
        expected: dict[By, list[Costs]] = {
            "tenant": [sums("acme", FIRST, SECOND, SECOND), sums("another", SILENT, FAILED)],
            "user": [sums("another", SECOND, SECOND), sums("u-17", FIRST, SILENT, FAILED)],
            "model": [sums("m", FIRST, SECOND, SECOND), sums("another", SILENT, FAILED)],
            "day": [sums(now, FIRST, SECOND, SECOND, SILENT, FAILED)],
            "purpose": [sums("condense", SECOND, SECOND), sums("digest", FIRST, SILENT), sums("check", FAILED)],
        }
        for by in GROUPINGS:
            assert await store.costs(by) == expected[by]

    async def test_days_are_inclusive(self, store: Store) -> None:
        await note(store, SCOPE, entries([FIRST]))
        now = await today(store)
        before, after = now - DAY, now + DAY
        assert await store.spent("acme") == await store.spent("acme", day=now) == Spending(cost=0.25, tokens=1_050)
        assert await store.spent("acme", day=before) == await store.spent("acme", day=after) == NOTHING
        for since, until in ((now, now), (before, now), (now, after), (None, now), (now, None), (date.min, date.max)):
            assert await store.costs("day", tenant="acme", since=since, until=until) == [sums(now.isoformat(), FIRST)]
        for since, until in ((after, None), (None, before), (after, after), (before, before), (after, before)):
            for by in GROUPINGS:
                assert await store.costs(by, tenant="acme", since=since, until=until) == []

    async def test_other_tenants_are_never_counted(self, store: Store) -> None:
        names = ["ACME", "acme ", "%", "", "acm"]
        for name in names:
            if name:
                await note(store, replace(SCOPE, tenant=name), entries([SECOND]))
        await note(store, ELSEWHERE, entries([SECOND]))
        for name in ("acme", "", "a%"):
            assert await store.spent(name) == NOTHING
            for by in GROUPINGS:
                assert await store.costs(by, tenant=name) == []
        await note(store, SCOPE, entries([FIRST]))
        assert await store.spent("acme") == Spending(cost=0.25, tokens=1_050)
        for by in GROUPINGS:
            assert [replace(one, group="") for one in await store.costs(by, tenant="acme")] == [sums("", FIRST)]

    @AS_OWNER
    async def test_all_tenants_are_counted_where_none_is_named(self, store: Store) -> None:
        for name in ("a", "b", "c"):
            await note(store, replace(SCOPE, tenant=name), entries([FIRST]))
        assert [one.group for one in await store.costs("tenant")] == ["a", "b", "c"]

    async def test_users_and_agents_of_a_tenant_are_counted_together(self, store: Store) -> None:
        for scope in (SCOPE, OTHER_USER, replace(SCOPE, agent="another")):
            await note(store, scope, entries([FIRST]))
        assert await store.spent("acme") == Spending(cost=0.75, tokens=3_150)

    async def test_a_deleted_conversation_keeps_its_figures(self, store: Store) -> None:
        await write(store, "another", *dialogue(1))
        await write(store, "c", *dialogue(3))
        made = await fire(store, "c", 0, 5)
        await commit(store, "c", [replace(FIRST, digest=made)])
        await store.note_calls(SCOPE, "c", entries([replace(FAILED, digest=made)]))
        async with store.write(SCOPE, "c") as unit:
            await unit.delete()
        await store.note_calls(SCOPE, "c", entries([replace(SECOND, digest=made)]))
        assert await store.head(SCOPE, "c") is None
        assert await noted(store, tenant="acme") == [sums("m", FIRST, SECOND), sums("another", FAILED)]

    async def test_a_call_that_ends_after_an_erasure_brings_no_name_back(self, store: Store) -> None:
        for scope in (SCOPE, OTHER_USER):
            await write(store, "kept", *dialogue(1), scope=scope)
        erasing = await store.begin_erasure(tenant="acme", user=SCOPE.user)
        await commit(store, "kept", [FIRST])
        async with store.write(SCOPE, "kept") as unit:
            await unit.delete(facts=True)
        await store.end_erasure(erasing)
        await store.note_calls(SCOPE, "kept", entries([replace(SECOND, digest=7)]))
        await store.note_calls(SCOPE, None, entries([SECOND]))
        assert await store.costs("user", tenant="acme") == [sums("", FIRST, SECOND, SECOND)]
        await write(store, "kept", *dialogue(1))
        await store.note_calls(SCOPE, None, entries([SECOND]))
        found = await store.costs("user", tenant="acme")
        assert found == [sums("", FIRST, SECOND, SECOND), sums(SCOPE.user, SECOND)]

    @AS_OWNER
    async def test_a_call_that_ends_after_a_tenant_is_gone_names_nobody(self, store: Store) -> None:
        await note(store, ELSEWHERE, [])
        erasing = await store.begin_erasure(tenant="another", user=None)
        async with store.write(ELSEWHERE, "kept") as unit:
            await unit.delete(facts=True)
        await store.end_erasure(erasing)
        await store.note_calls(ELSEWHERE, None, entries([FIRST]))
        assert await store.costs("tenant") == [sums("", FIRST)]
        assert await store.costs("user") == [sums("", FIRST)]
