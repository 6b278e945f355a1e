"""The picture that `simulate` draws: the tokens of every request, one line a policy."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from importlib import import_module
from itertools import cycle
from pathlib import Path
from typing import Any

from hitherto.cli.terminal import one_line
from hitherto.errors import InvalidInput
from hitherto.simulation.figures import Figures

_ENDINGS = (".png", ".svg", ".pdf")

_COLOURS = ("#e69f00", "#56b4e9", "#009e73", "#cc79a7", "#0072b2", "#d55e00", "#7f6a00", "#6a3d9a", "#000000")
"""Okabe and Ito's, which those who confuse red and green can tell apart, yellow darkened for paper, and violet."""

_DASHES = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (4, 1, 1, 1)))

_UNMANAGED = "none"
_GREY = "0.55"

_GAP = 0.042
"""What a label takes of the axis' height."""


def check(path: Path) -> None:
    """Raises InvalidInput when no picture could be drawn into `path`: for another kind of file, for a directory that
    is not there, and without matplotlib."""
    if path.suffix.lower() not in _ENDINGS:
        raise InvalidInput(f"--plot is {path}; give a file that ends in {', '.join(_ENDINGS)}")
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise InvalidInput(f"--plot is {path}, where no file can be written; give one in a directory that is there")
    try:
        import_module("matplotlib.figure")
    except ImportError as error:
        raise InvalidInput("--plot needs matplotlib, which is not installed; pip install 'hitherto[plot]'") from error


def draw(path: Path, found: Sequence[Figures], *, title: str, budget: int) -> None:
    """Draw into `path`, of which `check` said that it can be. `found` has at least one policy and one request."""
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
    said = (
        f"Dots: a stage took effect (none where that is all the time). "
        f"Costs: prompts and digests, at the prices of {price.model} of {price.date}."
    )
    axes.text(0, 1.015, _plain(said), transform=axes.transAxes, fontsize=9, color="0.35")
    figure.savefig(path)


def _number(value: float, _: int | None) -> str:
    return f"{value:,.0f}"


def _fill(axes: Any, found: Sequence[Figures], budget: int) -> None:
    axes.set_xlim(1, max(2, *(len(one.sent) for one in found)))
    axes.set_ylim(0.8 * _least(found), 1.4 * max(one.max_request_tokens for one in found))
    colours = _colours(found)
    for at, (one, colour) in enumerate(zip(found, colours, strict=True)):
        plain = one.policy == _UNMANAGED
        dashes = "-" if plain else _DASHES[at % len(_DASHES)]
        tokens = [sent.tokens for sent in one.sent]
        axes.plot(range(1, len(tokens) + 1), tokens, linewidth=2.6 if plain else 1.6, color=colour, linestyle=dashes)
        _mark(axes, one, colour)
    if budget <= 2 * max(one.max_request_tokens for one in found):
        axes.axhline(budget, color="0.3", linewidth=0.8)
        axes.annotate(f"budget {budget:,}", (1, budget), xytext=(4, 3), textcoords="offset points", color="0.3")
    _label(axes, found, colours)
    axes.set_xlabel("request")
    axes.set_ylabel("tokens in the request")
    axes.grid(visible=True, axis="y", color="0.9", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _least(found: Sequence[Figures]) -> int:
    """The smallest request, but for the first ones, which are small whatever the policy."""
    return min(sent.tokens for one in found for sent in one.sent[len(one.sent) // 20 :])


def _colours(found: Sequence[Figures]) -> list[str]:
    """A colour each; grey for what has no policy, against which the others are seen."""
    rest = cycle(_COLOURS)
    return [_GREY if one.policy == _UNMANAGED else next(rest) for one in found]


def _plain(text: str) -> str:
    """Text that matplotlib does not read as a formula."""
    return one_line(text).replace("$", r"\$")


def _mark(axes: Any, one: Figures, colour: str) -> None:
    """Dots where stages took effect; a policy for which that is every other request has none."""
    fired = [(number, sent.tokens) for number, sent in enumerate(one.sent, 1) if sent.fired]
    if fired and len(fired) < len(one.sent) / 3:
        axes.scatter(*zip(*fired, strict=True), s=18, color=colour, edgecolors="white", linewidths=0.5, zorder=3)


def _label(axes: Any, found: Sequence[Figures], colours: Sequence[str]) -> None:
    """Every line's name at its end, spread so that none covers another."""
    low, high = axes.get_ylim()
    ends = [math.log(one.sent[-1].tokens / low) / math.log(high / low) for one in found]
    for one, colour, end, place in zip(found, colours, ends, _spread(ends), strict=True):
        axes.annotate(
            f"{_plain(one.policy)[:40]}  \\${one.cost_usd:.4f}",
            xy=(1, end),
            xytext=(1.03, place),
            xycoords="axes fraction",
            textcoords="axes fraction",
            color=colour,
            fontsize=9,
            va="center",
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "linewidth": 0.6,
                "relpos": (0, 0.5),
                "shrinkA": 1,
                "shrinkB": 0,
            },
        )


def _spread(wanted: Sequence[float]) -> list[float]:
    """Places as near to the wanted ones as they can be with a gap between any two, in the same order."""
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
    """Where a block of labels begins that is centred on what its members want."""
    return sum(wanted[at] for at in block) / len(block) - (len(block) - 1) / 2 * _GAP


def _top(block: Sequence[int], wanted: Sequence[float]) -> float:
    return _bottom(block, wanted) + (len(block) - 1) * _GAP
