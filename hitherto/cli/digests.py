"""`hitherto digests`: the digests of a conversation."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from hitherto.cli import options
from hitherto.cli.memory import with_conversation
from hitherto.cli.options import Target
from hitherto.cli.terminal import output
from hitherto.cli.terminal.output import plain
from hitherto.cli.terminal.tables import NONE, Column, cut, fitted, name_column, or_none, seq_range, wide
from hitherto.core.digests.digest import Digest, Status
from hitherto.core.log.frontier import DigestAction
from hitherto.core.log.ranges import Ranges

_COLORS = {Status.FAILED: "red", Status.PROCESSING: "yellow"}


def digests(id: options.Conversation, *, target: Target, as_json: options.Json = False) -> None:
    """Show the chain of digests, and the newest in full."""
    found, view_start = with_conversation(target, id, lambda conversation: conversation.digests())
    if as_json:
        from pydantic import TypeAdapter

        listed = TypeAdapter(list[Digest]).dump_python(found, mode="json")
        output.print_json({"conversation": id, "digests": listed})
    else:
        output.show(digests_table(found), _newest(found, view_start))


def digests_table(chain: Sequence[Digest], *, title: str = "Digests") -> Table:
    """A row for each digest, with its range and the digest that it was built on."""
    statements = [digest.error or (digest.items[-1].text if digest.items else NONE) for digest in chain]
    states = [Text(_status(digest), style=_COLORS.get(digest.status, "")) for digest in chain]
    columns = [
        Column("id", [str(digest.id) for digest in chain], right=True),
        Column("messages", [seq_range(digest.start, digest.end) for digest in chain], right=True),
        Column("built on", [or_none(digest.base) for digest in chain], gives=2, right=True),
        Column("status", states, gives=1),
        Column("tokens", [f"{digest.tokens:,}" for digest in chain], gives=3, right=True),
    ]
    if wide():
        columns += [
            Column("statements", [str(len(digest.items)) for digest in chain], gives=4, right=True),
            Column("ms", [or_none(digest.generation_time_ms) for digest in chain], gives=5, right=True),
            name_column("model", [digest.model or NONE for digest in chain], gives=6, most=24),
        ]
    columns.append(Column("its last statement", [cut(text) for text in statements], prose=True))
    return fitted(title, columns)


def _status(digest: Digest) -> str:
    """The status, or the action of a row that derives nothing: it is complete as soon as it is there."""
    derives = digest.action not in (DigestAction.CLEAR, DigestAction.DROP, DigestAction.REDACT)
    return digest.status.value if derives else digest.action.value


def _newest(digests: Sequence[Digest], view_start: int) -> RenderableType:
    """The statements of the newest digest in view, each with the messages it rests on."""
    in_view = [
        digest
        for digest in digests
        if digest.action in (DigestAction.SUMMARIZE, DigestAction.CHUNK)
        and digest.status is Status.COMPLETED
        and digest.hidden_rev is None
        and digest.end >= view_start
    ]
    if not in_view:
        return Text("None of them has statements that stand now.")
    newest = max(in_view, key=lambda digest: (digest.end, digest.id))
    sources = [_ranges(item.sources) for item in newest.items]
    columns = [
        Column("rests on", sources, most=max(output.out().width // 3, 1), key=True),
        Column("statement", [Text(plain(item.text)) for item in newest.items], prose=True),
    ]
    return fitted(f"Digest {newest.id} in full", columns)


def _ranges(ranges: Ranges) -> str:
    return ", ".join(str(first) if first == last else seq_range(first, last) for first, last in ranges)
