"""Lines of items: what was mended in a file that was imported, and what a memory showed in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hitherto import Memory, user
from hitherto.core.context.recalled import LEAD
from hitherto.core.plain_text import NOTE, fenced
from hitherto.importers import ImportSummary, import_file
from hitherto.importers.imported import without_echoes
from hitherto.mcp.verbs import McpVerbs
from tests.conftest import SCOPE
from tests.importers.looked_at import written

SAID = [{"role": role, "content": f"{role} {n}"} for n in range(3) for role in ("user", "assistant")]


@pytest.mark.parametrize("broken", [[1], [1, 2], [1, 4], [5]])
async def test_a_line_that_was_mended(memory: Memory, tmp_path: Path, broken: list[int]) -> None:
    """It comes with what follows it as a branch behind the message before it; at the end it is appended."""
    file, chat = written(tmp_path / "c.jsonl", SAID), memory.conversation("c", scope=SCOPE)
    lines = file.read_text().splitlines()
    file.write_text("\n".join("{cut" if n in broken else words for n, words in enumerate(lines)))
    assert (await import_file(memory, file, scope=SCOPE)).left_out == len(broken)
    shown = [one.text for one in (await chat.transcript()).entries]
    file.write_text("\n".join(lines))
    mended = await import_file(memory, file, scope=SCOPE)
    assert (mended.messages, len(mended.notes)) == (len(SAID) - broken[0], broken != [5])
    assert await import_file(memory, file, scope=SCOPE) == ImportSummary(skipped=1)
    last = [] if broken != [5] else [SAID[5]["content"]]
    assert [one.text for one in (await chat.transcript()).entries] == [*shown, *last]


@pytest.mark.parametrize("erased", [2, 3])
async def test_what_was_erased_does_not_come_back_with_what_was_mended(
    memory: Memory, tmp_path: Path, erased: int
) -> None:
    """Without ids, nothing tells the place of what was erased: what differs is left out."""
    file, chat = written(tmp_path / "c.jsonl", [*SAID[:2], *SAID[4:]]), memory.conversation("c", scope=SCOPE)
    await import_file(memory, file, scope=SCOPE)
    gone = (await chat.messages())[erased].message.text
    await chat.erase([erased])
    summary = await import_file(memory, written(file, SAID), scope=SCOPE)
    assert summary.messages == 0
    assert summary.left_out > 0
    assert gone not in [one.message.text for one in await chat.messages()]


async def test_what_was_erased_is_not_mended(memory: Memory, tmp_path: Path) -> None:
    file, chat = written(tmp_path / "c.jsonl", [SAID[0], *SAID[2:]]), memory.conversation("c", scope=SCOPE)
    await import_file(memory, file, scope=SCOPE)
    await chat.erase([2])
    summary = await import_file(memory, written(file, SAID), scope=SCOPE)
    assert (summary.messages, summary.left_out) == (0, len(SAID) - 1)


async def test_what_the_memory_showed_is_left_out(memory: Memory, tmp_path: Path) -> None:
    """The result of its tools, and what it put into a context: it is there already. The call stays."""
    await memory.conversation("keys", scope=SCOPE).append(user("The key is in the blue drawer."))
    await memory.wait_for_index()
    shown = await McpVerbs().recall(memory, SCOPE, "Where is the key?")
    assert "blue drawer" in shown
    found = json.dumps({"note": NOTE, "hits": [{"content": "blue drawer"}]})
    call = {"id": "c1", "type": "function", "function": {"name": "recall", "arguments": '{"question": "blue drawer?"}'}}
    said: list[dict[str, Any]] = [
        {"role": "user", "content": f"{fenced(LEAD, ['- the blue drawer'])}\n\nWhere is the key?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": shown},
        {"role": "assistant", "content": "It is in the drawer."},
        {"role": "assistant", "content": None, "tool_calls": [{**call, "id": "c2"}]},
        {"role": "tool", "tool_call_id": "c2", "content": found},
    ]
    await import_file(memory, written(tmp_path / "c.jsonl", said), scope=SCOPE)
    logged = [one.message.payload for one in await memory.conversation("c", scope=SCOPE).messages()]
    left_out = "[what Hitherto showed here of its memory is left out]"
    assert [one["content"] for one in logged] == [
        f"{left_out}\n\nWhere is the key?",
        None,
        left_out,
        "It is in the drawer.",
        None,
        left_out,
    ]
    assert logged[1] == said[1]


def test_what_looks_like_it_stays() -> None:
    for words in ("(End of the record; it is no request.)", LEAD, '{"note": "A record of sales."}', f"{LEAD}\n- boats"):
        assert without_echoes({"content": words}) == {"content": words}
    packed = json.dumps({"type": "text", "text": fenced(LEAD, ["- boats"])})
    quotes = {"role": "assistant", "content": f"I recall: {fenced(LEAD, ['- boats'])}"}
    assert without_echoes(quotes) == quotes
    assert "boats" not in without_echoes({"output": packed})["output"]
