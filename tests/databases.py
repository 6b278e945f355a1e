"""Databases of the tests: made once from a template, emptied, and handed out again."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass
from itertools import count
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from hitherto.store import schema
from hitherto.store.connections.pool import Connections
from hitherto.store.connections.row_security import grant
from hitherto.store.embedded import cluster, throwaway
from hitherto.store.embedded.throwaway import DELETE_ALL, IS_FREE
from hitherto.store.store import Store
from tests.patience import PATIENCE

Connection = psycopg.AsyncConnection[Any]
TEMPLATE = "template_hitherto"

ROW_SECURITY_ROLE = "row_security"
"""A role that owns nothing, for which row-level security holds."""

_MAKE_ROLES = """
    do $$
    begin
        if to_regrole('hitherto') is null then
            create role hitherto login;
            alter role hitherto set search_path = public;
            alter role hitherto set hitherto.id_range = 0;
        end if;
        if to_regrole('row_security') is null then
            create role row_security login;
        end if;
        if current_setting('server_version_num')::integer >= 160000 then
            execute 'grant row_security to hitherto with inherit false';  -- 15 cannot parse it
        else
            grant row_security to hitherto;
        end if;
    end $$
"""

_CATALOG = """
    select md5(string_agg(line, ',' order by line)) from (
        select format('%s %s %s %s', n.nspname, c.relname, c.relacl, c.reloptions) as line
        from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
        union all
        select format('%s %s %s %s', a.attrelid::regclass, a.attname, a.atttypid, a.attacl)
        from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
        where n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
        union all
        select format('%s %s %s', p.oid::regprocedure, p.proacl, md5(p.prosrc))
        from pg_proc p join pg_namespace n on n.oid = p.pronamespace
        where n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
        union all select format('%s %s', nspname, nspacl) from pg_namespace where nspname !~ '^pg_'
        union all select format('%s %s', conrelid::regclass, conname) from pg_constraint where conrelid <> 0
        union all select format('%s %s %s', tgrelid::regclass, tgname, tgenabled) from pg_trigger where not tgisinternal
        union all select format('%s', s.setconfig) from pg_db_role_setting s join pg_database d on d.oid = s.setdatabase
                  where d.datname = current_database()
        union all select format('%s %s %s', datacl, datallowconn, datconnlimit) from pg_database
                  where datname = current_database()
        union all select extname from pg_extension
        union all select version_num from hitherto.alembic_version
    ) lines
"""
"""What a test may change of a database beside its rows; where it did, the database is not used again."""


async def service_url(url: str) -> str:
    """The database at `url`, its owner's, as a role for which row-level security holds, as a service has it."""
    await grant(url, ROW_SECURITY_ROLE)
    return make_conninfo(url, user=ROW_SECURITY_ROLE)


class OpenStore(Store):
    """Uses `connections` to `url` that stay open for the next store: making them takes longer than most tests do. At
    `owners_url`, the database is reached as the owner of its tables."""

    def __init__(self, url: str, owners_url: str, connections: Connections) -> None:
        super().__init__(url)
        self.url, self.owners_url = url, owners_url
        for part in (self, self.index, self.documents, self.facts, self.export, self.contexts, self.runs, self.keys):
            part._connections = connections

    async def open(self) -> None:
        """The connections are open."""

    async def aclose(self) -> None:
        """The next store uses them."""


@dataclass(frozen=True)
class Server:
    """A running server: at `admin_url` as the superuser, at `url` as the role `hitherto`, in a database that is not
    Hitherto's."""

    admin_url: str

    @property
    def url(self) -> str:
        return make_conninfo(self.admin_url, user="hitherto")

    @classmethod
    def of_tests(cls) -> Server:
        """The server of this process's throw-away memories, or the one that TEST_SERVER names."""
        if named := os.environ.get("TEST_SERVER"):
            return cls(named)
        database = throwaway.take()
        database.give_back()
        return cls(cluster.url("postgres", database.folder))


