"""What another system has written, imported over HTTP by the same routine."""

from __future__ import annotations

from pathlib import Path

from hitherto import Memory
from hitherto.importers import ImportSummary, import_file
from tests.conftest import SCOPE
from tests.importers.looked_at import written
from tests.importers.test_chatgpt import TRIP


async def test_an_export_of_chatgpt(memory: Memory, tmp_path: Path) -> None:
    file = written(tmp_path / "x", [TRIP])
    assert await import_file(memory, file, scope=SCOPE) == ImportSummary(conversations=1, messages=4)
    assert await import_file(memory, file, scope=SCOPE) == ImportSummary(skipped=1)
    chat = memory.conversation("conv-1", scope=SCOPE)
    assert [one.id for one in (await chat.transcript()).entries] == ["asks", "second", "thanks"]
    assert [(one.parent, one.text) for one in await chat.branches(1)] == [(0, "Two."), (0, "Three.")]
