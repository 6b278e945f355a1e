"""Lists of conversations, and of tenants, users and agents."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import time
from typing import Annotated, Any

import typer
from rich.table import Table

from hitherto.cli import options
from hitherto.cli.memory import with_memory
from hitherto.cli.options import LOCAL_TENANT, Target
from hitherto.cli.terminal import output
from hitherto.cli.terminal.tables import NONE, Column, cut, fitted, key_width, minute, name_column, seq_range
from hitherto.core.log.conversations import ConversationInfo, ScopePart
from hitherto.core.log.time_zone import moment
from hitherto.core.run import Run, RunEvent
from hitherto.engine.arguments import MOST
from hitherto.engine.memory import Memory
from hitherto.errors import InvalidInput, NotFound


def conversations(
    tenant: options.Tenant = LOCAL_TENANT,
    user: Annotated[str | None, typer.Option(metavar="NAME", help="Only this user's. [default: all]")] = None,
    agent: Annotated[str | None, typer.Option(metavar="NAME", help="Only this agent's. [default: all]")] = None,
    after: Annotated[
        str | None, typer.Option(metavar="TIME", help="Something was said at this day or time (UTC), or later.")
    ] = None,
    before: Annotated[
        str | None, typer.Option(metavar="TIME", help="Nothing was said after this day or time (UTC).")
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
    """List conversations, the one in which something was said last first.

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
        Column("last (UTC)", [minute(one.said_at) for one in found], gives=2),
        Column("title", [cut(one.title) for one in found], prose=True),
    ]
    if agents:
        columns.insert(1, name_column("agent", [one.scope.agent for one in found], gives=5))
    if users:
        columns.insert(1, name_column("user", [one.scope.user for one in found], gives=4))
    return fitted(None, columns)


def _json(one: ConversationInfo) -> dict[str, Any]:
    return output.fields_of(one.scope) | output.fields_of(one, "scope", "ref")


_GONE = "erased with a message of the run"
_AGENT = "Name the agent that ran with --agent."


def runs(
    id: options.Conversation,
    run: Annotated[str | None, typer.Argument(metavar="RUN", help="A run. [default: list them]")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=MOST, help="Show at most so many.")] = 50,
    before: Annotated[
        str | None, typer.Option(metavar="RUN", help="List those that were begun before this one.")
    ] = None,
    after: Annotated[int, typer.Option(min=-1, metavar="NUMBER", help="Show the run's events after this one.")] = -1,
    *,
    target: Target,
    as_json: options.Json = False,
) -> None:
    """List an agent's runs in a conversation, or show what happened in one.

    The last one begun comes first; the events of a run come in their order.
    """
    if run is None:
        found = with_memory(
            target.database, lambda memory: memory.runs(target.scope).list(id, before=before, limit=limit)
        )
        if as_json:
            output.print_json({"conversation": id, "runs": [_run_json(one) for one in found]})
        elif found:
            output.show(_runs_table(found))
        else:
            output.say(f"No run of {id!r} in {target.scope} is recorded. {_AGENT}")
        return

    async def work(memory: Memory) -> tuple[Run, Sequence[RunEvent]]:
        of = memory.runs(target.scope)
        found = await of.get(run)
        if found is None or found.conversation != id:
            raise NotFound(
                f"there is no run {run} of {id!r} in scope {target.scope}; list them: hitherto runs {id}. {_AGENT}"
            )
        return found, await of.events(run, after=after, limit=limit)

    one, events = with_memory(target.database, work)
    if as_json:
        output.print_json({"run": _run_json(one), "events": [_event_json(event) for event in events]})
        return
    output.show(_runs_table([one]), "", _events_table(events))
    if events and events[-1].no + 1 < one.events:
        output.say(f"There are more: --after {events[-1].no}")


def _runs_table(found: Sequence[Run]) -> Table:
    columns = [
        Column("run", [str(one.id) for one in found], key=True),
        Column("status", [one.status.value for one in found], gives=1),
        Column("messages", [_messages(one) for one in found], gives=3, right=True),
        Column("events", [f"{one.events:,}" for one in found], gives=2, right=True),
        Column("freed", [f"{one.freed:,}" for one in found], gives=4, right=True),
        Column("begun (UTC)", [minute(one.started_at) for one in found], gives=5),
        name_column("strategy", [one.strategy or NONE for one in found], gives=6),
    ]
    return fitted(None, columns)


def _messages(run: Run) -> str:
    return NONE if run.end is None else seq_range(run.start, run.end)


def _events_table(events: Sequence[RunEvent]) -> Table:
    told = [_GONE if one.raw is None else json.dumps(one.payload, ensure_ascii=False) for one in events]
    columns = [
        Column("no", [str(one.no) for one in events], right=True),
        Column("event", [one.kind.value for one in events], gives=1),
        name_column("name", [one.name or NONE for one in events], gives=2, most=24),
        Column("payload", [cut(text) for text in told], prose=True),
    ]
    return fitted(None, columns)


def _run_json(run: Run) -> dict[str, Any]:
    return output.fields_of(run, "conversation", "injection") | {"memory_injection": run.injection}


def _event_json(event: RunEvent) -> dict[str, Any]:
    return output.fields_of(event, "raw") | {"payload": event.payload, "erased": event.raw is None}


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
        listed = [output.fields_of(one) for one in page.scopes]
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
