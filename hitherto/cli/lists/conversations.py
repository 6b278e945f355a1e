"""`hitherto conversations`: conversations of a tenant, a user or an agent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import time
from typing import Annotated, Any

import typer
from rich.table import Table

from hitherto.cli import options
from hitherto.cli.memory import with_memory
from hitherto.cli.options import LOCAL_TENANT, moment
from hitherto.cli.terminal import output
from hitherto.cli.terminal.tables import Column, cut, fitted, key_width, minute, name_column
from hitherto.core.log.conversations import ConversationInfo
from hitherto.engine.recall.arguments import MOST
from hitherto.errors import InvalidInput


def conversations(
    tenant: options.Tenant = LOCAL_TENANT,
    user: Annotated[str | None, typer.Option(metavar="NAME", help="Only this user's. [default: all]")] = None,
    agent: Annotated[str | None, typer.Option(metavar="NAME", help="Only this agent's. [default: all]")] = None,
    after: Annotated[
        str | None, typer.Option(metavar="TIME", help="Written to at this day or time (UTC), or later.")
    ] = None,
    before: Annotated[
        str | None, typer.Option(metavar="TIME", help="Written to last at this day or time (UTC), or earlier.")
    ] = None,
    metadata: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="With this in their metadata, as JSON or as a text; several times for several."
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=MOST, help="Show at most so many.")] = 50,
    cursor: Annotated[str | None, typer.Option(metavar="CURSOR", help="Go on where an earlier list ended.")] = None,
    database: options.Database = None,
    as_json: options.Json = False,
) -> None:
    """List conversations, the one that was written to last first.

    A conversation that was given no title shows how its first user message begins.
    """
    since, until = moment("--after", after, time.min), moment("--before", before, time.max)
    wanted = _entries(metadata or ())
    page = with_memory(
        database,
        lambda memory: memory.conversations(
            tenant=tenant,
            user=user,
            agent=agent,
            after=since,
            before=until,
            metadata=wanted,
            limit=limit,
            cursor=cursor,
        ),
    )
    if as_json:
        output.print_json({"conversations": [_json(one) for one in page.conversations], "next": page.next})
        return
    if not page.conversations:
        output.say(f"No conversation of the tenant {tenant} matches. For the tenants: hitherto scopes")
        return
    output.show(_table(page.conversations, users=user is None, agents=agent is None))
    if page.next is not None:
        output.say(f"There are more: --cursor {page.next}")


def _entries(given: Iterable[str]) -> Mapping[str, Any]:
    """The metadata asked for. A value that is JSON is meant as such, any other is a text. Raises InvalidInput."""
    found: dict[str, Any] = {}
    for one in given:
        name, sign, value = one.partition("=")
        if not sign or not name:
            raise InvalidInput(f"--metadata is {one!r}; write it as NAME=VALUE")
        if name in found:
            raise InvalidInput(f"--metadata names {name!r} twice; a conversation has one value of each")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def _table(found: Sequence[ConversationInfo], *, users: bool, agents: bool) -> Table:
    columns = [
        Column("conversation", [output.one_line(one.conversation) for one in found], most=key_width(), key=True),
        Column("messages", [f"{one.messages:,}" for one in found], gives=1, right=True),
        Column("tokens", [f"{one.tokens:,}" for one in found], gives=3, right=True),
        Column("last (UTC)", [minute(one.updated_at) for one in found], gives=2),
        Column("title", [cut(one.title) for one in found], prose=True),
    ]
    if agents:
        columns.insert(1, name_column("agent", [one.scope.agent for one in found], gives=5))
    if users:
        columns.insert(1, name_column("user", [one.scope.user for one in found], gives=4))
    return fitted(None, columns)


def _json(one: ConversationInfo) -> dict[str, Any]:
    return {
        **output.attributes(one.scope, "tenant", "user", "agent"),
        **output.attributes(one, "conversation", "title", "metadata", "messages", "tokens", "rev"),
        **output.attributes(one, "created_at", "updated_at", "summary", "summarized_count"),
    }
