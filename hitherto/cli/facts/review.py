"""The commands that change a fact: `facts edit`, `confirm`, `restore`, `share`, `unshare` and `delete`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Annotated

import typer

from hitherto import Fact, Facts
from hitherto.cli import options
from hitherto.cli.facts.fact import FactId, warn_of_other_values
from hitherto.cli.facts.tables import short
from hitherto.cli.memory import with_memory
from hitherto.cli.options import LARGEST, Target
from hitherto.cli.terminal import output
from hitherto.errors import NotFound

Change = Callable[[Facts, int, int | None], Awaitable[Fact]]
"""Changes the fact of a number, if it is at the expected version."""

ExpectedVersion = Annotated[
    int | None,
    typer.Option(min=1, max=LARGEST, metavar="VERSION", help="Only if the fact is still at this version."),
]


def edit(
    id: FactId,
    content: Annotated[str | None, typer.Option(metavar="TEXT", help="Its new content.")] = None,
    category: Annotated[
        str | None, typer.Option(metavar="C", help="Its new category, one of those that are defined.")
    ] = None,
    expect: ExpectedVersion = None,
    all_agents: options.AllAgents = False,
    *,
    target: Target,
    as_json: options.Json = False,
) -> None:
    """Correct the content or the category of a fact, which confirms it."""
    fact = with_memory(
        target.database,
        lambda memory: memory.facts(target.scope, all_agents=all_agents).edit(
            id, content=content, category=category, expect=expect
        ),
        read_only=False,
    )
    warn_of_other_values(fact.id, fact.category)
    _print(fact, f"reads now, in version {fact.version}: {short(fact)}", as_json=as_json)


def _command(
    help: str, change: Change, outcome: Callable[[Fact], str], *, holds_again: bool = False
) -> Callable[..., None]:
    """A command that changes a fact and prints the outcome."""

    def command(
        id: FactId,
        expect: ExpectedVersion = None,
        all_agents: options.AllAgents = False,
        *,
        target: Target,
        as_json: options.Json = False,
    ) -> None:
        fact = with_memory(
            target.database,
            lambda memory: change(memory.facts(target.scope, all_agents=all_agents), id, expect),
            read_only=False,
        )
        if holds_again:
            warn_of_other_values(fact.id, fact.category)
        _print(fact, outcome(fact), as_json=as_json)

    command.__doc__ = help
    return command


async def _delete(facts: Facts, id: int, expect: int | None) -> Fact:
    await facts.delete(id, expect=expect)
    deleted = await facts.get(id)
    if deleted is None:
        raise NotFound(f"fact {id} is gone, and its number with it: its messages were erased meanwhile")
    return deleted


confirm = _command(
    "Confirm that a fact is right.",
    lambda facts, number, expect: facts.confirm(number, expect=expect),
    lambda fact: f"is confirmed: {short(fact)}",
)
restore = _command(
    "Make a superseded or withdrawn fact current again.",
    lambda facts, number, expect: facts.restore(number, expect=expect),
    lambda fact: f"holds again: {short(fact)}",
    holds_again=True,
)
share = _command(
    "Share a fact with all members of its subject.\n\nThey see it from their next context on.",
    lambda facts, number, expect: facts.share(number, expect=expect),
    lambda fact: f"is shared with all members of {fact.subject}: {short(fact)}",
)
unshare = _command(
    "Stop sharing a fact.\n\nIt is gone from others' next contexts.",
    lambda facts, number, expect: facts.unshare(number, expect=expect),
    lambda fact: f"is private: {short(fact)}",
)
delete = _command("Delete a fact, and its content from the history.", _delete, lambda _: "is gone.")


def _print(fact: Fact, outcome: str, *, as_json: bool) -> None:
    if as_json:
        output.print_json({"fact": asdict(fact)})
    else:
        output.say(f"Fact {fact.id} {outcome}")
