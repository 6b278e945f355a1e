"""The defaults of agents, and the newest summary of a scope's other conversations."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from hitherto.core.changes import Changes
from hitherto.core.cross_session import CrossSession
from hitherto.core.digests.digest import DigestOutcome, EarlierDigest, Item, RewrittenDigest
from hitherto.core.log.conversations import AgentDefaults
from hitherto.core.log.frontier import DigestAction
from hitherto.core.log.head import LatestDigest
from hitherto.core.policy.parts import Drop, LastTurns, Summarize
from hitherto.core.policy.policy import Policy, Stage, policy_json
from hitherto.core.policy.trigger import Turns
from hitherto.core.scope import Scope
from hitherto.store.store import Store
from tests.store.digests.stage_samples import stage_row, staged, superseded, take_back
from tests.store.samples import OTHER_STAGE, SCOPE, clear, dialogue, digested, fire, head_of, write

TWO_STAGES = Policy("two", (Stage(Turns(9), LastTurns(3), Summarize()), Stage(Turns(20), LastTurns(9), Drop())))
POLICY = policy_json(TWO_STAGES)
OWN_POLICY = policy_json(Policy("own"))
OWN, LATEST = CrossSession(latest=False), CrossSession(latest=True)
OTHERS = [replace(SCOPE, tenant="x"), replace(SCOPE, user="x"), replace(SCOPE, agent="x")]
YEAR = timedelta(days=365)

each_other = pytest.mark.parametrize("other", OTHERS, ids=["tenant", "user", "agent"])


async def summed_up(store: Store, name: str, text: str = "", *, scope: Scope = SCOPE) -> int:
    """Write a conversation with a summary of all of it; the digest's id."""
    await write(store, name, *dialogue(2), scope=scope)
    made = await fire(store, name, 0, 3, scope=scope)
    await write(store, name, outcomes=[DigestOutcome(digest=made, text=text or f"of {name}")], scope=scope)
    return made


async def earlier(store: Store, name: str, *, within: timedelta = YEAR) -> str | None:
    found = await store.earlier(SCOPE, name, within=within)
    return None if found is None else found.text


