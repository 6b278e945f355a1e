"""A memory with something in it, the inspector on it, and browsers that are signed in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Literal

import pytest
from aiohttp import ClientSession, DummyCookieJar
from playwright.async_api import Browser, BrowserContext, Page, expect

import hitherto
from hitherto import Memory, Scope
from hitherto.core.key import Right
from hitherto.web.app import create_inspector
from hitherto.web.templating import ROOT
from tests.http.serving import LIMITS, listening
from tests.patience import PATIENCE

ADA = Scope(tenant="acme", user="ada", agent="cook")

expect.set_options(timeout=PATIENCE * 1_000)

_STATUS = "the server responded with a status of 4"
"""What the browser says of a page that tells of an error."""

SignIn = Callable[..., Awaitable[Page]]


@pytest.fixture
def row_security() -> bool:
    """As a service reaches its database."""
    return True


@pytest.fixture
async def memory(database: str) -> AsyncIterator[Memory]:
    """The memory of a service, in its process."""
    async with hitherto.open(database, keep_contexts=10, row_security=True) as opened:
        yield opened


@pytest.fixture
async def site(memory: Memory) -> AsyncIterator[str]:
    """The address of the inspector, which asks for keys."""
    async with listening(create_inspector(memory, True, LIMITS)) as url:
        yield url + ROOT


@pytest.fixture
async def http() -> AsyncIterator[ClientSession]:
    async with ClientSession(cookie_jar=DummyCookieJar()) as opened:
        yield opened


@pytest.fixture
async def signed_in(browser: Browser, site: str, memory: Memory) -> AsyncIterator[SignIn]:
    """Opens a browser window that is signed in with a key of these rights. What the policy for content refuses, and any
    error of a script, fails the test; so does a request to elsewhere."""
    wrong, opened = list[str](), list[BrowserContext]()

    async def open_page(
        *rights: Right | Literal["read", "write", "review", "admin"],
        user: str | None = None,
        tenant: str = ADA.tenant,
        **looks: object,
    ) -> Page:
        made = await memory.keys(tenant).create("tests", rights=list(rights or ("admin",)), user=user)
        context = await browser.new_context(**looks)  # type: ignore[arg-type]
        opened.append(context)
        context.set_default_timeout(PATIENCE * 1_000)
        page = await context.new_page()
        page.on(
            "console",
            lambda said: wrong.append(said.text) if said.type == "error" and _STATUS not in said.text else None,
        )
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda asked: None if asked.url.startswith((site, "data:")) else wrong.append(asked.url))
        await page.goto(site)
        await page.get_by_label("Key").fill(made.secret)
        await page.get_by_role("button", name="Sign in").click()
        await page.wait_for_url(f"{site}/{tenant}/conversations")
        return page

    yield open_page
    for context in opened:
        await context.close()
    assert wrong == []
