"""What is no value for a parameter is refused in our words, or counts as left out: no verb raises a bare TypeError."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

import hitherto
from hitherto import Memory, user
from hitherto.errors import HithertoError
from hitherto.http.operations import OPERATIONS
from tests.conftest import SCOPE

WRONG: tuple[object, ...] = (None, 5, "text", 1.5, [5], {"a": 1}, object(), b"x", True)


@pytest.fixture
async def memory(database: str) -> AsyncIterator[Memory]:
    async with hitherto.open(database) as opened:
        yield opened


async def test_any_value_for_any_parameter(memory: Memory) -> None:
    chat, runs = memory.conversation("c", scope=SCOPE), memory.runs(SCOPE)
    await chat.append(user("hello"))
    await memory.wait_for_index()
    owners: dict[str, Any] = {
        "Memory": memory,
        "Conversation": chat,
        "Documents": memory.documents(SCOPE),
        "Facts": memory.facts(SCOPE),
        "Runs": runs,
    }
    usual: dict[str, Any] = {
        **{"question": "hello", "scope": SCOPE, "tenant": SCOPE.tenant, "user": "another", "agent": "another"},
        **{"id": 1, "subject": "s", "by": "user", "ttl": timedelta(days=1), "text": "A text.", "content": "A text."},
        **{"hit": (await memory.recall("hello", scope=SCOPE)).hits[0], "run": (await runs.begin("c")).id},
        **{
            "conversation": "c",
            "manifest": (await chat.context("hello")).manifest,
            "what": 1,
            "to": 0,
            "seqs": [9],
            "seq": 0,
        },
        **{
            "items": [],
            "visibility": "private",
            "key": "k",
            "fact": 1,
            "time_zone": "UTC",
            "messages": user("hello"),
            "events": {"kind": "message"},
        },
    }
    verbs = [
        getattr(owners[one.owner.__name__], one.verb)
        for one in OPERATIONS
        if not (one.waits or one.verb.startswith("_"))
    ]
    bare = list[str]()
    for verb in [*verbs, chat.messages]:
        parameters = inspect.signature(verb).parameters
        for name in parameters:
            for value in WRONG:
                given = inspect.signature(verb).bind_partial()
                for other, parameter in parameters.items():
                    many = parameter.kind is inspect.Parameter.VAR_POSITIONAL
                    if other == name:
                        given.arguments[other] = (value,) if many else value
                    elif many or parameter.default is inspect.Parameter.empty:
                        given.arguments[other] = (usual[other],) if many else usual[other]
                try:
                    await verb(*given.args, **given.kwargs)
                except HithertoError:
                    pass
                except Exception as error:  # noqa: BLE001 (these are what is looked for)
                    bare.append(f"{verb.__qualname__}({name}={value!r}): {error!r}")
    assert bare == []


async def test_none_counts_as_left_out(memory: Memory) -> None:
    chat: Any = memory.conversation("c", scope=SCOPE)
    assert (await chat.context("hello", tools=None)).request == (await chat.context("hello")).request