class TestAgent:
    async def test_defaults_are_those_that_were_set_last(self, store: Store) -> None:
        assert await store.defaults(tenant=SCOPE.tenant, agent=SCOPE.agent) == AgentDefaults()
        for defaults in (
            AgentDefaults(policy=POLICY),
            AgentDefaults(policy=POLICY, cross_session=CrossSession(latest=False, always=True)),
            AgentDefaults(cross_session=LATEST),
            AgentDefaults(ttl=timedelta(days=7, microseconds=1)),
        ):
            await store.set_defaults(tenant=SCOPE.tenant, agent=SCOPE.agent, defaults=defaults)
            assert await store.defaults(tenant=SCOPE.tenant, agent=SCOPE.agent) == defaults
        await store.set_defaults(tenant=SCOPE.tenant, agent=SCOPE.agent, defaults=AgentDefaults())
        assert await store.defaults(tenant=SCOPE.tenant, agent=SCOPE.agent) == AgentDefaults()

    async def test_the_time_to_live_is_the_conversations_else_its_agents_else_its_tenants(self, store: Store) -> None:
        async def said(agent: str | None, days: int | None) -> None:
            defaults = AgentDefaults(ttl=None if days is None else timedelta(days=days))
            await store.set_defaults(tenant=SCOPE.tenant, agent=agent, defaults=defaults)

        async def ttls() -> set[timedelta | None]:
            async with store.write(SCOPE, "c") as unit:
                found = {unit.head.ttl}
            heads = [await store.head(SCOPE, "c", at=at) for at in (None, 1)]
            return found | {head.ttl for head in heads if head is not None}

        await write(store, "c", *dialogue(1))
        assert await ttls() == {None}
        await said(None, 3)
        assert await ttls() == {timedelta(days=3)}
        assert await store.defaults(tenant=SCOPE.tenant, agent=SCOPE.agent) == AgentDefaults()
        await said(SCOPE.agent, 2)
        assert await ttls() == {timedelta(days=2)}
        for days in (1, 0):
            async with store.write(SCOPE, "c") as unit:
                await unit.commit(Changes(head=unit.head, ttl=timedelta(days=days)))
            await write(store, "c", *dialogue(1))
            assert await ttls() == {timedelta(days=days)}, "zero: for ever"
        await write(store, "new", *dialogue(1), scope=replace(SCOPE, agent="x"))
        assert (await head_of(store, "new", scope=replace(SCOPE, agent="x"))).ttl == timedelta(days=3)

    async def test_heads_tell_the_agents_defaults(self, store: Store) -> None:
        await write(store, "c", *dialogue(1), policy=OWN_POLICY, cross_session=OWN)
        await store.set_defaults(
            tenant=SCOPE.tenant, agent=SCOPE.agent, defaults=AgentDefaults(policy=POLICY, cross_session=LATEST)
        )
        told = (OWN_POLICY, POLICY, OWN, LATEST)
        for at in (None, 0, 1):
            head = await store.head(SCOPE, "c", at=at)
            assert head is not None
            assert (head.policy, head.agent_policy, head.cross_session, head.agent_cross_session) == told
        async with store.write(SCOPE, "c") as unit:
            head = unit.head
            assert (head.policy, head.agent_policy, head.cross_session, head.agent_cross_session) == told
        async with store.write(SCOPE, "new") as unit:
            assert (unit.head.policy, unit.head.agent_policy) == (None, POLICY)

    @pytest.mark.parametrize("other", [OTHERS[0], OTHERS[2]], ids=["tenant", "agent"])
    async def test_defaults_are_of_one_agent_of_one_tenant(self, store: Store, other: Scope) -> None:
        await write(store, "c", *dialogue(1))
        await store.set_defaults(
            tenant=other.tenant, agent=other.agent, defaults=AgentDefaults(policy=POLICY, cross_session=LATEST)
        )
        assert await store.defaults(tenant=SCOPE.tenant, agent=SCOPE.agent) == AgentDefaults()
        head = await head_of(store, "c")
        assert (head.agent_policy, head.agent_cross_session) == (None, CrossSession())

    async def test_earlier_is_the_newest_summary_of_the_other_conversations(self, store: Store) -> None:
        assert await store.earlier(SCOPE, "c", within=YEAR) is None
        await summed_up(store, "a")
        made = await summed_up(store, "b")
        await summed_up(store, "c")
        assert await store.earlier(SCOPE, "c", within=YEAR) == EarlierDigest(conversation="b", digest=made, text="of b")
        assert await earlier(store, "b") == "of c"
        assert await earlier(store, "new") == "of c"
        await write(store, "a", *dialogue(5))
        await write(store, "d", *dialogue(5))
        assert await earlier(store, "new") == "of c", "it goes by the summary, not by what was said since"
        await digested(store, "a", 0, 9, Item("more of a", ((0, 9),)))
        assert await earlier(store, "new") == "more of a"

    async def test_of_each_conversation_only_what_stands_for_it(self, store: Store) -> None:
        await write(store, "c", *dialogue(4))
        await digested(store, "c", 0, 7, Item("all", ((0, 7),)))
        await digested(store, "c", 0, 1, Item("less", ((0, 1),)), stage=OTHER_STAGE)
        await staged(store, "c", stage_row(DigestAction.DROP, 0, 7))
        await fire(store, "c", 0, 5)
        failed = await fire(store, "c", 0, 5, stage=OTHER_STAGE)
        await write(store, "c", outcomes=[DigestOutcome(digest=failed, error="down")])
        assert await earlier(store, "new") == "all"

    @each_other
    async def test_earlier_conversations_are_those_of_the_scope(self, store: Store, other: Scope) -> None:
        await summed_up(store, "a", "not yours", scope=other)
        assert await earlier(store, "new") is None
        await summed_up(store, "a", "yours")
        await summed_up(store, "b", "not yours", scope=other)
        assert await earlier(store, "new") == "yours"

    async def test_earlier_has_an_age(self, store: Store) -> None:
        await summed_up(store, "a")
        await asyncio.sleep(0.02)
        assert await earlier(store, "new", within=timedelta(seconds=0.01)) is None
        assert await earlier(store, "new", within=timedelta(0)) is None
        assert await earlier(store, "new", within=timedelta(minutes=1)) == "of a"
        assert await earlier(store, "new", within=timedelta.max) == "of a"

    @pytest.mark.parametrize("how", ["cleared", "taken back", "superseded", "erased", "deleted"])
    async def test_what_stands_no_more_is_not_earlier(self, store: Store, how: str) -> None:
        await summed_up(store, "older")
        made = await summed_up(store, "newer")
        await write(store, "c", *dialogue(1), latest=LatestDigest(digest=made))
        chosen = LatestDigest(digest=made, conversation="newer", text="of newer")
        assert (await head_of(store, "c")).latest == chosen
        past = await store.head(SCOPE, "c", at=0)
        assert past is not None
        assert past.latest == chosen, "of which there is only the present"
        match how:
            case "cleared":
                await clear(store, "newer")
            case "taken back":
                await take_back(store, "newer")
            case "superseded":
                await superseded(store, "newer", made)
            case "erased":
                await write(store, "newer", erase=((0, 0),), rewritten=[RewrittenDigest(digest=made, superseded=True)])
            case _:
                async with store.write(SCOPE, "newer") as unit:
                    await unit.delete()
        assert await earlier(store, "new") == "of older"
        assert (await head_of(store, "c")).latest == LatestDigest()
        async with store.write(SCOPE, "c") as unit:
            assert unit.head.latest == LatestDigest()

    async def test_what_stands_again_is_as_old_as_it_was(self, store: Store) -> None:
        await summed_up(store, "a", "first of a")
        await summed_up(store, "b")
        await write(store, "a", *dialogue(1))
        again = await digested(store, "a", 0, 5, Item("second of a", ((0, 5),)))
        assert await earlier(store, "new") == "second of a"
        await superseded(store, "a", again)
        assert await earlier(store, "new") == "of b"
        assert await earlier(store, "b") == "first of a"

    async def test_what_was_chosen_stays_while_it_is_there(self, store: Store) -> None:
        made = await summed_up(store, "a")
        await write(
            store, "c", *dialogue(1), latest=LatestDigest(digest=made, conversation="not read", text="not read")
        )
        await write(store, "a", *dialogue(2))
        await digested(store, "a", 0, 7, Item("newer", ((0, 7),)))
        told = (await head_of(store, "c")).latest
        assert told == LatestDigest(digest=made, conversation="a", text="of a")
        await write(store, "c", *dialogue(1))
        assert (await head_of(store, "c")).latest == told, "a commit of what was read changes nothing"

    @each_other
    async def test_a_digest_of_another_scope_is_never_told(self, store: Store, other: Scope) -> None:
        foreign = await summed_up(store, "a", "not yours", scope=other)
        await write(store, "c", *dialogue(1), latest=LatestDigest(digest=foreign))
        assert (await head_of(store, "c")).latest == LatestDigest()
        assert await store.opaque(other, "c", foreign) is None
