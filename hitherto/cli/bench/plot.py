"""The picture that `bench` draws: how much of what answers the questions is there, by category."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hitherto.cli.terminal.output import one_line

_COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
_HATCHES = ("", "///", "...", "xx", "\\\\", "--")
"""Of the bars beside each other: they are told apart without their colors."""

_NUMBERED = 40
"""Bars over which their numbers have room."""


def draw(path: Path, title: str, categories: Sequence[str], shares: Mapping[str, Sequence[float]]) -> None:
    """Draw into `path`, which `simulate`'s `check` has accepted. `shares` has, for each kind of bar, one in percent for
    each category."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 5), dpi=160, layout="constrained")
    axes: Any = figure.add_subplot()
    width = 0.85 / len(shares)
    for at, (label, values) in enumerate(shares.items()):
        places = [place + (at - (len(shares) - 1) / 2) * width for place in range(len(categories))]
        looks = {"color": _COLORS[at % len(_COLORS)], "hatch": _HATCHES[at % len(_HATCHES)], "edgecolor": "white"}
        bars = axes.bar(places, values, width, label=label, **looks)
        if len(shares) * len(categories) <= _NUMBERED:
            axes.bar_label(bars, fmt="%.1f", fontsize=8, padding=1)
    axes.set_xticks(range(len(categories)), categories)
    axes.set_ylim(0, 105)
    axes.set_xlabel("category of the questions")
    axes.set_ylabel("percent of the evidence")
    axes.set_title(one_line(title).replace("$", r"\$"), loc="left", fontsize=13)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=len(shares), frameon=False)
    figure.savefig(path)
