"""How much of what answers a question counts as shown: whole messages, parts of them, and groups of a tool."""

from __future__ import annotations

import json

import hitherto
from hitherto import Call, Message, assistant, tool_result, user
from hitherto.simulation.figures import evidence_shown
from tests.conftest import SCOPE

FILLER = "Nothing of note happened on that day, and nothing else was said about it by anybody. "


async def test_a_group_counts_with_all_its_messages() -> None:
    """A call and its result are recalled together: the result is evidence too."""
    call = Call(id="a", name="look", arguments=json.dumps({"cage": 7}))
    looked = [assistant(calls=[call]), tool_result("a", "It is the heron, fed at seven. " + "It eats fish. " * 10)]
    filler: list[Message] = [one for n in range(40) for one in (user(f"Day {n}. {FILLER}"), assistant("Noted."))]
    messages = [user("Who lives there?"), *looked, assistant("That one."), *filler]
    async with hitherto.open("memory:") as memory:
        chat = memory.conversation("zoo", scope=SCOPE)
        await chat.append(*messages)
        await memory.wait_for_index()
        whole = await chat.context("When is the heron fed?", budget=600)
        assert [(one.start, one.end, one.characters) for one in whole.manifest.recalled[:1]] == [(1, 2, [])]
        assert evidence_shown(whole, messages, {2}) == evidence_shown(whole, messages, {1, 2}) == 1.0
        nothing = await chat.context("When is the heron fed?", budget=600, recall=False)
        assert evidence_shown(nothing, messages, {2}) == 0.0
        assert evidence_shown(whole, messages, {2, 20}) in (0.5, 1.0)


async def test_a_part_counts_as_a_part() -> None:
    needle = "The spare key of the boathouse hangs behind the blue kayak. "
    long = [f"Report {n}. " + FILLER * 8 for n in range(20)]
    messages = [user("\n\n".join([*long[:10], needle, *long[10:]])), *(assistant(FILLER) for _ in range(40))]
    async with hitherto.open("memory:") as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(*messages)
        await memory.wait_for_index()
        context = await chat.context("Where does the spare key of the boathouse hang?", budget=1_000)
        (one,) = [one for one in context.manifest.recalled if one.start == 0]
        shown = sum(end - start for start, end in one.characters)
        assert 0 < evidence_shown(context, messages, {0}) == shown / len(messages[0].text) < 1
