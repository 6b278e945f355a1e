"""Charts, as the numbers that templates draw as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hitherto.core.policy.span import Fate, Reason, Span

WIDTH = 1_000
"""Units of a bar, whatever it is over."""

_MOST = 400
"""Parts of a bar, beyond which the smallest are drawn with their neighbors: a page is not longer than a screen."""


@dataclass(frozen=True)
class BarPart:
    """A part of a bar: messages `start` to `end` of one fate, `x` and `width` of `WIDTH` units."""

    x: float
    width: float
    start: int
    end: int
    fate: Fate
    reason: Reason


@dataclass(frozen=True)
class Bar:
    """A bar over all messages of a log, how many of each fate there are, and where the page is."""

    parts: list[BarPart]
    counts: dict[Fate, int]
    x: float
    width: float


def bar_of(fates: Sequence[Span], stop: int, page: tuple[int, int]) -> Bar:
    """The bar of a manifest's fates over messages 0 to `stop` - 1, with the page from its first to its last message."""
    scale = WIDTH / max(stop, 1)
    counts: dict[Fate, int] = {}
    parts = list[BarPart]()
    for span in fates:
        counts[span.fate] = counts.get(span.fate, 0) + span.end - span.start + 1
        x = span.start * scale
        last = parts[-1] if parts else None
        if last is not None and (x - last.x < WIDTH / _MOST or (last.fate, last.reason) == (span.fate, span.reason)):
            larger = last if last.end - last.start >= span.end - span.start else span
            parts[-1] = BarPart(
                last.x, (span.end + 1) * scale - last.x, last.start, span.end, larger.fate, larger.reason
            )
        else:
            parts.append(BarPart(x, (span.end + 1) * scale - x, span.start, span.end, span.fate, span.reason))
    return Bar(parts, counts, page[0] * scale, max((page[1] - page[0] + 1) * scale, 2))


_FEWEST = 12
"""Columns for which there is room at least: one alone is no wall."""


@dataclass(frozen=True)
class Columns:
    """Columns beside each other: `x`, `width`, `y` and `height` of each, of `WIDTH` units across and 100 down, the same
    of the `parts` at their feet, and where the line of the limit is; the highest is `most`."""

    columns: list[tuple[float, float, float, float]]
    parts: list[tuple[float, float, float, float]]
    most: float
    limit: float | None


def columns_of(values: Sequence[float], limit: float | None = None, parts: Sequence[float | None] = ()) -> Columns:
    """The columns of these values, none of which is below 0, and of `parts` of them. The limit is drawn where it is not
    far above them all."""
    highest = max(values, default=0.0)
    most = max(highest, limit if limit is not None and limit < 4 * highest else 0.0) or 1.0
    step = WIDTH / max(len(values), _FEWEST)

    def column(at: int, value: float) -> tuple[float, float, float, float]:
        return at * step + step * 0.1, step * 0.8, 100 - 100 * value / most, 100 * value / most

    return Columns(
        [column(at, value) for at, value in enumerate(values)],
        [column(at, min(part, values[at])) for at, part in enumerate(parts) if part],
        most,
        None if limit is None or limit > most else 100 - 100 * limit / most,
    )


_LEAST = 8
"""Units of a slice at least: one that is there is seen."""


@dataclass(frozen=True)
class Slice:
    """A part of a whole, `x` and `width` of `WIDTH` units; those of one `tone` look alike."""

    label: str
    value: float
    x: float
    width: float
    tone: int


def slices_of(values: Mapping[str, float], whole: float | None = None) -> list[Slice]:
    """The values as slices of a bar of length `whole` (all of them together), in their order; those of 0 are left out,
    and those below it have no width."""
    whole = sum(values.values()) if whole is None else whole
    found, x = list[Slice](), 0.0
    for tone, (label, value) in enumerate(values.items()):
        if value:
            width = max(value / whole * WIDTH, _LEAST) if value > 0 else 0.0
            found.append(Slice(label, value, x, width, tone))
            x += width
    return found
