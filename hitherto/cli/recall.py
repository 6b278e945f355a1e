"""The command `recall`: what was said that answers a question."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

import hitherto
from hitherto.cli import terminal
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
from hitherto.cli.running import run
from hitherto.cli.tables import WIDE, Column, cut, fitted
from hitherto.cli.terminal import one_line
from hitherto.core.scope import Scope
from hitherto.core.wanted import EntryKind
from hitherto.engine.asked import MOST
from hitherto.engine.memory import Memory
from hitherto.engine.recall import Hit, Recall
from hitherto.errors import DatabaseReadOnly, InvalidInput, NotFound

_PATIENCE = 30.0
"""Seconds for indexing what waits. On a database where much is written, something always does."""

_LONGEST_NAME = 24


@app.command(name="recall")
def recall_command(
    question: Annotated[str, typer.Argument(help="What to look for.", metavar="QUESTION")],
    k: Annotated[int, typer.Option("--k", "-k", min=1, max=MOST, metavar="N", help="At most so many.")] = 10,
    conversation: Annotated[str | None, typer.Option(metavar="ID", help="Only what this conversation has.")] = None,
    kind: Annotated[
        list[EntryKind] | None, typer.Option(help="Only these; may be given several times. [default: all]")
    ] = None,
    after: Annotated[
        str | None, typer.Option(metavar="DATE", help="Said on this day or later, like 2026-11-30 or 2026-11-30T09:15.")
    ] = None,
    before: Annotated[str | None, typer.Option(metavar="DATE", help="Said on this day or before.")] = None,
    subject: Annotated[
        str | None, typer.Option(metavar="SUBJECT", help="Only facts about it, and what conversations about it have.")
    ] = None,
    least: Annotated[
        float, typer.Option(min=0, max=1, metavar="SCORE", help="Only what is at least so relevant, from 0 to 1.")
    ] = 0.0,
    all_agents: Annotated[bool, typer.Option("--all-agents", help="From the user's other agents too.")] = False,
    database: DatabaseOption = None,
    tenant: TenantOption = TENANT,
    user: UserOption = USER,
    agent: AgentOption = AGENT,
    as_json: JsonOption = False,
) -> None:
    """Find what was said that answers a question: in messages, digests and documents.

    What is not in the search index yet is put there first. Days and times are UTC, unless a time has a zone.
    """
    scope = Scope(tenant=tenant, user=user, agent=agent)
    since, until = _moment("--after", after, time.min), _moment("--before", before, time.max)
    if since is not None and until is not None and since > until:
        raise InvalidInput(f"--after is {after}, and --before {before} comes before it; change one of them")

    async def find() -> Recall:
        async with hitherto.open(database, worker=False) as memory:
            await _indexed(memory)
            found = await memory.recall(
                question,
                scope=scope,
                k=k,
                conversation=conversation,
                kinds=kind or None,
                every_agent=all_agents,
                after=since,
                before=until,
                subject=subject,
                least=least,
            )
            if conversation is not None and not found.hits:
                await _there(memory, conversation, scope)
            return found

    found = run(find())
    if as_json:
        names = {"tenant": scope.tenant, "user": scope.user, "agent": None if all_agents else scope.agent}
        terminal.print_json({"question": question, "scope": names, **found.to_json()})
        return
    if found.missing:
        terminal.warn(f"searched without: {', '.join(found.missing)}")
    out = terminal.out()
    if not found.hits:
        out.print(terminal.one_line(_nothing(question, found, scope, least)))
        return
    out.print(_table(found.hits, width=out.width, agents=all_agents))


def _moment(option: str, text: str | None, of_day: time) -> datetime | None:
    """The time that an option names: of a day, the one given. Raises InvalidInput."""
    if text is None:
        return None
    try:
        return datetime.combine(date.fromisoformat(text), of_day, UTC)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidInput(f"{option} is {text!r}; give a day or a time, like 2026-11-30T09:15") from None


async def _indexed(memory: Memory) -> None:
    """Index what waits, as far as time and the database allow; no worker may be running."""
    console = terminal.err()
    try:
        async with asyncio.timeout(_PATIENCE):
            if console.is_terminal:
                with console.status("indexing what waits"):
                    await memory.indexed()
            else:
                await memory.indexed()
    except TimeoutError:
        terminal.warn(
            f"not everything could be indexed in {_PATIENCE:.0f} seconds; of what waits, only the newest is searched"
        )
    except DatabaseReadOnly:
        pass  # what has no entry is then scored as it is, the newest of it


async def _there(memory: Memory, conversation: str, scope: Scope) -> None:
    """Raises NotFound for a conversation that does not exist."""
    if await memory.conversation(conversation, scope=scope).head() is None:
        raise NotFound(f"there is no conversation {conversation!r} in scope {scope}; leave --conversation out for all")


def _nothing(question: str, found: Recall, scope: Scope, least: float) -> str:
    if not question.strip():
        return "Nothing was found: the question is empty."
    if not found.searched:
        return f"Nothing was found: there is nothing to search there, in scope {scope}."
    relevant = f" that is as relevant as {least}" if least else ""
    return f"Nothing{relevant} was found among {found.searched:,} entries in scope {scope}."


def _table(hits: Sequence[Hit], *, width: int, agents: bool) -> Table:
    wide = width >= WIDE
    who = [hit.author or hit.role or hit.kind.value for hit in hits]
    texts = [hit.text if wide else f"{said}: {hit.text}" for said, hit in zip(who, hits, strict=True)]
    shown = [cut(text) if hit.fact is None else Text(one_line(text)) for text, hit in zip(texts, hits, strict=True)]
    times = [f"{hit.said_at.astimezone(UTC):{'%Y-%m-%d %H:%M' if wide else '%Y-%m-%d'}}" for hit in hits]
    most = min(2 * _LONGEST_NAME if wide else _LONGEST_NAME, max(width // 3, 1))
    columns = [
        Column(name="", cells=[str(rank) for rank in range(1, len(hits) + 1)], right=True),
        Column(name="score", cells=[f"{hit.score:.2f}" for hit in hits], gives=1, right=True),
        Column(name="said (UTC)", cells=times, gives=3),
        Column(name="where", cells=[one_line(_where(hit)) for hit in hits], most=most, key=True),
        *([_name("agent", [hit.agent for hit in hits], gives=2)] if agents else []),
        *([_name("by", who, gives=4)] if wide else []),
        Column(name="text", cells=shown, prose=True),
    ]
    return fitted(None, columns, width=width)


def _name(heading: str, names: Sequence[str], *, gives: int) -> Column:
    return Column(name=heading, cells=[cut(one) for one in names], gives=gives, most=_LONGEST_NAME)


def _where(hit: Hit) -> str:
    """The messages that it is or stands for, as conversation:seq, and the document with its passage."""
    place = "" if hit.fact is None else f"fact {hit.fact}"
    if hit.conversation is not None:
        place = f"{hit.conversation}:{hit.start}" + (f"–{hit.end}" if hit.end != hit.start else "")
    if hit.document is None:
        return place
    document = f"document {hit.document}"
    return f"{document}, {place or hit.title}" if place or hit.title else document
