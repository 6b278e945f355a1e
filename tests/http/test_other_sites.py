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
from tests.patience import PATIENCE

NAMES = {USER: "u", AGENT: "a"}
FROM_ELSEWHERE = (
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Origin": "https://evil.example"},
    {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
    {"Origin": "http://localhost:1"},
    {"Origin": "http://["},
)
PAGE = "https://good.example"


async def test_without_keys_pages_of_other_sites_set_off_nothing(memory: Memory) -> None:
    async with (
        serving(memory, keys=False, origins=[PAGE]) as url,
        httpx.AsyncClient(base_url=url, timeout=PATIENCE) as client,
    ):
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
    key = (await memory.keys("acme").create("tests", rights=["read"])).secret
    headers = {**NAMES, **FROM_ELSEWHERE[0], "Authorization": f"Bearer {key}"}
    async with serving(memory) as url, httpx.AsyncClient(base_url=url, timeout=PATIENCE) as client:
        assert (await client.get(f"{PREFIX}/documents", headers=headers)).status_code == 200, "the key is what counts"


@pytest.mark.parametrize("path", ["/%6detrics", "/metric%73", "/healt%68z", "/api/v%31/documents"])
async def test_a_path_in_another_spelling(memory: Memory, path: str) -> None:
    """Is refused; names that need it are encoded as ever."""
    async with serving(memory, keys=False) as url, httpx.AsyncClient(timeout=PATIENCE) as client:

        async def status(raw: str) -> int:
            there = httpx.URL(url).copy_with(raw_path=raw.encode())
            return (await client.get(there, headers=NAMES)).status_code

        assert await status(path) in (404, 422)
        for name in ("a%2Fb", "%25", "%2E%2E", "%C3%A9", "a%20b", "a~b", "%7E"):
            assert await status(f"{PREFIX}/conversations/{name}/view") == 200, name


async def test_the_document_is_written_once(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(memory) as url, httpx.AsyncClient(base_url=url, timeout=PATIENCE) as client:
        monkeypatch.setattr(app, "encoded", None)
        monkeypatch.setattr(json, "dumps", None)
        first, again = [(await client.get("/openapi.json")).content for _ in range(2)]
    assert first == again
    assert b'"/api/v1/recall"' in first
