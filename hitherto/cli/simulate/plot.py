"""The picture that the command `simulate` draws: the tokens of every request, a line for each policy."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from importlib import import_module
from itertools import cycle
from pathlib import Path
from typing import Any

from hitherto.cli.simulate.table import FULL_HISTORY
from hitherto.cli.terminal.output import one_line
from hitherto.errors import InvalidInput
from hitherto.simulation.figures import Figures

_ENDINGS = (".png", ".svg", ".pdf")

_COLORS = ("#e69f00", "#56b4e9", "#009e73", "#cc79a7", "#0072b2", "#d55e00", "#7f6a00", "#6a3d9a", "#000000")
"""Okabe and Ito's palette, which the color-blind can tell apart, with a darker yellow for paper, and violet."""

_DASHES = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (4, 1, 1, 1)))

_GRAY = "0.55"

_GAP = 0.042
"""The height of a label, as a share of the axis."""


def check(path: Path) -> None:
    """Raises InvalidInput if no picture can be drawn into `path`: for another kind of file, for a directory that is not
    there, and without matplotlib."""
    if path.suffix.lower() not in _ENDINGS:
        raise InvalidInput(f"--plot is {path}; give a file that ends in {', '.join(_ENDINGS)}")
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise InvalidInput(f"--plot is {path}, where no file can be written; give one in a directory that is there")
    try:
        import_module("matplotlib.figure")
    except ImportError as error:
        raise InvalidInput("--plot needs matplotlib, which is not installed; pip install 'hitherto[plot]'") from error


def draw(path: Path, found: Sequence[Figures], *, title: str, budget: int) -> None:
    """Draw into `path`, which `check` has accepted. `found` has at least one policy with at least one request."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    figure = Figure(figsize=(10, 6), dpi=160, layout="constrained")
    axes: Any = figure.add_subplot()
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(_number))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    _fill(axes, found, budget)
    axes.set_title(f"{_plain(title)}: tokens of each request, by policy", loc="left", fontsize=13, pad=22)
    price = found[0].price
    note = (
        f"Dots: a stage took effect (none where that is all the time). "
        f"Costs: prompts and digests, at the prices of {price.model} of {price.date}."
    )
    axes.text(0, 1.015, _plain(note), transform=axes.transAxes, fontsize=9, color="0.35")
    figure.savefig(path)


def _number(value: float, _: int | None) -> str:
    return f"{value:,.0f}"


def _fill(axes: Any, found: Sequence[Figures], budget: int) -> None:
    axes.set_xlim(1, max(2, *(len(figures.sent) for figures in found)))
    axes.set_ylim(0.8 * _least(found), 1.4 * max(figures.max_request_tokens for figures in found))
    colors = _colors(found)
    for at, (figures, color) in enumerate(zip(found, colors, strict=True)):
        plain = figures.policy == FULL_HISTORY
        dashes = "-" if plain else _DASHES[at % len(_DASHES)]
        tokens = [sent.tokens for sent in figures.sent]
        axes.plot(range(1, len(tokens) + 1), tokens, linewidth=2.6 if plain else 1.6, color=color, linestyle=dashes)
        _mark(axes, figures, color)
    if budget <= 2 * max(figures.max_request_tokens for figures in found):
        axes.axhline(budget, color="0.3", linewidth=0.8)
        axes.annotate(f"budget {budget:,}", (1, budget), xytext=(4, 3), textcoords="offset points", color="0.3")
    _label(axes, found, colors)
    axes.set_xlabel("request")
    axes.set_ylabel("tokens in the request")
    axes.grid(visible=True, axis="y", color="0.9", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _least(found: Sequence[Figures]) -> int:
    """The smallest request but for the first ones, which are small under any policy."""
    return min(sent.tokens for figures in found for sent in figures.sent[len(figures.sent) // 20 :])


def _colors(found: Sequence[Figures]) -> list[str]:
    """A color for each policy, gray for the baseline."""
    rest = cycle(_COLORS)
    return [_GRAY if figures.policy == FULL_HISTORY else next(rest) for figures in found]


def _plain(text: str) -> str:
    """Text that matplotlib does not take for a formula."""
    return one_line(text).replace("$", r"\$")


def _mark(axes: Any, figures: Figures, color: str) -> None:
    """Dots where stages took effect, unless that is at more than a third of the requests."""
    fired = [(number, sent.tokens) for number, sent in enumerate(figures.sent, 1) if sent.fired]
    if fired and len(fired) < len(figures.sent) / 3:
        axes.scatter(*zip(*fired, strict=True), s=18, color=color, edgecolors="white", linewidths=0.5, zorder=3)


def _label(axes: Any, found: Sequence[Figures], colors: Sequence[str]) -> None:
    """Every line's name at its end, moved apart where they would overlap."""
    low, high = axes.get_ylim()
    ends = [math.log(figures.sent[-1].tokens / low) / math.log(high / low) for figures in found]
    for figures, color, end, place in zip(found, colors, ends, _spread(ends), strict=True):
        axes.annotate(
            f"{_plain(figures.policy)[:40]}  \\${figures.cost_usd:.4f}",
            xy=(1, end),
            xytext=(1.03, place),
            xycoords="axes fraction",
            textcoords="axes fraction",
            color=color,
            fontsize=9,
            va="center",
            arrowprops={
                "arrowstyle": "-",
                "color": color,
                "linewidth": 0.6,
                "relpos": (0, 0.5),
                "shrinkA": 1,
                "shrinkB": 0,
            },
        )


def _spread(wanted: Sequence[float]) -> list[float]:
    """The places nearest to the wanted ones with a gap between any two, in the same order."""
    order = sorted(range(len(wanted)), key=lambda at: wanted[at])
    blocks: list[list[int]] = []
    for at in order:
        blocks.append([at])
        while len(blocks) > 1 and _top(blocks[-2], wanted) + _GAP > _bottom(blocks[-1], wanted):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    placed = dict[int, float]()
    for block in blocks:
        for step, at in enumerate(block):
            placed[at] = _bottom(block, wanted) + step * _GAP
    return [placed[at] for at in range(len(wanted))]


def _bottom(block: Sequence[int], wanted: Sequence[float]) -> float:
    """The lower end of a block of labels that is centered on the places its members want."""
    return sum(wanted[at] for at in block) / len(block) - (len(block) - 1) / 2 * _GAP


def _top(block: Sequence[int], wanted: Sequence[float]) -> float:
    return _bottom(block, wanted) + (len(block) - 1) * _GAP
