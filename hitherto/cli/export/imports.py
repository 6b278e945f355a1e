"""The command `import`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from io import BufferedReader
from pathlib import Path
from typing import Annotated, cast

import typer

from hitherto.cli import options
from hitherto.cli.export.chat_lines import import_chat
from hitherto.cli.export.export import STANDARD
from hitherto.cli.memory import run
from hitherto.cli.options import Target, default_scope
from hitherto.cli.terminal import output
from hitherto.cli.transcripts.transcript import checked_id
from hitherto.errors import InvalidExport, InvalidInput, InvalidTranscript

_EXPORT = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"export"\s*:')
"""How an export begins: perhaps with a mark of UTF-8 that an editor has put there."""
_COUNTED = ("conversations", "messages", "documents", "facts", "runs", "skipped")


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

    async def work(from_: BufferedReader, size: int | None) -> tuple[dict[str, int], tuple[str, ...]]:
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
                        done = await memory.import_from(counted)
                    except InvalidExport as error:
                        raise InvalidExport(f"{file}, {error}", line=error.line) from error
                    return output.attributes(done, *_COUNTED), done.refused
                name = checked_id(file.stem if conversation is None else conversation, file)
                chat = memory.conversation(name, scope=target.scope)
                new = await import_chat(chat, counted, str(file), digest=digest)
                if digest:
                    await memory.wait_for_digests()
                counts = dict.fromkeys(_COUNTED, 0) | {"conversations": int(bool(new)), "messages": new or 0}
                counts["skipped"] = int(new == 0)
                return counts, () if new is not None else (f"{name!r} in {target.scope}",)

    if file == STANDARD:
        counts, refused = run(work(cast(BufferedReader, sys.stdin.buffer), None))
    else:
        try:
            with file.open("rb") as from_:
                counts, refused = run(work(from_, file.stat().st_size))
        except IsADirectoryError:
            raise InvalidTranscript(f"cannot read {file}: it is a directory") from None
        except FileNotFoundError:
            raise InvalidTranscript(f"cannot read {file}: there is no such file") from None
    if as_json:
        output.print_json({"imported": counts, "refused": list(refused)})
    else:
        output.say(f"Imported: {output.told(counts)}.")
    for one in refused:
        output.warn(f"there is another conversation {one}, which was left alone; it was not imported")
    if refused:
        raise typer.Exit(1)
