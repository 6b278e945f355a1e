"""`hitherto log`: the messages of a conversation as they were stored."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from hitherto.cli import options
from hitherto.cli.memory import with_conversation
from hitherto.cli.options import Target
from hitherto.cli.terminal import output
from hitherto.cli.terminal.tables import Column, fitted, shortened, wide
from hitherto.core.log.message import Kind, Logged

_MOST = 2**62
"""More messages than any log has, and still a number that the store takes."""


def log(
    id: options.Conversation,
    start: Annotated[int, typer.Option(min=0, max=_MOST, metavar="SEQ", help="The first message to show.")] = 0,
    limit: Annotated[int | None, typer.Option(min=1, max=_MOST, metavar="N", help="Show at most N messages.")] = None,
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
    if wide():
        times = [f"{logged.created_at:%Y-%m-%d %H:%M:%S}" for logged in log]
        columns.insert(2, Column("when (UTC)", times, gives=3))
    styles = ["dim" if state or logged.erased else "" for state, logged in zip(states, log, strict=True)]
    return fitted(None, columns, styles=styles)


def _state(logged: Logged, view_start: int) -> str:
    if logged.retracted_rev is not None:
        return "(taken back) "
    return "(cleared) " if logged.seq < view_start else ""


def _json(logged: Logged, *, cleared: bool) -> dict[str, Any]:
    message = logged.message
    return {
        "seq": logged.seq,
        **output.attributes(message, "role", "kind"),
        **output.attributes(logged, "tokens", "created_at", "said_at"),
        "cleared": cleared,
        "retracted": logged.retracted_rev is not None,
        "erased": logged.erased,
        "wire": message.wire,
        "metadata": json.loads(message.metadata),
        "payload": message.payload,
    }
