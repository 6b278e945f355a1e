"""What a web page of another site can set off without reading the answer; and paths in another spelling."""

from __future__ import annotations

import json

import httpx2 as httpx
import pytest

from hitherto import Memory
from hitherto.http.operations import AGENT, PREFIX, USER
from hitherto.http.server import app
from tests.http.serving import serving
from tests.http.test_bodies import kind

NAMES = {USER: "u", AGENT: "a"}
FROM_ELSEWHERE = (
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Origin": "https://evil.example"},
    {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
    {"Origin": "http://localhost:1"},
)
PAGE = "https://good.example"


async def test_without_keys_pages_of_other_sites_set_off_nothing(memory: Memory) -> None:
    async with serving(memory, keys=False, origins=[PAGE]) as url, httpx.AsyncClient(base_url=url) as client:
        for page in FROM_ELSEWHERE:
            for method, path in (
                ("GET", "/export"),
                ("POST", "/wait/index"),
                ("GET", "/documents"),
                ("DELETE", "/tenant"),
            ):
                found = await client.request(method, PREFIX + path, headers={**NAMES, **page})
                assert kind(found) == (403, "Forbidden"), (page, path)
                assert "cors_origins" in found.text
        own = {"Origin": url, "Sec-Fetch-Site": "same-origin"}
        for page in ({}, {"Sec-Fetch-Site": "none"}, own, {"Origin": PAGE, "Sec-Fetch-Site": "cross-site"}):
            assert (await client.get(f"{PREFIX}/documents", headers={**NAMES, **page})).status_code == 200, page


async def test_with_keys_the_key_is_what_counts(memory: Memory) -> None:
    key = (await memory.keys("acme").create("tests", rights=["read"])).secret
    async with serving(memory) as url, httpx.AsyncClient(base_url=url) as client:
        headers = {**NAMES, "Authorization": f"Bearer {key}", "Origin": PAGE}
        assert (await client.get(f"{PREFIX}/documents", headers=headers)).status_code == 200


@pytest.mark.parametrize(
    "path", ["/%6detrics", "/metric%73", "/healt%68z", "/api%2Fv1/documents", "/api/v%31/documents"]
)
async def test_a_path_in_another_spelling(memory: Memory, path: str) -> None:
    async with serving(memory, keys=False) as url, httpx.AsyncClient() as client:
        found = await client.get(httpx.URL(url).copy_with(raw_path=path.encode()), headers=NAMES)
        assert found.status_code in (404, 422)


async def test_names_that_need_it_are_encoded_as_ever(memory: Memory) -> None:
    async with serving(memory, keys=False) as url, httpx.AsyncClient() as client:
        for name in ("a%2Fb", "%25", "%2E%2E", "%C3%A9", "a%20b", "a~b", "%7E"):
            there = httpx.URL(url).copy_with(raw_path=f"{PREFIX}/conversations/{name}/view".encode())
            assert (await client.get(there, headers=NAMES)).status_code == 200, name


async def test_the_document_is_written_once(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(memory) as url, httpx.AsyncClient(base_url=url) as client:
        monkeypatch.setattr(app, "encoded", None)
        monkeypatch.setattr(json, "dumps", None)
        first, again = [(await client.get("/openapi.json")).content for _ in range(2)]
    assert first == again
    assert b'"/api/v1/recall"' in first
