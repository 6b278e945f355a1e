"""What `hitherto doctor` looks at in the database: server, schema, queue, search index. It changes nothing there."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hitherto.cli.checks import Check, Given, failed, ok, skipped, warning
from hitherto.errors import StoreError
from hitherto.ports.embedder import Space
from hitherto.ports.store import Load
from hitherto.settings import Settings
from hitherto.stores.postgres.examination import Examined, examine
from hitherto.wiring import IN_MEMORY

if TYPE_CHECKING:
    from hitherto.stores.postgres.store import PostgresStore

_FAR = 20.0
"""Milliseconds of a round trip from which on it is felt: an append takes several."""

_LATE = 600.0
"""Seconds that a digest may wait before somebody is told."""

_BACKLOG = 1_000
"""Scopes that wait for the index from which on somebody is told."""

_REST = ("schema", "queue", "index")


async def check_database(found: Given, space: Space | None) -> list[Check]:
    """The checks `database`, `schema`, `queue` and `index`; vectors are wanted in `space`, if it is known."""
    name = "database"
    if skip := found.missing(name):
        return [skip, *(skipped(one, "not looked at: see database") for one in _REST)]
    if found.settings.database == IN_MEMORY:
        memory = ok(name, "in memory: nothing is kept when a process ends")
        return [memory, *(skipped(one, "nothing to be looked at: the store is in memory") for one in _REST)]
    async with AsyncExitStack() as opened:
        try:
            url, home = await _where(found.settings, opened)
            examined = await examine(url, patience=found.settings.database_timeout)
        except StoreError as error:
            return [failed(name, error), *(skipped(one, "not looked at: no database") for one in _REST)]
        checks = [_server(examined, home), _schema(examined)]
        if not examined.current or not examined.usable or examined.lacking:
            return [*checks, *(skipped(one, "not looked at: see schema") for one in _REST[1:])]
        return [*checks, await _queue(examined, url, found.settings), await _index(url, found.settings, space)]


async def _where(settings: Settings, opened: AsyncExitStack) -> tuple[str, Path | None]:
    """The database's address, and the directory of the server if it is Hitherto's own."""
    if settings.database is not None:
        return settings.database, None
    from hitherto.stores.postgres.embedded import EmbeddedServer, default_data_directory

    home = settings.home or default_data_directory()
    server = await EmbeddedServer.start(home)
    opened.push_async_callback(server.stop)
    return server.url, home


def _server(examined: Examined, home: Path | None) -> Check:
    name = "database"
    where = f"at {examined.address}" if home is None else f"Hitherto's own, in {home}"
    says = f"PostgreSQL {examined.version}, {where}, as {examined.role}; a round trip: {examined.round_trip_ms:.2f} ms"
    if examined.too_old:
        return failed(name, says, "Hitherto needs PostgreSQL 14 or later: upgrade the server, or name another")
    if examined.read_only:
        return warning(
            name,
            f"{says}; it takes no writes",
            "contexts can be made, appends are refused: name the primary server, or end its read-only mode",
        )
    if examined.round_trip_ms > _FAR:
        return warning(name, says, "each append and context takes several: move the process nearer to its database")
    return ok(name, says)


def _schema(examined: Examined) -> Check:
    return _barred(examined) or _revision(examined)


def _barred(examined: Examined) -> Check | None:
    """What the role may not do in the schema and must, if anything."""
    name, role = "schema", examined.role
    if not examined.schema and not examined.makeable:
        return failed(
            name,
            f"there is no schema hitherto yet, and {role} may not make one",
            f"GRANT CREATE ON DATABASE … TO {role}, or open the database once as a role that may",
        )
    if examined.schema and not examined.usable:
        return failed(
            name,
            f"there is a schema hitherto, of {examined.owner}, and {role} may not use it",
            f"as its owner: GRANT USAGE ON SCHEMA hitherto TO {role}, and {_grants(examined)}",
        )
    if examined.lacking:
        return failed(
            name,
            f"{role} lacks rights in the schema hitherto ({'; '.join(examined.lacking)})",
            f"as its owner, {examined.owner}: {_grants(examined)}",
        )
    return None


def _revision(examined: Examined) -> Check:
    name, newest = "schema", examined.revisions[-1]
    if not examined.schema:
        return ok(name, "there is none yet; the first process that opens this database makes it")
    if examined.newer:
        return failed(
            name,
            f"it is at revision {examined.revision}, and this Hitherto knows only up to {newest}",
            "upgrade Hitherto, or name another database",
        )
    if examined.current:
        return ok(name, f"at revision {newest}, which is this Hitherto's; {examined.role} has the rights it needs")
    at = "has no tables of Hitherto's yet" if examined.revision is None else f"is at revision {examined.revision}"
    if not examined.makeable:
        return failed(
            name,
            f"it {at}, this Hitherto's is {newest}, and {examined.role} may not bring it there",
            f"open the database once as the schema's owner, {examined.owner}",
        )
    return warning(
        name,
        f"it {at}, and this Hitherto's is {newest}",
        "any process that opens it brings it up to date; see docs/storage.md for upgrades",
    )


def _grants(examined: Examined) -> str:
    return f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA hitherto TO {examined.role}"


async def _queue(examined: Examined, url: str, settings: Settings) -> Check:
    name = "queue"
    if not examined.queue:
        return failed(
            name,
            "the queue's tables are gone from the schema hitherto, though its revision has them",
            "restore them from a backup; until then every append that sets off a digest fails",
        )
    if examined.lost_functions:
        names = ", ".join(examined.lost_functions[:3]) + (", …" if len(examined.lost_functions) > 3 else "")
        return failed(
            name,
            f"{len(examined.lost_functions)} of its functions have lost the schema they work in: {names}",
            "for each: ALTER FUNCTION hitherto.…(…) SET search_path = hitherto, pg_temp",
        )
    try:
        async with _store(url, settings) as store:
            return _load(await store.load(), settings)
    except StoreError as error:
        return failed(name, error)


async def _index(url: str, settings: Settings, space: Space | None) -> Check:
    name = "index"
    try:
        async with _store(url, settings) as store:
            load = await store.index.load(space)
    except StoreError as error:
        return failed(name, error)
    if not load.waiting and not load.unembedded:
        return ok(name, "all is in the search index")
    says = f"scopes with something that waits for the search index: {load.waiting:,}, for vectors: {load.unembedded:,}"
    if max(load.waiting, load.unembedded) >= _BACKLOG:
        return warning(
            name,
            f"{says}; until then it is found by its words alone, and of a scope the newest only",
            "start more workers (hitherto worker), or see in their logs what holds them up; after an upgrade, or a "
            "change of the embedder, it takes its time",
        )
    return ok(name, f"{says}; processes that make digests see to it")


@asynccontextmanager
async def _store(url: str, settings: Settings) -> AsyncGenerator[PostgresStore]:
    """An open store, which finds nothing to bring up to date."""
    from hitherto.stores.postgres.store import PostgresStore

    store = PostgresStore(url, pool_size=1, patience=settings.database_timeout)
    try:
        await store.open()
        yield store
    finally:
        await store.aclose()


def _load(load: Load, settings: Settings) -> Check:
    name = "queue"
    says = (
        f"digests: {load.due:,} due, {load.claimed:,} in hand, {load.put_off:,} put off; workers: {load.workers or 0}"
    )
    here = "" if settings.worker else ", or set HITHERTO_WORKER=true where messages are appended"
    start = f"start one: hitherto worker{here}"
    if load.due and not load.workers:
        return warning(name, f"{load.due:,} digests wait and no worker shows itself", start)
    if load.due and load.lag_seconds > _LATE:
        return warning(
            name,
            f"{says}; the oldest has waited for {load.lag_seconds:,.0f} seconds",
            "start more workers (hitherto worker), or see in their logs what holds them up",
        )
    if load.resting:
        return warning(
            name,
            f"{says}; {load.resting:,} conversations rest, as their digests failed again and again",
            "see why: SELECT conversation, created_at, error FROM hitherto.digest WHERE status = 'failed' "
            "ORDER BY created_at DESC LIMIT 10",
        )
    if load.put_off and not load.workers:
        return warning(name, f"{says}; nobody is there to try again what was put off", start)
    if load.put_off:
        return warning(
            name, says, "those put off are tried again by themselves; their rows in hitherto.digest say why (error)"
        )
    return ok(name, says)
