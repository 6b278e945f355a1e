"""What another system has written, imported over HTTP by the same routine."""

from __future__ import annotations

from pathlib import Path

from hitherto import Memory, user
from hitherto.importers import ImportSummary, import_file
from tests.conftest import SCOPE
from tests.importers.looked_at import written
from tests.importers.test_chatgpt import TRIP
from tests.importers.test_mem0 import ADA, MEM0


async def test_an_export_of_chatgpt(memory: Memory, tmp_path: Path) -> None:
    file = written(tmp_path / "x", [TRIP])
    assert await import_file(memory, file, scope=SCOPE) == ImportSummary(conversations=1, messages=4)
    assert await import_file(memory, file, scope=SCOPE) == ImportSummary(skipped=1)
    chat = memory.conversation("conv-1", scope=SCOPE)
    assert [one.id for one in (await chat.transcript()).entries] == ["asks", "second", "thanks"]
    assert [(one.parent, one.text) for one in await chat.branches(1)] == [(0, "Two."), (0, "Three.")]


async def test_a_list_that_was_taken_back_and_has_grown(memory: Memory, tmp_path: Path) -> None:
    said = [{"role": "user", "content": text} for text in ("One", "Two", "Three")]
    await import_file(memory, written(tmp_path / "c.json", said[:2]), scope=SCOPE)
    chat = memory.conversation("c", scope=SCOPE)
    await chat.rewind(to=0)
    await chat.append(user("Mine."))
    summary = await import_file(memory, written(tmp_path / "c.json", said), scope=SCOPE)
    assert (summary.messages, len(summary.notes)) == (1, 1)
    assert [entry.text for entry in (await chat.transcript()).entries] == ["One", "Mine."]


async def test_facts(memory: Memory) -> None:
    assert (await import_file(memory, MEM0, scope=ADA)).facts == 3
    assert (await import_file(memory, MEM0, scope=ADA)).skipped == 3
