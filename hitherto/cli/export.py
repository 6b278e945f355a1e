"""`hitherto export` and `hitherto import`."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable
from io import BufferedReader
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Annotated, BinaryIO, cast

import typer

from hitherto.cli import options
from hitherto.cli.memory import run, with_memory
from hitherto.cli.options import LOCAL_TENANT, Target, default_scope
from hitherto.cli.terminal import output
from hitherto.cli.transcripts.transcript import checked_id, message_of, title_of_line
from hitherto.core.log.message import Message
from hitherto.engine.export.imports import LONGEST_LINE, ImportReport, Lines
from hitherto.errors import (
    ConcurrentWrite,
    Conflict,
    InvalidBatch,
    InvalidExport,
    InvalidInput,
    InvalidMessage,
    InvalidTranscript,
    NotFound,
)

if TYPE_CHECKING:
    from hitherto.engine.conversation import Conversation
    from hitherto.engine.export.export import ExportReport
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


_PAGE = 200
"""Messages that are appended together."""


async def import_chat(chat: Conversation, file: Lines, source: str, *, digest: bool) -> int | None:
    """Append the messages of a file, those that are not there yet; returns how many that were, None if there is another
    conversation of that name. A new one gets the file's title. Without `digest`, no stage of its policy fires. Raises
    InvalidTranscript, with the line; what was appended before stays, and a repeated import goes on there."""
    line = start = new = 0
    head = await chat.head()
    there = 0 if head is None else head.next_seq
    ended = False
    while not ended:
        title, batch, line, ended = await asyncio.to_thread(_page, file, source, line)
        known = batch[: max(there - start, 0)]
        for logged, message in zip(await chat.messages(start=start, stop=start + len(known)), known, strict=True):
            if logged.message.raw != message.raw and not logged.erased:
                return None
        start, batch = start + len(known), batch[len(known) :]
        if batch:
            try:
                if head is None and title is not None:
                    await chat.configure(title=title, create=True)
                await chat.append(*batch, expect=start, policy=None if digest else "none")
            except ConcurrentWrite:
                return None
            except (InvalidBatch, Conflict) as error:
                raise InvalidTranscript(f"{source}, up to line {line}: {error}", line=line) from error
            start, new = start + len(batch), new + len(batch)
    if not start:
        raise InvalidTranscript(f"{source} holds no messages; give one JSON object with role and content a line")
    return new


def _page(file: Lines, source: str, line: int) -> tuple[str | None, list[Message], int, bool]:
    """The title with which the file begins, the next messages, the number of the last line that was read, and whether
    the file has ended."""
    title, found, begins = None, list[Message](), line == 0
    while len(found) < _PAGE:
        text = file.readline(LONGEST_LINE + 1)
        if not text:
            return title, found, line, True
        line += 1
        try:
            if len(text) > LONGEST_LINE:
                raise InvalidMessage(f"it is longer than {LONGEST_LINE:,} bytes")
            if not text.strip():
                continue
            if begins:
                begins, title = False, title_of_line(text)
                if title is not None:
                    continue
            found.append(message_of(text, take_id=True))
        except InvalidMessage as error:
            raise InvalidTranscript(
                f"{source}, line {line}: {error}; a repeated import goes on after what it has appended",
                line=line,
            ) from error
    return title, found, line, False


_EXPORT = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"export"\s*:')
"""How an export begins: perhaps with a mark of UTF-8 that an editor has put there."""


class _Counted:
    """A file that tells how far it was read."""

    def __init__(self, file: BufferedReader, told: Callable[[int], None]) -> None:
        self._file, self._told, self._place = file, told, 0

    def readline(self, size: int, /) -> bytes:
        line = self._file.readline(size)
        self._place += len(line)
        self._told(self._place)
        return line


def import_(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="An export, or a conversation as JSON lines in OpenAI chat shape; - for standard input.",
        ),
    ],
    conversation: Annotated[
        str | None, typer.Option("--conversation", metavar="ID", help="Its name. [default: the file's, without ending]")
    ] = None,
    digest: Annotated[bool, typer.Option("--digest", help="Make the digests of an imported conversation too.")] = False,
    *,
    target: Target,
    as_json: options.Json = False,
) -> None:
    """Import an export, or a conversation.

    What is there already is skipped: an import that was cut off goes on when it is repeated. An export has its own
    tenant, users and agents; the options name the scope of a conversation.
    """
    import hitherto

    async def work(from_: BufferedReader, size: int | None) -> ImportReport:
        async with hitherto.open(target.database, worker=digest) as memory:
            with output.progress() as progress:
                bar = progress.add_task("importing", total=size)
                counted = _Counted(from_, lambda place: progress.update(bar, completed=place))
                if _EXPORT.match(from_.peek(64)):
                    if conversation is not None or digest or target.scope != default_scope():
                        raise InvalidInput(
                            f"{file} is an export, which has its own tenant, users, agents, conversations and digests; "
                            "leave the options out that name them"
                        )
                    try:
                        return await memory.import_from(counted)
                    except InvalidExport as error:
                        raise InvalidExport(f"{file}, {error}", line=error.line) from error
                name = checked_id(file.stem if conversation is None else conversation, file)
                chat = memory.conversation(name, scope=target.scope)
                new = await import_chat(chat, counted, str(file), digest=digest)
                if digest:
                    await memory.wait_for_digests()
                refused = () if new is not None else (f"{name!r} in {target.scope}",)
                return ImportReport(
                    conversations=int(bool(new)), messages=new or 0, skipped=int(new == 0), refused=refused
                )

    if file == STANDARD:
        done = run(work(cast(BufferedReader, sys.stdin.buffer), None))
    else:
        try:
            with file.open("rb") as from_:
                done = run(work(from_, file.stat().st_size))
        except IsADirectoryError:
            raise InvalidTranscript(f"cannot read {file}: it is a directory") from None
        except FileNotFoundError:
            raise InvalidTranscript(f"cannot read {file}: there is no such file") from None
    counts = output.fields_of(done, "refused")
    if as_json:
        output.print_json({"imported": counts, "refused": done.refused})
    else:
        output.say(f"Imported: {output.told(counts)}.")
    for one in done.refused:
        output.warn(f"there is another conversation {one}, which was left alone; it was not imported")
    if done.refused:
        raise typer.Exit(1)
