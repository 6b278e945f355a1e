"""What the command `simulate` prints: policies side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from hitherto.cli.terminal.output import one_line
from hitherto.cli.terminal.tables import NONE, Column, fitted, key_width, wide
from hitherto.core.price import Price
from hitherto.simulation.figures import Figures

FULL_HISTORY = "full history"
"""The row that the others are compared with: all messages so far, sent each time."""

_LEFT = ("verbatim", "digest", "gone")


def policies_table(found: Sequence[Figures], *, title: str) -> Table:
    """A row for each policy: what is sent, what it costs, what is left of the messages at the end, and what of the
    questions' evidence is shown. The first row is the full history."""
    baseline, cheapest = found[0], min(figures.cost_usd for figures in found)
    left = [[f"{round(part * 100)}" for part in (one.verbatim, one.digested, one.dropped)] for one in found]
    costs = [Text(_dollars(one.cost_usd), style="green" if one.cost_usd == cheapest else "") for one in found]

    def column(name: str, cells: Sequence[str | Text], gives: int = 0) -> Column:
        return Column(name, cells, gives=gives, right=True)

    columns = [
        Column("policy", [one_line(one.policy) for one in found], most=key_width(), key=True),
        column("prompt", [f"{one.prompt_tokens:,}" for one in found]),
        column("cached", [f"{one.cached:.0%}" for one in found], gives=2),
        *(
            [
                column("recalled", [f"{one.recalled_tokens:,}" for one in found], gives=5),
                column("repeated", [f"{one.repeated:.0%}" for one in found], gives=6),
            ]
            if wide()
            else []
        ),
        column("digests", [f"{one.digest_calls:,}" for one in found], gives=3),
        *([column("their tokens", [f"{one.digest_tokens:,}" for one in found], gives=7)] if wide() else []),
        column("cost", costs),
        column("of full", [_percent(one.cost_usd, baseline.cost_usd) for one in found]),
        column("largest", [f"{one.max_request_tokens:,}" for one in found], gives=4),
        *(
            [column(name, [f"{part[number]} %" for part in left]) for number, name in enumerate(_LEFT)]
            if wide()
            else [column("left %", ["/".join(part) for part in left], gives=1)]
        ),
    ]
    if any(one.evidence for one in found):
        columns.append(column("evidence", [_evidence(one) for one in found]))
    return fitted(title, columns)


def remarks(
    price: Price, *, budget: int, largest: int, questions: int, every_policy: bool, picture: Path | None
) -> str:
    """How to read the table, where the largest request with the full history takes so many tokens."""
    fits = f"All of it fits the budget: with a --budget below {largest:,} the table shows what each policy leaves out."
    evidence = (
        f"Evidence: the share of what answers {questions} questions about it that is shown word for word, and what "
        "recall adds to that."
    )
    left_out = "native is left out: what its endpoint leaves is opaque, and so is its size."
    return " ".join(
        [
            f"Prices of {one_line(price.model)} as of {one_line(price.date)}; budget {budget:,} tokens a request. Full "
            "history: all messages so far, each time.",
            "Cached: what the provider has of the request before. Cost: prompts and digests; the answers cost the same "
            "each time and are left out. Left: messages that are verbatim in the end, in a digest only, and gone (a "
            "placeholder counts as gone).",
            *([fits] if largest <= budget else []),
            *([evidence] if questions else []),
            *([left_out] if every_policy else []),
            *([] if picture is None else [f"The picture is in {one_line(str(picture))}."]),
        ]
    )


def _evidence(figures: Figures) -> str:
    shown, recalled = figures.evidence_shown, figures.evidence_recalled
    if shown is None or recalled is None:
        return NONE
    return f"{shown:.0%}" + (f" (+{100 * recalled:.0f})" if recalled else "")


def failures(found: Sequence[Figures]) -> str:
    """How many digests failed, and why the first did."""
    failed = [(figures, why) for figures in found for why in figures.failed]
    first, why = failed[0]
    return (
        f"{len(failed):,} digests failed, and the figures of their policies show more messages than they would; the "
        f"first, of {one_line(first.policy)}, failed with {one_line(why)}"
    )


def _percent(cost: float, baseline: float) -> str:
    return f"{cost / baseline:.0%}" if baseline else NONE


def _dollars(cost: float) -> str:
    return f"${cost:.4f}" if cost < 10 else f"${cost:,.2f}"
