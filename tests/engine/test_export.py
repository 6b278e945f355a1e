"""Export and import: what is imported is what was exported, however often it is begun."""

from __future__ import annotations

import asyncio
import io
import json
import re
import sys
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

import hitherto
from hitherto import ExportReport, ImportReport, Memory, Scope, assistant, token_threshold, user
from hitherto.core.export import KINDS
from hitherto.errors import InvalidExport, InvalidInput, InvalidScope
from hitherto.providers.scripted import Scripted, ScriptedEmbedder
from hitherto.store.store import Store
from tests.acceptance.dialogue import ONE_TRY
from tests.conftest import SCOPE
from tests.engine.log.test_erase import remembers
from tests.memories import open_on

ODD: dict[str, Any] = {"note": "é", "half": "\ud800", "nul": "\0", "large": [10**40, -1, 0.1]}
ARCHIVING = token_threshold(60, keep_messages=2, archive=True, facts=True)
GOLDEN = Path(__file__).parent.parent / "recorded" / "export-1.jsonl"
OTHER = Scope(tenant=SCOPE.tenant, user="other", agent="another")


def opened(store: Store) -> Any:
    return open_on(store, model=Scripted(then=remembers), embedder=ScriptedEmbedder(), **ONE_TRY)


@pytest.fixture
async def memory(store: Store) -> AsyncIterator[Memory]:
    async with opened(store) as found:
        yield found


@pytest.fixture
async def elsewhere(database: str) -> AsyncIterator[Memory]:
    """A memory on another database, which is empty."""
    other = Store(database)
    await other.open()
    async with opened(other) as found:
        yield found
    await other.aclose()


async def exported(
    memory: Memory, *, tenant: str = SCOPE.tenant, user: str | None = None, agent: str | None = None
) -> bytes:
    file = io.BytesIO()
    await memory.export_to(file, tenant=tenant, user=user, agent=agent)
    return file.getvalue()


async def imported(memory: Memory, data: bytes) -> ImportReport:
    return await memory.import_from(io.BytesIO(data))


def told(data: bytes) -> list[dict[str, Any]]:
    """The records but the last, without what differs between two stores: ids, and when it was exported."""
    found = [json.loads(line) for line in data.splitlines()]
    # Indexing is recorded where it is done.
    found = [one for one in found[:-1] if one.get("call", {}).get("purpose") != "embed"]
    facts = {one["fact"]["fact"]["id"]: at for at, one in enumerate(found) if "fact" in one}
    for one in found:
        if "export" in one:
            del one["export"]["exported_at"]
        if "document" in one:
            del one["document"]["document"]["id"]
        if "fact" in one:
            fact = one["fact"]["fact"]
            fact["id"], by = facts[fact["id"]], fact.get("superseded_by")
            fact["superseded_by"] = None if by is None else facts[by]
    return found


async def shown(memory: Memory) -> list[tuple[Any, ...]]:
    found = (await memory.conversations(tenant=SCOPE.tenant)).conversations
    return [(one.scope, one.conversation, one.title, one.created_at, one.updated_at, one.said_at) for one in found]


async def streamed(text: str) -> AsyncIterator[dict[str, Any]]:
    yield {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}
    yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


