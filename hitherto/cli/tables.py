"""How tables look: plain, within 80 columns, a row on one line."""

from __future__ import annotations

from rich import box
from rich.table import Table
from rich.text import Text

from hitherto.cli.terminal import one_line

WIDE = 120
"""From this width on a table shows more."""

_LINES = box.Box(str(box.SIMPLE_HEAD), ascii=True)  # where there is only ASCII, the terminal puts "-" for its "─"


def table_of(title: str | None, *, footer: bool = False) -> Table:
    """An empty table."""
    shown = None if title is None else Text(one_line(title), style="bold")
    return Table(
        title=shown,
        title_justify="left",
        box=_LINES,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        show_footer=footer,
    )


def numbers(table: Table, *names: str) -> None:
    """Add columns for numbers."""
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)


def cut(text: str) -> Text:
    """For the column that gets what room is left: one line, cut at its end."""
    return Text(one_line(text), no_wrap=True, overflow="ellipsis")
