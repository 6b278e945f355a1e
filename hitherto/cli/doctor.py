"""The command `doctor`: is everything there that a process needs?"""

from __future__ import annotations

from dataclasses import asdict

import typer
from rich.table import Table
from rich.text import Text

from hitherto.cli import checks, terminal
from hitherto.cli.app import DatabaseOption, JsonOption, app
from hitherto.cli.checks import Check, State
from hitherto.cli.database_checks import check_database
from hitherto.cli.recall_checks import check_embedder, check_reranker
from hitherto.cli.running import run
from hitherto.cli.tables import table_of

_COLOUR = {State.OK: "green", State.WARNING: "yellow", State.FAILED: "red", State.SKIPPED: "dim"}


@app.command()
def doctor(database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """Check database, schema, queue, models and the rest, and say what to do about each.

    Changes nothing. Asks the model for digests for a tiny one, the embedder for the vector of a word, a reranker for
    the order of two sentences: that may cost a fraction of a cent.
    """
    found = run(_checked(database))
    well = all(one.state is not State.FAILED for one in found)
    if as_json:
        terminal.print_json({"ok": well, "checks": [asdict(one) for one in found]})
    else:
        terminal.out().print(_table(found))
        terminal.out().print(f"\n{_outcome(found)}")
    if not well:
        raise typer.Exit(1)


async def _checked(database: str | None) -> list[Check]:
    given = checks.given(database=database)
    embedder, space = await check_embedder(given)
    return [
        *checks.check_settings(given),
        *await check_database(given, space),
        await checks.check_model(given),
        await checks.check_compactor(given),
        embedder,
        await check_reranker(given),
        checks.check_prices(given),
        checks.check_ceilings(given),
        checks.check_tracing(given),
    ]


def _table(found: list[Check]) -> Table:
    table = table_of(None)
    table.add_column("check", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("what was found, and what to do", ratio=1)
    for one in found:
        said = Text(terminal.one_line(one.found), style="dim" if one.state is State.SKIPPED else "")
        if one.advice:
            said.append(f"\n→ {terminal.one_line(one.advice)}", style="bold")
        table.add_row(one.name, Text(one.state.value, style=_COLOUR[one.state]), said)
    return table


def _outcome(found: list[Check]) -> str:
    counts = {state: sum(one.state is state for one in found) for state in State}
    if counts[State.FAILED]:
        return f"{counts[State.FAILED]} failed, {counts[State.WARNING]} warned of."
    if counts[State.WARNING]:
        return f"None failed, {counts[State.WARNING]} warned of."
    return "All is well."
