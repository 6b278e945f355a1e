"""`hitherto documents`: a user's knowledge base."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from hitherto.cli import options
from hitherto.cli.app import group
from hitherto.cli.memory import with_memory
from hitherto.cli.options import Target
from hitherto.cli.recall import search_indexed, warn_of_missing
from hitherto.cli.terminal import output
from hitherto.cli.terminal.tables import cut, day, numbers, table_of, wide
from hitherto.core.documents import (
    LONGEST_TITLE,
    MOST_CHARACTERS,
    Document,
    checked_text,
    checked_title,
    checked_type,
    heading_of,
)
from hitherto.core.scope import Scope
from hitherto.errors import InvalidDocument, InvalidInput, NotFound

if TYPE_CHECKING:
    from hitherto.core.documents import KeptDocument
    from hitherto.engine.memory import Memory


_STDIN = "-"
_STDIN_LABEL = "standard input"

_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_MARKDOWN = (".md", ".markdown", ".mdown", ".mkd")
_KINDS = {
    b"%PDF-": "a PDF",
    b"PK\x03\x04": "a Word file or an archive",
    b"\x89PNG": "an image",
    b"\xff\xd8\xff": "an image",
}


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file's text. `name` is None for standard input, `markdown` is None if the name does not tell."""

    name: str | None
    text: str
    markdown: bool | None

    @property
    def label(self) -> str:
        return self.name or _STDIN_LABEL


def read_text(path: str) -> TextFile:
    """The text of the file at `path`, of standard input for "-". Raises InvalidDocument, which names the path."""
    try:
        data = sys.stdin.buffer.read() if path == _STDIN else Path(path).read_bytes()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InvalidDocument(f"cannot read {path}: {why}") from error
    try:
        text = checked_text(_decoded(data))
    except InvalidDocument as error:
        raise InvalidDocument(f"{_STDIN_LABEL if path == _STDIN else path}: {error}") from error
    suffix = Path(path).suffix.lower()
    name = None if path == _STDIN else Path(path).name
    return TextFile(name, text, True if suffix in _MARKDOWN else False if suffix == ".txt" else None)


def _decoded(data: bytes) -> str:
    if len(data) > 4 * MOST_CHARACTERS:
        raise InvalidDocument(
            f"it has {len(data):,} bytes; at most {MOST_CHARACTERS:,} characters are kept, so split it"
        )
    if not data.strip():
        raise InvalidDocument("it is empty; give a file with text in it")
    if data.startswith(_UTF16_MARKS):
        raise InvalidDocument("it is written in UTF-16; save it in UTF-8")
    for mark, kind in _KINDS.items():
        if data.startswith(mark):
            raise InvalidDocument(f"it is {kind}, not text; extract its text first")
    if (at := data.find(b"\0")) >= 0:
        raise InvalidDocument(f"it is a binary file (a NUL at byte {at + 1}), not text; extract its text first")
    try:
        return data.removeprefix(_UTF8_MARK).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidDocument(
            f"it is not UTF-8 ({error.reason}, at byte {error.start + 1}); save it in UTF-8, or extract its text if it "
            "is a binary file"
        ) from error


_MOST = 1_000

_LONGEST_PASSAGE = 600
"""Characters of a passage that are printed; --json has it whole."""

TypeFilter = Annotated[
    str, typer.Option("--type", metavar="TYPE", help="Only this type of document; conversations: archived ones.")
]
Limit = Annotated[int, typer.Option(min=1, max=_MOST, metavar="N", help="Show at most N.")]
DocumentId = Annotated[int, typer.Argument(metavar="ID", help="The document's number.")]


def add(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Text or Markdown files; - is standard input.")],
    title: Annotated[
        str | None, typer.Option(metavar="TITLE", help="[default: its first heading, or the file's name]")
    ] = None,
    doc_type: Annotated[str, typer.Option("--type", metavar="TYPE", help="The type of document.")] = "document",
    *,
    target: Target,
    as_json: options.Json = False,
) -> None:
    """Add text and Markdown files as documents, and index them.

    A text that is there already is not added again. A file that cannot be added is reported, and the others are added.
    """
    if title is not None and len(files) > 1:
        raise InvalidInput(f"--title is one document's, and {len(files)} files are given; add that one by itself")
    checked_title(title)
    checked_type(doc_type)
    read, refused = _read(files)
    if refused and not read:
        raise refused[0] if len(refused) == 1 else InvalidDocument("; ".join(map(str, refused)))
    added = with_memory(
        target.database, lambda memory: _add(memory, target.scope, read, title, doc_type), read_only=False
    )
    for error in refused:
        output.warn(f"{error}; it is not added")
    if as_json:
        listed = [{"id": kept.id, "new": kept.new, "file": file.name} for file, kept in zip(read, added, strict=True)]
        output.print_json({"documents": listed, "refused": [str(error) for error in refused]})
    else:
        for file, kept in zip(read, added, strict=True):
            outcome = "is kept" if kept.new else "was there already"
            output.say(f"{file.label} {outcome} as document {kept.id}.")
    if refused:
        raise typer.Exit(1)


