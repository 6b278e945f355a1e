"""`hitherto doctor` on databases: away, new, old, barred, and with work that waits. It leaves them as they are."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

import hitherto
from hitherto import Scope, user
from hitherto.core.digests.digest import Needs
from hitherto.store.connections import row_security
from hitherto.store.store import Store
from tests.acceptance.cli.commands import NOWHERE, Cli, executed
from tests.acceptance.cli.doctoring import STRUCTURED, doctor, in_database, model_at
from tests.databases import ROW_SECURITY_ROLE, Server
from tests.providers.models.endpoint import Endpoint
from tests.store.samples import dialogue, fire, write


@pytest.fixture
def empty(server: Server) -> Iterator[str]:
    """The URL of a database with nothing in it."""
    with psycopg.connect(server.admin_url, autocommit=True) as connection:
        connection.execute("create database test_doctor_empty owner hitherto")
        yield make_conninfo(server.url, dbname="test_doctor_empty")
        connection.execute("drop database test_doctor_empty with (force)")


@pytest.fixture(scope="module")
async def stranger(server: Server) -> AsyncIterator[str]:
    """A role that may connect, and nothing else. It outlives the databases in which it is granted something."""
    async with await psycopg.AsyncConnection[Any].connect(server.admin_url, autocommit=True) as connection:
        await connection.execute("create role test_doctor_stranger login")
        yield "test_doctor_stranger"
        await connection.execute("drop role test_doctor_stranger")


def test_it_changes_nothing_in_a_database(empty: str) -> None:
    found = in_database(empty)
    assert "there is none yet" in found.said("schema", "ok")
    assert "see schema" in found.said("queue", "skipped")
    assert "see schema" in found.said("index", "skipped")
    with psycopg.connect(empty) as connection:
        assert connection.execute("select to_regnamespace('hitherto')::text").fetchone() == (None,)


async def test_it_begins_no_digests(database: str) -> None:
    store = await filled(database)
    with Endpoint(STRUCTURED) as endpoint:
        in_database(database, **model_at(endpoint, HITHERTO_WORKER="true"))
        assert len(endpoint.asked) == 1  # the check of the model
    assert (await store.backlog()).due == 1
    assert await store.costs("model") == []
    await store.aclose()


# The database


def test_a_database_that_is_down() -> None:
    found = in_database(f"postgresql://app@{NOWHERE}/app")
    assert found.code == 1
    line = found.said("database", "failed")
    assert f"{NOWHERE}/app" in line
    assert "check that the server runs" in line
    assert {found.state(name) for name in ("schema", "queue", "index")} == {"skipped"}
    assert found.state("model") == "ok"


def test_an_embedded_server_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = doctor(Cli(tmp_path / "file"))
    assert "cannot be kept in" in found.said("database", "failed")
    assert found.others("database") == {"ok", "skipped"}


def test_a_database_that_takes_no_writes(database: str) -> None:
    name = conninfo_to_dict(database)["dbname"]
    executed(database, f"alter database {name} set default_transaction_read_only = on")
    found = in_database(database)
    assert "takes no writes" in found.said("database", "warning")
    assert found.state("schema") == "ok"


def test_a_server_that_does_not_wait_for_its_disk(database: str) -> None:
    line = in_database(database).said("database", "warning")
    assert "fsync off, full_page_writes off" in line
    assert "set fsync = on in its postgresql.conf" in line


def test_a_schema_of_a_newer_hitherto(database: str) -> None:
    executed(database, "update hitherto.alembic_version set version_num = '0900'")
    found = in_database(database)
    assert found.code == 1
    line = found.said("schema", "failed")
    assert "at revision 0900" in line
    assert "upgrade Hitherto" in line
    assert "see schema" in found.said("queue", "skipped")
    assert found.state("model") == "ok"


def test_a_schema_that_is_not_up_to_date_stays_as_it_is(empty: str) -> None:
    executed(empty, "create schema hitherto")
    found = in_database(empty)
    assert found.code == 0
    line = found.said("schema", "warning")
    assert "has no tables of Hitherto's yet" in line
    assert "brings it up to date" in line
    with psycopg.connect(empty) as connection:
        assert connection.execute("select to_regclass('hitherto.alembic_version')::text").fetchone() == (None,)


class TestRights:
    def test_none_to_make_a_schema(self, empty: str, stranger: str) -> None:
        line = in_database(make_conninfo(empty, user=stranger)).said("schema", "failed")
        assert f"{stranger} may not make one" in line
        assert f"GRANT CREATE ON DATABASE … TO {stranger}" in line

    def test_none_to_use_it(self, database: str, stranger: str) -> None:
        line = in_database(make_conninfo(database, user=stranger)).said("schema", "failed")
        assert "of hitherto, and test_doctor_stranger may not use it" in line
        assert "hitherto migrate --grant" in line

    def test_some_are_lacking(self, database: str, stranger: str) -> None:
        executed(database, f"grant usage on schema hitherto to {stranger}")
        executed(database, f"grant select, insert, update, delete on all tables in schema hitherto to {stranger}")
        executed(database, f"revoke insert, delete on hitherto.message from {stranger}")
        theirs = make_conninfo(database, user=stranger)
        found = in_database(theirs)
        line = found.said("schema", "failed")
        assert "(message: INSERT, DELETE)" in line
        assert "as its owner, hitherto: hitherto migrate --grant" in line
        executed(database, f"grant insert, delete on hitherto.message to {stranger}")
        assert in_database(theirs).others("database") == {"ok", "skipped"}
        executed(database, "delete from hitherto.alembic_version")
        assert "may not bring it there" in in_database(theirs).said("schema", "failed")


async def test_row_level_security(database: str) -> None:
    await row_security.grant(database, ROW_SECURITY_ROLE)
    theirs, asked = make_conninfo(database, user=ROW_SECURITY_ROLE), {"HITHERTO_ROW_SECURITY": "true"}
    assert f"holds for {ROW_SECURITY_ROLE}" in in_database(theirs, **asked).said("row_security", "ok")
    assert "does not hold for hitherto" in in_database(database).said("row_security", "ok")
    found = in_database(database, **asked)
    assert found.code == 1
    assert "hitherto migrate --grant ROLE" in found.said("row_security", "failed")


# The queue


async def filled(database: str) -> Store:
    """A database with one digest that is due."""
    store = Store(database)
    await store.open()
    await write(store, "conv_123", *dialogue(10))
    await fire(store, "conv_123", 0, 5)
    return store


async def test_digests_wait_for_a_process_with_a_model(database: str) -> None:
    """Processes differ: the others name a model, and this one does not."""
    store = await filled(database)
    await write(store, "other", *dialogue(10))
    await fire(store, "other", 0, 5, needs=Needs.MODEL)
    await store.aclose()
    executed(database, "insert into hitherto.worker values (gen_random_uuid(), now())")
    found = in_database(database)
    assert found.code == 0
    said = found.said("queue", "warning")
    assert "1 of the first 2 digests that wait were begun by processes with a model" in said
    assert "set HITHERTO_MODEL to the same in all processes" in said
    with Endpoint(STRUCTURED) as endpoint:
        assert "2 due" in in_database(database, **model_at(endpoint)).said("queue", "ok")


async def test_long_conversations_that_nobody_digests(database: str) -> None:
    """Processes differ the other way: this one names a model, and those that append name none."""
    scope = Scope(tenant="acme", user="ana", agent="support")
    async with hitherto.open(database, model="extractive", worker=False) as memory:
        for name, policy in (("long", None), ("trimmed", "trim"), ("short", None)):
            chat = memory.conversation(name, scope=scope)
            if policy is not None:
                await chat.configure(policy=policy, create=True)
            count = 2 if name == "short" else 40
            await chat.append(*(user("word " * 500) for _ in range(count)))
    with Endpoint(STRUCTURED) as endpoint:
        assert "0 due" in in_database(database, **model_at(endpoint)).said("queue", "ok"), "it may be under way"
        executed(database, "update hitherto.conversation set updated_at = updated_at - interval '2 minutes'")
        said = in_database(database, **model_at(endpoint)).said("queue", "warning")
        assert "conversations with more than 16,000 tokens and no digest of any kind: 1;" in said
        assert "set HITHERTO_MODEL in those processes too" in said
        assert "0 due" in in_database(database, HITHERTO_BUDGET="30000", **model_at(endpoint)).said("queue", "ok")
    assert "0 due" in in_database(database).said("queue", "ok"), "this process would not digest them either"


async def test_digests_wait_and_nobody_makes_them(database: str) -> None:
    await (await filled(database)).aclose()
    found = in_database(database)
    assert found.code == 0
    assert found["queue"] == {
        "name": "queue",
        "state": "warning",
        "found": "1 digests wait and no worker shows itself",
        "advice": "start one: hitherto worker",
    }
    elsewhere = in_database(database, HITHERTO_WORKER="false")
    assert "set HITHERTO_WORKER=true" in elsewhere["queue"]["advice"]
    executed(database, "insert into hitherto.worker values (gen_random_uuid(), now())")
    assert "1 due, 0 in progress, 0 put off; workers: 1" in in_database(database).said("queue", "ok")
    executed(database, "update hitherto.digest set created_at = created_at - interval '1 hour'")
    assert re.search(
        r"the oldest has waited for 3,6\d\d seconds \| start more", in_database(database).said("queue", "warning")
    )


async def test_digests_that_failed(database: str) -> None:
    await (await filled(database)).aclose()
    executed(database, "update hitherto.digest set due_at = now() + interval '1 hour'")
    assert "1 put off" in in_database(database).said("queue", "warning")
    executed(database, "insert into hitherto.worker values (gen_random_uuid(), now())")
    assert "so does `hitherto digests CONVERSATION`" in in_database(database).said("queue", "warning")
    executed(database, "update hitherto.conversation set failures = 2, resume_at = now() + interval '1 hour'")
    line = in_database(database).said("queue", "warning")
    assert "1 conversations rest" in line
    query = line.partition("see why: ")[2]
    executed(database, query)


# The index


async def test_what_waits_for_the_index(database: str) -> None:
    await (await filled(database)).aclose()
    line = in_database(database).said("index", "ok")
    assert "waits for the search index: 1, for vectors: 0" in line
    executed(
        database,
        "insert into hitherto.conversation (tenant, user_id, agent, id, rev, next_seq, tokens, turns, dialogue, "
        "updated_at) select 'acme', n::text, 'a', 'c', 1, 1, 0, 0, 0, now() from generate_series(1, 1000) n",
    )
    line = in_database(database).said("index", "warning")
    assert "waits for the search index: 1,001" in line
    assert "start more workers" in line
