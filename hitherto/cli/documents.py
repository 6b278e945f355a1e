"""The commands `documents add`, `list`, `search`, `show` and `remove`: a user's knowledge base."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

import hitherto
from hitherto.cli import terminal, text_file
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
from hitherto.cli.tables import WIDE, cut, numbers, table_of
from hitherto.cli.text_file import TextFile
from hitherto.core.admission import LONGEST_TITLE, checked_title, checked_type, heading_of
from hitherto.core.document import Document
from hitherto.core.scope import Scope
from hitherto.engine.memory import Memory
from hitherto.engine.recall import Recall
from hitherto.errors import InvalidDocument, InvalidInput, NotFound
from hitherto.ports.library import Kept

_MOST = 10_000

_SHOWN = 600
"""Characters of a passage that people are shown; --json has it whole."""

documents = typer.Typer(
    name="documents",
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(documents)

TypeOption = Annotated[
    str, typer.Option("--type", metavar="TYPE", help="Only documents of this type; conversations: those archived.")
]
LimitOption = Annotated[int, typer.Option(min=1, max=_MOST, metavar="N", help="At most so many.")]
NumberArgument = Annotated[int, typer.Argument(help="The document's number.", metavar="ID")]


@documents.callback(invoke_without_command=True)
def options(context: typer.Context) -> None:
    """Keep documents, and look into them: a user's knowledge base."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)


@documents.command()
def add(
    files: Annotated[list[str], typer.Argument(help="Text or Markdown files; - is standard input.", metavar="FILE...")],
    title: Annotated[
        str | None, typer.Option(metavar="TITLE", help="[default: its first heading, or the file's name]")
    ] = None,
    doc_type: Annotated[str, typer.Option("--type", metavar="TYPE", help="What kind of document it is.")] = "document",
    database: DatabaseOption = None,
    tenant: TenantOption = TENANT,
    user: UserOption = USER,
    agent: AgentOption = AGENT,
    as_json: JsonOption = False,
) -> None:
    """Keep text and Markdown files as documents, and index them.

    The same text again is the same document. Of several files, those that cannot be kept are told and passed over.
    """
    if title is not None and len(files) > 1:
        raise InvalidInput(f"--title is one document's, and {len(files)} files are given; add that one by itself")
    checked_title(title)
    checked_type(doc_type)
    scope = Scope(tenant=tenant, user=user, agent=agent)
    read, refused = _read(files)
    if refused and not read:
        raise refused[0] if len(refused) == 1 else InvalidDocument("; ".join(map(str, refused)))
    kept = run(_added(database, scope, read, title, doc_type)) if read else []
    for error in refused:
        terminal.warn(f"{error}; it is not kept")
    if as_json:
        shown = [{"id": one.id, "new": one.new, "file": file.name} for file, one in zip(read, kept, strict=True)]
        terminal.print_json({"documents": shown, "refused": [str(error) for error in refused]})
    else:
        out = terminal.out()
        for file, one in zip(read, kept, strict=True):
            said = "is kept" if one.new else "was there already"
            out.print(terminal.one_line(f"{file.name or 'standard input'} {said} as document {one.id}."))
    if refused:
        raise typer.Exit(1)


@documents.command(name="list")
def list_command(
    doc_type: TypeOption = "all",
    limit: LimitOption = 100,
    database: DatabaseOption = None,
    tenant: TenantOption = TENANT,
    user: UserOption = USER,
    agent: AgentOption = AGENT,
    as_json: JsonOption = False,
) -> None:
    """List the user's documents, the newest first: archived conversations, and what was added."""
    scope = Scope(tenant=tenant, user=user, agent=agent)

    async def read(memory: Memory) -> list[Document]:
        return await memory.knowledge(scope).list(doc_type=doc_type, limit=limit)

    found = _with(database, read)
    if as_json:
        terminal.print_json({"documents": [_json(one) for one in found]})
        return
    out = terminal.out()
    if not found:
        out.print(terminal.one_line(f"User {user} has no documents here. Try: hitherto documents add FILE"))
        return
    out.print(_table(found, width=out.width))


@documents.command()
def search(
    question: Annotated[str, typer.Argument(help="What to look for.", metavar="QUESTION")],
    doc_type: TypeOption = "all",
    limit: LimitOption = 5,
    database: DatabaseOption = None,
    tenant: TenantOption = TENANT,
    user: UserOption = USER,
    agent: AgentOption = AGENT,
    as_json: JsonOption = False,
) -> None:
    """Search the user's documents: the passages that answer a question best."""
    scope = Scope(tenant=tenant, user=user, agent=agent)

    async def look(memory: Memory) -> Recall:
        return await memory.recall(
            question, scope=scope, k=limit, kinds={"passage"}, every_agent=True, doc_type=doc_type
        )

    found = _with(database, look)
    if as_json:
        terminal.print_json({"question": question, **found.to_json()})
        return
    out = terminal.out()
    if found.missing:
        terminal.warn(f"searched without: {', '.join(found.missing)}")
    if not found.hits:
        out.print("Nothing was found.")
        return
    for at, hit in enumerate(found.hits):
        where = f"{hit.score:.2f} · document {hit.document} · {_day(hit.said_at)} · {hit.title or hit.doc_type}"
        out.print(Text(("\n" if at else "") + terminal.one_line(where), style="bold"))
        out.print(terminal.plain(hit.text if len(hit.text) <= _SHOWN else hit.text[:_SHOWN].rstrip() + " …"))


