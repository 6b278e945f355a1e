"""A running turn that is far longer than the budget: its context is made, and the API takes it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hitherto import Conversation, user
from hitherto.core.log.message import ANTHROPIC, CHAT, RESPONSES, Wire
from hitherto.store.store import Store
from hitherto.testing.requests import refusals
from hitherto.wire import read
from tests.conftest import SCOPE
from tests.memories import open_on

ASKED = "Which kayak is mine?"
LONG = "a red kayak, " * 10_000
UNKNOWN: dict[Wire, list[dict[str, Any]]] = {
    CHAT: [
        {"role": "assistant", "tool_calls": [{"id": "c", "type": "hologram", "hologram": {"shows": LONG}}]},
        {"role": "tool", "tool_call_id": "c", "content": "The red one."},
    ],
    RESPONSES: [
        {"type": "hologram_call", "id": "h", "call_id": "c", "shows": LONG},
        {"type": "hologram_call_output", "call_id": "c", "output": "The red one."},
    ],
}


async def check_context(chat: Conversation, wire: Wire) -> None:
    context = await chat.context(wire=wire, budget=4_000)
    assert context.manifest.total <= 4_000
    assert ASKED in json.dumps(context.request)
    assert refusals(context.request, wire=wire, model="claude-opus-4-8") == []


@pytest.mark.parametrize("own", UNKNOWN)
async def test_a_long_call_of_an_unknown_kind_is_cut(store: Store, own: Wire) -> None:
    async with open_on(store) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user(ASKED), *[read(item, own) for item in UNKNOWN[own]])
        for wire in (CHAT, RESPONSES, ANTHROPIC):
            await check_context(chat, wire)
