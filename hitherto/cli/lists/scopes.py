"""`hitherto scopes`: the tenants, the users and the agents that something is kept of."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

import typer

from hitherto.cli import options
from hitherto.cli.memory import with_memory
from hitherto.cli.terminal import output
from hitherto.cli.terminal.tables import NONE, Column, fitted, key_width, minute
from hitherto.core.log.conversations import ScopePart
from hitherto.engine.recall.arguments import MOST
from hitherto.errors import InvalidInput


def scopes(
    tenant: Annotated[str | None, typer.Option(metavar="NAME", help="List this tenant's users instead.")] = None,
    user: Annotated[str | None, typer.Option(metavar="NAME", help="List the agents of this user of it.")] = None,
    agents: Annotated[bool, typer.Option("--agents", help="List the tenant's agents, of all its users.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=MOST, help="Show at most so many.")] = 100,
    cursor: Annotated[str | None, typer.Option(metavar="CURSOR", help="Go on where an earlier list ended.")] = None,
    database: options.Database = None,
    as_json: options.Json = False,
) -> None:
    """List tenants, users or agents, and how much is kept of each.

    Without an option, these are the tenants.
    """
    if tenant is None and (user is not None or agents):
        raise InvalidInput("whose users or agents? Give --tenant too")
    by: ScopePart = "agent" if agents or user is not None else "tenant" if tenant is None else "user"
    page = with_memory(database, lambda memory: memory.scopes(by, tenant=tenant, user=user, limit=limit, cursor=cursor))
    if as_json:
        names = ("name", "conversations", "messages", "tokens", "documents", "facts", "updated_at")
        listed: list[dict[str, Any]] = [output.attributes(one, *names) for one in page.scopes]
        output.print_json({"by": by, "scopes": listed, "next": page.next})
        return
    found = page.scopes
    if not found:
        whose = "" if tenant is None else f" of the tenant {tenant}"
        whose = whose if user is None else f" of the user {user}{whose}"
        output.say(f"There is no {by}{whose} of which anything is kept.")
        return
    columns = [
        Column(by, [output.one_line(one.name) for one in found], most=key_width(), key=True),
        Column("conversations", [f"{one.conversations:,}" for one in found], right=True),
        Column("messages", [f"{one.messages:,}" for one in found], gives=1, right=True),
        Column("tokens", [f"{one.tokens:,}" for one in found], gives=4, right=True),
        Column("documents", [f"{one.documents:,}" for one in found], gives=5, right=True),
        Column("facts", [f"{one.facts:,}" for one in found], gives=3, right=True),
        Column("last (UTC)", [NONE if one.updated_at is None else minute(one.updated_at) for one in found], gives=2),
    ]
    output.show(fitted(None, columns))
    if page.next is not None:
        # A name that a terminal cannot show as it is: --json has it.
        shown = (
            shlex.quote(page.next) if output.one_line(page.next) == page.next else "…, with the name that --json gives"
        )
        output.say(f"There are more: --cursor {shown}")
