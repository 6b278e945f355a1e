"""Archiving over a whole memory: one document a digest, whatever the model does."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hitherto import Conversation, assistant, token_threshold, user
from hitherto.core.changes import Changes
from hitherto.core.digests.digest import Digest, DigestOutcome, DigestWork, Item, Status
from hitherto.core.digests.prompts import ArchiveTask, DigestTask
from hitherto.core.documents import Document
from hitherto.core.ledger import FailureCause, Purpose
from hitherto.core.prompt import Prompt
from hitherto.core.scope import Scope
from hitherto.engine.memory import Memory
from hitherto.errors import ModelRateLimited, ModelRejected, ModelUnavailable
from hitherto.ports.models import Completion
from hitherto.providers.scripted import Gate, Reply, items
from hitherto.store.store import Store
from tests.acceptance.dialogue import ONE_TRY, asks, opener, rounds
from tests.conftest import SCOPE
from tests.engine.metered import Metered, Told
from tests.memories import open_on
from tests.store.documents.test_archive import archive_of
from tests.store.samples import claimed

POLICY = token_threshold(threshold=40, keep_messages=2, archive=True)
"""Plain rounds of some 12 tokens each: it fires at the fourth, and at every third from then on."""

ANSWER = """\
## SUMMARY
They talked about tokens.
## TOPICS
tokens, time
## ENTITIES
None
## DECISIONS
- Use JWT
## QUESTIONS
None"""


def states_each(prompt: Prompt) -> str:
    """A statement a message."""
    lines = prompt.task.lines if isinstance(prompt.task, DigestTask) else ()
    return items(*((f"<{line.seq}>", [line.seq]) for line in lines))


class Archiving(Metered):
    """Makes a statement a message, and answers what it is asked for the archive with `archive`."""

    def __init__(self, archive: Reply = ANSWER) -> None:
        super().__init__(then=states_each)
        self._archive = Metered(then=archive)

    async def complete(self, prompt: Prompt) -> Completion:
        if not isinstance(prompt.task, ArchiveTask):
            return await super().complete(prompt)
        self.calls.append(prompt)
        return await self._archive.complete(prompt)


async def documents(memory: Memory, scope: Scope = SCOPE) -> list[Document]:
    """All of them, oldest first."""
    return list(reversed(await memory.documents(scope).list()))


def metadata(document: Document) -> dict[str, Any]:
    return document.metadata


def summary(document: Document) -> str:
    return document.text.partition("## Summary: ")[2]


async def completed(chat: Conversation) -> list[Digest]:
    return [row for row in await chat.digests() if row.status is Status.COMPLETED]


async def test_the_policy_may_say_how_documents_are_cut(store: Store) -> None:
    """Whatever the settings of the process are that makes them."""
    policy = token_threshold(threshold=40, keep_messages=2, archive=True, passage_tokens=16, passage_overlap=0)
    async with opener(store, policy)(Archiving(), passage_tokens=800) as (memory, chat):
        await rounds(memory, chat, range(1, 8))
        await memory.wait_for_index()
        hits = (await memory.recall("tokens JWT", scope=SCOPE, kinds={"passage"}, limit=50)).hits
        assert max(len(hit.text) for hit in hits) < min(len(one.text) for one in await documents(memory))


async def test_every_digest_has_a_document_of_what_is_new_to_it(store: Store) -> None:
    told = Told()
    model = Archiving()
    async with opener(store, POLICY)(model, watch=told) as (memory, chat):
        await rounds(memory, chat, range(1, 8))
        rows = await completed(chat)
        assert len(rows) >= 2
        found = await documents(memory)
        origins = [one.archived for one in found if one.archived is not None]
        assert [one.digest for one in origins] == [row.id for row in rows]
        assert (origins[0].start, origins[0].end) == (0, rows[0].end)
        assert [one.start for one in origins[1:]] == [one.end + 1 for one in origins[:-1]]
        assert [metadata(one)["message_count"] for one in found] == [one.end - one.start + 1 for one in origins]
        assert summary(found[0]) == "They talked about tokens."
        assert {key: metadata(found[0])[key] for key in ("session_id", "conversation_topics", "decisions_made")} == {
            "session_id": "conv_123",
            "conversation_topics": ["tokens", "time"],
            "decisions_made": ["Use JWT"],
        }
        log = await chat.messages()
        assert found[-1].said_at == log[origins[-1].end].created_at
        assert found[-1].agent == SCOPE.agent
        tasks = [prompt.task for prompt in model.calls if isinstance(prompt.task, ArchiveTask)]
        assert [line.seq for task in tasks for line in task.lines] == list(range(origins[-1].end + 1))
        assert [call.purpose for call in told.calls] == [Purpose.DIGEST, Purpose.ARCHIVE] * len(rows)
        costs = {one.group: one.calls for one in await memory.costs("purpose")}
        assert costs == {"digest": len(rows), "archive": len(rows)}


async def test_without_archive_there_is_no_call_and_no_document(store: Store) -> None:
    model = Archiving()
    policy = token_threshold(threshold=40, keep_messages=2)
    async with opener(store, policy)(model) as (memory, chat):
        await rounds(memory, chat, range(1, 6))
        assert await completed(chat)
        assert await documents(memory) == []
        assert not [prompt for prompt in model.calls if isinstance(prompt.task, ArchiveTask)]


@pytest.mark.parametrize(
    ("archive", "cause"),
    [
        pytest.param("", FailureCause.UNUSABLE, id="nothing"),
        pytest.param('{"summary": "They t', FailureCause.UNUSABLE, id="broken off"),
        pytest.param('{"add": []}', FailureCause.UNUSABLE, id="another shape"),
        pytest.param("word " * 40_000, FailureCause.UNUSABLE, id="far too long"),
        pytest.param(ModelUnavailable("no route"), FailureCause.UNREACHABLE, id="down"),
        pytest.param(ModelRateLimited("too many"), FailureCause.BUSY, id="busy"),
        pytest.param(ModelRejected("no key"), FailureCause.REFUSED, id="refused"),
        pytest.param(KeyError("ArchiveTask"), FailureCause.DEFECT, id="a model that does not know the task"),
    ],
)
async def test_a_digest_does_without_the_model(
    store: Store, archive: Reply, cause: FailureCause, caplog: pytest.LogCaptureFixture
) -> None:
    told = Told()
    with caplog.at_level(logging.WARNING, "hitherto.digest"):
        async with opener(store, POLICY)(Archiving(archive), watch=told) as (memory, chat):
            await rounds(memory, chat, range(1, 5))
            (row,) = await chat.digests()
            assert (row.status, row.error) == (Status.COMPLETED, None)
            (found,) = await documents(memory)
            assert summary(found) == row.text == "\n".join(f"<{seq}>" for seq in range(row.end + 1))
            assert metadata(found)["conversation_topics"] == metadata(found)["open_questions"] == []
            assert metadata(found)["message_count"] == row.end + 1
            assert [call.purpose for call in told.calls] == [Purpose.DIGEST, Purpose.ARCHIVE]
            assert told.calls[1].cause in (cause, None)
            assert {one.group: (one.calls, one.failed) for one in await memory.costs("purpose")} == {
                "digest": (1, 0),
                "archive": (1, 1),
            }
    assert "The archive of conv_123 is made without a model" in caplog.text


async def test_a_ceiling_that_is_reached_in_between_fails_nothing(store: Store) -> None:
    async with opener(store, POLICY)(Archiving(), daily_tokens=1_000) as (memory, chat):
        await rounds(memory, chat, range(1, 5))
        (row,) = await chat.digests()
        (found,) = await documents(memory)
        assert (row.status, summary(found)) == (Status.COMPLETED, row.text)


async def test_a_model_that_computes_archives_too(store: Store) -> None:
    async with open_on(store, model="extractive", **ONE_TRY) as memory:
        chat = memory.conversation("c", scope=SCOPE, policy=POLICY)
        for n in range(4):
            await chat.append(
                user(f"Please book the Hotel Aurora in Lisbon for the {n + 1}. of May, the budget is {n}00 euros."),
                assistant("The booking at Hotel Aurora is made, within the budget."),
            )
            await memory.wait_for_digests()
        found = (await documents(memory))[0]
        assert "Hotel Aurora" in summary(found)
        assert "Hotel Aurora" in metadata(found)["entities_mentioned"]
        assert "budget" in metadata(found)["conversation_topics"]
        assert await memory.costs() == [], "nobody was asked"


async def test_a_digest_that_another_worker_made_keeps_that_ones_document(store: Store) -> None:
    """The first is held up while it asks for the archive; the second takes the digest over and ends it."""
    gate = Gate(ANSWER)
    async with opener(store, POLICY)(Archiving(gate), digest_concurrency=1) as (memory, chat):
        for n in range(1, 5):
            await chat.append(asks(n), assistant(f"answer {n}"))
        await gate.reached()
        (row,) = await chat.digests()
        first = DigestWork(scope=SCOPE, conversation="conv_123", digest=row)
        assert await store.put_off(first, wait=timedelta(0))
        second = await claimed(store, row.id)
        theirs = replace(archive_of(row.id), title="the second's")
        outcome = DigestOutcome(
            digest=row.id, items=(Item("made", ((0, row.end),)),), text="made", tokens=1, archive=theirs
        )
        async with store.write(SCOPE, "conv_123", digest=row.id) as unit:
            assert unit.head.running[0].attempt == second.digest.attempt
            head = replace(unit.head, rev=unit.head.rev + 1)
            await unit.commit(Changes(head=head, outcomes=(outcome,)))
        gate.open()
        await memory.wait_for_digests()
        assert [one.title for one in await documents(memory)] == ["the second's"]
