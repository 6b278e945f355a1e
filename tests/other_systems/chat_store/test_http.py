"""Runs and chat sessions, at the paths of the fifth seed, over real HTTP."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

import hitherto
from hitherto import CrossSession, RunStatus, Scope
from hitherto.providers.scripted import items
from tests.databases import service_url
from tests.faults.waiting import until
from tests.other_systems.served import AGENT, TOOLS, Service, events_of, problem, served
from tests.providers.models.endpoint import Answer, Body, Endpoint, refused, said

SESSION = "chat/1"
PATH = "/api/chat/sessions/chat%2F1"
DATA = "data:image/png;base64,iVBORw0KGgo="
ADDRESS = "https://example.org/cat.png"


def reply(body: Body) -> Answer:
    """Asks its tool where an order is asked for, fails or is silent where it is told to, else says how much it was
    sent."""
    last = body["messages"][-1]
    said_last = str(last["content"])
    if "fail" in said_last:
        return refused(400, f"You said: {said_last}")
    if "overloaded" in said_last:
        return refused(503, "overloaded", retry_after="Fri, 31 Dec 9999 23:59:59 GMT", x_should_retry="false")
    if "silence" in said_last:
        return Answer(silent=True)
    if last["role"] == "user" and "order" in said_last:
        function = {"name": "get_order", "arguments": '{"number": "4711"}'}
        return said(None, finish="tool_calls", tool_calls=[{"id": "c1", "type": "function", "function": function}])
    return said(f"Of {len(body['messages'])}.")


def synopsis(body: Body) -> Answer:
    return said(items(("They talk of orders.", [0, 1])))


async def ask(client: httpx.AsyncClient, prompt: str, path: str = "/agent/run", **more: Any) -> httpx.Response:
    return await client.post(path, json={"prompt": prompt, "session_id": SESSION, **more})


async def runs_of(client: httpx.AsyncClient) -> list[dict[str, Any]]:
    response = await client.get("/api/v1/conversations/chat%2F1/runs", headers={"Hitherto-Agent": "support"})
    return response.raise_for_status().json()


async def test_summaries_and_sessions(database: str, model: Endpoint, tmp_path: Path) -> None:
    """ "Above the threshold, summarize; store only the user prompt and the final response"."""
    with Endpoint(synopsis) as small:
        file = tmp_path / "hitherto.toml"
        file.write_text(
            f"""
            summaryEnabled = true
            summaryThreshold = 4
            summaryKeepLast = 2
            [openai]
            summaryModel = "small"
            summaryBaseURL = "{small.url}"
            """
        )
        with served(database, *TOOLS, agents=[AGENT], model=model, HITHERTO_CONFIG=str(file)) as service:
            async with service.client(user="ana") as client:
                await check_sessions(client)
        system = model.asked[-2]["messages"][0]
        assert system["role"] == "system"
        assert "They talk of orders." in system["content"]
        # "The agent keeps memory across restarts".
        with served(database, *TOOLS, agents=[AGENT], model=model, HITHERTO_CONFIG=str(file)) as service:
            async with service.client(user="ana") as client:
                assert (await client.get(PATH)).json()["summarizedCount"] == 4
                assert (await ask(client, "Still there?")).json()["output"] == "Of 6.", (
                    "the synopsis, two rounds, the prompt"
                )


async def check_sessions(client: httpx.AsyncClient) -> None:
    sent = []
    for number in range(4):
        response = await ask(client, f"Where is order {number}?")
        assert response.status_code == 200, response.text
        sent.append(response.json()["output"])
        run = response.json()["run"]
        assert (run["status"], run["start"], run["end"]) == ("completed", 2 * number, 2 * number + 1)
    # Each is asked twice, the second time with a call and its result. From the fourth on there is a summary: what was
    # due is digested before the answer.
    assert sent == ["Of 3.", "Of 5.", "Of 7.", "Of 6."]
    await client.post("/agent/run", json={"prompt": "Hello.", "session_id": "other"})
    (await client.post("/api/v1/wait/digests")).raise_for_status()

    listed = (await client.get("/api/chat/sessions")).json()
    assert [one["id"] for one in listed["sessions"]] == ["other", SESSION]
    assert listed["next"] is None
    session = listed["sessions"][1]
    assert set(session) == {"id", "userId", "name", "summary", "summarizedCount", "createdAt", "updatedAt"}
    assert (session["userId"], session["name"]) == ("ana", "Where is order 0?")
    assert (session["summary"], session["summarizedCount"]) == ("They talk of orders.", 4)
    assert (await client.get(PATH)).json() == session
    page = (await client.get("/api/chat/sessions", params={"limit": 1, "other": 1})).json()
    assert [one["id"] for one in page["sessions"]] == ["other"]
    page = (await client.get("/api/chat/sessions", params={"limit": 1, "cursor": page["next"]})).json()
    assert [one["id"] for one in page["sessions"]] == [SESSION]
    assert page["next"] is None

    whole = (await client.get(f"{PATH}/messages")).json()
    assert (whole["summary"], whole["summarizedCount"], whole["next"]) == ("They talk of orders.", 4, None)
    said_ = [(one["role"], one["content"]) for one in whole["messages"]]
    assert said_ == [one for n in range(4) for one in (("user", f"Where is order {n}?"), ("assistant", sent[n]))]
    assert set(whole["messages"][0]) == {"id", "sessionId", "role", "content", "createdAt"}
    found, cursor = list[dict[str, Any]](), 0
    while cursor is not None:
        page = (await client.get(f"{PATH}/messages", params={"limit": 3, "cursor": cursor})).json()
        found, cursor = [*found, *page["messages"]], page["next"]
    assert found == whole["messages"]

    assert problem(await client.get("/api/chat/sessions/nothing"), 404) == "NotFound"
    assert problem(await client.get("/api/chat/sessions/nothing/messages"), 404) == "NotFound"
    assert problem(await client.get("/api/chat/sessions", params={"cursor": "x"}), 422) == "InvalidInput"
    assert problem(await client.get(f"{PATH}/messages", params={"limit": 0}), 422) == "InvalidInput"
    other = await client.get(PATH, headers={"Hitherto-User": "ben"})
    assert problem(other, 404) == "NotFound"


async def test_messages_without_tool_chatter(service: Service) -> None:
    """Of a log that others have written tool calls into, and that was cleared."""
    async with service.client(user="ana", agent="support") as client:
        call = {"type": "function_call", "call_id": "c", "name": "get_order", "arguments": "{}"}
        result = {"type": "function_call_output", "call_id": "c", "output": "none"}
        log = "/api/v1/conversations/chat%2F1"
        first = [{"role": "user", "content": "Before."}]
        (await client.post(f"{log}/messages", json={"messages": first})).raise_for_status()
        (await client.post(f"{log}/clear")).raise_for_status()
        round_ = [{"role": "user", "content": "Look."}, call, result, {"role": "assistant", "content": "None."}]
        (await client.post(f"{log}/messages", json={"messages": round_})).raise_for_status()
        for limit in (1, 2, 100):
            found, cursor = list[str](), 0
            while cursor is not None:
                page = (await client.get(f"{PATH}/messages", params={"limit": limit, "cursor": cursor})).json()
                assert len(page["messages"]) <= limit
                found, cursor = [*found, *(one["content"] for one in page["messages"])], page["next"]
            assert found == ["Look.", "None."]


async def test_imported_messages_have_their_dates(service: Service) -> None:
    async with service.client(user="ana", agent="support") as client:
        then, last = "2025-05-01T09:00:00Z", "2025-05-02T09:00:00Z"
        given = [{"item": {"role": "user", "content": "Hello."}, "said_at": at} for at in (then, last)]
        (await client.post("/api/v1/conversations/chat%2F1/messages", json={"messages": given})).raise_for_status()
        assert (await client.get(PATH)).json()["updatedAt"] == last
        found = (await client.get(f"{PATH}/messages")).json()["messages"]
        assert [one["createdAt"] for one in found] == [then, last]


async def test_vision_keeps_the_images(service: Service, model: Endpoint) -> None:
    async with service.client(user="ana") as client:
        response = await ask(client, "What is this?", "/agent/vision", images=[DATA, ADDRESS])
        assert response.json()["output"] == "Of 1."
        assert [part.get("image_url", {}).get("url") for part in model.asked[0]["messages"][0]["content"]] == [
            None,
            DATA,
            ADDRESS,
        ]
        headers = {"Hitherto-Agent": "support"}
        log = (await client.get("/api/v1/conversations/chat%2F1/messages", headers=headers)).json()
        assert [part.get("image_url") for part in log[0]["message"]["payload"]["content"]] == [None, DATA, ADDRESS]
        await ask(client, "And what color?")
        sent = model.asked[1]["messages"]
        assert [one["role"] for one in sent] == ["user", "assistant", "user"]
        assert sent[0] == model.asked[0]["messages"][0], "the images are shown again"

        for images in ([], ["file:///etc/passwd"], ["x"], "x", [1]):
            assert problem(await ask(client, "What?", "/agent/vision", images=images), 422) == "InvalidInput"
        assert problem(await ask(client, "What?", "/agent/vision"), 422) == "InvalidInput"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_failing_upstream_stores_nothing(service: Service, stream: bool) -> None:
    async with service.client(user="ana") as client:
        for prompt, error, status in (
            ("Please fail.", "ModelRejected", 502),
            ("Be overloaded, about my order.", "ModelRateLimited", 503),
        ):
            response = await ask(client, prompt, stream=stream)
            if stream:
                last = events_of(response.text)[-1]
                assert (last["event"], last["id"]) == ("run_failed", None)
                name, told = last["type"], last["message"]
            else:
                name, told = problem(response, status), response.json()["detail"]
                assert (status != 503) or response.headers["Retry-After"] == "3600", "the most that a date counts for"
            assert name in (error, "ModelUnavailable")
            assert prompt not in told, "nothing is quoted"
        assert problem(await client.get(PATH), 404) == "NotFound"
        runs = await runs_of(client)
        assert [one["status"] for one in runs] == ["failed", "failed"]
        response = await ask(client, "Hello.")
        assert response.json()["output"] == "Of 1.", "no trace of what failed"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_client_that_leaves_stores_nothing(service: Service, model: Endpoint, stream: bool) -> None:
    async with service.client(user="ana") as client:
        asking = asyncio.create_task(ask(client, "In silence.", stream=stream))
        await asyncio.to_thread(model.reached.wait, 60)
        assert [one["status"] for one in await runs_of(client)] == ["running"]
        (await client.get("/healthz")).raise_for_status()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

        async def failed() -> bool:
            return [one["status"] for one in await runs_of(client)] == ["failed"]

        await until(failed, "the run ends")
        assert problem(await client.get(PATH), 404) == "NotFound"
        assert (await ask(client, "Hello.")).json()["output"] == "Of 1."


async def test_a_service_that_stops_in_mid_run(database: str, model: Endpoint) -> None:
    """It does so within its grace; what was under way is recorded as failed."""
    with served(database, *TOOLS, agents=[AGENT], model=model, HITHERTO_GRACE="1") as service:
        async with service.client(user="ana") as client:
            streamed = asyncio.create_task(ask(client, "In silence.", stream=True))
            whole = asyncio.create_task(ask(client, "In silence."))
            await until(lambda: asyncio.sleep(0, len(model.asked) == 2), "both ask")
            service.program.send_signal(signal.SIGTERM)
            assert problem(await whole, 503) == "ServiceUnavailable"
            with pytest.raises(httpx.RemoteProtocolError):
                await streamed
            await asyncio.to_thread(service.program.wait)
    async with hitherto.open(database, worker=False) as memory:
        scope = Scope(tenant="local", user="ana", agent="support")
        assert [one.status for one in await memory.runs(scope).list(SESSION)] == [RunStatus.FAILED] * 2
        assert await memory.conversation(SESSION, scope=scope).info() is None


async def test_a_key_that_is_revoked_in_mid_run(database: str, model: Endpoint) -> None:
    with served(await service_url(database), "--require-keys", *TOOLS, agents=[AGENT], model=model) as service:
        key, secret = await service.key("acme", "ana")
        _, other = await service.key("acme", "ana")
        async with service.client(secret) as client, service.client(other) as watching:
            streamed = asyncio.create_task(ask(client, "In silence.", stream=True))
            whole = asyncio.create_task(ask(client, "In silence."))
            await until(lambda: asyncio.sleep(0, len(model.asked) == 2), "both ask")
            async with hitherto.open(database, worker=False) as memory:
                await memory.keys("acme").revoke(key.id)
            last = events_of((await streamed).text)[-1]
            assert (last["event"], last["type"]) == ("run_failed", "Unauthorized")
            assert problem(await whole, 401) == "Unauthorized"
            assert [one["status"] for one in await runs_of(watching)] == ["failed", "failed"]
            assert problem(await watching.get(PATH), 404) == "NotFound"


async def test_events_as_they_come(service: Service) -> None:
    async with service.client(user="ana") as client:
        json = {"prompt": "Where is my order?", "session_id": SESSION}
        async with client.stream("POST", "/agent/run", json=json, headers={"Accept": "text/event-stream"}) as response:
            assert response.headers["Content-Type"].startswith("text/event-stream")
            body = "".join([part async for part in response.aiter_text()])
        events = events_of(body)
        assert [one["event"] for one in events] == [
            *("run_started", "model_call", "tool_call", "tool_result", "model_call", "message", "run_completed")
        ]
        assert events[0]["session_id"] == SESSION
        assert events[3]["payload"] == "a keyboard, sent on Monday"
        assert events[-1]["output"] == "Of 3."
        run = events[-1]["run"]
        recorded = (await client.get(f"/api/v1/runs/{run['id']}/events", headers={"Hitherto-Agent": "support"})).json()
        assert [one["kind"] for one in recorded] == [one["event"] for one in events[1:-1]], "the audit has tool calls"
        log = (await client.get(f"{PATH}/messages")).json()["messages"]
        assert [one["content"] for one in log] == ["Where is my order?", "Of 3."]


async def test_which_agent_runs(database: str, model: Endpoint) -> None:
    agents = [AGENT, {**AGENT, "agent_id": "café", "instructions": "You are the other one."}]
    with served(database, *TOOLS, agents=agents, model=model) as service:
        async with service.client(user="ana") as client, service.client(user="ana", agent="café") as other:
            assert (await ask(client, "Hello.")).json()["output"] == "Of 1."
            assert (await ask(other, "Hello.")).json()["output"] == "Of 2.", "with its instructions"
            for one in (client, other):
                assert len((await one.get("/api/chat/sessions")).json()["sessions"]) == 1
        async with service.client(user="ana", agent="nobody") as unknown:
            assert problem(await ask(unknown, "Hello."), 404) == "NotFound"
        async with service.client() as nobody:
            assert problem(await ask(nobody, "Hello."), 422) == "InvalidScope"


async def test_without_an_agent(database: str) -> None:
    with served(database) as service:
        async with service.client(user="ana") as client:
            for path in ("/agent/run", "/agent/vision"):
                response = await client.post(path, json={"prompt": "Hello.", "images": [DATA]}, headers={})
                assert problem(response, 404) == "NotFound"
                assert "hitherto serve --agent FILE" in response.json()["detail"]
                assert problem(await client.post(path, json={}), 404) == "NotFound"
            assert problem(await client.get("/api/chat/sessions"), 422) == "InvalidScope"


async def test_rights(database: str, model: Endpoint) -> None:
    with served(await service_url(database), "--require-keys", *TOOLS, agents=[AGENT], model=model) as service:
        (_, writing), (_, reading), (_, theirs) = [
            await service.key("acme", "ana", rights="write"),
            await service.key("acme", "ana", rights="read"),
            await service.key("globex", "ana", rights="read"),
        ]
        async with service.client(writing) as client:
            assert (await ask(client, "Hello.")).status_code == 200
            assert problem(await client.get("/api/chat/sessions"), 403) == "Forbidden"
        async with service.client(reading) as client:
            assert len((await client.get("/api/chat/sessions")).json()["sessions"]) == 1
            assert problem(await ask(client, "Hello."), 403) == "Forbidden"
        async with service.client(theirs) as client:
            assert (await client.get("/api/chat/sessions")).json()["sessions"] == []
            assert problem(await client.get(PATH), 404) == "NotFound"
    assert len(model.asked) == 1


async def test_a_run_leaves_what_is_set_for_the_agent(database: str, model: Endpoint) -> None:
    """Setting it needs the right `admin`, running the agent `write`. What is set comes before its configuration."""
    agent = {
        **AGENT,
        "resources": ["memory", "knowledge_base"],
        "resource_config": {"knowledge_base": {"enable_cross_session_context": True}},
    }
    with served(await service_url(database), "--require-keys", *TOOLS, agents=[agent], model=model) as service:
        (_, writing), (_, administering) = (
            await service.key("acme", rights="write"),
            await service.key("acme", rights="admin"),
        )
        async with service.client(administering, user="ana") as admin, service.client(writing, user="ana") as client:

            async def stored() -> tuple[str | None, CrossSession]:
                async with hitherto.open(database, worker=False) as memory:
                    found = await memory.agent("support", tenant="acme")
                return found.policy and json.loads(found.policy)["name"], found.cross_session

            assert (await ask(client, "Hello.")).json()["run"]["strategy"] == "token_threshold"
            assert await stored() == (None, CrossSession())
            chosen = {"policy": "trim:max_turns=3,keep_turns=2", "cross_session": []}
            (await admin.put("/api/v1/agents/support", json=chosen)).raise_for_status()
            assert (await ask(client, "Hello.")).json()["run"]["strategy"] == "trim"
            assert problem(await ask(client, "Now fail."), 502) == "ModelRejected"
            assert await stored() == ("trim", CrossSession(latest=False, triggers=False, always=False))
            (await admin.put("/api/v1/agents/support", json={"policy": ""})).raise_for_status()
            assert (await ask(client, "Hello.")).json()["run"]["strategy"] == "token_threshold"


async def test_what_cannot_be_asked(service: Service, model: Endpoint) -> None:
    async with service.client(user="ana") as client:
        for body in (
            {},
            {"prompt": ""},
            {"prompt": 7},
            {"prompt": "x", "more": 1},
            {"prompt": "x", "session_id": ""},
            {"prompt": "x", "session_id": "a\0"},
            {"prompt": "x", "stream": "yes"},
            {"prompt": "x", "images": ["ftp://x"]},
            {"prompt": "x", "memory_strategy": "nothing"},
            {"prompt": "x", "memory_strategy": "trim", "memoryTrimming": True},
            {"prompt": "x", "memoryTrimming": True, "memoryCompacting": True},
            {"prompt": "x", "memoryInjection": True, "memory_injection": False},
            {"prompt": "x", "memoryTrimming": {"nonsense": 1}},
            {"prompt": "word " * 100_000},
        ):
            for stream in (False, True):
                response = await client.post("/agent/run", json={"stream": stream, **body})
                if "word" in str(body) and stream:
                    assert events_of(response.text)[-1]["type"] == "BudgetExceeded"
                else:
                    assert problem(response, 422), body
        response = await client.post("/agent/run", content=b"nonsense", headers={"Content-Type": "application/json"})
        assert response.status_code in (400, 422)
    assert model.asked == []
