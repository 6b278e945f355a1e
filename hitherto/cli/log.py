"""`hitherto log`, `hitherto branches`, `hitherto fork` and `hitherto digests`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from hitherto.cli import options
from hitherto.cli.memory import with_conversation
from hitherto.cli.options import Target
from hitherto.cli.terminal import output
from hitherto.cli.terminal.output import plain
from hitherto.cli.terminal.tables import (
    NONE,
    Column,
    cut,
    fitted,
    name_column,
    or_none,
    said,
    seq_range,
    shortened,
    wide,
)
from hitherto.core.digests.digest import Digest, Status
from hitherto.core.log.branch import Branch
from hitherto.core.log.frontier import DigestAction
from hitherto.core.log.message import Kind, Logged
from hitherto.core.log.ranges import Ranges
from hitherto.engine.conversation import Conversation
from hitherto.engine.pages import in_pages

MOST = 2**62
"""More messages than any log has, and still a number that the store takes."""


def log(
    id: options.Conversation,
    start: Annotated[int, typer.Option(min=0, max=MOST, metavar="SEQ", help="The first message to show.")] = 0,
    limit: Annotated[int | None, typer.Option(min=1, max=MOST, metavar="N", help="Show at most N messages.")] = None,
    *,
    target: Target,
    as_json: options.Json = False,
) -> None:
    """Show the log: every message as it was stored.

    Cleared messages are included. Long ones are shortened, except with --json.
    """
    most = None if limit is None else limit + 1
    messages, view_start = with_conversation(
        target, id, lambda conversation: conversation.messages(start=start, limit=most)
    )
    messages, more = messages[:limit], limit is not None and len(messages) > limit
    if as_json:
        listed = [_json(logged, cleared=logged.seq < view_start) for logged in messages]
        output.print_json({"conversation": id, "messages": listed})
    else:
        output.show(_table(messages, view_start))
        if more:
            output.say(f"There are more: --start {messages[-1].seq + 1}")


def _table(log: Sequence[Logged], view_start: int) -> Table:
    states = [_state(logged, view_start) for logged in log]
    texts = ["erased" if logged.erased else shortened(logged.message.text) for logged in log]
    roles = [logged.message.role if logged.message.kind is Kind.TEXT else logged.message.kind for logged in log]
    shown = [Text(f"{state}{text}") for state, text in zip(states, texts, strict=True)]
    columns = [
        Column("seq", [str(logged.seq) for logged in log], right=True),
        Column("role", [role.value for role in roles], gives=1),
        Column("tokens", [f"{logged.tokens:,}" for logged in log], gives=2, right=True),
        Column("text", shown, prose=True),
    ]
    ids = [logged.message.id or "" for logged in log]
    if any(ids):
        columns.insert(1, name_column("id", ids, gives=4))
    if wide():
        columns.insert(-2, said([logged.said_at for logged in log], minutes=True, gives=3))
    styles = ["dim" if state or logged.erased else "" for state, logged in zip(states, log, strict=True)]
    return fitted(None, columns, styles=styles)


def _state(logged: Logged, view_start: int) -> str:
    if logged.retracted_rev is not None:
        return "(taken back) "
    return "(cleared) " if logged.seq < view_start else ""


def _json(logged: Logged, *, cleared: bool) -> dict[str, Any]:
    """The payload says what the message's text and its calls are, too."""
    message = logged.message
    return {
        **output.fields_of(logged, "message", "sums", "retracted_rev", "id_hash"),
        **output.fields_of(message, "raw", "raw_metadata", "text", "calls", "answers", "tools"),
        "said_at": logged.said_at,
        "cleared": cleared,
        "retracted": logged.retracted_rev is not None,
        "metadata": message.metadata,
        "payload": message.payload,
    }


def branches(
    id: options.Conversation,
    switch: Annotated[
        int | None, typer.Option(min=0, max=MOST, metavar="SEQ", help="First show the branch with this message.")
    ] = None,
    *,
    target: Target,
    as_json: options.Json = False,
) -> None:
    """List the branches: what has stood in the place of messages, and what is shown of it.

    A branch is what was replaced, as by regenerating an answer, or taken back. Each begins with the message `seq`.
    """

    async def listed(conversation: Conversation) -> list[Branch]:
        if switch is not None:
            await conversation.switch(switch)
        return [one async for one in in_pages(conversation.branches, lambda last: last.seq, -1)]

    found, _ = with_conversation(target, id, listed, read_only=switch is None)
    if as_json:
        output.print_json({"conversation": id, "branches": [output.fields_of(one) for one in found]})
    elif found:
        output.show(_branches_table(found))
    else:
        output.say("There is one branch: no message of it was replaced or taken back.")


def _branches_table(found: Sequence[Branch]) -> Table:
    columns = [
        Column("after", [or_none(one.parent if one.parent >= 0 else None) for one in found], right=True),
        Column("messages", [seq_range(one.seq, one.last) for one in found], right=True),
        Column("shown", ["yes" if one.shown else "" for one in found]),
        Column("role", [one.role.value for one in found], gives=1),
        said([one.said_at for one in found], minutes=True, gives=2),
        Column("begins", [Text(shortened(one.text)) for one in found], prose=True),
    ]
    return fitted(None, columns, styles=["" if one.shown else "dim" for one in found])


def fork(
    id: options.Conversation,
    new: Annotated[str | None, typer.Argument(metavar="NEW", help="The id of the fork; without it, a new one.")] = None,
    at: Annotated[
        int | None, typer.Option(min=-1, max=MOST, metavar="SEQ", help="The last message that both have; -1: none.")
    ] = None,
    *,
    target: Target,
    as_json: options.Json = False,
) -> None:
    """Fork a conversation: make one that begins with its messages, and goes on by itself.

    Without --at, it has all messages that are shown.
    """
    made, _ = with_conversation(target, id, lambda conversation: conversation.fork(at=at, id=new), read_only=False)
    if as_json:
        output.print_json({"conversation": made.id, "source": id})
    else:
        output.say(f"The fork is {made.id}")


_COLORS = {Status.FAILED: "red", Status.PROCESSING: "yellow"}


def digests(id: options.Conversation, *, target: Target, as_json: options.Json = False) -> None:
    """Show the chain of digests, and the newest in full."""
    found, view_start = with_conversation(target, id, _all_digests)
    if as_json:
        from pydantic import TypeAdapter

        listed = TypeAdapter(list[Digest]).dump_python(found, mode="json")
        output.print_json({"conversation": id, "digests": listed})
    else:
        output.show(digests_table(found), _newest(found, view_start))


async def _all_digests(conversation: Conversation) -> list[Digest]:
    return [one async for one in in_pages(conversation.digests, lambda last: last.id, None)]


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
