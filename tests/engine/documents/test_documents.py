"""A user's documents over a whole memory: what is kept, what is refused, and who finds it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from hitherto.core import documents as core_documents
from hitherto.core.documents import LONGEST_NAMESPACE, LONGEST_TITLE, MOST_CHARACTERS
from hitherto.core.log.message import LONGEST_METADATA
from hitherto.engine.memory import Memory
from hitherto.errors import InvalidDocument, InvalidScope
from hitherto.store.store import Store
from tests.conftest import SCOPE
from tests.memories import open_on

HANDBOOK = """\
# Handbook

## Opening hours
The workshop is open from nine to five, on Saturdays from ten to one.

## Alarm
The code of the alarm is 4711, and the key hangs behind the clock.
"""


@pytest.fixture
async def memory(store: Store) -> AsyncIterator[Memory]:
    async with open_on(store, worker=False, passage_tokens=16, passage_overlap=0) as opened:
        yield opened


async def test_a_document_is_kept_cut_and_found(memory: Memory) -> None:
    documents = memory.documents(SCOPE)
    kept = await documents.add(HANDBOOK, metadata={"source": "handbook.md"})
    assert kept.new
    found = await documents.get(kept.id)
    assert found is not None
    assert (found.text, found.title, found.doc_type) == (HANDBOOK, "Handbook", "document")
    assert (found.namespace, found.agent, found.archived) == ("documents:u-17", None, None)
    assert found.metadata == {"source": "handbook.md"}
    assert found.passages > 2
    for ready in (False, True):
        if ready:
            assert await memory.wait_for_index()
        recalled = await memory.recall("what is the code of the alarm?", scope=SCOPE, limit=1)
        assert "4711" in recalled.hits[0].text
        assert recalled.hits[0].document == kept.id
    assert await documents.remove(kept.id)
    assert await documents.get(kept.id) is None
    assert not await documents.remove(kept.id)
    assert (await memory.recall("what is the code of the alarm?", scope=SCOPE, limit=1)).hits == ()


async def test_documents_are_listed_by_what_they_are(memory: Memory) -> None:
    documents = memory.documents(SCOPE)
    await documents.add("One.", title="1", doc_type="note", metadata={"tags": ["a", "b"]})
    await documents.add("Two.", title="2", doc_type="conversations", namespace="n")

    async def titles(**wanted: Any) -> list[str | None]:
        return [one.title for one in await documents.list(**wanted)]

    assert await titles() == await titles(doc_type="all") == await titles(doc_type="ALL") == ["2", "1"]
    assert await titles(doc_type="conversation") == await titles(doc_type="conversations") == ["2"]
    assert await titles(doc_type="note") == await titles(metadata={"tags": "a"}) == ["1"]
    assert await titles(namespace="n") == ["2"]
    assert await titles(limit=1) == ["2"]


async def test_text_without_marks_is_cut_as_text(memory: Memory) -> None:
    kept = await memory.documents(SCOPE).add("# not a heading, but a comment\nand a line.", markdown=False)
    found = await memory.documents(SCOPE).get(kept.id)
    assert found is not None
    assert found.title is None


async def test_what_is_no_text_is_refused(memory: Memory) -> None:
    cases: list[Any] = ["", "   \n\t ", "...", "\u200b\ufeff", "a\0b", "\ud800", b"bytes", None, 7]
    for text in cases:
        with pytest.raises(InvalidDocument, match="document"):
            await memory.documents(SCOPE).add(text)
        assert await memory.documents(SCOPE).list() == []


async def test_what_makes_no_sense_is_refused(memory: Memory) -> None:
    cases: list[tuple[Any, ...]] = [
        ({"metadata": ["a"]}, "metadata"),
        ({"metadata": "a"}, "metadata"),
        ({"metadata": {"a": float("nan")}}, "metadata"),
        ({"metadata": {"a": object()}}, "metadata"),
        ({"metadata": {("a",): 1}}, "metadata"),
        ({"metadata": {"a": "x" * LONGEST_METADATA}}, "metadata"),
        ({"namespace": "n" * (LONGEST_NAMESPACE + 1)}, "namespace"),
        ({"namespace": ""}, "namespace"),
        ({"namespace": "a\0"}, "namespace"),
        ({"title": "t" * (LONGEST_TITLE + 1)}, "title"),
        ({"title": " "}, "title"),
        ({"doc_type": ""}, "doc_type"),
        ({"doc_type": "all"}, "doc_type"),
        ({"doc_type": 7}, "doc_type"),
    ]
    for wrong, named in cases:
        with pytest.raises(InvalidDocument, match=named):
            await memory.documents(SCOPE).add("A text.", **wrong)
        assert await memory.documents(SCOPE).list() == []


async def test_metadata_that_postgresql_cannot_hold_are_kept_readable(memory: Memory) -> None:
    kept = await memory.documents(SCOPE).add("A text.", metadata={"a\0": ["\ud800", {"b": "\0"}], "n": 0.5})
    found = await memory.documents(SCOPE).get(kept.id)
    assert found is not None
    assert found.metadata == {"a\ufffd": ["\ufffd", {"b": "\ufffd"}], "n": 0.5}


async def test_ten_megabytes_are_kept(store: Store) -> None:
    async with open_on(store, worker=False) as memory:
        text = "x" * 10_000_000
        kept = await memory.documents(SCOPE).add(text)
        found = await memory.documents(SCOPE).get(kept.id)
        assert found is not None
        assert len(found.text) == len(text)
        (listed,) = await memory.documents(SCOPE).list()
        assert len(listed.text) == 1_000
        with pytest.raises(InvalidDocument, match="split"):
            await memory.documents(SCOPE).add("x" * (MOST_CHARACTERS + 1))


async def test_an_id_that_is_none_finds_nothing(memory: Memory) -> None:
    cases: list[Any] = [0, -1, 2**63, -(2**70), 999]
    for number in cases:
        assert await memory.documents(SCOPE).get(number) is None
        assert not await memory.documents(SCOPE).remove(number)


async def test_an_id_that_is_no_number_is_refused(memory: Memory) -> None:
    wrong: Any = "1"
    with pytest.raises(InvalidDocument, match="number"):
        await memory.documents(SCOPE).get(wrong)


async def test_there_is_none_without_a_scope(memory: Memory) -> None:
    nobody: Any = None
    with pytest.raises(InvalidScope):
        memory.documents(nobody)


async def test_whoever_is_cancelled_cuts_no_further(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    windows, begun, loop = list[str](), asyncio.Event(), asyncio.get_running_loop()
    split = core_documents._cut

    def watched(window: str, *given: Any, **named: Any) -> Any:
        windows.append(window)
        loop.call_soon_threadsafe(begun.set)
        return split(window, *given, **named)

    monkeypatch.setattr(core_documents, "_cut", watched)
    adding = asyncio.create_task(memory.documents(SCOPE).add(HANDBOOK * 5_000))
    await begun.wait()
    adding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await adding
    assert sum(map(len, windows)) < len(HANDBOOK) * 1_000
    assert await memory.documents(SCOPE).list() == []