async def fill(memory: Memory) -> None:
    """A bit of everything."""
    soon = datetime.now(UTC) + timedelta(days=9)
    for scope in (SCOPE, OTHER):
        chat = memory.conversation("c", scope=scope, policy=ARCHIVING)
        said = user("Ann likes \u2028 and \x00 <b>tuna</b>.", at=soon).with_metadata(ODD).expiring(soon)
        await chat.append(said, assistant("Noted."), key="first")
        for number in range(6):
            await chat.append(user(f"Ann likes {number}."), assistant(f"Noted {number}."), key=f"k{number}")
            await memory.wait_for_digests()
        await chat.erase([4])
        await chat.rewind(to=11)
        await chat.append(user("Ann likes tea."), assistant("Noted, tea."))
        await memory.wait_for_digests()
        await chat.configure(title="Ann", metadata={"tag": ["vip"]}, ttl=timedelta(days=3, microseconds=7), create=True)
        await memory.facts(scope).add("Sails.", category="hobby")
        run = await memory.runs(scope).begin("c", strategy="trim", start=0)
        await memory.runs(scope).add(run.id, {"kind": "tool_call", "payload": "\x00 tuna", "name": "look"})
        await memory.runs(scope).end(run.id, freed=3)
        await memory.documents(scope).add("# Boats\n\nA text on boats.", metadata={"of": "Ann"})
        second = memory.conversation("second", scope=scope, policy="trim:max_turns=3,keep_turns=1")
        await second.configure(cross_session="latest", create=True)
        for number in range(5):
            await second.append(user(f"Go {number}."), assistant("Gone."))
        cleared = memory.conversation("cleared", scope=scope)
        await cleared.append(user("Old."), assistant("Yes."))
        await cleared.clear()
        await cleared.append(user("New."))
        replaced = memory.conversation("replaced", scope=scope)
        await replaced.append(user("Old."), assistant("Yes."))
        await replaced.replace([{"role": "user", "content": "Instead."}])
    await memory.conversation("empty", scope=SCOPE).configure(title="Nothing yet", create=True)
    await memory.configure_agent(tenant=SCOPE.tenant, agent=SCOPE.agent, policy="none", ttl=timedelta(days=30))
    await memory.configure_user(tenant=SCOPE.tenant, user=SCOPE.user, time_zone="Asia/Tokyo")
    await memory.configure_tenant(tenant=SCOPE.tenant, ttl=timedelta(days=60))
    await memory.configure_subject(tenant=SCOPE.tenant, subject="boat", name="The boat", members=["u", "v"])


async def test_an_export_of_version_1(elsewhere: Memory) -> None:
    """A file that was written once, and has to be read for ever."""
    data = GOLDEN.read_bytes()
    assert {next(iter(json.loads(line))) for line in data.splitlines()} == {*KINDS}
    assert (await imported(elsewhere, data)).conversations == 9
    assert told(await exported(elsewhere)) == told(data)


async def test_what_is_imported_is_what_was_exported(memory: Memory, elsewhere: Memory) -> None:
    await fill(memory)
    data = await exported(memory)
    kinds = {next(iter(json.loads(line))) for line in data.splitlines()}
    assert kinds == {*KINDS}, "a bit of everything"
    done = await imported(elsewhere, data)
    assert (done.conversations, done.skipped, done.refused) == (9, 0, ())
    assert done.documents == data.count(b'\n{"document"') == 4
    assert done.runs == 2
    noted = next(one["message"]["message"] for one in told(data) if "message" in one)
    assert noted["metadata"] == ODD
    assert told(await exported(elsewhere)) == told(data)
    assert await shown(elsewhere) == await shown(memory)
    for name in ("c", "second", "cleared", "replaced", "empty"):
        one, other = (each.conversation(name, scope=SCOPE) for each in (memory, elsewhere))
        assert await one.messages() == await other.messages()
        assert await one.items() == await other.items()
        assert await one.injected() == await other.injected()
        head = await one.head()
        assert head is not None
        for at in range(head.rev + 1):
            assert await one.items(at=at) == await other.items(at=at)
    again = await elsewhere.conversation("c", scope=SCOPE).append(user("Ann likes 0."), assistant("Noted 0."), key="k0")
    assert again.replayed
    await elsewhere.wait_for_index()
    hits = (await elsewhere.recall("tuna boats", scope=SCOPE)).hits
    assert {"Ann likes tea."} <= {hit.text for hit in (await elsewhere.recall("tea", scope=SCOPE)).hits}
    assert any("boats" in hit.text for hit in hits)


