"""Data in a text, such as a picture that was pasted or that a tool returned as base64: it is counted, and neither
digests nor what is recalled are flooded with it."""

from __future__ import annotations

import base64
import json
import random
import textwrap

import pytest

from hitherto import Call, Message, assistant, rolling, tool_result, user
from hitherto.providers.scripted import Scripted
from hitherto.store.store import Store
from hitherto.tokens import CANONICAL, counter_for
from tests.acceptance.dialogue import opener, says_each
from tests.conftest import SCOPE

DATA = base64.b64encode(random.Random(1).randbytes(150_000)).decode()
URL = f"data:image/png;base64,{DATA}"
TEXTS: dict[str, list[Message]] = {
    "of a user": [user(f"Look at my heron: {URL} It stands in the pond.")],
    "of a tool": [
        assistant(calls=[Call(id="c1", name="photograph", arguments="{}")]),
        tool_result("c1", json.dumps({"picture": URL, "shows": "heron"})),
    ],
    "of a user, in lines": [user(f"My heron:\n{textwrap.fill(DATA, 76)}\nIt stands in the pond.")],
    "of a tool, in lines": [
        assistant(calls=[Call(id="c1", name="photograph", arguments="{}")]),
        tool_result("c1", json.dumps({"shows": "heron", "picture": textwrap.fill(DATA, 76)})),
    ],
    "of a tool, without a name": [
        assistant(calls=[Call(id="c1", name="photograph", arguments="{}")]),
        tool_result("c1", f"A heron in the pond, as PNG:\n{DATA}"),
    ],
}


@pytest.mark.parametrize("messages", TEXTS.values(), ids=TEXTS.keys())
async def test_it_floods_nothing(store: Store, messages: list[Message]) -> None:
    model = Scripted(then=says_each)
    async with opener(store, rolling(threshold=3, keep_last=2))(model) as (memory, chat):
        await chat.append(user("Hello."), *messages, assistant("A fine bird."), user("Thanks."), assistant("Well."))
        await memory.wait_for_digests()
        (prompt,) = model.calls
        assert "heron" in prompt.user
        assert len(prompt.user) < 2_000
        await memory.wait_for_index()
        said = (await chat.messages())[len(messages)]
        assert (said.message.raw, said.message.text) == (messages[-1].raw, messages[-1].text), "the log has all of it"
        assert said.tokens >= counter_for(CANONICAL).count(DATA)

        hits = (await memory.recall(f"{DATA} Where is the heron?", scope=SCOPE, kinds=["message"])).hits
        assert [hit.start for hit in hits if hit.scores.lexical > 0] == [len(messages)]
        other = memory.conversation("other", scope=SCOPE)
        for question in ("Where is the heron?", f"{URL} Where is the heron?", "Which image/png in base64?"):
            made = await other.context(question, budget=4_000 + 2 * len(question), recall=True)
            recalled = "".join(str(one["content"]) for one in made.messages if one["content"] != question)
            assert "heron" in recalled
            assert "pond" in recalled or "pond" not in said.message.text
            assert len(recalled) < 2_000
            assert (await other.rebuild(made.manifest)).request == made.request
