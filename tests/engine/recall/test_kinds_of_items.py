"""Whatever an API can put into a conversation is found and can be read again."""

from __future__ import annotations

import re
from typing import Any

import pytest

from hitherto import assistant, user
from hitherto.core.digests.prompts import lines_of
from hitherto.core.log.message import Role, Wire
from hitherto.store.store import Store
from hitherto.wire.neutral import Hosted, said, voices
from tests.conftest import SCOPE
from tests.memories import open_on
from tests.wire.samples import SAMPLES

WIRES: list[Wire] = ["openai.chat", "openai.responses", "anthropic"]


@pytest.mark.parametrize("wire", WIRES)
async def test_every_kind_is_found_and_shown(store: Store, wire: Wire) -> None:
    missing: list[Any] = []
    async with open_on(store) as memory:
        for kind, (items, _) in SAMPLES[wire].items():
            chat = memory.conversation(kind, scope=SCOPE)
            await chat.append(user("Hello."), assistant("What do you need?"))
            await chat.append(*items, wire=wire)
            await chat.append(assistant("Fine."), user("The weather is good."))
        await memory.wait_for_index()
        for kind, (items, words) in SAMPLES[wire].items():
            chat, seqs = memory.conversation(kind, scope=SCOPE), range(2, 2 + len(items))
            shown = (await chat.expand((seqs.start, seqs.stop - 1))).text
            for word in words.split():
                hits = (await memory.recall(word, scope=SCOPE, conversation=kind)).hits
                found = any(hit.start in seqs for hit in hits)
                missing += [] if found and word in shown else [(kind, word, found, word in shown)]
    assert missing == []


@pytest.mark.parametrize(
    ("wire", "kind", "line"),
    [
        ("openai.responses", "mcp_call", '- tool "boats.rent": a paddle'),
        ("anthropic", "web_search_tool_result", '- tool "web_search": Paddles'),
    ],
)
async def test_what_a_hosted_tool_gave_is_not_the_assistants_word(
    store: Store, wire: Wire, kind: str, line: str
) -> None:
    async with open_on(store) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user("Where is the kayak?"))
        await chat.append(*SAMPLES[wire][kind][0], wire=wire)
        await chat.append(assistant("There."), *(user(f"Filler number {n} of many words.") for n in range(60)))
        await memory.wait_for_index()
        made = await chat.context("What of the paddle?", budget=400, recall=True)
        assert any(line in one["content"].splitlines() for one in made.messages)


@pytest.mark.parametrize("wire", WIRES)
async def test_no_word_of_a_hosted_tool_is_the_assistants_where_the_log_is_read(store: Store, wire: Wire) -> None:
    """By `expand`, and by what writes summaries."""
    missing: list[Any] = []
    async with open_on(store) as memory:
        for kind, (items, _) in SAMPLES[wire].items():
            chat = memory.conversation(kind, scope=SCOPE)
            await chat.append(*items, wire=wire)
            logged = await chat.messages()
            theirs = [said(one.message).parts for one in logged if one.message.role is Role.ASSISTANT]
            ran = [part for parts in theirs for part in parts if isinstance(part, Hosted)]
            page = (await chat.expand((0, len(items)))).text
            lines = [(line.role, line.text) for line in lines_of(logged, voices)]
            for part in ran:
                shown = f'tool "{part.name}": ' + part.output.replace("\n", "\n  ")
                read = shown in page and ("tool", part.output) in lines
                missing += [] if read or not part.output else [(kind, part.output, page)]
    assert missing == []


async def test_each_result_is_its_tools_and_what_stands_beside_it_the_users(store: Store) -> None:
    """By `expand`, in contexts, and by what writes summaries."""
    called = [{"type": "tool_use", "id": name, "name": name, "input": {}} for name in ("wind", "tide")]
    gave: list[dict[str, Any]] = [
        {"type": "tool_result", "tool_use_id": "wind", "content": "It is zabogurox."},
        {"type": "tool_result", "tool_use_id": "tide", "content": "Low."},
        {"type": "text", "text": "My parrot is green."},
    ]
    async with open_on(store) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user("Go."), {"role": "assistant", "content": called}, {"role": "user", "content": gave})
        await memory.wait_for_index()
        page = (await chat.expand((2, 2))).text
        made = await memory.conversation("new", scope=SCOPE).context("What of zabogurox?", recall=True)
        prompt = [(line.role, line.text) for line in lines_of(await chat.messages(), voices)][-3:]
        lines = ['tool "wind": It is zabogurox.', 'tool "tide": Low.', "user: My parrot is green."]
        assert page.splitlines()[-3:] == [f"- 2 {line}" for line in lines]
        assert set(made.messages[0]["content"].splitlines()).issuperset(f"- {line}" for line in lines)
        assert prompt == [("tool", "It is zabogurox."), ("tool", "Low."), ("user", "My parrot is green.")]


@pytest.mark.parametrize(("wire", "kind"), [("openai.responses", "reasoning"), ("anthropic", "thinking")])
async def test_no_thought_is_taken_for_what_was_said(store: Store, wire: Wire, kind: str) -> None:
    """By `recall`, `expand`, contexts, and by what writes summaries."""
    async with open_on(store) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(*SAMPLES[wire][kind][0], wire=wire)
        await memory.wait_for_index()
        hits = (await memory.recall("teal heron", scope=SCOPE)).hits
        made = await memory.conversation("new", scope=SCOPE).context("Which teal heron?", recall=True)
        page = (await chat.expand((0, 1))).text
        prompt = "\n".join(line.text for line in lines_of(await chat.messages(), voices))
        shown = [hits[0].text, str(made.messages[0]), page, prompt]
        assert [one.count("The heron?") for one in shown] == [one.count("(thinking) The heron?") for one in shown]
        assert "heron" in page


async def test_a_page_begins_anywhere_in_what_a_hosted_tool_gave(store: Store) -> None:
    items, _ = SAMPLES["openai.responses"]["file_search_call"]
    async with open_on(store) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(*items, wire="openai.responses")
        (logged,) = await chat.messages()
        for at in range(1, len(logged.message.text)):
            _, rest = (await chat.expand((0, 0, at))).text.split("…")
            without_marks = re.sub('(?m)^(  |- 0 tool "file_search": )', "", rest)
            assert without_marks in (logged.message.text[at:], logged.message.text[at + 1 :])


async def test_an_answer_is_shown_once_with_the_hosted_tool_that_it_rests_on(store: Store) -> None:
    ran: list[dict[str, Any]] = [
        {
            "type": "code_interpreter_call",
            "id": "ci_1",
            "status": "completed",
            "container_id": "cntr_1",
            "code": "pay()",
            "outputs": [{"type": "logs", "logs": "85928"}],
        },
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "The monthly payment is 85,928 yen.", "annotations": []}],
        },
    ]
    async with open_on(store) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user("Compute the monthly payment."), *ran)
        await memory.wait_for_index()
        new = memory.conversation("new", scope=SCOPE)
        made = await new.context("What was the monthly payment?", recall=True, wire="openai.responses")
        shown = str(made.messages)
        assert (shown.count("85,928 yen"), shown.count("pay()")) == (1, 1)
        assert (await new.rebuild(made.manifest)).request == made.request
