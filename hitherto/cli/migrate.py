"""`hitherto migrate`: the database's schema, set up or brought up to date."""

from __future__ import annotations

from contextlib import AsyncExitStack

from hitherto.cli import options
from hitherto.cli.memory import run
from hitherto.cli.terminal import output
from hitherto.errors import InvalidInput
from hitherto.settings import Settings
from hitherto.stores.postgres import schema
from hitherto.wiring import IN_MEMORY, own_server


def migrate(database: options.Database = None, as_json: options.Json = False) -> None:
    """Set up the database, or bring its schema up to date.

    Programs do so too when they open it, where their role may. Where it may not, run this as the role that owns the
    schema, before the programs start.
    """
    settings = Settings.load(database=database)
    if settings.database == IN_MEMORY:
        raise InvalidInput("memory: has no schema; name a PostgreSQL server, or leave --database out")
    if settings.read_only:
        raise InvalidInput("the setting read_only (HITHERTO_READ_ONLY) is on, and nothing may be written; unset it")
    before, now = run(_migrated(settings))
    if as_json:
        output.print_json({"before": before, "revision": now})
    elif before == now:
        output.say(f"The schema is at revision {now} already.")
    else:
        output.say(f"The schema is at revision {now} now{f'; before, it was at {before}' if before else ''}.")


async def _migrated(settings: Settings) -> tuple[str | None, str]:
    async with AsyncExitStack() as opened:
        url = settings.database or (await own_server(settings, opened, create=True)).url
        return await schema.ensure(url, patience=settings.database_timeout)
