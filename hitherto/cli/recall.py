"""`hitherto recall`: a search over messages, digests, documents and facts."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime, time
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from hitherto.cli import options
from hitherto.cli.memory import check_filter, with_memory
from hitherto.cli.options import Target
from hitherto.cli.terminal import output
from hitherto.cli.terminal.output import one_line
from hitherto.cli.terminal.tables import Column, cut, fitted, key_width, name_column, said, seq_range, wide
from hitherto.core.log.time_zone import moment, zone_named
from hitherto.core.recall.filter import UNLIKELY, EntryKind
from hitherto.engine.arguments import MOST
from hitherto.errors import InvalidInput, StoreError

if TYPE_CHECKING:
    from hitherto.core.scope import Scope
    from hitherto.engine.memory import Memory
    from hitherto.engine.recall.recall import Hit, RecallResult

_LONGEST_NAME = 24
_DAY = re.compile(r"[0-9]{4}-?[0-9]{2}-?[0-9]{2}")

_INDEX_TIMEOUT = 30.0
"""Seconds. On a database that is written to all the time, something always waits."""

_LAGGING = {
    "index": "index (not all is indexed yet, and only the newest of the rest was searched)",
    "vectors": "vectors (not all is embedded yet, and the rest was searched by its words)",
}


def recall(
    question: options.Question,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=MOST, metavar="N", help="Return at most N hits.")
    ] = 10,
    conversation: Annotated[str | None, typer.Option(metavar="ID", help="Search this conversation only.")] = None,
    kind: Annotated[
        list[EntryKind] | None, typer.Option(help="Search this kind only; may be given several times. [default: all]")
    ] = None,
    after: Annotated[
        str | None, typer.Option(metavar="DATE", help="Said on this day or later, like 2026-11-30 or 2026-11-30T09:15.")
    ] = None,
    before: Annotated[str | None, typer.Option(metavar="DATE", help="Said on this day or before.")] = None,
    at: Annotated[
        str | None,
        typer.Option(metavar="DATE", help='Asked on this day or at this time, from which "yesterday" is seen.'),
    ] = None,
    subject: Annotated[
        str | None,
        typer.Option(metavar="SUBJECT", help="Search facts about this subject, and conversations about it, only."),
    ] = None,
    min_score: Annotated[
        float, typer.Option(min=0, max=1, metavar="SCORE", help="The lowest score, from 0 to 1.")
    ] = UNLIKELY,
    all_agents: options.AllAgents = False,
    *,
    target: Target,
    as_json: options.Json = False,
) -> None:
    """Search messages, digests, documents and facts for what answers a question.

    Where more waits to be indexed than a search looks at, it is indexed first, for at most 30 seconds. Days and times
    are in UTC, unless a time has a zone; the day of --at is in the zone of the user, the agent or the setting
    time_zone, and messages are shown in theirs.
    """
    scope = target.scope
    since, until = moment("--after", after, time.min), moment("--before", before, time.max)
    if since is not None and until is not None and since > until:
        raise InvalidInput(f"--after is {after}, and --before {before} comes before it; change one of them")

    texts: list[str] = []

    async def search(memory: Memory) -> RecallResult:
        from hitherto.integrations.memory_tools import text_with_speakers  # not while commands are only listed

        found = await memory.recall(
            question,
            scope=scope,
            at=await _asked(memory, at, scope),
            limit=limit,
            conversation=conversation,
            kinds=kind or None,
            all_agents=all_agents,
            after=since,
            before=until,
            subject=subject,
            min_score=min_score,
        )
        if conversation is not None and not found.hits:
            await check_filter(memory, conversation, scope)
        if not as_json:
            texts[:] = [await text_with_speakers(hit, (), memory, scope, all_agents=all_agents) for hit in found.hits]
        return found

    found = search_indexed(target, search)
    if as_json:
        names = {"tenant": scope.tenant, "user": scope.user, "agent": None if all_agents else scope.agent}
        output.print_json({"question": question, "scope": names, **found.to_json()})
        return
    warn_of_missing(found)
    if found.hits:
        output.show(_table(found.hits, texts, agents=all_agents))
    else:
        output.say(_nothing(question, found, scope, min_score))


async def _asked(memory: Memory, at: str | None, scope: Scope) -> datetime | None:
    """When it is asked: of a day, noon in the scope's zone. Raises InvalidInput."""
    asked = moment("--at", at, time(12))
    if at is None or asked is None or not _DAY.fullmatch(at):
        return asked
    from hitherto.settings import Settings  # not while commands are only listed

    zone = (await memory.user(scope.user, tenant=scope.tenant)).time_zone
    zone = zone or (await memory.agent(scope.agent, tenant=scope.tenant)).time_zone or Settings.load().time_zone
    return asked.replace(tzinfo=zone_named(zone))


