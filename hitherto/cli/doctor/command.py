"""The command `doctor`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from hitherto.cli import options
from hitherto.cli.doctor.settings import Check, CheckState
from hitherto.cli.terminal import output
from hitherto.errors import InvalidSettings

if TYPE_CHECKING:
    from rich.table import Table

    from hitherto.settings import Settings

_COLORS = {
    CheckState.OK: "green",
    CheckState.WARNING: "yellow",
    CheckState.FAILED: "red",
    CheckState.SKIPPED: "dim",
}


def doctor(database: options.Database = None, as_json: options.Json = False) -> None:
    """Check the database, the schema, the queue, the models and the rest, and say what to do.

    Changes nothing. Asks the model for a tiny digest, the embedder for the vector of a word, and a reranker for the
    order of two sentences, which may cost a fraction of a cent. A model on a server of one's own also gets a long
    prompt, which shows whether it is read whole.
    """
    from hitherto.cli.memory import run

    checks = run(_checks(database))
    well = all(check.state is not CheckState.FAILED for check in checks)
    if as_json:
        output.print_json({"ok": well, "checks": [asdict(check) for check in checks]})
    else:
        output.show(_table(checks), "", _summary(checks))
    if not well:
        raise typer.Exit(1)


async def _checks(database: str | None) -> list[Check]:
    from hitherto.cli.doctor import settings
    from hitherto.cli.doctor.database import REST
    from hitherto.settings import Settings

    try:
        loaded = Settings.load(database=database)
    except InvalidSettings as error:
        others = ("database", *REST, "model", "compactor", "embedder", "reranker", "prices")
        skipped = [settings.skipped(name, "not looked at: see settings") for name in others]
        return [*settings.check_settings(error), *skipped]
    return await checks_of(loaded)


async def checks_of(loaded: Settings) -> list[Check]:
    """What the checks say of these settings, and of what they name."""
    from hitherto.cli.doctor import settings
    from hitherto.cli.doctor.database import check_database

    embedder, space = await settings.check_embedder(loaded)
    return [
        *settings.check_settings(loaded),
        *await check_database(loaded, space),
        await settings.check_model(loaded),
        await settings.check_compactor(loaded),
        embedder,
        await settings.check_reranker(loaded),
        settings.check_prices(loaded),
    ]


def _table(checks: list[Check]) -> Table:
    from rich.text import Text

    from hitherto.cli.terminal.tables import table_of

    table = table_of(None)
    table.add_column("check", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("what was found, and what to do", ratio=1)
    for check in checks:
        text = Text(output.one_line(check.found), style="dim" if check.state is CheckState.SKIPPED else "")
        if check.advice:
            text.append(f"\n→ {output.one_line(check.advice)}", style="bold")
        table.add_row(check.name, Text(check.state.value, style=_COLORS[check.state]), text)
    return table


def _summary(checks: list[Check]) -> str:
    failed = sum(check.state is CheckState.FAILED for check in checks)
    warnings = sum(check.state is CheckState.WARNING for check in checks)
    if not failed and not warnings:
        return "All is well."
    return f"{failed or 'None'} failed, {warnings or 'no'} {'warning' if warnings == 1 else 'warnings'}."
