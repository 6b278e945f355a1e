"""`branches` and `switch`: what was taken back or replaced stays a branch, and is shown again as it was."""

from __future__ import annotations

import pytest

from hitherto import Conversation, Memory, assistant, user
from hitherto.errors import ConcurrentWrite, InvalidInput
from hitherto.store.store import Store
from tests.conftest import SCOPE
from tests.engine.turn.asking import shown
from tests.memories import open_on


@pytest.fixture
async def chat(store: Store) -> Conversation:
    async with open_on(store, worker=False) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user("Which day?"), assistant("Monday."))
        return chat


async def test_answers_of_one_question(store: Store) -> None:
    async with open_on(store, worker=False) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user("Which day?"), assistant("Monday."))
        for text in ("Tuesday.", "Wednesday."):
            async with chat.turn(at=0) as turn:
                await turn.add(text)
        await chat.append(user("And the month?"), assistant("May."))
        found = await chat.branches(1)
        assert [(one.seq, one.last, one.text, one.shown) for one in found] == [
            (1, 1, "Monday.", False),
            (2, 2, "Tuesday.", False),
            (3, 5, "Wednesday.", True),
        ]
        assert await chat.branches(3) == found
        assert await chat.switch(1) == 5
        assert await shown(chat) == ["Which day?", "Monday."]
        assert await chat.switch(5) == 1
        assert await shown(chat) == ["Which day?", "Wednesday.", "And the month?", "May."]
        assert await chat.switch(3) == 5, "it is shown"