async def test_it_goes_on_where_it_is_imported(memory: Memory, elsewhere: Memory) -> None:
    """Digests and facts go on, and erasing finds everything."""
    await fill(memory)
    await imported(elsewhere, await exported(memory))
    for each in (memory, elsewhere):
        chat = each.conversation("c", scope=SCOPE)
        for number in range(6):
            await chat.append(user(f"Ann likes boat {number}."), assistant(f"Noted boat {number}."))
            await each.wait_for_digests()
        assert await chat.erase([0, 1]) == 2
        await each.wait_for_digests()

    def same(data: bytes) -> list[Any]:
        names = ("status", "start", "end", "text")
        found = told(data)
        return [
            *([one["digest"][name] for name in names] for one in found if "digest" in one),
            *((one["fact"]["fact"]["content"], one["fact"]["fact"]["state"]) for one in found if "fact" in one),
        ]

    assert same(await exported(memory, user=SCOPE.user)) == same(await exported(elsewhere, user=SCOPE.user))


async def test_an_import_is_repeated_after_it_was_cut(memory: Memory, elsewhere: Memory) -> None:
    await fill(memory)
    data = await exported(memory)
    drawn = Random(5)
    cuts = sorted(drawn.sample(range(len(data)), 12))
    for cut in cuts:
        with pytest.raises(InvalidExport, match=r"cut off|does not begin"):
            await imported(elsewhere, data[:cut])
    done = await imported(elsewhere, data)
    assert done.refused == ()
    assert told(await exported(elsewhere)) == told(data)
    again = await imported(elsewhere, data)
    assert (again.conversations, again.messages, again.documents, again.facts, again.refused) == (0, 0, 0, 0, ())
    assert told(await exported(elsewhere)) == told(data)


async def test_another_conversation_of_that_name_is_refused(memory: Memory, elsewhere: Memory) -> None:
    await fill(memory)
    data = await exported(memory)
    await elsewhere.conversation("c", scope=SCOPE).append(user("Mine."))
    done = await imported(elsewhere, data)
    assert done.refused == (f"'c' of {SCOPE.user} with {SCOPE.agent}",)
    assert done.conversations == 8
    assert [one.message.text for one in await elsewhere.conversation("c", scope=SCOPE).messages()] == ["Mine."]
    await elsewhere.conversation("second", scope=SCOPE).append(user("More."))
    again = await imported(elsewhere, data)
    assert again.refused == done.refused, "one that has gone on is the same"


async def test_what_refers_to_a_refused_conversation_is_left_out(memory: Memory, elsewhere: Memory) -> None:
    """Nothing rests on a conversation that only has the same name, and no call is of it."""
    await fill(memory)
    await elsewhere.conversation("c", scope=SCOPE).append(user("Mine."), assistant("Yes."))
    await imported(elsewhere, await exported(memory))
    assert [one.content for one in await elsewhere.facts(SCOPE).list(state=None)] == ["Sails."]
    calls = [one["call"] for one in told(await exported(elsewhere, user=SCOPE.user)) if "call" in one]
    assert "c" not in {one["conversation"] for one in calls}


async def test_a_repeated_import_brings_nothing_back(memory: Memory) -> None:
    """Neither facts of erased messages, nor what was deleted or edited."""
    await fill(memory)
    facts = memory.facts(SCOPE)
    data = await exported(memory)
    await memory.conversation("c", scope=SCOPE).erase([0, 1, 2, 3])
    await memory.wait_for_digests()
    sails = next(one for one in await facts.list() if one.content == "Sails.")
    await facts.edit(sails.id, content="Rows.")
    learned = next(one for one in await facts.list() if not one.confirmed)
    await facts.delete(learned.id)
    before = [(one.id, one.content, one.state) for one in await facts.list(state=None)]
    (run,) = await memory.runs(SCOPE).list("c")
    done = await imported(memory, data)
    assert (done.conversations, done.facts, done.runs, done.refused) == (0, 0, 0, ())
    assert [(one.id, one.content, one.state) for one in await facts.list(state=None)] == before
    assert [one.raw for one in await memory.runs(SCOPE).events(run.id)] == [None]