def list_documents(
    doc_type: TypeFilter = "all",
    limit: Limit = 100,
    before: Annotated[
        int | None, typer.Option(min=1, metavar="ID", help="Go on where a page has ended: before this document.")
    ] = None,
    *,
    target: Target,
    as_json: options.Json = False,
) -> None:
    """List the user's documents, the newest first: archived conversations, and what was added."""

    async def read(memory: Memory) -> tuple[list[Document], bool]:
        documents = memory.documents(target.scope)
        page = await documents.list(doc_type=doc_type, before=before, limit=limit)
        return page, bool(page and await documents.list(doc_type=doc_type, before=page[-1].id, limit=1))

    found, more = with_memory(target.database, read)
    if as_json:
        listed = [_json(document) for document in found]
        output.print_json({"documents": listed, "next": found[-1].id if more else None})
    elif found:
        output.show(_table(found))
        if more:
            output.say(f"There are more: --before {found[-1].id}")
    else:
        output.say(f"User {target.scope.user} has no documents here. Try: hitherto documents add FILE")


def search(
    question: options.Question,
    doc_type: TypeFilter = "all",
    limit: Limit = 5,
    *,
    target: Target,
    as_json: options.Json = False,
) -> None:
    """Search the user's documents: the passages that answer a question best."""
    found = search_indexed(
        target,
        lambda memory: memory.recall(
            question, scope=target.scope, limit=limit, kinds={"passage"}, all_agents=True, doc_type=doc_type
        ),
    )
    if as_json:
        output.print_json({"question": question, **found.to_json()})
        return
    warn_of_missing(found)
    if not found.hits:
        output.say("Nothing was found.")
    for at, hit in enumerate(found.hits):
        where = f"{hit.score:.2f} · document {hit.document} · {day(hit.said_at)} · {hit.title or hit.doc_type}"
        cut_text = f"{hit.text[:_LONGEST_PASSAGE].rstrip()} …" if len(hit.text) > _LONGEST_PASSAGE else hit.text
        output.show(Text(("\n" if at else "") + output.one_line(where), style="bold"), output.plain(cut_text))


def show(id: DocumentId, *, target: Target, as_json: options.Json = False) -> None:
    """Show one document in full."""
    found = with_memory(target.database, lambda memory: memory.documents(target.scope).get(id))
    if found is None:
        raise _not_found(id, target.scope)
    if as_json:
        output.print_json({**_json(found), "text": found.text})
        return
    title = f"Document {found.id}, {found.doc_type}, {day(found.said_at)}: {found.title or '(no title)'}"
    output.show(Text(output.one_line(title), style="bold"), "", output.plain(found.text.rstrip()))


def remove(id: DocumentId, *, target: Target) -> None:
    """Delete a document, so that it is no longer found."""
    if not with_memory(target.database, lambda memory: memory.documents(target.scope).remove(id), read_only=False):
        raise _not_found(id, target.scope)
    output.say(f"Document {id} is gone.")


documents = group("documents", {"add": add, "list": list_documents, "search": search, "show": show, "remove": remove})


def _read(files: Sequence[str]) -> tuple[list[TextFile], list[InvalidDocument]]:
    """The files that can be added, and what is wrong with the others."""
    read: list[TextFile] = []
    refused: list[InvalidDocument] = []
    for file in files:
        try:
            read.append(read_text(file))
        except InvalidDocument as error:
            refused.append(error)
    return read, refused


async def _add(
    memory: Memory, scope: Scope, files: Sequence[TextFile], title: str | None, doc_type: str
) -> list[KeptDocument]:
    added: list[KeptDocument] = []
    with output.progress() as progress:
        bar = progress.add_task("", total=len(files))
        for file in files:
            progress.update(bar, description=f"adding {output.one_line(file.label)[:30]}")
            heading = None if file.markdown is False else heading_of(file.text)
            default = None if file.name is None else file.name[:LONGEST_TITLE]
            source = {} if file.name is None else {"source": file.name}
            added.append(
                await memory.documents(scope).add(
                    file.text,
                    title=title or heading or default,
                    doc_type=doc_type,
                    metadata=source,
                    markdown=file.markdown,
                )
            )
            progress.advance(bar)
        progress.update(bar, description="indexing")
        await memory.wait_for_index()
    return added


def _table(found: Sequence[Document]) -> Table:
    more = wide()
    table = table_of("Documents")
    numbers(table, "id")
    table.add_column("type", no_wrap=True, max_width=14)
    table.add_column("said", no_wrap=True)
    numbers(table, "passages")
    if more:
        table.add_column("agent", no_wrap=True, max_width=20)
    table.add_column("title", ratio=1)
    for document in found:
        table.add_row(
            str(document.id),
            cut(document.doc_type),
            day(document.said_at),
            f"{document.passages:,}",
            *([cut(document.agent or "")] if more else []),
            cut(document.title or document.text[:200]),
        )
    return table


def _json(document: Document) -> dict[str, Any]:
    fields = asdict(document)
    del fields["text"], fields["archived"]
    source = {name: getattr(document.archived, name, None) for name in ("conversation", "start", "end")}
    return fields | source


def _not_found(id: int, scope: Scope) -> NotFound:
    return NotFound(
        f"user {scope.user} of tenant {scope.tenant} has no document {id}; see those there: hitherto documents list"
    )