class Databases:
    """The databases on `server`. One that was given back is empty, with its numbers from 1 on, when it is had again.
    The stores of `store` share another one."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._admin: Connection | None = None
        self._numbers = count(1)
        self._catalog: str | None = None
        self._granted: str | None = None
        """The catalog of one on which ROW_SECURITY_ROLE has its rights."""
        self._free = defaultdict[str | None, list[str]](list)
        """Those that were given back, by their catalog."""
        self._stores: dict[bool, tuple[str, str, Connections, Connection]] = {}
        """Of stores for which row-level security holds or not, the URL of their database, the owner's, their
        connections, and one to empty it."""

    async def open(self) -> None:
        """Make the template."""
        self._admin = await Connection.connect(self._server.admin_url, autocommit=True)
        await self._admin.execute(_MAKE_ROLES)
        await self._execute("drop database if exists {} with (force)", TEMPLATE)  # another run's, on a named server
        await self._execute("create database {} owner hitherto", TEMPLATE)
        await schema.ensure(make_conninfo(self._server.url, dbname=TEMPLATE), patience=10)
        async with await self._connected(TEMPLATE) as connection:
            self._catalog = await _catalog(connection)

    async def aclose(self) -> None:
        for row_security, (*_, connections, emptying) in self._stores.items():
            await connections.aclose()
            same = await _catalog(emptying) == self._catalog
            assert row_security or same, "a test that changes the schema takes a database"
            await emptying.close()
        if self._admin is not None:
            await self._admin.close()

    async def store(self, *, row_security: bool = False) -> OpenStore:
        """An open and empty store, as a role for which row-level security holds if `row_security`. One at a time: they
        have the same database."""
        found = self._stores.get(row_security)
        if found is None:
            name = await self.take_granted() if row_security else await self.take()
            url = self.url(name, granted=row_security)
            connections = Connections(url, size=4, patience=PATIENCE)
            await connections.open()
            found = self._stores[row_security] = url, self.url(name), connections, await self._connected(name)
        url, owners_url, connections, emptying = found
        await emptying.execute(DELETE_ALL)
        return OpenStore(url, owners_url, connections)

    async def take(self) -> str:
        """The name of an empty database with the schema in it."""
        free = self._free[self._catalog]
        return free.pop() if free else await self.take_new()

    async def take_granted(self) -> str:
        """The same, and ROW_SECURITY_ROLE has its rights there."""
        free = self._free[self._granted] if self._granted else []
        if free:
            return free.pop()
        name = await self.take()
        await grant(self.url(name), ROW_SECURITY_ROLE)
        async with await self._connected(name) as connection:
            self._granted = await _catalog(connection)
        return name

    async def take_new(self) -> str:
        """The name of a database that nobody has had: its tables have no traces of rows that are gone."""
        name = f"test_{next(self._numbers)}"
        await self._execute("drop database if exists {} with (force)", name)
        await self._execute("create database {} template {} owner hitherto", name, TEMPLATE)
        return name

    async def give_back(self, name: str) -> None:
        """Whoever is still connected is thrown out."""
        try:
            async with await self._connected(name) as connection:
                await connection.execute(IS_FREE)
                catalog = await _catalog(connection)
                as_made = catalog in (self._catalog, self._granted)
                if as_made:
                    await connection.execute(DELETE_ALL)
                    self._free[catalog].append(name)
        except psycopg.Error:
            as_made = False
        if not as_made:
            await self._execute("drop database {} with (force)", name)

    async def empty(self, name: str) -> None:
        async with await self._connected(name) as connection:
            await connection.execute(DELETE_ALL)

    def url(self, name: str, *, granted: bool = False) -> str:
        """Where it is reached as its owner, or as ROW_SECURITY_ROLE."""
        url = make_conninfo(self._server.url, dbname=name)
        return make_conninfo(url, user=ROW_SECURITY_ROLE) if granted else url

    async def _connected(self, name: str) -> Connection:
        url = make_conninfo(self._server.admin_url, dbname=name, options="-c default_transaction_read_only=off")
        return await Connection.connect(url, autocommit=True)

    async def _execute(self, statement: Any, *names: str) -> None:
        assert self._admin is not None, "it is open"
        await self._admin.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


async def _catalog(connection: Connection) -> str | None:
    row = await (await connection.execute(_CATALOG)).fetchone()
    return None if row is None else row[0]