async def test_what_a_run_quotes_is_not_imported_once_its_messages_are_erased(
    memory: Memory, elsewhere: Memory
) -> None:
    await fill(memory)
    before = await exported(memory)
    await memory.conversation("c", scope=SCOPE).erase([0])
    await imported(elsewhere, await exported(memory))
    (run,) = await elsewhere.runs(SCOPE).list("c")
    assert [(one.name, one.raw) for one in await elsewhere.runs(SCOPE).events(run.id)] == [("look", None)]
    lines = [line for line in before.splitlines(keepends=True) if not line.startswith((b'{"run"', b'{"event"'))]
    lines[-1] = b'{"end":{"records":%d}}\n' % (len(lines) - 1)
    async with hitherto.open("memory:") as third:
        await imported(third, b"".join(lines))
        await third.conversation("c", scope=SCOPE).erase([0])
        assert (await imported(third, before)).runs == 2
        (run,) = await third.runs(SCOPE).list("c")
        assert [(one.name, one.raw) for one in await third.runs(SCOPE).events(run.id)] == [("look", None)]


async def test_ids_of_messages_stay_known(memory: Memory, elsewhere: Memory) -> None:
    """Those of erased ones too."""
    given = [user("One.").with_id("m-1"), user("Two.").with_id("m-2")]
    await memory.conversation("ids", scope=SCOPE).append(*given)
    await memory.conversation("ids", scope=SCOPE).erase("m-1")
    data = await exported(memory)
    assert b"m-1" not in data
    await imported(elsewhere, data)
    chat = elsewhere.conversation("ids", scope=SCOPE)
    assert [one.message.id for one in await chat.messages()] == [None, "m-2"]
    found = await chat.get("m-1")
    assert found is not None
    assert found.erased
    await chat.append(*given, skip_known=True)
    assert len(await chat.messages()) == 2
    assert told(await exported(elsewhere)) == told(data)


async def test_two_imports_at_once(memory: Memory, elsewhere: Memory) -> None:
    await fill(memory)
    data = await exported(memory)
    done = await asyncio.gather(*(imported(elsewhere, data) for _ in range(3)))
    assert [one.refused for one in done] == [()] * 3
    assert sum(one.conversations for one in done) == 9
    assert told(await exported(elsewhere)) == told(data)


async def test_erased_after_it_was_imported_again(memory: Memory) -> None:
    """Also from the ledger, where the same calls are without a name already."""
    await fill(memory)
    data = await exported(memory)
    for _ in range(2):
        await memory.erase_tenant(SCOPE.tenant)
        await memory.wait_for_erasure()
        assert (await imported(memory, data)).conversations == 9
    report = await memory.erase_user(SCOPE.tenant, SCOPE.user)
    assert report.conversations == 5


async def test_dates_of_a_clock_that_was_ahead(memory: Memory, elsewhere: Memory) -> None:
    """What was made in the future was made now: an erasure finds it."""
    await memory.conversation("c", scope=SCOPE).append(user("Hello."))
    await memory.facts(SCOPE).add("Sails.")
    data = await exported(memory)
    for name in (b"created_at", b"updated_at", b"extracted_at"):
        data = re.sub(b'"%s":"2...' % name, b'"%s":"2999' % name, data)
    await imported(elsewhere, data)
    report = await elsewhere.erase_user(SCOPE.tenant, SCOPE.user)
    assert (report.conversations, report.facts) == (1, 1)


def changed(lines: list[bytes], one: bytes, other: bytes) -> list[bytes]:
    assert any(one in line for line in lines)
    return [line.replace(one, other) for line in lines]


