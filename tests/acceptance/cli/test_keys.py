"""Keys as an operator handles them, and the services that ask for them."""

from __future__ import annotations

import httpx2 as httpx

from tests.acceptance.cli.commands import bare
from tests.databases import service_url
from tests.other_systems.served import problem, served

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
