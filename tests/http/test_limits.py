"""The table of docs/limits.md holds: each field at its bound is taken, beyond it is refused with the error that stands
there, and meanwhile another tenant and `/healthz` are answered, on average within `_SLOWER` times what it takes when
nothing else is asked. That no piece of work holds these up is counted as the event loop's processor time
(`no_request_holds_up_others`), which does not depend on what else the machine does."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2 as httpx
import pytest

from hitherto import Memory, Policy
from hitherto.http.operations import AGENT, IDEMPOTENCY_KEY, PREFIX, SUBJECT, USER
from tests.http.serving import LIMITS, serving
from tests.patience import PATIENCE

PAGE = (Path(__file__).resolve().parents[2] / "docs/limits.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (.*?) \| ([\d,]+).*? \| (`.*`) \|$", PAGE.split("## Requests")[0], re.MULTILINE)
BOUNDS = {field: (int(most.replace(",", "")), re.findall(r"`(\w+)`", error)) for field, most, error in ROWS}

RUN = "RUN"
"""In a path, the run that is there."""

_QUIET = 60
"""Answers before anything else is asked, and as many after."""

_SLOWER = 10

Request = tuple[str, str, dict[str, str], Any]


def document(**more: Any) -> Request:
    return "POST", "/documents", {}, {"text": "A text.", **more}


def message(item: Any) -> Request:
    return "POST", f"/conversations/{uuid4()}/messages", {IDEMPOTENCY_KEY: "k"}, {"messages": [item]}


def call(*, id: str = "1", name: str = "f") -> Any:
    made = {"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}}
    return {"role": "assistant", "content": None, "tool_calls": [made]}


def event(**more: Any) -> Request:
    return "POST", f"/runs/{RUN}/events", {}, {"events": [{"kind": "tool_call", **more}]}


def policy_of_size(size: int) -> Any:
    redact: dict[str, Any] = {"is": "redact", "calls": False, "never": ["n"], "at_least": 0}
    stage = {"trigger": {"is": "turns", "n": 8}, "keep": {"is": "last_turns", "k": 3}, "action": redact, "render": None}
    whole = {"version": 1, "name": "large", "stages": [stage]}
    redact["never"] = ["n" * (size - len(json.dumps(Policy.from_json(whole).to_json())) + 1)]
    return whole


REQUESTS: dict[str, list[Callable[[int], Request]]] = {
    "tenant, user, agent, conversation, subject, member": [
        lambda size: ("GET", "/documents", {USER: "u" * size}, None),
        lambda size: ("GET", "/documents", {AGENT: "a" * size}, None),
        lambda size: ("PATCH", f"/conversations/{'c' * size}", {}, {"title": "t", "create": True}),
        lambda size: ("GET", "/conversations/c/view", {SUBJECT: "s" * size}, None),
        lambda size: ("PUT", "/subjects/s", {}, {"members": ["m" * size]}),
    ],
    "name of a subject": [lambda size: ("PUT", "/subjects/s", {}, {"name": "n" * size})],
    "members of a subject, their number": [
        lambda size: ("PUT", "/subjects/s", {}, {"members": [str(no) for no in range(size)]})
    ],
    "title of a conversation": [lambda size: ("PATCH", "/conversations/c", {}, {"title": "t" * size, "create": True})],
    "metadata of a conversation, as JSON": [
        lambda size: ("PATCH", "/conversations/c", {}, {"metadata": {"x": "y" * (size - 9)}, "create": True})
    ],
    "metadata of a message, as JSON": [
        lambda size: message({"item": {"role": "user", "content": "hello"}, "metadata": {"x": "é" * (size - 9)}})
    ],
    "id of a message": [lambda size: message({"role": "user", "content": "hello", "id": "i" * size})],
    "id of a tool call": [
        lambda size: message(call(id="i" * size)),
        lambda size: message({"type": "function_call", "call_id": "i" * size, "name": "f", "arguments": "{}"}),
        lambda size: message(
            {"role": "assistant", "content": [{"type": "tool_use", "id": "i" * size, "name": "f", "input": {}}]}
        ),
    ],
    "name of a tool": [
        lambda size: message(call(name="n" * size)),
        lambda size: message({"type": "function_call", "call_id": "1", "name": "n" * size, "arguments": "{}"}),
        lambda size: message(
            {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "n" * size, "input": {}}]}
        ),
    ],
    "text of a document": [lambda size: document(text="word " * (size // 5) + "x" * (size % 5))],
    "title of a document": [lambda size: document(title="t" * size)],
    "type of a document": [lambda size: document(doc_type="t" * size)],
    "namespace of a document": [lambda size: document(namespace="n" * size)],
    "metadata of a document, as JSON": [lambda size: document(metadata={"x": "y" * (size - 9)})],
    "content of a fact": [lambda size: ("POST", "/facts", {}, {"content": "f" * size})],
    "search triggers of a `CrossSession`, their number": [
        lambda size: (
            "PATCH",
            "/conversations/c",
            {},
            {"cross_session": {"search_triggers": ["again"] * size}, "create": True},
        )
    ],
    "search trigger of a `CrossSession`": [
        lambda size: ("PATCH", "/conversations/c", {}, {"cross_session": {"search_triggers": ["x" * size]}})
    ],
    "policy, as JSON": [lambda size: ("PATCH", "/conversations/c", {}, {"policy": policy_of_size(size)})],
    "strategy of a run": [lambda size: ("POST", "/conversations/c/runs", {}, {"strategy": "s" * size})],
    "name of a run's event": [lambda size: event(name="n" * size)],
    "call id of a run's event": [lambda size: event(call_id="i" * size)],
    "limit of a list, but for messages": [
        lambda size: ("GET", f"/documents?limit={size}", {}, None),
        lambda size: ("GET", f"/conversations/c/contexts?limit={size}", {}, None),
        lambda size: ("GET", f"/runs/{RUN}/events?limit={size}", {}, None),
        lambda size: ("POST", "/recall", {}, {"question": "what?", "limit": size}),
        lambda size: ("GET", f"/conversations?limit={size}", {}, None),
        lambda size: ("GET", f"/conversations/c/runs?limit={size}", {}, None),
        lambda size: ("GET", f"/facts?limit={size}", {}, None),
        lambda size: ("GET", f"/scopes/user?limit={size}", {}, None),
        lambda size: ("GET", f"/subjects?limit={size}", {}, None),
    ],
}


def test_the_table_has_every_field() -> None:
    assert BOUNDS.keys() == REQUESTS.keys()


@asynccontextmanager
async def not_starved(url: str, key: str) -> AsyncGenerator[None]:
    """Asks for health, and as another tenant, all the time, and before and after that. Fails if an answer meanwhile
    takes more than `_SLOWER` times as long, on average, as one before or after."""
    asking = True
    headers = {"Authorization": f"Bearer {key}", USER: "u", AGENT: "a"}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=PATIENCE) as client:

        async def seconds_each(go_on: Callable[[int], bool]) -> float:
            began, answers = time.perf_counter(), 0
            while go_on(answers):
                for path in ("/healthz", f"{PREFIX}/documents"):
                    assert (await client.get(path)).status_code == 200
                    answers += 1
            return (time.perf_counter() - began) / answers

        before = await seconds_each(lambda answers: answers < _QUIET)
        task = asyncio.create_task(seconds_each(lambda answers: asking or not answers))
        try:
            yield
        finally:
            asking = False
            meanwhile = await task
        after = await seconds_each(lambda answers: answers < _QUIET)
        assert meanwhile < _SLOWER * max(before, after)


@pytest.fixture
async def client(memory: Memory) -> AsyncIterator[httpx.AsyncClient]:
    """A client of one tenant, while another must not be starved."""
    secrets = [(await memory.keys(tenant).create("tests", rights=["admin"])).secret for tenant in ("acme", "other")]
    limits = replace(LIMITS, size=2**25)
    headers = {"Authorization": f"Bearer {secrets[0]}", USER: "u", AGENT: "a"}
    async with (
        serving(memory, limits=limits) as url,
        not_starved(url, secrets[1]),
        httpx.AsyncClient(base_url=url + PREFIX, headers=headers, timeout=PATIENCE) as made,
    ):
        yield made


async def test_each_field_at_its_bound_and_beyond(client: httpx.AsyncClient) -> None:
    run = (await client.post("/conversations/c/runs", json={})).json()["id"]
    for field, requests in REQUESTS.items():
        most, errors = BOUNDS[field]
        if most > 10**6:
            continue  # more than a request may have: `tests/engine/documents` has it
        for request, more in product(requests, (0, 1, 700)):
            method, path, names, body = request(most + more)
            found = await client.request(method, path.replace(RUN, run), headers=names, json=body)
            if more:
                assert found.status_code == 422, (field, found.text[:200])
                assert found.json()["type"].removeprefix("urn:hitherto:") in errors, (field, found.text[:200])
                assert len(found.content) < 10_000
            else:
                assert found.is_success, (field, found.text[:200])
