"""`hitherto serve` and keys as an operator handles them."""

from __future__ import annotations

import subprocess

import httpx2 as httpx
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.acceptance.cli.commands import bare
from tests.databases import service_url
from tests.other_systems.served import problem, served


def told(*words: str) -> list[str]:
    """What a service says until it serves."""
    command = bare.command("serve", "--port", "0", *words)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=bare.surroundings()) as process:
        assert process.stderr is not None
        lines = list[str]()
        for line in process.stderr:
            lines.append(line)
            if "Serving at" in line:
                break
        process.terminate()
        process.stderr.read()
    assert process.returncode == 0
    return lines


def test_it_says_which_database_and_no_password(database: str) -> None:
    parts = conninfo_to_dict(database)
    found = told("--database", make_conninfo(database, password="hush"))
    assert f"Database: {parts['host']}:{parts['port']}/{parts['dbname']}" in found[0]
    assert "hush" not in "".join(found)
    assert "Database: a throw-away memory, gone when this process ends" in told("--database", "memory:")[0]


@pytest.mark.parametrize("words", [("--require-keys",), ("--host", "0.0.0.0")])
def test_a_memory_of_its_own_has_no_keys(words: tuple[str, ...]) -> None:
    said = bare("serve", "--port", "0", "--database", "memory:", *words).failed(2)
    assert "none can be made for memory:" in said


LIST = "/api/v1/conversations"


async def test_a_service_that_is_reached_from_elsewhere_asks_for_keys(database: str) -> None:
    with served(await service_url(database), "--host", "0.0.0.0") as service:
        async with httpx.AsyncClient(base_url=service.url.replace("0.0.0.0", "127.0.0.1")) as client:
            assert (await client.get("/healthz")).status_code == 200
            assert problem(await client.get(LIST), 401) == "Unauthorized"


async def test_a_key_lets_in_until_it_is_revoked(database: str) -> None:
    of = ("--tenant", "acme", "--database", database)
    secret = bare("keys", "create", "the app", *of).out.strip()
    with served(await service_url(database), "--require-keys") as service:
        async with service.client(secret) as client:
            assert (await client.get(LIST)).status_code == 200
            listed = bare("keys", "list", *of, "--json")
            (key,) = listed.json["keys"]
            assert (key["name"], key["rights"], key["revoked_at"]) == ("the app", ["read", "write"], None)
            assert secret not in listed.out
            assert (await client.get(LIST)).status_code == 200
            assert bare("keys", "revoke", key["id"], *of).out == "The key 'the app' is revoked.\n"
            assert problem(await client.get(LIST), 401) == "Unauthorized"
            (key,) = bare("keys", "list", *of, "--json").json["keys"]
            assert key["revoked_at"] is not None
