"""`hitherto costs`: what model calls cost, from the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.table import Table

from hitherto.cli import options
from hitherto.cli.memory import with_memory
from hitherto.cli.terminal import output
from hitherto.cli.terminal.tables import NONE, cut, table_of, wide
from hitherto.core.ledger import Costs
from hitherto.core.scope import checked_name
from hitherto.errors import InvalidInput

_DAYS_BEFORE = timedelta(days=29)
"""The days before the last one that are shown by default."""

_MILLIONS = 10_000_000
"""From this many tokens on, they are shown in millions."""

_LEAST_COST = 0.0001
"""A lower cost in dollars is not shown exactly."""


class GroupBy(StrEnum):
    """What calls are grouped by, in the words of the store."""

    TENANT = "tenant"
    USER = "user"
    MODEL = "model"
    DAY = "day"
    PURPOSE = "purpose"


def costs(
    by: Annotated[GroupBy, typer.Option(help="Group the calls by this.")] = GroupBy.DAY,
    tenant: Annotated[str | None, typer.Option(metavar="NAME", help="Only this tenant. [default: all]")] = None,
    since: Annotated[
        str | None, typer.Option(metavar="DAY", help="The first day. [default: 29 days before the last]")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="DAY", help="The last day. [default: today]")] = None,
    database: options.Database = None,
    as_json: options.Json = False,
) -> None:
    """Show what model calls cost, by day, model, purpose, tenant or user.

    By default, those of the last 30 days. Days are in UTC, written like 2026-11-30.
    """
    if tenant is not None:
        checked_name(tenant, "--tenant")
    first, last = _days(since, until)
    found = with_memory(database, lambda memory: memory.costs(by.value, tenant=tenant, since=first, until=last))
    if as_json:
        days = {"since": str(first), "until": None if last is None else str(last)}
        groups = [{"group": sums.group, **_json(sums)} for sums in found]
        output.print_json({"by": by, **days, "groups": groups, "total": _json(_total(found))})
        return
    span = f"since {first}" if last is None else f"from {first} to {last}"
    which = f"{'' if tenant is None else f'of the tenant {tenant} '}{span} (UTC)"
    if not found:
        output.say(f"The ledger has no model calls {which}.")
        return
    output.show(_table(found, by, title=f"Model calls {which}"))
    if remark := _remark(_total(found)):
        output.show("", remark)


def _days(since: str | None, until: str | None) -> tuple[date, date | None]:
    """The first day and the last, None for today."""
    last = None if until is None else _day("--until", until)
    end = last or datetime.now(UTC).date()
    first = end - min(_DAYS_BEFORE, end - date.min) if since is None else _day("--since", since)
    if last is not None and first > last:
        raise InvalidInput(f"--since is {first}, and --until {last} comes before it; change one of them")
    return first, last


def _day(option: str, text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"{option} is {text!r}; give a day like 2026-11-30") from None


def _table(found: Sequence[Costs], by: GroupBy, *, title: str) -> Table:
    table = table_of(title, footer=True)
    table.add_column(by.value, "all", ratio=1)
    for name, total in _cells(_total(found)).items():
        table.add_column(name, total, justify="right", no_wrap=True)
    for sums in found:
        table.add_row(cut(sums.group), *_cells(sums).values())
    return table


def _cells(sums: Costs) -> dict[str, str]:
    """The cells of a row, by column."""
    more = {"unpriced": f"{sums.unpriced:,}", "seconds each": f"{sums.latency_ms / sums.calls / 1_000:.1f}"}
    return {
        "calls": f"{sums.calls:,}",
        "failed": f"{sums.failed:,}",
        **(more if wide() else {}),
        "tokens in": _tokens(sums.tokens_in),
        "cached": _tokens(sums.tokens_cached),
        "out": _tokens(sums.tokens_out),
        "cost": _cost(sums),
    }


def _tokens(count: int) -> str:
    return f"{count:,}" if count < _MILLIONS else f"{count / 1_000_000:,.1f} M"


def _cost(sums: Costs) -> str:
    """In dollars, with a "+" where the cost of some calls is not known."""
    if sums.unpriced == sums.calls:
        return NONE
    shown = f"${sums.cost:.4f}" if sums.cost < 100 else f"${sums.cost:,.2f}"
    if 0 < sums.cost < _LEAST_COST:
        shown = f"<${_LEAST_COST}"
    return f"{shown}+" if sums.unpriced else shown


def _remark(total: Costs) -> str:
    """Which calls the costs leave out, if any."""
    if not total.unpriced:
        return ""
    left_out = "all" if total.unpriced == total.calls else f"{total.unpriced:,} of {total.calls:,}"
    return (
        f"The cost of {left_out} calls is not known and is left out: they failed, or their model is in no price list, "
        "or its endpoint did not say how many tokens they took."
    )


def _total(found: Sequence[Costs]) -> Costs:
    names = [field.name for field in fields(Costs) if field.name != "group"]
    return Costs(group="all", **{name: sum(getattr(sums, name) for sums in found) for name in names})


def _json(sums: Costs) -> dict[str, Any]:
    figures = asdict(sums)
    del figures["group"]
    return {"cost_usd": round(figures.pop("cost"), 9), **figures}
