"""Exports: what is read is of one moment, and what is written is what was read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from uuid import UUID

import pytest

from hitherto.core.changes import Changes
from hitherto.core.digests.digest import DigestOutcome, Item
from hitherto.core.documents import NewDocument
from hitherto.core.export import ExportScope, KeptConversation, LatestRecord, UserRecord
from hitherto.core.log.conversations import Receipt
from hitherto.core.log.head import LatestDigest
from hitherto.core.log.message import Logged
from hitherto.core.run import EventKind, RunEvent, RunStatus, new_event
from hitherto.core.scope import Scope
from hitherto.errors import Conflict
from hitherto.store.store import Store
from tests.store.documents.test_documents import NOTE
from tests.store.facts.samples import new
from tests.store.ledger.test_ledger import FIRST, SECOND
from tests.store.samples import SCOPE, dialogue, fire, head_of, log_of, user, write

WHOLE = ExportScope(tenant=SCOPE.tenant, user=None, agent=None)
MINE = ExportScope(tenant=SCOPE.tenant, user=SCOPE.user, agent=SCOPE.agent)
OTHERS = [replace(SCOPE, tenant="x"), replace(SCOPE, user="x"), replace(SCOPE, agent="x")]


def document(fingerprint: str = "a") -> NewDocument:
    return replace(NOTE, fingerprint=fingerprint)


async def kept_of(store: Store, name: str, *, scope: Scope = SCOPE) -> KeptConversation:
    async with store.export.snapshot() as reader:
        found = await reader.conversation(scope, name)
        assert found is not None
        return KeptConversation(
            record=found[0],
            digests=tuple([one async for one in reader.digests(scope, name)]),
            archived=tuple([one async for one in reader.archived(scope, name)]),
            receipts=tuple([one async for one in reader.receipts(scope, name)]),
        )


async def in_two(log: Sequence[Logged]) -> AsyncIterator[Sequence[Logged]]:
    yield log[:2]
    yield log[2:]


async def digested(store: Store, name: str) -> None:
    """A conversation with a digest, a receipt, and a message that was taken back."""
    async with store.write(SCOPE, name, key="k") as unit:
        receipt = Receipt(start=0, end=0, rev=1, fingerprint="f")
        await unit.commit(Changes(head=unit.head, key="k", receipt=receipt, title="Named", metadata='{"a": [1]}'))
    await write(store, name, *dialogue(3))
    made = await fire(store, name, 0, 3)
    outcome = DigestOutcome(digest=made, items=(Item("They talk.", ((0, 3),)),), text="They talk.", tokens=3)
    await write(store, name, outcomes=[outcome])
    async with store.write(SCOPE, name) as unit:
        await unit.commit(Changes(head=replace(unit.head, rev=unit.head.rev + 1), retract=((5, 5),)))


class TestExport:
    async def test_an_imported_conversation_is_the_one_that_was_exported(self, store: Store) -> None:
        await digested(store, "c")
        kept, log = await kept_of(store, "c"), await log_of(store, "c")
        head, digests = await head_of(store, "c"), await store.digests(SCOPE, "c")
        assert [one.id for one in kept.digests] == [1]
        async with store.write(SCOPE, "c") as unit:
            await unit.delete()
        assert await store.export.restore(SCOPE.tenant, kept, in_two(log)) == len(kept.archived)
        assert await kept_of(store, "c") == kept
        assert await log_of(store, "c") == log
        after = await head_of(store, "c")
        new_id = (await store.digests(SCOPE, "c"))[0].id
        assert after.digest is not None
        assert head.digest is not None
        assert after.digest == replace(head.digest, id=new_id)
        assert (after.rev, after.sums, after.retracted) == (head.rev, head.sums, head.retracted)
        assert [replace(one, id=0) for one in await store.digests(SCOPE, "c")] == [
            replace(one, id=0) for one in digests
        ]
        receipt = await store.receipt(SCOPE, "c", "k")
        assert receipt is not None
        assert receipt.fingerprint == "f"
        past = await store.head(SCOPE, "c", at=1)
        assert past is not None
        assert (past.rev, past.retracted) == (1, ())
        await write(store, "c", user())
        assert (await log_of(store, "c"))[-1].seq == 6

    async def test_nothing_is_written_over_or_by_half(self, store: Store) -> None:
        await digested(store, "c")
        kept, log = await kept_of(store, "c"), await log_of(store, "c")
        with pytest.raises(Conflict):
            await store.export.restore(SCOPE.tenant, kept, in_two(log))
        assert await log_of(store, "c") == log

        async def broken() -> AsyncIterator[Sequence[Logged]]:
            yield log[:2]
            raise ValueError("it ends here")

        renamed = replace(kept, record=replace(kept.record, conversation="other"), receipts=())
        with pytest.raises(ValueError, match="it ends here"):
            await store.export.restore(SCOPE.tenant, renamed, broken())
        assert await store.head(SCOPE, "other") is None
        await store.export.restore(SCOPE.tenant, renamed, in_two(log))
        assert await log_of(store, "other") == log

    async def test_a_snapshot_sees_nothing_later(self, store: Store) -> None:
        await write(store, "c", *dialogue(1))
        await store.facts.add(SCOPE, "mum", new("Fences."))
        await store.documents.keep(SCOPE, document())
        async with store.export.snapshot() as reader:
            before = await reader.conversation(SCOPE, "c")
            await write(store, "c", *dialogue(1))
            await write(store, "d", *dialogue(1))
            await store.facts.add(SCOPE, "mum", new("Sails."))
            await store.documents.keep(SCOPE, document("Another."))
            assert await reader.conversation(SCOPE, "c") == before
            assert len(await reader.messages(SCOPE, "c", start=0, limit=9)) == 2
            assert [one.conversation for one in await reader.conversations(WHOLE, after=0, limit=9)] == ["c"]
            assert [one.fact.content for one in await reader.facts(WHOLE, after=0, limit=9)] == ["Fences."]
            assert len(await reader.documents(WHOLE, after=0, limit=9)) == 1

    async def test_an_export_is_of_its_scope(self, store: Store) -> None:
        for scope in (SCOPE, *OTHERS):
            await write(store, "c", *dialogue(1), scope=scope)
            await store.facts.add(scope, "mum", new(f"Of {scope}."))
            await store.documents.keep(scope, document(f"Of {scope}."))
            await store.set_user_zone(tenant=scope.tenant, user=scope.user, time_zone="Asia/Tokyo")
        async with store.export.snapshot() as reader:
            assert [one.scope for one in await reader.conversations(MINE, after=0, limit=9)] == [SCOPE]
            assert [one.fact.content for one in await reader.facts(MINE, after=0, limit=9)] == [f"Of {SCOPE}."]
            assert await reader.documents(MINE, after=0, limit=9) == []
            of_user = replace(MINE, agent=None)
            assert len(await reader.documents(of_user, after=0, limit=9)) == 2
            assert {one.scope for one in await reader.conversations(of_user, after=0, limit=9)} == {SCOPE, OTHERS[2]}
            assert [one.user for one in await reader.users(of_user, after="", limit=9)] == [SCOPE.user]
            assert [one.user for one in await reader.users(WHOLE, after=SCOPE.user, limit=9)] == ["x"]
            whole = await reader.conversations(WHOLE, after=0, limit=9)
            assert {one.scope.tenant for one in whole} == {SCOPE.tenant}
            assert len(whole) == 3
            assert await reader.conversations(WHOLE, after=whole[0].ref, limit=1) == whole[1:2]

    async def test_an_import_keeps_what_is_set_for_a_user(self, store: Store) -> None:
        for zone in ("Asia/Tokyo", "Europe/Berlin"):
            await store.export.restore_user(SCOPE.tenant, UserRecord(user=SCOPE.user, time_zone=zone))
        assert await store.zone(SCOPE) == "Asia/Tokyo"

    async def test_imported_facts_and_documents_are_there_once(self, store: Store) -> None:
        await store.facts.add(SCOPE, "mum", new("Fences."))
        await store.documents.keep(SCOPE, document())
        async with store.export.snapshot() as reader:
            facts = await reader.facts(WHOLE, after=0, limit=9)
            documents = await reader.documents(WHOLE, after=0, limit=9)
        number = facts[0].fact.id
        assert await store.export.restore_facts(SCOPE.tenant, facts) == [(number, False)]
        assert not await store.export.restore_document(SCOPE.tenant, documents[0])
        ((moved, new_there),) = await store.export.restore_facts("elsewhere", facts)
        assert new_there
        assert await store.export.restore_document("elsewhere", documents[0])
        scope = replace(SCOPE, tenant="elsewhere")
        found = await store.facts.fact(scope, moved)
        assert found == replace(facts[0].fact, id=moved)
        assert await store.facts.history(scope, moved) == facts[0].events
        (kept,) = await store.documents.documents(scope)
        assert (kept.text, kept.created_at) == (documents[0].document.text, documents[0].document.created_at)

    async def test_facts_of_many_users_are_imported_twice_at_once(self, store: Store) -> None:
        await store.facts.add(SCOPE, "mum", new("Fences."))
        async with store.export.snapshot() as reader:
            (record,) = await reader.facts(WHOLE, after=0, limit=9)
        records = [replace(record, fact=replace(record.fact, user=f"u{number}")) for number in range(50)]
        orders = (records, records[::-1])
        done = await asyncio.gather(*(store.export.restore_facts("elsewhere", order) for order in orders))
        assert sum(new_there for one in done for _, new_there in one) == len(records)

    async def test_an_imported_run_is_the_one_that_was_exported(self, store: Store) -> None:
        """Runs of conversations that are not there are left out; one that is there already stays as it is."""
        await write(store, "c", *dialogue(1))
        for scope in (SCOPE, *OTHERS):
            await store.runs.begin(scope, "never", strategy=None, injection=False)
        begun = [await store.runs.begin(SCOPE, "c", strategy="trim", injection=True) for _ in range(3)]
        events = [new_event(EventKind.TOOL_CALL, {"at": number}, name="look") for number in range(3)]
        await store.runs.add(SCOPE, begun[0].id, events)
        await store.runs.end(SCOPE, begun[0].id, status=RunStatus.FAILED, freed=3)
        async with store.export.snapshot() as reader:
            runs = await reader.runs(MINE, after=UUID(int=0), limit=9)
            assert [one.run.id for one in runs] == sorted(one.id for one in begun)
            assert runs == await reader.runs(WHOLE, after=UUID(int=0), limit=9)
            assert await reader.runs(WHOLE, after=runs[0].run.id, limit=1) == runs[1:2]
            record = next(one for one in runs if one.run.id == begun[0].id)
            read = await reader.events(SCOPE.tenant, begun[0].id, after=-1, limit=9)
            assert await reader.events(SCOPE.tenant, begun[0].id, after=0, limit=1) == read[1:2]
        assert record.run == await store.runs.run(SCOPE, begun[0].id)
        assert [one.event for one in read] == await store.runs.events(SCOPE, begun[0].id, limit=9)
        assert len(read) == 3

        async def again() -> AsyncIterator[Sequence[RunEvent]]:
            yield [one.event for one in read[:2]]
            yield [one.event for one in read[2:]]

        assert not await store.export.restore_run(SCOPE.tenant, record, again())
        async with store.write(SCOPE, "c") as unit:
            await unit.delete()
        assert await store.export.restore_run(SCOPE.tenant, record, again())
        assert await store.runs.run(SCOPE, begun[0].id) == record.run
        assert await store.runs.events(SCOPE, begun[0].id, limit=9) == [one.event for one in read]

    async def test_an_imported_call_is_the_one_that_was_exported(self, store: Store) -> None:
        await write(store, "c", *dialogue(1))
        await store.note_calls(SCOPE, None, [FIRST, SECOND])
        async with store.export.snapshot() as reader:
            calls = await reader.calls(WHOLE, after=UUID(int=0), limit=9)
        assert len(calls) == 2
        named = [replace(calls[0], conversation="c"), calls[1]]
        for _ in range(2):
            await store.export.restore_calls("elsewhere", named)
        async with store.export.snapshot() as reader:
            there = await reader.calls(replace(WHOLE, tenant="elsewhere"), after=UUID(int=0), limit=9)
            assert await reader.calls(WHOLE, after=UUID(int=0), limit=9) == calls
        assert there == calls, "no conversation of that name is there"

    async def test_the_latest_digest_is_found_by_its_number(self, store: Store) -> None:
        await digested(store, "earlier")
        made = (await store.digests(SCOPE, "earlier"))[0].id
        async with store.write(SCOPE, "c") as unit:
            await unit.commit(Changes(head=replace(unit.head, latest=LatestDigest(digest=made))))
        latest = LatestRecord(user=SCOPE.user, agent=SCOPE.agent, conversation="c", of="earlier", digest=1)
        async with store.export.snapshot() as reader:
            found = await reader.conversation(SCOPE, "c")
        assert found is not None
        assert found[1] == latest
        await write(store, "d", user())
        await store.export.restore_latest(SCOPE.tenant, replace(latest, conversation="d"))
        assert (await head_of(store, "d")).latest.digest == made
        await store.export.restore_latest(SCOPE.tenant, replace(latest, conversation="none"))
        await write(store, "e", user())
        await store.export.restore_latest(SCOPE.tenant, replace(latest, conversation="e", digest=2))
        assert (await head_of(store, "e")).latest.digest is None
