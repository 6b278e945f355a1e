"""Facts about a legacy, at the paths of the third seed: two users learn, share and delete, over real HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2 as httpx
import pytest

from tests.databases import service_url
from tests.other_systems.served import Service, problem, served
from tests.providers.models.endpoint import Answer, Body, Endpoint, said

ROSA = "legacy/7"
FACTS = "/api/ai/legacies/legacy%2F7/facts"
CELLO = "Played the cello in the town orchestra."


def reply(body: Body) -> Answer:
    """Finds the cello where it is told of."""
    told = "Mum played the cello" in str(body["messages"])
    facts = [{"category": "hobby", "content": CELLO}] if told else []
    return said(json.dumps({"summary": "Ana tells of her mother.", "facts": facts}))


async def listed(client: httpx.AsyncClient) -> list[dict[str, Any]]:
    response = await client.get(FACTS)
    assert response.status_code == 200, response.text
    return response.json()


async def test_two_users_share_and_unshare(database: str) -> None:
    with Endpoint(reply) as model, served(await service_url(database), "--require-keys", model=model) as service:
        (_, admin), (_, anas), (_, bens) = [
            await service.key("acme", user, rights=rights)
            for user, rights in ((None, "admin"), ("ana", "read,write,review"), ("ben", "read,review"))
        ]
        async with service.client(admin) as client:
            rosa = {"name": "Rosa", "members": ["ana", "ben"]}
            (await client.put("/api/v1/subjects/legacy%2F7", json=rosa)).raise_for_status()
        async with (
            service.client(anas, agent="memorial") as ana,
            service.client(bens, agent="memorial") as ben,
            service.client(anas, agent="another") as elsewhere,
        ):
            await tell(ana)
            (fact,) = await listed(ana)
            assert await listed(ben) == []
            times = {name: fact.pop(name) for name in ("extracted_at", "updated_at")}
            assert fact == {
                "id": fact["id"],
                "legacy_id": ROSA,
                "user_id": "ana",
                "category": "hobby",
                "content": CELLO,
                "visibility": "private",
                "source_conversation_id": "c",
                "version": 1,
            }
            assert await listed(elsewhere) == [{**fact, **times}], "whichever agent learned it"

            visibility, one = f"/api/ai/facts/{fact['id']}/visibility", f"/api/ai/facts/{fact['id']}"
            shared = await ana.patch(visibility, json={"visibility": "shared"}, headers={"If-Match": '"1"'})
            assert shared.status_code == 200, shared.text
            assert (shared.json()["visibility"], shared.headers["ETag"]) == ("shared", '"2"')
            (seen,) = await listed(ben)
            assert (seen["user_id"], seen["content"], seen["visibility"]) == ("ana", CELLO, "shared")
            assert seen["source_conversation_id"] is None, "her conversation is hers"

            # What is another's is not found, with If-Match and without.
            for match in ({}, {"If-Match": '"2"'}, {"If-Match": '"1"'}, {"If-Match": "*"}):
                private = await ben.patch(visibility, json={"visibility": "private"}, headers=match)
                assert problem(private, 404) == "NotFound"
                assert problem(await ben.delete(one, headers=match), 404) == "NotFound"

            # She has seen an older version.
            for tags in ('"1"', 'W/"2"', "nonsense", '"7", "8"'):
                match = {"If-Match": tags}
                for stale in (
                    await ana.patch(visibility, json={"visibility": "private"}, headers=match),
                    await ana.delete(one, headers=match),
                ):
                    assert problem(stale, 409) == "StaleVersion"
                    assert stale.json()["actual"] == 2

            for value in ("public", "", None, 1, ["shared"]):
                assert problem(await ana.patch(visibility, json={"visibility": value}), 422) == "InvalidInput"
            assert problem(await ana.patch(visibility, json={"visibility": "shared", "more": 1}), 422)
            for wrong in ("x", "0", "-1", "9" * 40, "1.5"):
                assert problem(await ana.delete(f"/api/ai/facts/{wrong}"), 422) == "InvalidInput"

            private = await elsewhere.patch(visibility, json={"visibility": "private"})
            assert private.json()["visibility"] == "private", private.text
            assert await listed(ben) == []
            gone = await ana.delete(one, headers={"If-Match": '"2", "3"'})
            assert (gone.status_code, gone.content) == (204, b"")
            assert await listed(ana) == []
            for match in ({}, {"If-Match": '"3"'}):
                assert problem(await ana.delete(one, headers=match), 404) == "NotFound"


async def tell(ana: httpx.AsyncClient) -> None:
    """Ana tells of her mother; what she says is digested."""
    headers = {"Hitherto-Subject": "legacy%2F7", "Hitherto-Policy": "chunks:threshold=2,batch=2,context=2"}
    for text in ("Mum played the cello in the town orchestra.", "That is all."):
        messages = [{"role": "user", "content": text}, {"role": "assistant", "content": "I see."}]
        path = "/api/v1/conversations/c/messages"
        (await ana.post(path, json={"messages": messages}, headers=headers)).raise_for_status()
        (await ana.post("/api/v1/wait/digests")).raise_for_status()


@pytest.fixture
async def keyless(database: str) -> AsyncIterator[Service]:
    with served(database) as service:
        yield service


async def test_every_page_of_the_list(keyless: Service) -> None:
    async with keyless.client(user="ana", agent="memorial") as ana:
        for number in range(5):
            added = await ana.post("/api/v1/facts", params={"subject": ROSA}, json={"content": f"Fact {number}."})
            added.raise_for_status()
        (
            await ana.post("/api/v1/facts", params={"subject": "other"}, json={"content": "Of others."})
        ).raise_for_status()
        found, path = list[str](), f"{FACTS}?limit=2"
        while True:
            page = await ana.get(path)
            found += [one["content"] for one in page.json()]
            if "next" not in page.links:
                break
            path = page.links["next"]["url"]
        assert found == [f"Fact {number}." for number in range(5)]
        whole = await ana.get(FACTS, params={"limit": 5})
        assert (len(whole.json()), whole.links) == (5, {})
        assert problem(await ana.get(FACTS, params={"limit": 0}), 422)
        assert problem(await ana.get(FACTS, params={"after": "x"}), 422)


async def test_whose_facts(keyless: Service) -> None:
    """A user and an agent are named, and only members share."""
    async with keyless.client(user="ana") as ana:
        assert problem(await ana.get(FACTS), 422) == "InvalidScope"
    async with keyless.client(agent="memorial") as nobody:
        assert problem(await nobody.get(FACTS), 422) == "InvalidScope"
    async with keyless.client(user="ana", agent="memorial") as ana:
        added = await ana.post("/api/v1/facts", params={"subject": ROSA}, json={"content": CELLO})
        visibility = f"/api/ai/facts/{added.json()['id']}/visibility"
        assert problem(await ana.patch(visibility, json={"visibility": "shared"}), 422) == "InvalidFact"


async def test_rights_and_tenants(database: str) -> None:
    with served(await service_url(database), "--require-keys") as service:
        (_, mine), (_, reading), (_, theirs) = [
            await service.key("acme", "ana"),
            await service.key("acme", "ana", rights="read"),
            await service.key("globex", "ana"),
        ]
        async with service.client(mine, agent="a") as client:
            added = await client.post("/api/v1/facts", params={"subject": ROSA}, json={"content": CELLO})
            path = f"/api/ai/facts/{added.json()['id']}"
        async with service.client(reading, agent="a") as client:
            assert len(await listed(client)) == 1
            assert problem(await client.patch(f"{path}/visibility", json={"visibility": "private"}), 403)
            assert problem(await client.delete(path), 403) == "Forbidden"
        async with service.client(theirs, agent="a") as client:
            assert await listed(client) == []
            assert problem(await client.delete(path), 404) == "NotFound"
        async with service.client(agent="a") as client:
            assert problem(await client.get(FACTS), 401) == "Unauthorized"
