"""The commands `facts subject` and `subjects`: what facts are about, and who may see those that are shared."""

from __future__ import annotations

from typing import Annotated

import typer

from hitherto import Subject
from hitherto.cli import fact_shown, terminal
from hitherto.cli.app import TENANT, DatabaseOption, JsonOption, TenantOption
from hitherto.cli.facts import facts, opened
from hitherto.core.scope import checked_name
from hitherto.engine.memory import Memory
from hitherto.errors import InvalidInput, NotFound


@facts.command()
def subject(
    id: Annotated[str, typer.Argument(help="The subject.", metavar="ID")],
    name: Annotated[str | None, typer.Option(metavar="NAME", help="What it is called.")] = None,
    member: Annotated[
        list[str] | None,
        typer.Option(
            metavar="USER",
            help="Who sees what is shared about it; may be given several times, and takes the place of those before.",
        ),
    ] = None,
    no_members: Annotated[bool, typer.Option("--no-members", help="Nobody is a member any more.")] = False,
    database: DatabaseOption = None,
    tenant: TenantOption = TENANT,
    as_json: JsonOption = False,
) -> None:
    """Show a subject, or set its name and its members."""
    if member and no_members:
        raise InvalidInput("--member and --no-members contradict each other; give one of the two")
    tenant, about = checked_name(tenant, "tenant"), checked_name(id, "subject")
    members = [] if no_members else member or None

    async def work(memory: Memory) -> Subject:
        if name is not None or members is not None:
            return await memory.configure_subject(tenant=tenant, subject=about, name=name, members=members)
        there = await memory.subject(about, tenant=tenant)
        if there is not None:
            return there
        raise NotFound(
            f"tenant {tenant} has no subject {about!r}; make it with --name NAME and --member USER, or list "
            "those there: hitherto facts subjects"
        )

    found = opened(database, work)
    if as_json:
        terminal.print_json(fact_shown.subject_json(found))
        return
    whom = f"Members: {', '.join(found.members)}" if found.members else "It has no members, so nothing is shared"
    terminal.out().print(terminal.one_line(f"Subject {found.id} is called {found.name}. {whom}."))


@facts.command()
def subjects(
    database: DatabaseOption = None,
    tenant: TenantOption = TENANT,
    as_json: JsonOption = False,
) -> None:
    """List the tenant's subjects."""
    tenant = checked_name(tenant, "tenant")

    async def read(memory: Memory) -> list[Subject]:
        return await memory.subjects(tenant=tenant)

    found = opened(database, read)
    if as_json:
        terminal.print_json({"subjects": [fact_shown.subject_json(one) for one in found]})
        return
    if not found:
        said = f"Tenant {tenant} has no subjects. Try: hitherto facts subject ID --name NAME --member USER"
        terminal.out().print(terminal.one_line(said))
        return
    out = terminal.out()
    out.print(fact_shown.subjects_table(found, width=out.width))
