"""The table of docs/limits.md holds: each field at its bound is taken, beyond it is refused with the error that stands
there, and meanwhile another tenant and `/healthz` are answered. That no piece of work holds these up is counted as the
event loop's processor time (`no_request_holds_up_others`), which does not depend on what else the machine does."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hitherto import Memory
from hitherto.http.operations import AGENT, PREFIX, SUBJECT, USER
from tests.http.serving import LIMITS, serving

PAGE = (Path(__file__).resolve().parents[2] / "docs/limits.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (.*?) \| ([\d,]+).*? \| (`.*`) \|$", PAGE.split("## Requests")[0], re.MULTILINE)
BOUNDS = {field: (int(most.replace(",", "")), re.findall(r"`(\w+)`", error)) for field, most, error in ROWS}

Request = tuple[str, str, dict[str, str], Any]


def document(**more: Any) -> Request:
    return "POST", "/documents", {}, {"text": "A text.", **more}


REQUESTS: dict[str, list[Callable[[int], Request]]] = {
    "tenant, user, agent, conversation, subject, member": [
        lambda size: ("GET", "/documents", {USER: "u" * size}, None),
        lambda size: ("GET", "/documents", {AGENT: "a" * size}, None),
        lambda size: ("PATCH", f"/conversations/{'c' * size}", {}, {"title": "t"}),
        lambda size: ("GET", "/conversations/c/view", {SUBJECT: "s" * size}, None),
        lambda size: ("PUT", "/subjects/s", {}, {"members": ["m" * size]}),
    ],
    "title of a conversation": [lambda size: ("PATCH", "/conversations/c", {}, {"title": "t" * size})],
    "metadata of a conversation, as JSON": [
        lambda size: ("PATCH", "/conversations/c", {}, {"metadata": {"x": "y" * (size - 9)}})
    ],
    "text of a document": [lambda size: document(text="word " * (size // 5) + "x" * (size % 5))],
    "title of a document": [lambda size: document(title="t" * size)],
    "type of a document": [lambda size: document(doc_type="t" * size)],
    "namespace of a document": [lambda size: document(namespace="n" * size)],
    "metadata of a document, as JSON": [lambda size: document(metadata={"x": "y" * (size - 9)})],
    "content of a fact": [lambda size: ("POST", "/facts", {}, {"content": "f" * size})],
    "strategy of a run": [lambda size: ("POST", "/conversations/c/runs", {}, {"strategy": "s" * size})],
    "limit of a list": [
        lambda size: ("GET", f"/conversations?limit={size}", {}, None),
        lambda size: ("GET", f"/conversations/c/runs?limit={size}", {}, None),
        lambda size: ("GET", f"/facts?limit={size}", {}, None),
        lambda size: ("GET", f"/scopes/user?limit={size}", {}, None),
    ],
}


def test_the_table_has_every_field() -> None:
    assert BOUNDS.keys() == REQUESTS.keys()


@asynccontextmanager
async def watched(url: str, key: str) -> AsyncGenerator[list[float]]:
    """Asks for health, and as another tenant, all the time; the seconds that each answer took are in the list."""
    seconds, asking = list[float](), True
    headers = {"Authorization": f"Bearer {key}", USER: "u", AGENT: "a"}

    async def ask() -> None:
        async with httpx.AsyncClient(base_url=url, headers=headers, timeout=120) as client:
            while asking:
                for path in ("/healthz", f"{PREFIX}/documents"):
                    began = time.perf_counter()
                    found = await client.get(path)
                    seconds.append(time.perf_counter() - began)
                    assert found.status_code == 200

    task = asyncio.create_task(ask())
    try:
        yield seconds
    finally:
        asking = False
        await task


def p99(seconds: list[float]) -> float:
    return sorted(seconds)[len(seconds) * 99 // 100]


cases = st.sampled_from([(field, at) for field, requests in REQUESTS.items() for at in range(len(requests))])


@pytest.fixture
async def client(memory: Memory) -> AsyncIterator[httpx.AsyncClient]:
    """A client of one tenant, while another is watched."""
    secrets = [(await memory.keys(tenant).create("tests", rights=["admin"])).secret for tenant in ("acme", "other")]
    limits = replace(LIMITS, size=2**25)
    headers = {"Authorization": f"Bearer {secrets[0]}", USER: "u", AGENT: "a"}
    async with (
        serving(memory, limits=limits) as url,
        watched(url, secrets[1]) as seconds,
        httpx.AsyncClient(base_url=url + PREFIX, headers=headers, timeout=120) as made,
    ):
        await asyncio.sleep(0.5)
        quiet = p99(seconds)
        seconds.clear()
        yield made
    logging.getLogger("tests").info("p99 of others: %.1f times that of a quiet service", p99(seconds) / quiet)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(case=cases, more=st.just(0) | st.integers(1, 1_000))
async def test_each_field_at_its_bound_and_beyond(client: httpx.AsyncClient, case: tuple[str, int], more: int) -> None:
    field, at = case
    most, errors = BOUNDS[field]
    if most > 10**6:
        return  # more than a request may have: `tests/engine/documents` has it
    method, path, names, body = REQUESTS[field][at](most + more)
    found = await client.request(method, path, headers=names, json=body)
    if more:
        assert found.status_code == 422, (field, found.text[:200])
        assert found.json()["type"].removeprefix("urn:hitherto:") in errors, (field, found.text[:200])
        assert len(found.content) < 10_000
    else:
        assert found.is_success, (field, found.text[:200])
