"""A request that takes too long is cut off, and what was begun is ended."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

import hitherto
from hitherto import Memory, user
from hitherto.engine.log import erase_scope
from hitherto.errors import TimedOut
from tests.conftest import SCOPE
from tests.http.serving import LIMITS, serving


async def test_an_erasure_that_has_begun_goes_on(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        await memory.conversation(f"{number}", scope=SCOPE).append(user("hello"))
    secret = (await memory.keys(SCOPE.tenant).create("tests", rights=["admin"])).secret
    store = memory._services.store
    with monkeypatch.context() as patched:
        patched.setattr(erase_scope, "_REST", 10_000)
        async with (
            serving(memory, limits=replace(LIMITS, seconds=1.0)) as url,
            hitherto.connect(url, key=secret) as remote,
        ):
            with pytest.raises(TimedOut, match="erasure that has begun goes on"):
                await remote.erase_user(SCOPE.tenant, SCOPE.user)
    assert (await memory.conversations(tenant=SCOPE.tenant)).conversations != ()
    async with asyncio.timeout(30):
        await memory.wait_for_erasure()
    assert await store.erasures() == []
    assert (await memory.conversations(tenant=SCOPE.tenant)).conversations == ()
