"""The commands `facts list`, `show` and `add`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from hitherto.cli import options
from hitherto.cli.facts.tables import (
    fact_lines,
    facts_table,
    history_table,
    short,
    source_json,
    sources_table,
)
from hitherto.cli.memory import check_filter, with_memory
from hitherto.cli.options import LARGEST, Target
from hitherto.cli.terminal import output
from hitherto.core.facts.change import no_such_fact
from hitherto.core.facts.fact import Fact, FactAction, FactEvent, FactState, category_of
from hitherto.core.log.message import Logged
from hitherto.core.scope import Scope
from hitherto.engine.facts.arguments import MOST
from hitherto.settings import Settings

if TYPE_CHECKING:
    from hitherto.engine.memory import Memory


def warn_of_category(category: str, outcome: str) -> None:
    """Warn if an option names a category that is not defined, with what becomes of it."""
    known = Settings.load().fact_categories
    if category_of(category, known)[1]:
        output.warn(
            f"the category {category!r} is not defined here, so {outcome}; there are {', '.join(known)}, and "
            "HITHERTO_FACT_CATEGORIES defines others"
        )


def warn_of_other_values(fact_id: int, category: str) -> None:
    """Warn if the category of a fact is not defined, so that another fact of it may hold too."""
    if category_of(category, Settings.load().fact_categories)[1]:
        output.warn(
            f"the category {category!r} of fact {fact_id} is not defined here, so whether it holds one value at a "
            "time is not known, and another fact of it may hold too; give HITHERTO_FACT_CATEGORIES and "
            "HITHERTO_SINGLE_FACT_CATEGORIES as your program has them"
        )


FactId = Annotated[int, typer.Argument(metavar="ID", min=1, max=LARGEST, help="The fact's number.")]


class StateFilter(StrEnum):
    """Which facts are listed, in the words of the store."""

    CURRENT = FactState.CURRENT
    SUPERSEDED = FactState.SUPERSEDED
    WITHDRAWN = FactState.WITHDRAWN
    DELETED = FactState.DELETED
    ALL = "all"


def list_facts(
    subject: Annotated[
        str | None, typer.Option(metavar="ID", help="Only about this subject; '' is the user. [default: any]")
    ] = None,
    category: Annotated[str | None, typer.Option(metavar="C", help="Only in this category.")] = None,
    conversation: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only those that a message of this conversation states.")
    ] = None,
    state: Annotated[StateFilter, typer.Option(help="Only in this state.")] = StateFilter.CURRENT,
    mine: Annotated[bool, typer.Option("--mine", help="Only the user's own.")] = False,
    shared: Annotated[bool, typer.Option("--shared", help="Only those that others share with the user.")] = False,
    after: Annotated[int, typer.Option(min=0, max=LARGEST, metavar="ID", help="Only those with higher numbers.")] = 0,
    limit: Annotated[int, typer.Option(min=1, max=MOST, metavar="N", help="Show at most N.")] = 100,
    all_agents: options.AllAgents = False,
    *,
    target: Target,
    as_json: options.Json = False,
) -> None:
    """List facts: the user's own, and those that others share.

    They come in the order in which they were learned.
    """
    scope = target.scope

    async def read(memory: Memory) -> tuple[list[Fact], bool]:
        async def page(after: int, limit: int) -> list[Fact]:
            return await memory.facts(scope, subject=subject, all_agents=all_agents).list(
                mine=mine or not shared,
                shared=shared or not mine,
                category=category,
                conversation=conversation,
                state=None if state is StateFilter.ALL else state.value,
                after=after,
                limit=limit,
            )

        found = await page(after, limit)
        if conversation is not None and not found and not all_agents:
            await check_filter(memory, conversation, scope)
        return found, len(found) == limit and bool(await page(found[-1].id, 1))

    found, more = with_memory(target.database, read)
    if category is not None:
        warn_of_category(category, "what models put in it is in 'other'")
    if as_json:
        listed = [asdict(fact) for fact in found]
        output.print_json({"facts": listed, "next": found[-1].id if more else None})
    elif found:
        subjects = subject is None and any(fact.subject for fact in found)
        output.show(facts_table(found, user=scope.user, subjects=subjects, agents=all_agents))
        if more:
            output.show(f"\nThere are more. The next page: the same with --after {found[-1].id}")
    else:
        narrowed = state is not StateFilter.CURRENT or mine or shared or subject is not None
        narrowed = narrowed or bool(category or conversation)
        output.say("There are no more." if after else _none(scope, narrowed=narrowed, all_agents=all_agents))


def _none(scope: Scope, *, narrowed: bool, all_agents: bool) -> str:
    agent = "any agent" if all_agents else f"agent {scope.agent}"
    tries = [*([] if all_agents else ["--all-agents"]), "fewer options" if narrowed else "hitherto facts add TEXT"]
    return f"User {scope.user} has no {'such ' if narrowed else ''}facts with {agent}. Try: {', or '.join(tries)}"


def show(id: FactId, all_agents: options.AllAgents = False, *, target: Target, as_json: options.Json = False) -> None:
    """Show one fact with the messages that state it and its history."""
    user = target.scope.user

    async def read(memory: Memory) -> tuple[Fact, Sequence[tuple[str, Logged]], Sequence[FactEvent]]:
        facts = memory.facts(target.scope, all_agents=all_agents)
        fact = await facts.get(id)
        if fact is None:
            raise no_such_fact(target.scope, id, all_agents=all_agents)
        if fact.user != user:
            return fact, (), ()
        sources = () if fact.state is FactState.DELETED else await facts.sources(id)
        history = list(await facts.history(id))
        while page := await facts.history(id, after=len(history)):
            history += page
        return fact, sources, history

    fact, sources, history = with_memory(target.database, read)
    if as_json:
        listed = {"sources": [source_json(*source) for source in sources], "history": list(map(asdict, history))}
        output.print_json({**asdict(fact), **listed})
        return
    title = Text(output.one_line(f"Fact {id}: {fact.content or '(deleted)'}"), style="bold")
    output.show(title, fact_lines(fact, user=user), "")
    if fact.user != user:
        output.say(f"Only user {fact.user} can see where it comes from and what happened to it.")
        return
    if sources:
        output.show(sources_table(sources), "")
    elif fact.state is not FactState.DELETED:
        output.show(_why_no_sources(fact, history), "")
    output.show(history_table(history))


def _why_no_sources(fact: Fact, history: Sequence[FactEvent]) -> str:
    if history and history[0].action is FactAction.ADDED:
        return "It was added by hand."
    withdrawn = fact.state is FactState.WITHDRAWN
    return f"The messages that stated it {'were taken back' if withdrawn else 'are gone'}."


def add(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The fact, in one sentence.")],
    category: Annotated[
        str | None, typer.Option(metavar="C", help="Its category. [default: other, or the one it has already]")
    ] = None,
    subject: Annotated[str | None, typer.Option(metavar="ID", help="Its subject. [default: the user]")] = None,
    *,
    target: Target,
    as_json: options.Json = False,
) -> None:
    """Add a fact by hand; it is confirmed, and private.

    A fact that is known already is confirmed, and counts as the user's own from then on.
    """

    async def keep(memory: Memory) -> tuple[Fact, bool]:
        facts = memory.facts(target.scope, subject=subject)
        added = await facts.add(text, category=category)
        fact = await facts.get(added.id)
        if fact is None:
            raise no_such_fact(target.scope, added.id)  # erased meanwhile
        return fact, added.new

    fact, new = with_memory(target.database, keep, read_only=False)
    if category is not None:
        outcome = "is kept as 'other'" if new else f"stays in {fact.category!r}"
        warn_of_category(category, f"fact {fact.id} {outcome}")
    if as_json:
        output.print_json({"new": new, "fact": asdict(fact)})
        return
    outcome = "is kept" if new else "says so already; it is confirmed now and counts as yours"
    output.say(f"Fact {fact.id} {outcome}: {short(fact)}")