BREAKS: dict[str, tuple[Callable[[list[bytes]], list[bytes]], str]] = {
    "nothing": (lambda lines: [], "does not begin"),
    "a transcript": (lambda lines: [b'{"role":"user","content":"Hi"}\n'], "line 1: it is no record"),
    "no JSON": (lambda lines: [lines[0], b"{\n"], "line 2: it is not JSON"),
    "deep JSON": (lambda lines: [lines[0], b"[" * 100_000 + b"\n"], "line 2: it is not JSON"),
    "no UTF-8": (lambda lines: [lines[0], b'{"\xff":1}\n'], "line 2: it is not JSON"),
    "unknown": (lambda lines: [lines[0], b'{"cat":{}}\n'], "'cat' is no kind of record"),
    "newer": (lambda lines: [lines[0].replace(b'"version":1', b'"version":2'), *lines[1:]], "of version 2"),
    "a wrong value": (lambda lines: [lines[0], b'{"message":{"seq":"x"}}\n'], "line 2: message"),
    "a message alone": (lambda lines: [lines[0], *(x for x in lines if b'{"message"' in x)], "does not come before"),
    "a message twice": (lambda lines: [y for x in lines for y in ([x] * (1 + (b'"seq":3' in x)))], "message 4 of 'c'"),
    "a message less": (lambda lines: [x for x in lines if b'"seq":13,' not in x], "message 13 of 'c' comes next"),
    "no digest": (lambda lines: [x for x in lines if b'{"digest":{"id":1,' not in x], "name others that are not there"),
    "no policy": (lambda lines: changed(lines, b'"policy":"', b'"policy":"['), "is not JSON|Expecting"),
    "no item": (lambda lines: changed(lines, b'"raw":"{', b'"raw":"['), "line"),
    "no format": (lambda lines: changed(lines, b'"wire":"openai.chat"', b'"wire":"x"'), "its format is 'x'"),
    "another role": (
        lambda lines: [x.replace(b'"role":"user","kind"', b'"role":"assistant","kind"') for x in lines],
        "^line [0-9]+: its role is 'assistant', and that of its item is 'user'",
    ),
    "an item of no API": (
        lambda lines: [re.sub(rb'"raw":"{.*?}","wire"', b'"raw":"{}","wire"', x) for x in lines],
        "^line [0-9]+: .*role",
    ),
    "an empty id": (lambda lines: changed(lines, b'"raw":', b'"id":"","raw":'), "has the id ''"),
    "an id twice": (lambda lines: changed(lines, b'"raw":"{', b'"id":"m-1","raw":"{'), "the same id|erased message"),
    "no hash of an id": (lambda lines: changed(lines, b'"erased":true', b'"erased":true,"id_hash":"z"'), "an id_hash"),
    "no zone": (lambda lines: [re.sub(rb'("created_at":"[^"Z]*)Z', rb"\1", x) for x in lines], "times have a zone"),
    "a year before all": (
        lambda lines: [x.replace(b'"created_at":"2026', b'"created_at":"0001') for x in lines],
        "years",
    ),
    "no hash": (lambda lines: changed(lines, b'"key_hash":"', b'"key_hash":"z'), "64 hexadecimal digits"),
    "a name": (lambda lines: changed(lines, b'"user":"u-17"', b'"user":""'), "non-empty"),
    "NUL": (lambda lines: changed(lines, b'"conversation":"c"', b'"conversation":"c\\u0000"'), "it has a NUL"),
    "a negative number": (lambda lines: changed(lines, b'"view_start":0', b'"view_start":-1'), "the number -1"),
    "a large number": (lambda lines: changed(lines, b'"rev":12', b'"rev":%d' % 2**63), "which nothing in an export"),
    "many attempts": (
        lambda lines: changed(lines, b'"attempt":1', b'"attempt":%d' % 2**31),
        "larger than what is kept",
    ),
    "a time of the head": (
        lambda lines: [re.sub(rb'("exported_at":"[^"Z]*)Z', rb"\1", x) for x in lines],
        "have a zone",
    ),
    "a policy of no fields": (
        lambda lines: [re.sub(rb'"policy":"(?:[^"\\]|\\.)*"', b'"policy":"[]"', x) for x in lines],
        "where a JSON object should be",
    ),
    "a ttl": (lambda lines: changed(lines, b'"ttl":null', b'"ttl":"-P1D"'), "ttl is"),
    "metadata as a text": (
        lambda lines: changed(lines, b'"metadata":{"note"', b'"metadata":"{}","x":{"note"'),
        "object",
    ),
    "metadata that is no JSON": (lambda lines: changed(lines, b'{"note":"', b'{"x":NaN,"note":"'), "metadata"),
    "metadata of a document": (lambda lines: changed(lines, b'{"of":"', b'{"x":1e999,"of":"'), "metadata"),
    "metadata of a conversation": (lambda lines: changed(lines, b'{"tag":', b'{"x":NaN,"tag":'), "metadata"),
    "half a character": (
        lambda lines: changed(lines, b'"conversation":"c"', b'"conversation":"\\ud800"'),
        "surrogates",
    ),
    "two exports": (lambda lines: [*lines, *lines], "comes after the end"),
    "an event less": (
        lambda lines: [x for x in lines if b'{"event"' not in x],
        "should have 1 events before this",
    ),
    "an event alone": (lambda lines: [x for x in lines if not x.startswith(b'{"run"')], "does not come before"),
    "an event of another number": (lambda lines: changed(lines, b'"no":0', b'"no":7'), "this is event 7; event 0"),
    "a payload too deep": (
        lambda lines: changed(lines, b'"raw":"7"', b'"raw":"' + b"[" * 101 + b"]" * 101 + b'"'),
        "nested deeper than 100 levels",
    ),
    "no payload": (lambda lines: changed(lines, b'"raw":"7"', b'"raw":"{"'), "line"),
    "records less": (lambda lines: [x for x in lines if b'{"receipt"' not in x], "records come before its end"),
}