def search_indexed(target: Target, search: Callable[[Memory], Awaitable[RecallResult]]) -> RecallResult:
    """What `search` finds. It writes nothing, unless not all of the index was there: then what waits is indexed first,
    for at most `_INDEX_TIMEOUT`, where the database may be written to."""
    found = with_memory(target.database, search)
    if _LAGGING.keys().isdisjoint(found.missing):
        return found

    async def search_again(memory: Memory) -> RecallResult:
        with suppress(TimeoutError):
            async with asyncio.timeout(_INDEX_TIMEOUT):
                await memory.wait_for_index(tenant=target.scope.tenant)
        return await search(memory)

    with suppress(StoreError):
        return with_memory(target.database, search_again, read_only=False)
    return found


def warn_of_missing(found: RecallResult) -> None:
    """Warn of what a search had to do without."""
    if found.missing:
        output.warn(f"searched without: {', '.join(_LAGGING.get(one, one) for one in found.missing)}")


def _nothing(question: str, found: RecallResult, scope: Scope, min_score: float) -> str:
    if not question.strip():
        return "Nothing was found: the question is empty."
    if not found.searched:
        return f"Nothing was found: there is nothing to search there, in scope {scope}."
    entries = f"among {found.searched:,} entries in scope {scope}"
    if not min_score:
        return f"Nothing was found {entries}."
    return f"Nothing with a score of {min_score} or more was found {entries}; --min-score 0 shows the nearest."


def _table(hits: Sequence[Hit], texts: Sequence[str], *, agents: bool) -> Table:
    """`texts` are those of the hits; one with speakers in it begins with who speaks first."""
    more = wide()
    authors = [hit.author or hit.role or hit.kind.value for hit in hits]
    if not more:
        texts = [
            f"{author}: {text}" if text == hit.text else text
            for author, text, hit in zip(authors, texts, hits, strict=True)
        ]
    shown = [cut(text) if hit.fact is None else Text(one_line(text)) for text, hit in zip(texts, hits, strict=True)]
    columns = [
        Column("", [str(rank) for rank in range(1, len(hits) + 1)], right=True),
        Column("score", [f"{hit.score:.2f}" for hit in hits], gives=1, right=True),
        said([hit.said_at for hit in hits], minutes=more, gives=3),
        Column(
            "where",
            [one_line(_place(hit)) for hit in hits],
            most=key_width(2 * _LONGEST_NAME if more else _LONGEST_NAME),
            key=True,
        ),
        *([name_column("agent", [hit.agent for hit in hits], gives=2, most=_LONGEST_NAME)] if agents else []),
        *([name_column("by", authors, gives=4, most=_LONGEST_NAME)] if more else []),
        Column("text", shown, prose=True),
    ]
    return fitted(None, columns)


def _place(hit: Hit) -> str:
    """The messages that it is or stands for, as conversation:seq, the document, or the fact."""
    place = "" if hit.fact is None else f"fact {hit.fact}"
    if hit.conversation is not None and hit.start is not None and hit.end is not None:
        seqs = str(hit.start) if hit.start == hit.end else seq_range(hit.start, hit.end)
        place = f"{hit.conversation}:{seqs}"
    if hit.document is None:
        return place
    document = f"document {hit.document}"
    return f"{document}, {place or hit.title}" if place or hit.title else document
