"""What mem0's `get_all` returns, imported once, whatever becomes of it here."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hitherto import Memory
from hitherto.importers import ImportSummary, import_file
from tests.conftest import SCOPE
from tests.importers.looked_at import unreadable, written

MEM0 = Path(__file__).with_name("mem0.json")
"""What mem0ai 2.2.1 returned for `get_all` of two users, in one list; of a store in which one memory was updated."""

ADA = replace(SCOPE, user="ada")


async def said(memory: Memory) -> list[str]:
    return [one.content for one in await memory.facts(ADA).list()]


async def test_facts_with_their_dates(memory: Memory) -> None:
    """In the order in which they came about; nobody has confirmed them."""
    summary = await import_file(memory, MEM0, scope=ADA)
    assert (summary.facts, summary.left_out) == (3, 1)
    facts = await memory.facts(ADA).list()
    assert [(one.content, one.category) for one in facts] == [
        ("Sails a boat.", "hobby"),
        ("I like tea.", "other"),
        ("Noted.", "other"),
    ]
    assert [one.extracted_at.isoformat() for one in facts[:1]] == ["2026-11-30T02:21:02.511946+00:00"]
    assert not any(one.confirmed for one in facts)
    assert facts[0].metadata == {"mem0": "bb334487-4e0a-4c95-9185-b8040e13bcf9"}


@pytest.mark.parametrize("recategorized", [False, True])
async def test_what_became_of_them_here_stays(memory: Memory, tmp_path: Path, recategorized: bool) -> None:
    await import_file(memory, MEM0, scope=ADA)
    facts = memory.facts(ADA)
    boat, tea, _ = await facts.list()
    await facts.delete(boat.id)
    await facts.edit(tea.id, content="Likes coffee.", category="preference" if recategorized else None)
    again = await import_file(memory, MEM0, scope=ADA)
    assert (again.facts, again.skipped, again.notes) == (0, 3, ())
    assert await said(memory) == ["Likes coffee.", "Noted."]
    assert [one.confirmed for one in await facts.list()] == [True, False]


async def test_a_fact_that_was_there_is_not_confirmed(memory: Memory, tmp_path: Path) -> None:
    await import_file(memory, written(tmp_path / "x", [{"memory": "Sails a boat"}]), scope=ADA)
    for _ in range(2):
        await import_file(memory, MEM0, scope=ADA)
    assert [one.confirmed for one in await memory.facts(ADA).list()] == [False] * 3


async def test_one_as_old_as_a_deleted_one_is_told_until_it_is_there(memory: Memory, tmp_path: Path) -> None:
    """Of what was deleted only its date is left, by which two memories may not be told apart."""
    day = "2026-05-04T00:00:00Z"
    memories = [{"id": str(n), "memory": text, "created_at": day} for n, text in enumerate(("Rows.", "Fences."))]
    await import_file(memory, written(tmp_path / "x", memories[:1]), scope=ADA)
    facts = memory.facts(ADA)
    await facts.delete((await facts.list())[0].id)
    both = written(tmp_path / "x", memories)
    summary = await import_file(memory, both, scope=ADA)
    assert (summary.facts, summary.skipped, summary.left_out) == (0, 0, 2)
    assert "memory 2: it is as old as one that was deleted here, and may be that one" in summary.unreadable[1]
    await facts.add("Fences.")
    summary = await import_file(memory, both, scope=ADA)
    assert (summary.facts, summary.skipped, summary.left_out, await said(memory)) == (0, 2, 0, ["Fences."])


async def test_what_has_changed_there_is_told(memory: Memory, tmp_path: Path) -> None:
    await import_file(memory, MEM0, scope=ADA)
    memories = json.loads(MEM0.read_text())["results"]
    memories[3] |= {"memory": "Sails two boats.", "updated_at": "2026-12-01T02:21:02.511946+00:00"}
    changed = written(tmp_path / "x", memories[1:])
    summary = await import_file(memory, changed, scope=ADA)
    assert (summary.facts, summary.skipped, len(summary.notes)) == (0, 3, 1)
    assert "memory 3: it says something else by now" in summary.notes[0]
    assert (await said(memory))[0] == "Sails a boat."


async def test_each_user_has_its_own(memory: Memory) -> None:
    """In one scope, those of others are left out; or they go to these."""
    (told,) = (await import_file(memory, MEM0, scope=ADA)).unreadable
    assert told.startswith("memory 1: it is a fact of the user 'bob', and not of 'ada'")
    summary = await import_file(memory, MEM0, scope=SCOPE, own_users=True)
    assert (summary.facts, summary.skipped, summary.left_out) == (1, 3, 0)
    assert summary.notes == ("the file names the user 'bob', to whom these facts went: 1; to see them: --user bob",)
    assert await memory.facts(SCOPE).list() == []


async def test_a_memory_without_a_text_is_told(memory: Memory, tmp_path: Path) -> None:
    file = written(tmp_path / "x", {"results": [{"id": "3", "event": "ADD"}, {"memory": "x" * 501}]})
    assert unreadable(file) == ["memory 1: it has no text in `memory`"]
    summary = await import_file(memory, file, scope=ADA)
    assert (summary.left_out, "has 501 characters" in summary.unreadable[1]) == (2, True)
    assert replace(summary, unreadable=(), left_out=0) == ImportSummary()