@pytest.mark.parametrize("how", BREAKS)
async def test_what_is_no_export(store: Store, how: str) -> None:
    broken, why = BREAKS[how]
    lines = broken(GOLDEN.read_bytes().splitlines(keepends=True))
    async with opened(store) as memory:
        with pytest.raises(InvalidExport, match=why) as found:
            await imported(memory, b"".join(lines))
        assert found.value.line is not None
        there = (await memory.conversations(tenant=SCOPE.tenant)).conversations
        whole = {"records less": 9, "two exports": 9, "no hash": 0}.get(how, len(there))
        assert len(there) == whole


async def test_a_mark_of_utf_8(store: Store) -> None:
    async with opened(store) as memory:
        assert (await imported(memory, b"\xef\xbb\xbf" + GOLDEN.read_bytes())).conversations == 9


async def test_a_file_that_is_open_for_text(store: Store) -> None:
    async with opened(store) as memory:
        file: Any = io.StringIO()
        with pytest.raises(InvalidInput, match="'wb'"):
            await memory.export_to(file, tenant=SCOPE.tenant)
        with pytest.raises(InvalidInput, match="'rb'"):
            await memory.import_from(file)


async def test_what_cannot_be_exported(memory: Memory) -> None:
    for whose in ({"tenant": ""}, {"tenant": "a", "agent": "b"}, {"tenant": "a", "user": ""}):
        with pytest.raises(InvalidScope):
            await exported(memory, **whose)


async def test_progress_is_told(memory: Memory, elsewhere: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE, policy="none")
    await chat.append(*(user(f"Message {number}.") for number in range(1_200)))
    seen, file = list[ExportReport](), io.BytesIO()
    done = await memory.export_to(file, tenant=SCOPE.tenant, progress=seen.append)
    assert (done.conversations, done.messages) == (1, 1_200)
    assert len(seen) >= 2
    told_of = list[ImportReport]()
    file.seek(0)
    await elsewhere.import_from(file, progress=told_of.append)
    assert told_of[-1].messages == 1_200


async def test_no_event_loop_ends_it(memory: Memory, elsewhere: Memory) -> None:
    """`loop.shutdown_asyncgens()`, which the Agents SDK's `run_sync` calls, closes each generator that the loop has
    seen begin: an export would lack what comes after, without an error."""
    begun, hooks, package = list[Any](), sys.get_asyncgen_hooks(), Path(hitherto.__file__).parent
    sys.set_asyncgen_hooks(firstiter=begun.append)
    try:
        await fill(memory)
        await imported(elsewhere, await exported(memory))
        async with memory.conversation("c", scope=SCOPE).turn("Which?", budget=8_000) as turn:
            async for _ in turn.stream(streamed("Tuna.")):
                pass
    finally:
        sys.set_asyncgen_hooks(firstiter=hooks.firstiter)
    files = [Path(one.ag_code.co_filename) for one in begun]
    assert Path(__file__) in files, "the loop would have seen others"
    assert [one for one in files if one.is_relative_to(package)] == []
