"""/mcp stands behind the gate: keys, rights, scopes and limits are those of the API."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Literal

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from hitherto import Memory, Scope, assistant, user
from hitherto.core.key import Right
from hitherto.engine.facts.facts import Facts
from hitherto.errors import DatabaseUnavailable
from hitherto.http.operations import AGENT, TENANT, USER
from tests.conftest import SCOPE
from tests.http.serving import LIMITS, serving
from tests.http.test_other_sites import FROM_ELSEWHERE
from tests.mcp_server.test_tools import prompt, refused, resource, said
from tests.patience import PATIENCE

READS = {"recall", "read", "conversations", "facts"}
STRANGERS = [
    replace(SCOPE, tenant="globex"),
    replace(SCOPE, user="mallory"),
    replace(SCOPE, agent="writer"),
]
REVISIONS = ["legacy", "2026-07-28"]
"""How a client of 2025-11-25 and one of 2026-07-28 begin."""

ASK = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
TYPES = {"Accept": "application/json, text/event-stream"}


@asynccontextmanager
async def connected(
    url: str, *, key: str | None = None, scope: Scope = SCOPE, mode: Any = "legacy"
) -> AsyncGenerator[Client]:
    """A client of the service with these headers."""
    headers = {USER: scope.user, AGENT: scope.agent} | ({} if key is None else {"Authorization": f"Bearer {key}"})
    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


async def made_key(
    memory: Memory, *rights: Literal["read", "write", "admin"], tenant: str = SCOPE.tenant, user: str | None = None
) -> str:
    return (await memory.keys(tenant).create("tests", rights=rights, user=user)).secret


@pytest.mark.parametrize("mode", REVISIONS)
async def test_another_tenants_and_users_text_is_never_found(memory: Memory, mode: str) -> None:
    secret, fact = "The vault code is zabogurox.", "The user owns a zabogurox."
    await memory.conversation("vault", scope=SCOPE).append(user(secret), assistant("I keep it."))
    number = (await memory.facts(SCOPE).add(fact)).id
    await memory.wait_for_index()
    async with serving(memory) as url:
        for stranger in STRANGERS:
            key = await made_key(memory, "admin", tenant=stranger.tenant)
            async with connected(url, key=key, scope=stranger, mode=mode) as client:
                shown = [
                    await said(client, "recall", question=secret),
                    await said(client, "facts"),
                    await said(client, "conversations"),
                    await resource(client, "hitherto://facts"),
                    await prompt(client, "catch_up"),
                    await prompt(client, "what_do_you_know"),
                ]
                refusals = [
                    await refused(client, "read", conversation="vault"),
                    await refused(client, "forget", fact=number),
                    await refused(client, "forget", fact=number, mentions=True),
                ]
                assert all("zabogurox" not in one for one in shown + refusals), stranger
                assert all("vault" not in one for one in shown), stranger
                with pytest.raises(MCPError):
                    await client.read_resource("hitherto://conversations/vault")
                await said(client, "save", conversation="vault", messages=[{"role": "user", "content": "Mine."}])
        async with connected(url, key=await made_key(memory, "read"), mode=mode) as client:
            assert "zabogurox" in await said(client, "recall", question=secret)
    assert len(await memory.conversation("vault", scope=SCOPE).messages()) == 2
    assert (await memory.facts(SCOPE).get(number)) is not None


async def test_a_scope_is_named_as_for_the_api(memory: Memory) -> None:
    headers = {TENANT: "globex", USER: "u", AGENT: "a"}
    async with serving(memory) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as http:
        key = await made_key(memory, "read")
        of_another = {**headers, **TYPES, "Authorization": f"Bearer {key}"}
        assert (await http.post("/mcp", json=ASK, headers=of_another)).status_code == 403
        own = await made_key(memory, "read", user="ann")
        async with connected(url, key=own) as client:
            assert "one user alone" in await refused(client, "recall", question="a")
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=PATIENCE) as nobody,
            Client(streamable_http_client(f"{url}/mcp", http_client=nobody)) as client,
        ):
            assert f"Name the user in the header {USER}" in await refused(client, "recall", question="a")


@pytest.mark.parametrize("mode", REVISIONS)
async def test_a_key_that_reads_is_shown_no_tool_that_writes_and_can_call_none(memory: Memory, mode: str) -> None:
    await memory.conversation("c", scope=SCOPE).append(user("Hello."))
    number = (await memory.facts(SCOPE).add("The user rows.")).id
    async with (
        serving(memory) as url,
        connected(url, key=await made_key(memory, "read"), mode=mode) as client,
    ):
        assert {one.name for one in (await client.list_tools()).tools} == READS
        messages = [{"role": "user", "content": "Written."}]
        assert "does not have the rights" in await refused(client, "save", conversation="c", messages=messages)
        assert "does not have the rights" in await refused(client, "remember", text="The user writes.")
        assert "does not have the rights" in await refused(client, "forget", fact=number)
    assert len(await memory.conversation("c", scope=SCOPE).messages()) == 1
    assert [one.id for one in await memory.facts(SCOPE).list()] == [number]
    async with (
        serving(memory) as url,
        connected(url, key=await made_key(memory, "write"), mode=mode) as client,
    ):
        assert {one.name for one in (await client.list_tools()).tools} == {"remember", "save"}
        assert "does not have the rights" in await refused(client, "recall", question="Hello?")
        assert "does not have the rights" in await refused(client, "forget", fact=number)


async def test_what_the_store_says_is_for_those_who_run_it(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """It names addresses."""

    async def fails(*_: Any, **__: Any) -> None:
        raise DatabaseUnavailable("no answer from 10.1.2.3")

    monkeypatch.setattr(Memory, "recall", fails)
    monkeypatch.setattr(Facts, "list", fails)
    async with serving(memory) as url, connected(url, key=await made_key(memory, "read")) as client:
        assert "database is away" in await refused(client, "recall", question="a")
        with pytest.raises(MCPError, match="database is away"):
            await resource(client, "hitherto://facts")


async def test_the_gate_stands_before_it(memory: Memory) -> None:
    key = await made_key(memory, "read")
    limits = replace(LIMITS, requests=3, size=10_000)
    async with serving(memory, limits=limits) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as http:
        assert (await http.post("/mcp", json=ASK, headers=TYPES)).status_code == 401
        http.headers |= {"Authorization": f"Bearer {key}", **TYPES}
        assert (await http.post("/mcp", json={**ASK, "x": "x" * 20_000})).status_code == 413
        for method in ("GET", "DELETE"):
            found = await http.request(method, "/mcp")
            assert (found.status_code, found.headers["Allow"]) == (405, "POST")
        assert (await http.post("/mcp", json=ASK)).status_code == 429
    async with serving(memory, keys=False) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as http:
        for page in (*FROM_ELSEWHERE, {"Host": "evil.example"}):
            assert (await http.post("/mcp", json=ASK, headers={**TYPES, **page})).status_code == 403, page
        assert (await http.post("/mcp", json=ASK, headers=TYPES)).status_code == 200
    assert 'path="/mcp"' in (await memory.metrics()).decode()


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_request_that_cannot_be_read_is_answered(memory: Memory, revision: str) -> None:
    lone = {"name": "facts", "arguments": {"category": "\ud800"}}
    content = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": lone})
    headers = {**TYPES, "Content-Type": "application/json", "MCP-Protocol-Version": revision}
    async with serving(memory, keys=False) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as http:
        answer = await http.post("/mcp", content=content, headers=headers)
    assert (answer.status_code, answer.json()["id"]) == (400, 7)
    assert "lone surrogate" in answer.json()["error"]["message"]


@pytest.mark.parametrize("mode", REVISIONS)
async def test_any_process_answers_the_next_request(memory: Memory, mode: str) -> None:
    """Two services stand for two workers behind one address."""
    key = await made_key(memory, "admin")
    async with serving(memory) as first, serving(memory) as second:
        turns = [first, second] * 50

        async def elsewhere(request: httpx2.Request) -> None:
            request.url = request.url.copy_with(port=httpx2.URL(turns.pop()).port)

        async with (
            httpx2.AsyncClient(
                headers={"Authorization": f"Bearer {key}", USER: SCOPE.user, AGENT: SCOPE.agent},
                timeout=PATIENCE,
                event_hooks={"request": [elsewhere]},
            ) as http,
            Client(streamable_http_client(f"{first}/mcp", http_client=http), mode=mode) as client,
        ):
            assert len((await client.list_tools()).tools) == 7
            for number in range(4):
                await said(client, "remember", text=f"The user has boat {number}.")
            assert (await said(client, "facts")).count("boat") == 4
        assert len(turns) < 95


async def test_a_page_of_an_origin_that_may_call_may_send_its_headers(memory: Memory) -> None:
    page = "https://good.example"
    asks = {"Origin": page, "Access-Control-Request-Method": "POST"}
    asks["Access-Control-Request-Headers"] = "mcp-protocol-version, mcp-method, mcp-name, authorization"
    async with serving(memory, origins=[page]) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as http:
        assert (await http.options("/mcp", headers=asks)).status_code == 200


def test_rights_are_what_tools_need() -> None:
    """As the operations of the API need them for the verbs that the tools call."""
    from hitherto.http.operations import OPERATIONS
    from hitherto.mcp.tools import TOOLS

    verbs = {
        "recall": ["memory_recall", "memory_around", "conversation_head"],
        "read": ["conversation_head", "conversation_expand"],
        "conversations": ["memory_conversations", "conversation_head"],
        "facts": ["facts_list"],
        "remember": ["conversation_append", "conversation_remember"],
        "forget": ["facts_get", "conversation_append", "conversation_forget"],
        "save": ["conversation_append"],
    }
    needed = {one.name: one.right for one in OPERATIONS}
    for tool in TOOLS:
        assert tool.rights == {needed[verb] for verb in verbs[tool.name]}
    assert {right for tool in TOOLS for right in tool.rights} == {Right.READ, Right.WRITE, Right.REVIEW}
