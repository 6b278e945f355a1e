"""What a benchmark found, as a table for people and as JSON for programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.measure import Measured

_WIDTH = 112
"""Columns the table takes; a narrower screen wraps it, and a file shows it whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """What a figure is held against: at most `limit`, or at least."""

    limit: float
    at_least: bool = False

    def met(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit

    def __str__(self) -> str:
        return f"bar {'≥' if self.at_least else '≤'} {self.limit:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number. A ratio has two `sides`, dividend and divisor; anything else says its `unit`."""

    what: str
    value: float
    unit: str = ""
    bar: Bar | None = None
    sides: tuple[Measured, Measured] | None = None


@dataclass(frozen=True, slots=True)
class Findings:
    """What one benchmark has to say: its figures, and what must be known to read them."""

    figures: list[Figure] = field(default_factory=list[Figure])
    notes: list[str] = field(default_factory=list[str])


def ratio(over: Measured, under: Measured, *, bar: Bar | None = None) -> Figure:
    """The ratio of two medians."""
    value = over.times.median / under.times.median
    return Figure(what=f"{over.label} ÷ {under.label}", value=value, bar=bar, sides=(over, under))


def show(name: str, findings: Findings) -> None:
    """Print what a benchmark found as a table and, below it, its notes."""
    console = Console()
    console.width = max(console.width, _WIDTH)
    table = Table(title_justify="left", caption_justify="left")
    for column in ("benchmark", "side"):
        table.add_column(column, overflow="fold")
    for column in ("median ms", "p95 ms", "ratio"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("bar", no_wrap=True)
    for at, figure in enumerate(findings.figures):
        _add(table, name if at == 0 else "", figure)
    console.print(table)
    for note in findings.notes:
        console.print(f"{name}: {note}", markup=False, highlight=False, soft_wrap=True)


def _add(table: Table, name: str, figure: Figure) -> None:
    places = 2 if figure.sides or 0 < abs(figure.value) < 1 else 1 if figure.unit else 0
    value = f"{figure.value:,.{places}f}{figure.unit and ' '}{figure.unit}"
    bar = "" if figure.bar is None else f"{figure.bar}: {'met' if figure.bar.met(figure.value) else 'MISSED'}"
    if figure.sides is None:
        table.add_row(name, figure.what, "", "", value, bar)
        return
    over, under = figure.sides
    table.add_row(name, over.label, *_milliseconds(over), "", "")
    table.add_row("", f"÷ {under.label}", *_milliseconds(under), value, bar)


def _milliseconds(side: Measured) -> tuple[str, str]:
    return f"{side.times.median * 1_000:.3f}", f"{side.times.p95 * 1_000:.3f}"


def to_json(found: dict[str, Findings]) -> list[dict[str, Any]]:
    """One object a figure, with its benchmark's name and notes; times in milliseconds."""
    return [
        {
            "benchmark": name,
            "what": figure.what,
            "value": figure.value,
            "unit": "ratio" if figure.sides else figure.unit,
            "bar": None if figure.bar is None else str(figure.bar),
            "met": None if figure.bar is None else figure.bar.met(figure.value),
            "sides": [_side(side) for side in figure.sides or ()],
            "notes": findings.notes,
        }
        for name, findings in found.items()
        for figure in findings.figures
    ]


def _side(side: Measured) -> dict[str, Any]:
    return {
        "label": side.label,
        "median_ms": side.times.median * 1_000,
        "p95_ms": side.times.p95 * 1_000,
        "repetitions": len(side.times.seconds),
    }
