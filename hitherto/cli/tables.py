"""How tables look: plain, within the terminal, and never without what they are read for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from hitherto.cli.terminal import one_line

WIDE = 120
"""From this width on a table shows more."""

_LINES = box.Box(str(box.SIMPLE_HEAD), ascii=True)  # where there is only ASCII, the terminal puts "-" for its "─"
_GAP = 2
"""Between two columns."""

_LEAST, _SHARE = 18, 3
"""Prose gets so many columns, or one part in so many of the terminal's, before others have their room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of `fitted`. Where there is no room for all, the one that `gives` most is left out, and so on; one that
    gives 0 never is. What is wider than `most` is cut, or, if it is a `key`, goes on in the next line. Of `prose`, of
    which there is one, no character is lost: it gets what room is left, and goes on in as many lines as it takes.
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
        widest = max(cell_len(str(one)) for one in (self.name, *self.cells))
        return widest if self.most is None else min(widest, self.most)


def fitted(title: str | None, columns: Sequence[Column], *, width: int, styles: Iterable[str] = ()) -> Table:
    """The columns as a table within `width`, with a style for each row or none."""
    shown = list(columns)
    while _taken(shown, width) > width and any(one.gives for one in shown):
        shown.remove(max(shown, key=lambda one: one.gives))
    left = width - sum(one.width + _GAP for one in shown if not one.prose)
    table = table_of(title)
    for one in shown:
        if one.prose:
            table.add_column(one.name, overflow="fold", max_width=max(left, 1))
        elif one.key:
            table.add_column(one.name, overflow="fold", width=one.width)
        else:
            justify = "right" if one.right else "left"
            table.add_column(one.name, justify=justify, no_wrap=True, overflow="ellipsis", width=one.width)
    rows = list(zip(*(one.cells for one in shown), strict=True))
    for row, style in zip(rows, list(styles) or [""] * len(rows), strict=True):
        table.add_row(*row, style=style)
    return table


def _taken(columns: Sequence[Column], width: int) -> int:
    """The room that these columns need at least."""
    least = max(_LEAST, width // _SHARE)
    return sum(min(one.width, least) if one.prose else one.width for one in columns) + _GAP * (len(columns) - 1)


_SHOWN = 300
"""Characters of a text that people are shown in a table; --json has it whole."""


def shortened(text: str) -> str:
    """A text from anywhere for a table: on one line, and not too long."""
    kept = one_line(text)
    return kept if len(kept) <= _SHOWN else f"{kept[: _SHOWN - 1]}…"


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
