"""The commands `facts list`, `show` and `add`: what is known of a user or another subject, and where it comes from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer
from rich.text import Text

import hitherto
from hitherto import Fact
from hitherto.cli import fact_shown, terminal
from hitherto.cli.app import (
    AGENT,
    TENANT,
    USER,
    AgentOption,
    DatabaseOption,
    JsonOption,
    TenantOption,
    UserOption,
    app,
)
from hitherto.cli.running import Result, run
from hitherto.core.fact import Did, FactEvent, FactState, category_of
from hitherto.core.fact_change import no_such_fact
from hitherto.core.scope import Scope
from hitherto.engine.fact_input import MOST
from hitherto.engine.memory import Memory
from hitherto.errors import NotFound
from hitherto.settings import Settings

_LARGEST = 2**63 - 1
"""Of the numbers that every store takes."""

facts = typer.Typer(
    name="facts",
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(facts)

FactArgument = Annotated[int, typer.Argument(help="The fact's number.", metavar="ID", min=1, max=_LARGEST)]
ExpectOption = Annotated[
    int | None,
    typer.Option(min=1, max=_LARGEST, metavar="VERSION", help="Only if the fact is still at this version."),
]
AllAgentsOption = Annotated[bool, typer.Option("--all-agents", help="Those of the user's other agents too.")]


class State(StrEnum):
    """Which facts are listed, in the words of the store."""

    CURRENT = FactState.CURRENT
    SUPERSEDED = FactState.SUPERSEDED
    WITHDRAWN = FactState.WITHDRAWN
    DELETED = FactState.DELETED
    ALL = "all"


@facts.callback(invoke_without_command=True)
def options(context: typer.Context) -> None:
    """Review what is known of a user, or of another subject: facts, with their sources."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)


