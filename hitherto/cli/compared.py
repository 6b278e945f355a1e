"""What `simulate` prints for people: policies side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from hitherto.cli.shown import WIDE, cut, numbers, table_of
from hitherto.cli.terminal import one_line
from hitherto.core.price import Price
from hitherto.simulation.figures import Figures

_BASELINE = "none"


def table(found: Sequence[Figures], *, width: int, title: str) -> Table:
    """One line a policy: what is sent, what it costs, and what is left of the messages in the end."""
    wide = width >= WIDE
    shown = table_of(title)
    shown.add_column("policy", ratio=1, overflow="fold")
    numbers(shown, "prompt", "cached", *(("repeated",) if wide else ()), "digests")
    numbers(shown, *(("their tokens",) if wide else ()), "cost", *(("of none",) if _baseline(found) else ()), "largest")
    if wide:
        numbers(shown, "verbatim", "digest", "gone")
    else:
        numbers(shown, "left %")
    base = _baseline(found)
    cheapest = min(one.cost_usd for one in found)
    for one in found:
        kept = [f"{round(part * 100)}" for part in (one.verbatim, one.digested, one.dropped)]
        row = [
            f"{one.prompt_tokens:,}",
            f"{one.cached:.0%}",
            *([f"{one.repeated:.0%}"] if wide else []),
            f"{one.digest_calls:,}",
            *([f"{one.digest_tokens:,}"] if wide else []),
            Text(_dollars(one.cost_usd), style="green" if one.cost_usd == cheapest else ""),
            *([f"{one.cost_usd / base.cost_usd:.0%}" if base.cost_usd else "–"] if base else []),
            f"{one.max_request_tokens:,}",
            *([f"{part} %" for part in kept] if wide else ["/".join(kept)]),
        ]
        shown.add_row(cut(one.policy), *row)
    return shown


def remarks(price: Price, *, budget: int, everything: bool, picture: Path | None) -> str:
    """What must be known to read the table."""
    drawn = [] if picture is None else [f"The picture is in {one_line(str(picture))}."]
    left = ["native is left out: what its endpoint leaves is opaque, and so is its size."] if everything else []
    return " ".join(
        [
            f"Prices of {one_line(price.model)} as of {one_line(price.date)}; budget {budget:,} tokens a request.",
            "Cached: what the provider has of the request before. Cost: prompts and digests; the answers cost the same "
            "each time and are left out. Left: messages that are verbatim in the end, in a digest only, and gone "
            "(a placeholder counts as gone).",
            *left,
            *drawn,
        ]
    )


def failures(found: Sequence[Figures]) -> str:
    """How many digests failed, and why the first did."""
    failed = [(one, why) for one in found for why in one.failed]
    first, why = failed[0]
    return (
        f"{len(failed):,} digests failed, and the figures of their policies show more messages than they would; the "
        f"first, of {one_line(first.policy)}, failed with {one_line(why)}"
    )


def _baseline(found: Sequence[Figures]) -> Figures | None:
    return next((one for one in found if one.policy == _BASELINE), None)


def _dollars(cost: float) -> str:
    return f"${cost:.4f}" if cost < 10 else f"${cost:,.2f}"
