"""Tables that fit the terminal's width and never cut the columns that matter most."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rich import box
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from hitherto.cli.terminal.output import one_line, out

_WIDE = 120
"""From this width on, a table shows more."""

NONE = "–"
"""Stands in a cell for a value that is not there."""

_LINES = box.Box(str(box.SIMPLE_HEAD), ascii=True)  # where there is only ASCII, the terminal puts "-" for its "─"
_GAP = 2
"""Columns of the terminal between two columns of a table."""

_LEAST_PROSE, _PROSE_SHARE = 18, 3
"""Prose gets at least this many columns, or this part of the terminal's width, before optional columns do."""

_LONGEST_TEXT = 300
_LONGEST_NAME = 16


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `fitted`. If there is no room for all, the one with the highest `gives` is left out first; 0 stays.

    A cell wider than `most` is cut or, in a `key`, continued on the next line. `prose`, of which there is one, gets the
    room that is left and is never cut.
    """

    name: str
    cells: Sequence[str | Text]
    gives: int = 0
    most: int | None = None
    right: bool = False
    key: bool = False
    prose: bool = False

    @property
    def width(self) -> int:
        widest = max(cell_len(str(cell)) for cell in (self.name, *self.cells))
        return widest if self.most is None else min(widest, self.most)


def name_column(heading: str, names: Sequence[str], *, gives: int, most: int = _LONGEST_NAME) -> Column:
    """A column of names, each cut where it is long."""
    return Column(heading, [cut(name) for name in names], gives=gives, most=most)


def wide() -> bool:
    """Whether the terminal has room for columns that are left out in narrower ones."""
    return out().width >= _WIDE


def key_width(longest: int = 2 * _LONGEST_NAME) -> int:
    """The maximum width of a column that identifies a row: never more than a third of the terminal."""
    return min(longest, max(out().width // 3, 1))


def fitted(title: str | None, columns: Sequence[Column], *, styles: Iterable[str] = ()) -> Table:
    """The columns as a table within the terminal's width, with a style for each row or none."""
    width, shown = out().width, list(columns)
    while _needed(shown, width) > width and any(column.gives for column in shown):
        shown.remove(max(shown, key=lambda column: column.gives))
    left = width - sum(column.width + _GAP for column in shown if not column.prose)
    table = table_of(title)
    for column in shown:
        if column.prose:
            table.add_column(column.name, overflow="fold", max_width=max(left, 1))
        elif column.key:
            table.add_column(column.name, overflow="fold", width=column.width)
        else:
            justify = "right" if column.right else "left"
            table.add_column(column.name, justify=justify, no_wrap=True, overflow="ellipsis", width=column.width)
    rows = list(zip(*(column.cells for column in shown), strict=True))
    for row, style in zip(rows, list(styles) or [""] * len(rows), strict=True):
        table.add_row(*row, style=style)
    return table


def _needed(columns: Sequence[Column], width: int) -> int:
    """The minimum width for these columns."""
    least = max(_LEAST_PROSE, width // _PROSE_SHARE)
    widths = (min(column.width, least) if column.prose else column.width for column in columns)
    return sum(widths) + _GAP * (len(columns) - 1)


def table_of(title: str | None, *, footer: bool = False) -> Table:
    """An empty table."""
    return Table(
        title=None if title is None else Text(one_line(title), style="bold"),
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
    """One line, cut at the end of its column."""
    return Text(one_line(text), no_wrap=True, overflow="ellipsis")


def shortened(text: str) -> str:
    """One line of at most 300 characters; --json has the whole."""
    line = one_line(text)
    return line if len(line) <= _LONGEST_TEXT else f"{line[: _LONGEST_TEXT - 1]}…"


def day(time: datetime) -> str:
    return time.astimezone(UTC).date().isoformat()


def minute(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M}"


def said(times: Sequence[datetime], *, minutes: bool = False, gives: int) -> Column:
    """When messages were said, each in its own zone, which the column's name says if it is that of all."""
    zones = {time.strftime("%z") for time in times}
    name = next(iter(zones)) if len(zones) == 1 else ""
    form = "%Y-%m-%d" if not minutes else "%Y-%m-%d %H:%M" if name else "%Y-%m-%d %H:%M %z"
    title = f"said ({'UTC' if name == '+0000' else name})" if name else "said"
    return Column(title, [f"{time:{form}}" for time in times], gives=gives)


def seq_range(start: int, end: int) -> str:
    return f"{start}–{end}"


def or_none(value: int | None) -> str:
    return NONE if value is None else str(value)
