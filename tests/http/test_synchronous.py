"""The client without `await`."""

from __future__ import annotations

import asyncio

import pytest

import hitherto
from hitherto import assistant, user
from hitherto.errors import ServiceUnavailable, Unauthorized
from tests.conftest import SCOPE
from tests.http.serving import serving


async def test_one_line_is_different() -> None:
    async with hitherto.open("memory:") as memory:
        made = await memory.keys(SCOPE.tenant).create("tests")
        async with serving(memory) as url:

            def talk() -> list[str]:
                with hitherto.connect_sync(url, key=made.secret) as remote:
                    chat = remote.conversation("c", scope=SCOPE, policy="rolling")
                    with chat.turn("Dinner?", key="dinner") as turn:
                        turn.add("At eight.")
                    with chat.turn("Dinner?", key="dinner") as again:
                        assert (again.replayed, again.text) == (True, "At eight.")
                    chat.append(user("Thanks."), assistant("Any time."))
                    assert chat.context("When?", budget=500).messages[0]["content"] == "Dinner?"
                    assert remote.recall("dinner", scope=SCOPE).hits
                    fork = chat.fork(at=1, id="fork")
                    fork.append(user("Where?"))
                    assert [one.text for one in fork.transcript().entries] == ["Dinner?", "At eight.", "Where?"]
                    return [one.message.text for one in chat.messages()]

            assert await asyncio.to_thread(talk) == ["Dinner?", "At eight.", "Thanks.", "Any time."]
            with pytest.raises(Unauthorized):
                await asyncio.to_thread(hitherto.connect_sync, url, key="hitherto_other")
        assert (await memory.conversation("c", scope=SCOPE).policy()).name == "rolling"


def test_nobody_answers() -> None:
    with pytest.raises(ServiceUnavailable, match="hitherto serve"):
        hitherto.connect_sync("http://127.0.0.1:1", timeout=0.3)
