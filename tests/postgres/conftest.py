"""Databases and roles that know nothing of Hitherto yet."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from tests.databases import Server

Connection = psycopg.AsyncConnection[Any]
_numbers = count(1)


@pytest.fixture
async def admin(server: Server) -> AsyncIterator[Connection]:
    async with await Connection.connect(server.admin_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
async def empty(server: Server, admin: Connection) -> AsyncIterator[str]:
    """The URL of a database with nothing in it."""
    name = f"test_empty_{next(_numbers)}"
    await admin.execute(sql.SQL("create database {} owner hitherto").format(sql.Identifier(name)))
    yield make_conninfo(server.url, dbname=name)
    await admin.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


@pytest.fixture
async def encoded(server: Server, admin: Connection, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """The URL of a database with nothing in it, of the encoding that is the parameter."""
    name = sql.Identifier(f"test_encoded_{next(_numbers)}")
    create = "create database {} owner hitherto encoding {} template template0 locale_provider libc locale 'C'"
    await admin.execute(sql.SQL(create).format(name, sql.Literal(request.param)))
    yield make_conninfo(server.url, dbname=name.as_string().strip('"'))
    await admin.execute(sql.SQL("drop database {} with (force)").format(name))


@pytest.fixture(scope="module")
async def stranger(server: Server) -> AsyncIterator[str]:
    """A role that may connect, and nothing else. It outlives the databases in which it is granted something."""
    name = "test_stranger"
    async with await Connection.connect(server.admin_url, autocommit=True) as connection:
        await connection.execute(sql.SQL("create role {} login").format(sql.Identifier(name)))
        yield name
        await connection.execute(sql.SQL("drop role {}").format(sql.Identifier(name)))
