"""The commands `facts subject` and `facts subjects`: what facts are about, and who sees shared ones."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from hitherto.cli import options
from hitherto.cli.facts.tables import subjects_table
from hitherto.cli.memory import with_memory
from hitherto.cli.options import LOCAL_TENANT
from hitherto.cli.terminal import output
from hitherto.core.scope import checked_name
from hitherto.engine.pages import in_pages
from hitherto.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from hitherto.core.facts.fact import Subject
    from hitherto.engine.memory import Memory


def subject(
    id: Annotated[str, typer.Argument(metavar="ID", help="The subject.")],
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Set its name.")] = None,
    member: Annotated[
        list[str] | None,
        typer.Option(
            metavar="USER",
            help="Set who sees its shared facts, in place of the members before; may be given several times.",
        ),
    ] = None,
    no_members: Annotated[bool, typer.Option("--no-members", help="Remove all members.")] = False,
    database: options.Database = None,
    tenant: options.Tenant = LOCAL_TENANT,
    as_json: options.Json = False,
) -> None:
    """Show a subject, or set its name and its members."""
    if member and no_members:
        raise InvalidInput("--member and --no-members contradict each other; give one of the two")
    checked_name(tenant, "tenant")
    checked_name(id, "subject")
    members = [] if no_members else member or None
    changed = name is not None or members is not None
    found = with_memory(
        database,
        lambda memory: (
            memory.configure_subject(tenant=tenant, subject=id, name=name, members=members)
            if changed
            else memory.subject(id, tenant=tenant)
        ),
        read_only=not changed,
    )
    if found is None:
        raise NotFound(
            f"tenant {tenant} has no subject {id!r}; make it with --name NAME and --member USER, or list "
            "those there: hitherto facts subjects"
        )
    if as_json:
        output.print_json(asdict(found))
        return
    sharing = f"Members: {', '.join(found.members)}" if found.members else "It has no members, so nothing is shared"
    output.say(f"Subject {found.id} is called {found.name}. {sharing}.")


def subjects(
    database: options.Database = None, tenant: options.Tenant = LOCAL_TENANT, as_json: options.Json = False
) -> None:
    """List the tenant's subjects."""
    checked_name(tenant, "tenant")

    async def read(memory: Memory) -> list[Subject]:
        return [one async for one in in_pages(partial(memory.subjects, tenant=tenant), lambda last: last.id, "")]

    found = with_memory(database, read)
    if as_json:
        output.print_json({"subjects": [asdict(subject) for subject in found]})
    elif found:
        output.show(subjects_table(found))
    else:
        output.say(f"Tenant {tenant} has no subjects. Try: hitherto facts subject ID --name NAME --member USER")
