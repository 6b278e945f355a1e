"""The commands `facts edit`, `confirm`, `share`, `unshare` and `delete`: putting facts right."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

import typer

from hitherto import Fact, Facts
from hitherto.cli import fact_shown, terminal
from hitherto.cli.app import AGENT, TENANT, USER, AgentOption, DatabaseOption, JsonOption, TenantOption, UserOption
from hitherto.cli.facts import (
    AllAgentsOption,
    ExpectOption,
    FactArgument,
    facts,
    not_there,
    opened,
    read_as,
    warn_of_category,
)
from hitherto.core.fact import FactState
from hitherto.core.scope import Scope
from hitherto.engine.memory import Memory
from hitherto.errors import NotFound


@facts.command()
def edit(
    id: FactArgument,
    content: Annotated[str | None, typer.Option(metavar="TEXT", help="What it shall say.")] = None,
    category: Annotated[str | None, typer.Option(metavar="C", help="The category it shall have.")] = None,
    expect: ExpectOption = None,
    all_agents: AllAgentsOption = False,
    database: DatabaseOption = None,
    tenant: TenantOption = TENANT,
    user: UserOption = USER,
    agent: AgentOption = AGENT,
    as_json: JsonOption = False,
) -> None:
    """Put a fact's content or category right, which confirms it."""

    async def change(verbs: Facts) -> Fact:
        return await verbs.edit(id, content=content, category=category, expect=expect)

    scope = Scope(tenant=tenant, user=user, agent=agent)
    fact = _changed(database, scope, change, id=id, all_agents=all_agents)
    if category is not None:
        warn_of_category(fact, category)
    _say(fact, f"reads now, in version {fact.version}: {read_as(fact)}", as_json=as_json)


@facts.command()
def confirm(
    id: FactArgument,
    expect: ExpectOption = None,
    all_agents: AllAgentsOption = False,
    database: DatabaseOption = None,
    tenant: TenantOption = TENANT,
    user: UserOption = USER,
    agent: AgentOption = AGENT,
    as_json: JsonOption = False,
) -> None:
    """Say that a fact is right."""

    async def change(verbs: Facts) -> Fact:
        return await verbs.confirm(id, expect=expect)

    scope = Scope(tenant=tenant, user=user, agent=agent)
    fact = _changed(database, scope, change, id=id, all_agents=all_agents)
    _say(fact, f"is confirmed: {read_as(fact)}", as_json=as_json)


@facts.command()
def restore(
    id: FactArgument,
    expect: ExpectOption = None,
    all_agents: AllAgentsOption = False,
    database: DatabaseOption = None,
    tenant: TenantOption = TENANT,
    user: UserOption = USER,
    agent: AgentOption = AGENT,
    as_json: JsonOption = False,
) -> None:
    """Let a fact that was superseded or withdrawn hold again."""

    async def change(verbs: Facts) -> Fact:
        return await verbs.restore(id, expect=expect)

    scope = Scope(tenant=tenant, user=user, agent=agent)
    fact = _changed(database, scope, change, id=id, all_agents=all_agents)
    _say(fact, f"holds again: {read_as(fact)}", as_json=as_json)


@facts.command()
def share(
    id: FactArgument,
    expect: ExpectOption = None,
    all_agents: AllAgentsOption = False,
    database: DatabaseOption = None,
    tenant: TenantOption = TENANT,
    user: UserOption = USER,
    agent: AgentOption = AGENT,
    as_json: JsonOption = False,
) -> None:
    """Show a fact to all members of its subject.

    They see it from their next context on.
    """

    async def change(verbs: Facts) -> Fact:
        return await verbs.share(id, expect=expect)

    scope = Scope(tenant=tenant, user=user, agent=agent)
    fact = _changed(database, scope, change, id=id, all_agents=all_agents)
    _say(fact, f"is shared with all members of {fact.subject}: {read_as(fact)}", as_json=as_json)


@facts.command()
def unshare(
    id: FactArgument,
    expect: ExpectOption = None,
    all_agents: AllAgentsOption = False,
    database: DatabaseOption = None,
    tenant: TenantOption = TENANT,
    user: UserOption = USER,
    agent: AgentOption = AGENT,
    as_json: JsonOption = False,
) -> None:
    """Show a fact to nobody else any more.

    It is gone from others' next contexts.
    """

    async def change(verbs: Facts) -> Fact:
        return await verbs.unshare(id, expect=expect)

    scope = Scope(tenant=tenant, user=user, agent=agent)
    fact = _changed(database, scope, change, id=id, all_agents=all_agents)
    _say(fact, f"is private: {read_as(fact)}", as_json=as_json)


@facts.command()
def delete(
    id: FactArgument,
    expect: ExpectOption = None,
    all_agents: AllAgentsOption = False,
    database: DatabaseOption = None,
    tenant: TenantOption = TENANT,
    user: UserOption = USER,
    agent: AgentOption = AGENT,
    as_json: JsonOption = False,
) -> None:
    """Delete a fact: what it said is gone, from its history too."""
    scope = Scope(tenant=tenant, user=user, agent=agent)

    async def change(verbs: Facts) -> Fact:
        await verbs.delete(id, expect=expect)
        left = await verbs.get(id)
        if left is None:
            raise not_there(id, scope, all_agents=all_agents)
        return left

    fact = _changed(database, scope, change, id=id, all_agents=all_agents)
    _say(fact, "is gone.", as_json=as_json)


def _changed(
    database: str | None, scope: Scope, change: Callable[[Facts], Awaitable[Fact]], *, id: int, all_agents: bool
) -> Fact:
    """The fact after a change. Raises NotFound where it is none of the user's own."""

    async def work(memory: Memory) -> Fact:
        verbs = memory.facts(scope, every_agent=all_agents)
        before = await verbs.get(id)
        if before is None or before.state is FactState.DELETED:
            raise not_there(id, scope, all_agents=all_agents)
        if before.user != scope.user:
            raise NotFound(f"fact {id} is none of user {scope.user}'s own; {before.user}, who shares it, can change it")
        return await change(verbs)

    return opened(database, work)


def _say(fact: Fact, said: str, *, as_json: bool) -> None:
    if as_json:
        terminal.print_json({"fact": fact_shown.fact_json(fact, user=fact.user)})
    else:
        terminal.out().print(terminal.one_line(f"Fact {fact.id} {said}"))
