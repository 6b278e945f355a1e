"""The commands that put facts right: `facts edit`, and those that need no more than a fact's number."""

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
    opened,
    read_as,
    warn_of_single,
)
from hitherto.core.scope import Scope
from hitherto.engine.memory import Memory
from hitherto.errors import NotFound

Act = Callable[[Facts, int, int | None], Awaitable[Fact]]
"""What is done to the fact of a number, if it is at the version that is expected."""


@facts.command()
def edit(
    id: FactArgument,
    content: Annotated[str | None, typer.Option(metavar="TEXT", help="What it shall say.")] = None,
    category: Annotated[
        str | None, typer.Option(metavar="C", help="The category it shall have: one that is defined.")
    ] = None,
    expect: ExpectOption = None,
    all_agents: AllAgentsOption = False,
    database: DatabaseOption = None,
    tenant: TenantOption = TENANT,
    user: UserOption = USER,
    agent: AgentOption = AGENT,
    as_json: JsonOption = False,
) -> None:
    """Put a fact's content or category right, which confirms it."""
    scope = Scope(tenant=tenant, user=user, agent=agent)

    async def work(memory: Memory) -> Fact:
        verbs = memory.facts(scope, every_agent=all_agents)
        return await verbs.edit(id, content=content, category=category, expect=expect)

    fact = opened(database, work)
    warn_of_single(fact)
    _say(fact, f"reads now, in version {fact.version}: {read_as(fact)}", as_json=as_json)


def _command(name: str, help: str, act: Act, said: Callable[[Fact], str], *, wary: bool = False) -> None:
    """Add a command that does `act` and says what became of the fact; `wary`: where it may hold beside another."""

    @facts.command(name=name, help=help)
    def command(
        id: FactArgument,
        expect: ExpectOption = None,
        all_agents: AllAgentsOption = False,
        database: DatabaseOption = None,
        tenant: TenantOption = TENANT,
        user: UserOption = USER,
        agent: AgentOption = AGENT,
        as_json: JsonOption = False,
    ) -> None:
        scope = Scope(tenant=tenant, user=user, agent=agent)

        async def work(memory: Memory) -> Fact:
            return await act(memory.facts(scope, every_agent=all_agents), id, expect)

        fact = opened(database, work)
        if wary:
            warn_of_single(fact)
        _say(fact, said(fact), as_json=as_json)


async def _delete(verbs: Facts, id: int, expect: int | None) -> Fact:
    await verbs.delete(id, expect=expect)
    left = await verbs.get(id)
    if left is None:
        raise NotFound(f"fact {id} is gone, and its number with it: its messages were erased meanwhile")
    return left


_command(
    "confirm",
    "Say that a fact is right.",
    lambda verbs, number, expect: verbs.confirm(number, expect=expect),
    lambda fact: f"is confirmed: {read_as(fact)}",
)
_command(
    "restore",
    "Let a fact that was superseded or withdrawn hold again.",
    lambda verbs, number, expect: verbs.restore(number, expect=expect),
    lambda fact: f"holds again: {read_as(fact)}",
    wary=True,
)
_command(
    "share",
    "Show a fact to all members of its subject.\n\nThey see it from their next context on.",
    lambda verbs, number, expect: verbs.share(number, expect=expect),
    lambda fact: f"is shared with all members of {fact.subject}: {read_as(fact)}",
)
_command(
    "unshare",
    "Show a fact to nobody else any more.\n\nIt is gone from others' next contexts.",
    lambda verbs, number, expect: verbs.unshare(number, expect=expect),
    lambda fact: f"is private: {read_as(fact)}",
)
_command("delete", "Delete a fact: what it said is gone, from its history too.", _delete, lambda _: "is gone.")


def _say(fact: Fact, said: str, *, as_json: bool) -> None:
    if as_json:
        terminal.print_json({"fact": fact_shown.fact_json(fact)})
    else:
        terminal.out().print(terminal.one_line(f"Fact {fact.id} {said}"))
