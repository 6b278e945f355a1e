"""Addresses that nobody's page links to: an answer that says what is wrong, never an error of ours."""

from __future__ import annotations

from itertools import product
from urllib.parse import urlencode

from aiohttp import ClientSession
from fastapi import FastAPI

from hitherto import Memory
from hitherto.web import sessions
from hitherto.web.templating import ROOT
from hitherto.web.views import ROUTES
from tests.web.test_looks import filled
from tests.web.test_sessions import PAGE, sign_in

ODD = ("", " ", "-1", "99999999999999999999", "\0", "0001-01-01", "9999-12-31", "🙂" * 200)


def pages() -> list[tuple[str, list[str]]]:
    """The address of each page, and what it may be asked."""
    app = FastAPI()
    app.include_router(ROUTES)
    told = app.openapi()["paths"]
    return [
        (at.removeprefix(ROOT), [one["name"] for one in page["get"].get("parameters", []) if one["in"] == "query"])
        for at, page in told.items()
        if "get" in page and "{tenant}" in at
    ]


async def test_no_query_is_an_error_of_ours(memory: Memory, site: str, http: ClientSession) -> None:
    await filled(memory)
    key = await memory.keys("acme").create("operator", rights=["admin"])
    _, _, session = await sign_in(http, site, key.secret)
    headers = {"Cookie": f"{sessions.COOKIE}={session}"}
    wrong = list[tuple[int, str]]()
    for at, names in pages():
        for name, value in product(names, ODD):
            address = f"{site}{at.format(tenant='acme', **PAGE)}?{urlencode({name: value})}"
            async with http.get(address, headers=headers, allow_redirects=False) as done:
                if done.status >= 500:
                    wrong.append((done.status, address))
    assert wrong == []
