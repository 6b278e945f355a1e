"""Migrations: what a new database gets, locks that others hold meanwhile, and the longest names in every index."""

from __future__ import annotations

import asyncio
import hashlib
import re
import subprocess
from collections.abc import Callable
from importlib import resources
from typing import Any

import psycopg
import pytest

import hitherto
from hitherto import Scope, user
from hitherto.errors import InvalidScope, StoreError
from hitherto.store import schema
from hitherto.store.embedded import cluster
from tests.patience import PATIENCE
from tests.postgres.asking import rows

Connection = psycopg.AsyncConnection[Any]

MIGRATIONS = resources.files("hitherto.store").joinpath("migrations")


def test_the_schema_of_a_revision_never_changes() -> None:
    """A database made with other files of the same revision would be taken for one of these, and statements would fail
    on what it lacks. Whoever changes the files before 0.1 gives them the next number; after it, writes a migration."""
    assert schema.revisions()[0] == "0116"
    made = hashlib.sha256("\n".join(schema.baseline()).encode()).hexdigest()
    assert made == "35e67b6a05c1458b504682a348d2a677909c5dddf1fda35c747e6510583bef14"


async def test_a_new_database_has_what_the_files_say(database: str) -> None:
    """No file of the schema is left out, and nothing is made elsewhere but the revision's table."""
    files = MIGRATIONS.joinpath("baseline").iterdir()
    text = "".join(file.read_text(encoding="utf-8") for file in files)
    said = re.findall(r"^create (?:unique )?(table|index|view|function) (?:hitherto\.)?(\w+)", text, re.MULTILINE)
    found = await rows(
        database,
        """
        select case relkind when 'r' then 'table' when 'i' then 'index' else 'view' end as kind, relname as name
        from pg_class c
        where relnamespace = 'hitherto'::regnamespace and relkind in ('r', 'i', 'v')
          and not exists (select from pg_constraint where conindid = c.oid)
        union all
        select 'function', proname from pg_proc where pronamespace = 'hitherto'::regnamespace
        """,
    )
    ours = [(row["kind"], row["name"]) for row in found if not row["name"].startswith("alembic_")]
    assert sorted(ours) == sorted(said)


async def test_an_upgrade_makes_what_a_new_database_has(
    database: str, empty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of later revisions, in their order, whatever the revision before."""
    later = {"0117": "create table hitherto.boat (name text)", "0118": "alter table hitherto.boat add crew int"}
    monkeypatch.setattr(schema, "upgrades", lambda: later)
    assert await schema.ensure(database, patience=5) == ("0116", "0118")
    assert await schema.ensure(empty, patience=5) == (None, "0118")
    assert dumped(database) == dumped(empty)
    assert await schema.ensure(database, patience=5) == ("0118", "0118")


def dumped(url: str) -> list[str]:
    """The schema, as pg_dump writes it down, and its revision."""
    command = [cluster.programs() / "pg_dump", "--schema-only", "--schema=hitherto", url]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    with psycopg.connect(url) as connection:
        version = connection.execute("table hitherto.alembic_version").fetchall()
    # The restrictions bear a random key.
    return [str(version), *(line for line in done.stdout.splitlines() if "restrict" not in line)]


class TestLocks:
    """A table that another transaction has locked is waited for in turns."""

    @pytest.fixture
    async def begun(self, empty: str) -> str:
        """The URL of a database that has the table of the revision and nothing else."""
        await rows(
            empty, "create schema hitherto; create table hitherto.alembic_version (version_num text primary key)"
        )
        return empty

    async def lock(self, connection: Connection) -> None:
        await connection.execute("lock table hitherto.alembic_version in share mode")

    async def test_a_long_transaction_is_waited_for(self, begun: str) -> None:
        async with await Connection.connect(begun) as long:
            await self.lock(long)
            making = asyncio.create_task(schema.ensure(begun, patience=5, lock_timeout=0.3))
            await until(begun, lambda waiting: waiting == 1)
            await until(begun, lambda waiting: waiting == 0)
            assert not making.done(), "it tries again"
            await long.rollback()
            await making
        assert await rows(begun, "select * from alembic_version") == [{"version_num": schema.revisions()[-1]}]

    async def test_one_that_never_ends_is_named(self, begun: str) -> None:
        async with await Connection.connect(begun) as long:
            await self.lock(long)
            with pytest.raises(StoreError, match=r"5 times .* than 0\.05 seconds, and nothing was changed; end them"):
                await schema.ensure(begun, patience=5, lock_timeout=0.05)
        assert await rows(begun, "select relname from pg_class where oid = to_regclass('hitherto.conversation')") == []
        await schema.ensure(begun, patience=5)


async def until(url: str, reached: Callable[[int], bool]) -> None:
    """Waits until so many wait for the lock."""
    query = "select from pg_locks where relation = 'hitherto.alembic_version'::regclass and not granted"
    async with asyncio.timeout(PATIENCE):
        while not reached(len(await rows(url, query))):
            pass


@pytest.mark.parametrize("letter", ["n", "é", "語"])
async def test_the_longest_names_are_stored(database: str, letter: str) -> None:
    name = letter * 200
    scope = Scope(tenant=name, user=name, agent=name)
    async with hitherto.open(database, keep_contexts=1) as memory:
        chat = memory.conversation(name, scope=scope, subject=name)
        await chat.append(user("Hello."))
        await chat.context("And?")
        await memory.facts(scope).add("Sails.")
        await memory.documents(scope).add("# Boats\n\nA text.")
        await memory.wait_for_index()
        assert len((await memory.conversations(scope)).conversations) == 1


def test_longer_ones_are_refused() -> None:
    with pytest.raises(InvalidScope, match="201 characters"):
        Scope(tenant="n" * 201, user="u", agent="a")
    with pytest.raises(InvalidScope, match="800 bytes"):
        Scope(tenant="🦊" * 200, user="u", agent="a")
    assert Scope(tenant="🦊" * 150, user="u", agent="a")
