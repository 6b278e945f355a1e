"""`hitherto migrate`: the database's schema, set up or brought up to date."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Annotated

import typer

from hitherto.cli import options
from hitherto.cli.memory import lasting, run
from hitherto.cli.terminal import output
from hitherto.errors import InvalidInput, StoreError
from hitherto.other_systems.views import create_views, renew_views
from hitherto.settings import Settings
from hitherto.store import schema
from hitherto.store.connections import row_security
from hitherto.wiring import own_server


def migrate(
    database: options.Database = None,
    grant: Annotated[
        str | None, typer.Option(metavar="ROLE", help="Also give this role what the service and workers need.")
    ] = None,
    other_systems_views: Annotated[
        bool, typer.Option("--other-systems-views", help="Also create views with the names of other systems' tables.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Set up the database, or bring its schema up to date.

    Programs do so too when they open it, where their role may. Where it may not, run this as the role that owns the
    schema, before the programs start. A role that owns nothing sees one tenant at a time: row-level security keeps
    tenants apart.
    """
    settings = lasting(database)
    if settings.read_only:
        raise InvalidInput("the setting read_only (HITHERTO_READ_ONLY) is on, and nothing may be written; unset it")
    before, now = run(_migrated(settings, grant, views=other_systems_views))
    if as_json:
        output.print_json({"before": before, "revision": now, "granted": grant})
        return
    if before == now:
        output.say(f"The schema is at revision {now} already.")
    else:
        output.say(f"The schema is at revision {now} now{f'; before, it was at {before}' if before else ''}.")
    if grant is not None:
        output.say(f"The role {grant} has what the service and workers need.")
    if other_systems_views:
        output.say("The views are in the schema other_systems.")


async def _migrated(settings: Settings, grant: str | None, *, views: bool) -> tuple[str | None, str]:
    async with AsyncExitStack() as opened:
        url = settings.database or (await own_server(settings, opened, create=True)).url
        found = await schema.ensure(url, patience=settings.database_timeout)
        if grant is not None:
            await row_security.grant(url, grant)
        if views:
            await create_views(url, grant=grant)
        else:
            try:
                await renew_views(url)
            except StoreError as error:
                output.warn(f"The views of other systems stay as they were: {error}")
        return found
