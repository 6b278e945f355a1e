"""`hitherto export` and `hitherto import`."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import datetime
from io import BufferedReader
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, cast

import typer

import hitherto
from hitherto.cli import options
from hitherto.cli.memory import run, with_memory
from hitherto.cli.options import LOCAL_TENANT, Target, default_scope
from hitherto.cli.terminal import output
from hitherto.cli.terminal.tables import NONE, Column, cut, fitted, key_width, minute
from hitherto.errors import InvalidExport, InvalidInput, InvalidTranscript, NotFound
from hitherto.importers import (
    ImportedConversation,
    ImportedFact,
    ImportSummary,
    Unreadable,
    import_file,
    read_file,
)
from hitherto.importers.files import EXPORT, CountedFile, files_of, other_files
from hitherto.importers.imported import UnreadableList
from hitherto.importers.write import TOLD

if TYPE_CHECKING:
    from rich.table import Table

    from hitherto.engine.export.export import ExportReport
    from hitherto.engine.export.imports import ImportReport
    from hitherto.engine.memory import Memory


STANDARD = Path("-")


def export(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it; - for standard output.")],
    tenant: options.Tenant = LOCAL_TENANT,
    user: Annotated[str | None, typer.Option(metavar="NAME", help="Only this user's. [default: all]")] = None,
    agent: Annotated[str | None, typer.Option(metavar="NAME", help="Only with this agent, of a user's.")] = None,
    database: options.Database = None,
    as_json: options.Json = False,
) -> None:
    """Write everything that is kept of a tenant or a user to a file.

    It has one JSON object a line, and is read by `hitherto import`. Others are not held up.
    """
    if user is None and agent is not None:
        raise InvalidInput("whose conversations with that agent? Give --user too")
    if as_json and file == STANDARD:
        raise InvalidInput("--json writes to standard output, where the export goes; name a file")

    kept = with_memory(
        database, lambda memory: memory.scopes("tenant" if user is None else "user", tenant=tenant, user=user)
    ).scopes
    if not kept:
        raise NotFound(f"nothing is kept of {tenant if user is None else f'{user} of {tenant}'}; see: hitherto scopes")

    async def work(memory: Memory, to: BinaryIO) -> ExportReport:
        with output.progress() as progress:
            bar = progress.add_task("exporting messages", total=sum(one.messages for one in kept))
            return await memory.export_to(
                to,
                tenant=tenant,
                user=user,
                agent=agent,
                progress=lambda done: progress.update(bar, completed=done.messages),
            )

    # What has expired is erased first, which a read-only database would not be.
    if file == STANDARD:
        done = with_memory(database, lambda memory: work(memory, sys.stdout.buffer), read_only=False)
        sys.stdout.buffer.flush()
    else:
        done = _written(file.resolve(), lambda to: with_memory(database, lambda m: work(m, to), read_only=False))
    counts = output.fields_of(done)
    if as_json:
        output.print_json({"exported": counts})
    elif file != STANDARD:
        output.say(f"Exported: {output.told(counts)}.")


def _written(file: Path, write: Callable[[BinaryIO], ExportReport]) -> ExportReport:
    """What `write` returns for a file that takes the place of `file` once all is written: an export that was cut off
    must not be taken for one. Only its owner can read it. What is no regular file, such as a pipe, is written to."""
    if file.exists() and not file.is_file():
        with file.open("wb") as to:
            return write(to)
    with NamedTemporaryFile("wb", dir=file.parent, prefix=f".{file.name}.", delete=False) as part:
        try:
            done = write(cast(BinaryIO, part))
            part.flush()
            Path(part.name).replace(file)
        except BaseException:
            Path(part.name).unlink(missing_ok=True)
            raise
    return done


def import_(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE_OR_FOLDER",
            help="An export of Hitherto's, or what another system has written; - for standard input.",
        ),
    ],
    conversation: Annotated[
        str | None,
        typer.Option("--conversation", metavar="ID", help="Only this one; of a file that has no names, its name."),
    ] = None,
    list_only: Annotated[bool, typer.Option("--list", help="Show what is in it, and import nothing.")] = False,
    digest: Annotated[bool, typer.Option("--digest", help="Make the digests of imported conversations too.")] = False,
    *,
    target: Target,
    as_json: options.Json = False,
) -> None:
    """Import an export, or conversations and facts of another system.

    What it is is told by its content. What is there already is skipped: an import that was cut off goes on when it is
    repeated. An export has its own tenant, users and agents; the options name the scope of anything else.
    """
    with _opened(file) as source:
        if isinstance(source, BufferedReader):
            _import_export(source, str(file), None, target, as_json, chosen=(conversation, list_only, digest))
        elif source.is_file() and _is_export(source):
            with source.open("rb") as opened:
                size = source.stat().st_size
                _import_export(opened, str(file), size, target, as_json, chosen=(conversation, list_only, digest))
        elif list_only:
            _list(source, conversation, as_json)
        else:
            _import_other(source, conversation, target, as_json, digest=digest)


@contextmanager
def _opened(file: Path) -> Generator[Path | BufferedReader]:
    """The file. Of standard input and of a pipe an export as it comes, and anything else as a file that can be read
    from any place. Raises InvalidTranscript where there is none."""
    if file != STANDARD and (file.is_file() or file.is_dir()):
        yield file
        return
    if file != STANDARD and not file.exists():
        raise InvalidTranscript(f"cannot read {file}: there is no such file")
    with file.open("rb") if file != STANDARD else nullcontext(cast(BufferedReader, sys.stdin.buffer)) as stream:
        if EXPORT.match(stream.peek(64)):
            yield stream
            return
        with TemporaryDirectory(prefix="hitherto-") as folder:
            kept = Path(folder) / ("standard input" if file == STANDARD else file.name)
            with kept.open("wb") as to:
                shutil.copyfileobj(stream, to)
            yield kept


def _is_export(file: Path) -> bool:
    with file.open("rb") as opened:
        return EXPORT.match(opened.peek(64)) is not None


def _import_export(
    file: BufferedReader,
    name: str,
    size: int | None,
    target: Target,
    as_json: bool,
    *,
    chosen: tuple[str | None, bool, bool],
) -> None:
    if any(chosen) or target.scope != default_scope():
        raise InvalidInput(
            f"{name} is an export, which has its own tenant, users, agents, conversations and digests; "
            "leave the options out that name them"
        )

    async def work() -> ImportReport:
        async with hitherto.open(target.database, worker=False) as memory:
            with output.progress() as progress:
                bar = progress.add_task("importing", total=size)
                try:
                    counted = CountedFile(file, lambda place: progress.update(bar, completed=place))
                    return await memory.import_from(counted)
                except InvalidExport as error:
                    raise InvalidExport(f"{name}, {error}", line=error.line) from error

    done = run(work())
    _tell(output.fields_of(done, "refused"), done.refused, None, as_json)


def _import_other(file: Path, conversation: str | None, target: Target, as_json: bool, *, digest: bool) -> None:
    async def work() -> ImportSummary:
        async with hitherto.open(target.database, worker=digest) as memory:
            with _read_bar("importing", file) as progress:
                done = await import_file(
                    memory,
                    file,
                    scope=target.scope,
                    conversation=conversation,
                    digest=digest,
                    own_users=target.scope.user == default_scope().user,
                    progress=progress,
                )
            if digest:
                await memory.wait_for_digests()
            return done

    done = run(work())
    _tell_other_files(file)
    _tell(output.fields_of(done, "refused", "unreadable", "notes"), done.refused, done, as_json)


@contextmanager
def _read_bar(what: str, file: Path) -> Generator[Callable[[int], None]]:
    total = sum(one.stat().st_size for one in files_of(file))
    with output.progress() as progress:
        bar = progress.add_task(what, total=total)
        yield lambda place: progress.update(bar, completed=place)


def _tell_other_files(folder: Path) -> None:
    if (words := other_files(folder)) is not None:
        output.warn(words)


def _tell(counts: Mapping[str, int], refused: Sequence[str], done: ImportSummary | None, as_json: bool) -> None:
    """Say what was imported and what was not; `done` is what was done with a file of another system. Exits with 1 if
    anything was not imported."""
    unreadable, notes = ((), ()) if done is None else (done.unreadable, done.notes)
    if as_json:
        told = {} if done is None else {"unreadable": unreadable, "notes": notes}
        output.print_json({"imported": counts, "refused": refused, **told})
    else:
        output.say(f"Imported: {output.told(counts)}.".replace(" left_out", " left out"))
    elsewhere = "" if done is None else "; to have both, import it for another user, agent or tenant"
    for one in refused:
        output.warn(
            f"there is another conversation {one}, which was left alone; the file's was not imported{elsewhere}"
        )
    for one in (*unreadable, *notes):
        output.warn(one)
    if len(unreadable) == TOLD:
        output.warn(f"these are the first {TOLD} places; see left_out in the counts for all")
    if refused or unreadable:
        raise typer.Exit(1)


def _list(file: Path, wanted: str | None, as_json: bool) -> None:
    """Show what is in a file."""
    found, facts, unreadable = list[dict[str, Any]](), 0, UnreadableList()
    with _read_bar("reading", file) as progress:
        for one in read_file(file, progress=progress):
            match one:
                case ImportedConversation():
                    if wanted in (None, one.id) or one.named_by_file:
                        found.append(_listed(one))
                        unreadable.extend(one.unreadable)
                case ImportedFact():
                    facts += 1
                case Unreadable():
                    unreadable.append(one)
    if as_json:
        output.print_json({"conversations": found, "facts": facts, "unreadable": [one.words for one in unreadable]})
    else:
        if found:
            output.show(_listed_table(found))
        if facts or not found:
            output.say(f"{facts:,} facts.")
        for one in unreadable:
            output.warn(one.words)
    _tell_other_files(file)
    if unreadable:
        raise typer.Exit(1)


def _listed(one: ImportedConversation) -> dict[str, Any]:
    messages, followed, ids = 0, set[str | None](), list[str | None]()
    dates: list[datetime] = []
    for said in one.messages:
        messages += 1
        if said.message.said_at is not None:
            dates = [*dates, said.message.said_at] if len(dates) < 2 else dates
            dates = [min(dates[0], said.message.said_at), max(dates[-1], said.message.said_at)]
        if one.tree:
            ids.append(said.message.id)
            followed.add(said.parent)
    branches = sum(one not in followed for one in ids) if one.tree else int(messages > 0)
    first, last = (dates[0], dates[-1]) if dates else (None, None)
    told = {"format": one.format, "conversation": one.id, "title": one.title, "messages": messages}
    return {**told, "branches": branches, "first": first, "last": last}


def _listed_table(found: Sequence[dict[str, Any]]) -> Table:
    return fitted(
        None,
        [
            Column("conversation", [output.one_line(one["conversation"]) for one in found], most=key_width(), key=True),
            Column("format", [one["format"] for one in found], gives=4),
            Column("messages", [f"{one['messages']:,}" for one in found], gives=1, right=True),
            Column("branches", [f"{one['branches']:,}" for one in found], gives=3, right=True),
            Column("last (UTC)", [minute(one["last"]) if one["last"] else NONE for one in found], gives=2),
            Column("title", [cut(one["title"] or "") for one in found], prose=True),
        ],
    )
