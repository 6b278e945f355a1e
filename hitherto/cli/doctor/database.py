"""Checks of the database server, the schema, the queue and the search index. They change nothing there."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from hitherto.blocks import block
from hitherto.cli.doctor.settings import Check, CheckState, failed, ok, skipped, warning
from hitherto.core.digests.digest import Backlog, Needs
from hitherto.core.recall.vectors import Space
from hitherto.errors import NotFound, StoreError
from hitherto.ports.models import EXTRACTIVE
from hitherto.settings import Settings
from hitherto.store.inspection import COUNTED, InspectionReport, examine, undigested
from hitherto.wiring import IN_MEMORY, own_server

if TYPE_CHECKING:
    from hitherto.store.store import Store

_SLOW_MS = 20.0
"""Milliseconds. Warn above this round trip: an append takes several."""

_LATE_SECONDS = 600.0
"""Warn if a digest has waited for longer."""

_BACKLOG = 1_000
"""Warn when so many scopes wait for the index."""

_LOOKED_AT = 1_000
"""So many waiting digests are looked at for what their maker must have."""

REST = ("schema", "row_security", "queue", "index")


async def check_database(settings: Settings, space: Space | None) -> list[Check]:
    """The checks `database` and those of `REST`, of which the last is of vectors in `space`, if known."""
    name = "database"
    if settings.database == IN_MEMORY:
        rest = [skipped(check, "nothing to be looked at: memory: is new each time") for check in REST]
        return [await _throwaway(), *rest]
    async with AsyncExitStack() as opened:
        try:
            url, home = await _address(settings, opened)
            examined = await examine(url, patience=settings.database_timeout)
        except NotFound as error:
            none = ok(name, f"{error}; the first program that opens it sets it up, and so does: hitherto migrate")
            return [none, *(skipped(check, "not looked at: no database yet") for check in REST)]
        except StoreError as error:
            return [failed(name, error), *(skipped(check, "not looked at: no database") for check in REST)]
        checks = [_server(examined, home), _schema(examined)]
        if not examined.current or not examined.usable or examined.lacking:
            return [*checks, *(skipped(check, "not looked at: see schema") for check in REST[1:])]
        checks.append(_row_security(examined, settings))
        return [*checks, await _queue(url, settings), await _index(url, settings, space)]


async def _throwaway() -> Check:
    from hitherto.store.embedded.throwaway import throwaway_database

    name = "database"
    try:
        async with AsyncExitStack() as opened:
            await throwaway_database(opened)
            return ok(name, "a throw-away memory can be made; nothing is kept when its process ends")
    except StoreError as error:
        return failed(name, error)


async def _address(settings: Settings, opened: AsyncExitStack) -> tuple[str, Path | None]:
    """The database's address, and the directory if it is Hitherto's own server."""
    if settings.database is not None:
        return settings.database, None
    server = await own_server(settings, opened, create=False)
    return server.url, server.directory


def _server(examined: InspectionReport, home: Path | None) -> Check:
    name = "database"
    where = f"at {examined.address}" if home is None else f"Hitherto's own, in {home}"
    fsync, full_pages = ("on" if it else "off" for it in (examined.fsync, examined.full_page_writes))
    says = (
        f"PostgreSQL {examined.version}, {where}, as {examined.role}; a round trip: {examined.round_trip_ms:.2f} ms; "
        f"fsync {fsync}, full_page_writes {full_pages}"
    )
    if examined.too_old:
        return failed(name, says, "Hitherto needs PostgreSQL 15 or later: upgrade the server, or name another")
    if examined.read_only:
        return warning(
            name,
            f"{says}; it takes no writes",
            "contexts can be made, appends are refused: name the primary server, or end its read-only mode",
        )
    if not examined.fsync:
        return warning(
            name,
            says,
            "a crash of the machine can lose what was acknowledged, or damage the database: set fsync = on in its "
            "postgresql.conf and reload it (SELECT pg_reload_conf())",
        )
    if examined.round_trip_ms > _SLOW_MS:
        return warning(name, says, "each append and context takes several: move the process nearer to its database")
    return ok(name, says)


def _schema(examined: InspectionReport) -> Check:
    return _missing_rights(examined) or _revision(examined)


def _missing_rights(examined: InspectionReport) -> Check | None:
    """A failed check if the role lacks a right that it needs."""
    name, role = "schema", examined.role
    if not examined.schema and not examined.can_create:
        return failed(
            name,
            f"there is no schema hitherto yet, and {role} may not make one",
            f"GRANT CREATE ON DATABASE … TO {role}, or open the database once as a role that may",
        )
    if examined.schema and not examined.usable:
        return failed(
            name,
            f"there is a schema hitherto, of {examined.owner}, and {role} may not use it",
            f"as its owner: hitherto migrate --grant {role}",
        )
    if examined.lacking:
        return failed(
            name,
            f"{role} lacks rights in the schema hitherto ({'; '.join(examined.lacking)})",
            f"as its owner, {examined.owner}: hitherto migrate --grant {role}",
        )
    return None


def _revision(examined: InspectionReport) -> Check:
    name, newest = "schema", examined.revisions[-1]
    if not examined.schema:
        return ok(name, "there is none yet; the first process that opens this database makes it")
    if examined.development:
        return failed(
            name,
            f"it is at revision {examined.revision}, of a development version, and cannot be upgraded to {newest}",
            "use a new database or directory (HITHERTO_DATA_DIR), or, if the old one is not needed, DROP SCHEMA "
            "hitherto CASCADE",
        )
    if examined.newer:
        return failed(
            name,
            f"it is at revision {examined.revision}, and this Hitherto knows only up to {newest}",
            "upgrade Hitherto, or name another database",
        )
    if examined.current:
        return ok(name, f"at revision {newest}, which is this Hitherto's; {examined.role} has the rights it needs")
    at = "has no tables of Hitherto's yet" if examined.revision is None else f"is at revision {examined.revision}"
    if not examined.can_create:
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


def _row_security(examined: InspectionReport, settings: Settings) -> Check:
    name, role = "row_security", examined.role
    if examined.row_security:
        return ok(name, f"row-level security holds for {role}: a transaction sees the rows of one tenant alone")
    says = f"row-level security does not hold for {role}, which owns the tables or may pass it"
    if settings.row_security and settings.database is not None:
        return failed(
            name,
            f"{says}; the setting row_security refuses it",
            "name another role, after: hitherto migrate --grant ROLE, as the tables' owner",
        )
    return ok(name, says)


async def _queue(url: str, settings: Settings) -> Check:
    name = "queue"
    try:
        async with _store(url, settings) as store:
            found = await _beyond_this_process(store, settings) or _load(await store.backlog(), settings)
            return (await _undigested(url, settings) if found.state is CheckState.OK else None) or found
    except StoreError as error:
        return failed(name, error)


async def _index(url: str, settings: Settings, space: Space | None) -> Check:
    name = "index"
    try:
        async with _store(url, settings) as store:
            load = await store.index.backlog(space)
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


@block
async def _store(url: str, settings: Settings) -> AsyncGenerator[Store]:
    """An open store of a schema that is up to date."""
    from hitherto.store.store import Store

    store = Store(url, pool_size=1, patience=settings.database_timeout)
    try:
        await store.open()
        yield store
    finally:
        await store.aclose()


async def _beyond_this_process(store: Store, settings: Settings) -> Check | None:
    """A warning about digests that other processes began and this one cannot make; None if none of them waits."""
    here = frozenset[Needs]() if settings.model == EXTRACTIVE else frozenset({Needs.MODEL})
    here |= frozenset[Needs]() if settings.compact_model is None else frozenset({Needs.COMPACTOR})
    waiting = await store.due_digests(limit=_LOOKED_AT)
    mine = await store.due_digests(limit=_LOOKED_AT, able=here)
    beyond = len(set(waiting) - set(mine))
    if not beyond:
        return None
    wanted = "HITHERTO_MODEL" if Needs.MODEL not in here else "HITHERTO_COMPACT_MODEL"
    return warning(
        "queue",
        f"{beyond:,} of the first {len(waiting):,} digests that wait were begun by processes with a model that this "
        "one lacks, and cannot be made here",
        f"set {wanted} to the same in all processes that append or make digests, or start a worker where it is set",
    )


async def _undigested(url: str, settings: Settings) -> Check | None:
    """A warning about long conversations that nobody digests, where this process would; None if there are none."""
    if settings.model == EXTRACTIVE:
        return None
    tokens = min(settings.context_window or settings.budget, settings.budget)
    count = await undigested(url, patience=settings.database_timeout, tokens=tokens)
    if not count:
        return None
    more = "at least " if count == COUNTED else ""
    return warning(
        "queue",
        f"conversations with more than {tokens:,} tokens and no digest of any kind: {more}{count}; the "
        "processes that append to them name no model, or use the policy none",
        "set HITHERTO_MODEL in those processes too (they need no key)",
    )


def _load(load: Backlog, settings: Settings) -> Check:
    name = "queue"
    says = (
        f"digests: {load.due:,} due, {load.claimed:,} in progress, {load.put_off:,} put off; workers: {load.workers:,}"
    )
    here = "" if settings.worker else ", or set HITHERTO_WORKER=true where messages are appended"
    start = f"start one: hitherto worker{here}"
    if load.due and not load.workers:
        return warning(name, f"{load.due:,} digests wait and no worker shows itself", start)
    if load.due and load.lag_seconds > _LATE_SECONDS:
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
            name,
            says,
            "those put off are tried again by themselves; a conversation's page Digests in the inspector says why, and "
            "so does `hitherto digests CONVERSATION`",
        )
    return ok(name, says)
