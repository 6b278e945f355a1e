"""The command `export`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Annotated, BinaryIO, cast

import typer

from hitherto.cli import options
from hitherto.cli.memory import with_memory
from hitherto.cli.options import LOCAL_TENANT
from hitherto.cli.terminal import output
from hitherto.errors import InvalidInput, NotFound

if TYPE_CHECKING:
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
    counts = output.attributes(done, "conversations", "messages", "documents", "facts", "runs")
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
