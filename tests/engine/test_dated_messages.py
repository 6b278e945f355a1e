"""The setting `date_messages`: user messages begin with the day on which they were said."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hitherto import Call, Wire, assistant, tool_result, user
from hitherto.core.policy.span import Fate
from hitherto.store.store import Store
from hitherto.testing.requests import refusals
from tests.conftest import SCOPE
from tests.memories import open_on

LATE = datetime(2026, 7, 9, 23, 30, tzinfo=UTC)  # the 10th in Berlin
EARLY = datetime(2026, 6, 1, 8, tzinfo=UTC)


@pytest.mark.parametrize("wire", ["openai.chat", "openai.responses", "anthropic"])
async def test_each_user_message_has_its_day(store: Store, wire: Wire) -> None:
    async with open_on(store, date_messages=True, time_zone="Europe/Berlin", cache_breakpoints=False) as memory:
        chat = memory.conversation("c", scope=SCOPE, policy="none")
        await chat.append(user("I moved. " + "So it goes. " * 300, at=EARLY), assistant("To Rome?"))
        await chat.append(user("Yes.", at=LATE), assistant(calls=[Call(id="a", name="look")]), tool_result("a", "Rome"))
        asked = user("When was it?", at=LATE)
        for budget, cut in ((5_000, False), (300, True)):
            made = await chat.context(asked, wire=wire, budget=budget)
            assert refusals(made.request, wire=wire) == []
            said = [one["content"] for one in made.messages if one.get("role") == "user"]
            texts = [text for one in said if (text := one if isinstance(one, str) else one[0].get("text"))]
            assert texts[0].startswith("[2026-06-01] I moved. ")
            assert texts[-1] == "[2026-07-10] When was it?"
            assert all(one.startswith("[2026-0") for one in texts)
            assert any(one.fate is Fate.SHORTENED for one in made.manifest.fates) is cut
            assert (await chat.rebuild(made.manifest)).request == made.request
        before = (await chat.context(asked, wire=wire)).messages
        await chat.append(asked, assistant("In June."))
        assert (await chat.context(user("Thank you."), wire=wire)).messages[: len(before)] == before