@facts.command(name="list")
def list_command(
    subject: Annotated[
        str | None, typer.Option(metavar="ID", help="About this subject; '' is the user. [default: any]")
    ] = None,
    category: Annotated[str | None, typer.Option(metavar="C", help="In this category.")] = None,
    conversation: Annotated[
        str | None, typer.Option(metavar="NAME", help="Those that a message of this conversation says.")
    ] = None,
    state: Annotated[State, typer.Option(help="In this state.")] = State.CURRENT,
    mine: Annotated[bool, typer.Option("--mine", help="The user's own.")] = False,
    shared: Annotated[bool, typer.Option("--shared", help="Those that others share with the user.")] = False,
    after: Annotated[int, typer.Option(min=0, max=_LARGEST, metavar="ID", help="Those with larger numbers.")] = 0,
    limit: Annotated[int, typer.Option(min=1, max=MOST, metavar="N", help="At most so many.")] = 100,
    all_agents: AllAgentsOption = False,
    database: DatabaseOption = None,
    tenant: TenantOption = TENANT,
    user: UserOption = USER,
    agent: AgentOption = AGENT,
    as_json: JsonOption = False,
) -> None:
    """List facts: the user's own, and those that others share.

    They come in the order in which they were learnt.
    """
    scope = Scope(tenant=tenant, user=user, agent=agent)

    async def read(memory: Memory) -> tuple[list[Fact], bool]:
        async def page(after: int, limit: int) -> list[Fact]:
            return await memory.facts(scope, subject=subject, every_agent=all_agents).list(
                mine=mine or not shared,
                shared=shared or not mine,
                category=category,
                conversation=conversation,
                state=None if state is State.ALL else state.value,
                after=after,
                limit=limit,
            )

        found = await page(after, limit)
        if conversation is not None and not found and not all_agents:
            await _there(memory, conversation, scope)
        return found, len(found) == limit and bool(await page(found[-1].id, 1))

    found, more = opened(database, read)
    if category is not None:
        _warn_of(category, "what models give it is in 'other'")
    if as_json:
        listed = [fact_shown.fact_json(one) for one in found]
        terminal.print_json({"facts": listed, "next": found[-1].id if more else None})
        return
    out = terminal.out()
    if not found:
        narrowed = state is not State.CURRENT or mine or shared or subject is not None or bool(category or conversation)
        none = _none(scope, narrowed=narrowed, all_agents=all_agents)
        out.print(terminal.one_line("There are no more." if after else none))
        return
    subjects = subject is None and any(one.subject for one in found)
    out.print(fact_shown.facts_table(found, user=user, width=out.width, subjects=subjects, agents=all_agents))
    if more:
        out.print(f"\nThere are more. The next page: the same with --after {found[-1].id}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    """A fact with what only its owner sees: where it comes from, and what happened to it."""

    fact: Fact
    sources: fact_shown.Sources = ()
    history: Sequence[FactEvent] = ()


@facts.command()
def show(
    id: FactArgument,
    all_agents: AllAgentsOption = False,
    database: DatabaseOption = None,
    tenant: TenantOption = TENANT,
    user: UserOption = USER,
    agent: AgentOption = AGENT,
    as_json: JsonOption = False,
) -> None:
    """Show one fact with the messages that say so and its history."""
    scope = Scope(tenant=tenant, user=user, agent=agent)

    async def read(memory: Memory) -> _Opened:
        verbs = memory.facts(scope, every_agent=all_agents)
        fact = await verbs.get(id)
        if fact is None:
            raise no_such_fact(scope, id, every_agent=all_agents)
        if fact.user != user:
            return _Opened(fact=fact)
        sources = () if fact.state is FactState.DELETED else await verbs.sources(id)
        return _Opened(fact=fact, sources=sources, history=await verbs.history(id))

    found = opened(database, read)
    if as_json:
        sources = [fact_shown.source_json(*one) for one in found.sources]
        history = [fact_shown.event_json(one) for one in found.history]
        terminal.print_json({**fact_shown.fact_json(found.fact), "sources": sources, "history": history})
        return
    out, fact = terminal.out(), found.fact
    out.print(Text(terminal.one_line(f"Fact {id}: {fact.content or '(deleted)'}"), style="bold"))
    out.print(fact_shown.fact_lines(fact, user=user))
    out.print()
    if fact.user != user:
        out.print(terminal.one_line(f"Where it comes from, and what happened to it, only {fact.user} can see."))
        return
    if found.sources:
        out.print(fact_shown.sources_table(found.sources, width=out.width))
        out.print()
    elif fact.state is not FactState.DELETED:
        out.print(f"{_sourceless(found)}\n")
    out.print(fact_shown.history_table(found.history, width=out.width))


def _sourceless(found: _Opened) -> str:
    """Why no message says it."""
    if found.history and found.history[0].did is Did.ADDED:
        return "It was added by hand."
    taken_back = found.fact.state is FactState.WITHDRAWN
    return f"The messages that said so {'were taken back' if taken_back else 'are gone'}."


@facts.command()
def add(
    text: Annotated[str, typer.Argument(help="What is known, in one sentence.", metavar="TEXT")],
    category: Annotated[
        str | None, typer.Option(metavar="C", help="Its category. [default: other, or the one it has already]")
    ] = None,
    subject: Annotated[str | None, typer.Option(metavar="ID", help="What it is about. [default: the user]")] = None,
    database: DatabaseOption = None,
    tenant: TenantOption = TENANT,
    user: UserOption = USER,
    agent: AgentOption = AGENT,
    as_json: JsonOption = False,
) -> None:
    """Keep a fact by hand; it is confirmed, and private.

    A statement that is known already is confirmed, and counts as the user's own from then on.
    """
    scope = Scope(tenant=tenant, user=user, agent=agent)

    async def keep(memory: Memory) -> tuple[Fact, bool]:
        verbs = memory.facts(scope, subject=subject)
        added = await verbs.add(text, category=category)
        fact = await verbs.get(added.id)
        if fact is None:
            raise no_such_fact(scope, added.id)  # erased meanwhile
        return fact, added.new

    fact, new = opened(database, keep)
    if category is not None:
        _warn_of(
            category, f"fact {fact.id} is kept as 'other'" if new else f"fact {fact.id} stays in {fact.category!r}"
        )
    if as_json:
        terminal.print_json({"new": new, "fact": fact_shown.fact_json(fact)})
        return
    said = "is kept" if new else "says so already; it is confirmed now and counts as yours"
    terminal.out().print(terminal.one_line(f"Fact {fact.id} {said}: {read_as(fact)}"))


def opened(database: str | None, verb: Callable[[Memory], Awaitable[Result]]) -> Result:
    """What `verb` gives on an open memory."""

    async def work() -> Result:
        async with hitherto.open(database, worker=False) as memory:
            return await verb(memory)

    return run(work())


def read_as(fact: Fact) -> str:
    """A fact in a few words."""
    return f"[{fact.category}] {fact.content}"


def warn_of_single(fact: Fact) -> None:
    """Say so where the fact's category is not defined here, so that another of it may hold too."""
    if category_of(fact.category, Settings.load().fact_categories)[1]:
        terminal.warn(
            f"the category {fact.category!r} of fact {fact.id} is not defined here, so whether it holds one value at a "
            "time is not known, and another fact of it may hold too; give HITHERTO_FACT_CATEGORIES and "
            "HITHERTO_SINGLE_FACT_CATEGORIES as your program has them"
        )


def _warn_of(given: str, outcome: str) -> None:
    known = Settings.load().fact_categories
    if category_of(given, known)[1]:
        terminal.warn(
            f"the category {given!r} is not defined here, so {outcome}; there are {', '.join(known)}, and "
            "HITHERTO_FACT_CATEGORIES defines others"
        )


async def _there(memory: Memory, conversation: str, scope: Scope) -> None:
    """Raises NotFound for a conversation that does not exist."""
    if await memory.conversation(conversation, scope=scope).head() is None:
        raise NotFound(f"there is no conversation {conversation!r} in scope {scope}; leave --conversation out for all")


def _none(scope: Scope, *, narrowed: bool, all_agents: bool) -> str:
    agent = "any agent" if all_agents else f"agent {scope.agent}"
    other = [] if all_agents else ["--all-agents"]
    if narrowed:
        return f"User {scope.user} has no such facts with {agent}. Try: {', or '.join([*other, 'fewer options'])}"
    return f"User {scope.user} has no facts with {agent}. Try: {', or '.join([*other, 'hitherto facts add TEXT'])}"
