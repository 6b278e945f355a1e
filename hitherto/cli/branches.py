"""`hitherto branches`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from hitherto.cli import options
from hitherto.cli.log import MOST
from hitherto.cli.memory import with_conversation
from hitherto.cli.options import Target
from hitherto.cli.terminal import output
from hitherto.cli.terminal.tables import Column, fitted, or_none, said, seq_range, shortened
from hitherto.core.log.branch import Branch
from hitherto.engine.conversation import Conversation
from hitherto.engine.pages import in_pages


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
        output.show(_table(found))
    else:
        output.say("There is one branch: no message of it was replaced or taken back.")


def _table(found: Sequence[Branch]) -> Table:
    columns = [
        Column("after", [or_none(one.parent if one.parent >= 0 else None) for one in found], right=True),
        Column("messages", [seq_range(one.seq, one.last) for one in found], right=True),
        Column("shown", ["yes" if one.shown else "" for one in found]),
        Column("role", [one.role.value for one in found], gives=1),
        said([one.said_at for one in found], minutes=True, gives=2),
        Column("begins", [Text(shortened(one.text)) for one in found], prose=True),
    ]
    return fitted(None, columns, styles=["" if one.shown else "dim" for one in found])
