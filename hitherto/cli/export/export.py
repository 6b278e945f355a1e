"""The command `export`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

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
        # An export that was cut off must not be taken for one.
        part = file.with_name(f"{file.name}.part")
        try:
            with part.open("wb") as to:
                done = with_memory(database, lambda memory: work(memory, to), read_only=False)
            part.replace(file)
        finally:
            part.unlink(missing_ok=True)
    counts = output.attributes(done, "conversations", "messages", "documents", "facts")
    if as_json:
        output.print_json({"exported": counts})
    elif file != STANDARD:
        output.say(f"Exported: {output.told(counts)}.")