@documents.command()
def show(
    id: NumberArgument,
    database: DatabaseOption = None,
    tenant: TenantOption = TENANT,
    user: UserOption = USER,
    agent: AgentOption = AGENT,
    as_json: JsonOption = False,
) -> None:
    """Show one document in full."""
    scope = Scope(tenant=tenant, user=user, agent=agent)

    async def read(memory: Memory) -> Document:
        found = await memory.knowledge(scope).get(id)
        if found is None:
            raise _not_there(id, scope)
        return found

    found = _with(database, read)
    if as_json:
        terminal.print_json({**_json(found), "text": found.text})
        return
    out = terminal.out()
    title = f"Document {found.id}, {found.doc_type}, {_day(found.said_at)}: {found.title or '(no title)'}"
    out.print(Text(terminal.one_line(title), style="bold"))
    out.print()
    out.print(terminal.plain(found.text.rstrip()))


@documents.command()
def remove(
    id: NumberArgument,
    database: DatabaseOption = None,
    tenant: TenantOption = TENANT,
    user: UserOption = USER,
    agent: AgentOption = AGENT,
) -> None:
    """Delete a document, so that it is found no more."""
    scope = Scope(tenant=tenant, user=user, agent=agent)

    async def take(memory: Memory) -> None:
        if not await memory.knowledge(scope).remove(id):
            raise _not_there(id, scope)

    _with(database, take)
    terminal.out().print(f"Document {id} is gone.")


def _read(files: Sequence[str]) -> tuple[list[TextFile], list[InvalidDocument]]:
    """The files that can be kept, and what is wrong with the others."""
    read: list[TextFile] = []
    refused: list[InvalidDocument] = []
    for file in files:
        try:
            read.append(text_file.read(file))
        except InvalidDocument as error:
            refused.append(error)
    return read, refused


async def _added(
    database: str | None, scope: Scope, files: Sequence[TextFile], title: str | None, doc_type: str
) -> list[Kept]:
    kept: list[Kept] = []
    console = terminal.err()
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("opening the database", total=len(files))
        async with hitherto.open(database, worker=False) as memory:
            for file in files:
                progress.update(bar, description=f"keeping {terminal.one_line(file.name or 'standard input')[:30]}")
                heading = None if file.markdown is False else heading_of(file.text)
                called = title or heading or (None if file.name is None else file.name[:LONGEST_TITLE])
                source = {} if file.name is None else {"source": file.name}
                kept.append(
                    await memory.knowledge(scope).add(
                        file.text, title=called, doc_type=doc_type, metadata=source, markdown=file.markdown
                    )
                )
                progress.advance(bar)
            progress.update(bar, description="indexing")
            await memory.indexed()
    return kept


def _with(database: str | None, verb: Callable[[Memory], Awaitable[Result]]) -> Result:
    """What `verb` gives on an open memory."""

    async def work() -> Result:
        async with hitherto.open(database, worker=False) as memory:
            return await verb(memory)

    return run(work())


def _table(found: Sequence[Document], *, width: int) -> Table:
    table = table_of("Documents")
    numbers(table, "id")
    table.add_column("type", no_wrap=True, max_width=14)
    table.add_column("said", no_wrap=True)
    numbers(table, "passages")
    if width >= WIDE:
        table.add_column("agent", no_wrap=True, max_width=20)
    table.add_column("title", ratio=1)
    for one in found:
        agent = [cut(one.agent or "")] if width >= WIDE else []
        shown = one.title or " ".join(one.text[:200].split())
        table.add_row(str(one.id), cut(one.doc_type), _day(one.said_at), f"{one.passages:,}", *agent, cut(shown))
    return table


def _json(document: Document) -> dict[str, Any]:
    archived = document.archived
    return {
        "id": document.id,
        "title": document.title,
        "doc_type": document.doc_type,
        "namespace": document.namespace,
        "agent": document.agent,
        "conversation": None if archived is None else archived.conversation,
        "start": None if archived is None else archived.start,
        "end": None if archived is None else archived.end,
        "passages": document.passages,
        "created_at": document.created_at.isoformat(),
        "said_at": document.said_at.isoformat(),
        "metadata": json.loads(document.metadata),
    }


def _not_there(id: int, scope: Scope) -> NotFound:
    return NotFound(
        f"user {scope.user} of tenant {scope.tenant} has no document {id}; see those there: hitherto documents list"
    )


def _day(at: datetime) -> str:
    return at.astimezone(UTC).date().isoformat()
