"""The command `costs`: what the ledger adds up to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Annotated

import typer
from rich.table import Table

import hitherto
from hitherto.cli import terminal
from hitherto.cli.app import DatabaseOption, JsonOption, app
from hitherto.cli.running import run
from hitherto.cli.tables import WIDE, cut, table_of
from hitherto.core.ledger import Costs
from hitherto.core.scope import checked_name
from hitherto.errors import InvalidInput

_MORE = timedelta(days=29)
"""So many days before the last one are looked at too."""

_MILLIONS = 10_000_000
"""From so many tokens on they are shown in millions."""

_LEAST = 0.0001
"""Less than so many dollars are not shown exactly."""

_NONE = "–"


class By(StrEnum):
    """What calls can be grouped by, in the words of the store."""

    TENANT = "tenant"
    USER = "user"
    MODEL = "model"
    DAY = "day"
    PURPOSE = "purpose"


@app.command(name="costs")
def costs_command(
    by: Annotated[By, typer.Option(help="A line for each of these.")] = By.DAY,
    tenant: Annotated[str | None, typer.Option(metavar="NAME", help="Of this tenant only. [default: of all]")] = None,
    since: Annotated[
        str | None, typer.Option(metavar="DAY", help="The first day. [default: 30 days with the last one]")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="DAY", help="The last day. [default: today]")] = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what calls of models cost, by day, model, purpose, tenant or user.

    Those of the last 30 days, unless told otherwise; days are UTC, and written like 2026-11-30.
    """
    whose = None if tenant is None else checked_name(tenant, "--tenant")
    first, last = _days(since, until)
    found = run(_added_up(database, by, whose, first, last))
    if as_json:
        days = {"since": first.isoformat(), "until": None if last is None else last.isoformat()}
        groups = [{"group": one.group, **_json(one)} for one in found]
        terminal.print_json({"by": by.value, **days, "groups": groups, "total": _json(_total(found))})
        return
    out = terminal.out()
    span = f"since {first}" if last is None else f"from {first} to {last}"
    which = f"{'' if whose is None else f'of the tenant {whose} '}{span} (UTC)"
    if not found:
        out.print(terminal.one_line(f"The ledger has no call of a model {which}."))
        return
    out.print(_table(found, by, width=out.width, title=f"Calls of models {which}"))
    if remark := _remark(_total(found)):
        out.print(f"\n{remark}")


def _days(since: str | None, until: str | None) -> tuple[date, date | None]:
    """The first day and the last, None for one that is still to come."""
    last = None if until is None else _day("--until", until)
    end = last or datetime.now(UTC).date()
    first = end - min(_MORE, end - date.min) if since is None else _day("--since", since)
    if last is not None and first > last:
        raise InvalidInput(f"--since is {first}, and --until {last} comes before it; change one of them")
    return first, last


def _day(option: str, text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"{option} is {text!r}; give a day like 2026-11-30") from None


async def _added_up(database: str | None, by: By, tenant: str | None, since: date, until: date | None) -> list[Costs]:
    async with hitherto.open(database, worker=False) as memory:
        return await memory.costs(by.value, tenant=tenant, since=since, until=until)


def _table(found: Sequence[Costs], by: By, *, width: int, title: str) -> Table:
    table = table_of(title, footer=True)
    table.add_column(by.value, "all", ratio=1)
    rows = [_shown(one, wide=width >= WIDE) for one in (*found, _total(found))]
    for name, total in rows[-1].items():
        table.add_column(name, total, justify="right", no_wrap=True)
    for one, row in zip(found, rows, strict=False):
        table.add_row(cut(one.group), *row.values())
    return table


def _shown(sums: Costs, *, wide: bool) -> dict[str, str]:
    """The figures of a line, by column."""
    more = {"unpriced": f"{sums.unpriced:,}", "seconds each": f"{sums.latency_ms / sums.calls / 1_000:.1f}"}
    return {
        "calls": f"{sums.calls:,}",
        "failed": f"{sums.failed:,}",
        **(more if wide else {}),
        "tokens in": _tokens(sums.tokens_in),
        "cached": _tokens(sums.tokens_cached),
        "out": _tokens(sums.tokens_out),
        "cost": _cost(sums),
    }


def _tokens(count: int) -> str:
    return f"{count:,}" if count < _MILLIONS else f"{count / 1_000_000:,.1f} M"


def _cost(sums: Costs) -> str:
    """In dollars; with a "+" where some calls are left out of it."""
    if sums.unpriced == sums.calls:
        return _NONE
    shown = f"${sums.cost:.4f}" if sums.cost < 100 else f"${sums.cost:,.2f}"
    if 0 < sums.cost < _LEAST:
        shown = f"<${_LEAST}"
    return f"{shown}+" if sums.unpriced else shown


def _remark(total: Costs) -> str:
    """What must be known to read the costs, if anything."""
    if not total.unpriced:
        return ""
    left_out = "all" if total.unpriced == total.calls else f"{total.unpriced:,} of {total.calls:,}"
    return (
        f"The cost of {left_out} calls is not known and is left out: they failed, or their model is in no price list, "
        "or its endpoint did not say how many tokens they took."
    )


def _total(found: Sequence[Costs]) -> Costs:
    return Costs(
        group="all",
        calls=sum(one.calls for one in found),
        failed=sum(one.failed for one in found),
        unpriced=sum(one.unpriced for one in found),
        tokens_in=sum(one.tokens_in for one in found),
        tokens_cached=sum(one.tokens_cached for one in found),
        tokens_out=sum(one.tokens_out for one in found),
        cost=sum(one.cost for one in found),
        latency_ms=sum(one.latency_ms for one in found),
    )


def _json(sums: Costs) -> dict[str, int | float]:
    return {
        "calls": sums.calls,
        "failed": sums.failed,
        "unpriced": sums.unpriced,
        "tokens_in": sums.tokens_in,
        "tokens_cached": sums.tokens_cached,
        "tokens_out": sums.tokens_out,
        "cost_usd": round(sums.cost, 9),
        "latency_ms": sums.latency_ms,
    }
