"""Erasing messages, users and tenants: at once no verb shows any of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hitherto
from hitherto import Conversation, Memory, Scope, assistant, user
from hitherto.core.context.manifest import record_of
from hitherto.core.digests.digest import Status
from hitherto.core.digests.prompts import ArchiveTask, DigestTask
from hitherto.core.prompt import Prompt
from hitherto.engine.log.erase_scope import resume_erasures
from hitherto.errors import InvalidInput, InvalidScope, NotReproducible
from hitherto.ports.models import Completion
from hitherto.providers.scripted import Scripted, ScriptedEmbedder, items
from hitherto.store.store import Store
from tests.acceptance.dialogue import ONE_TRY, says_each
from tests.acceptance.receipts import check
from tests.conftest import SCOPE
from tests.databases import Databases
from tests.lengths import examples, lasting
from tests.memories import open_on

SECRET = "zorblax"
POLICIES = [
    "rolling:threshold=6,keep_last=2",
    "sliding_window",
    "chunks:threshold=6,batch=4,context=4,facts=false",
    "redact:trigger_turns=2,keep=1",
]
ARCHIVING = hitherto.token_threshold(60, keep_messages=2, archive=True, facts=True)
OTHER = Scope(tenant=SCOPE.tenant, user="other", agent=SCOPE.agent)


def remembers(prompt: Prompt) -> str:
    """A model that makes a statement of each message word for word, and a fact of each that has one."""
    if isinstance(prompt.task, ArchiveTask):
        summary = " ".join(line.text for line in prompt.task.lines)
        names = ("topics", "entities", "decisions", "open_questions")
        return json.dumps({"summary": summary, **{name: [] for name in names}})
    assert isinstance(prompt.task, DigestTask)
    said = [(line.text, [line.seq]) for line in prompt.task.lines]
    if prompt.task.facts is None:
        return items(*said)
    found = [
        {
            "category": "other",
            "content": text,
            "sources": seqs,
            "confidence": 1.0,
            "relation": "new",
            "known": 0,
        }
        for text, seqs in said
        if "likes" in text
    ]
    added = [{"text": text, "sources": seqs} for text, seqs in said]
    return json.dumps({"add": added, "replace": [], "drop": [], "facts": found})


@pytest.fixture
async def memory(store: Store) -> AsyncIterator[Memory]:
    model = Scripted(then=remembers)
    async with open_on(store, model=model, embedder=ScriptedEmbedder(), **ONE_TRY) as opened:
        yield opened


async def told(memory: Memory, chat: Conversation) -> str:
    """All that verbs tell of the scope, as one text."""
    scope = chat.scope
    context = await chat.context(f"What of {SECRET}?", budget=4_000, recall=True, cross_session="always")
    recalled = await memory.recall(f"{SECRET} likes", scope=scope, limit=100, all_agents=True)
    facts = await memory.facts(scope).list(state=None)
    history = [await memory.facts(scope).history(fact.id) for fact in facts]
    documents = await memory.documents(scope).list()
    page = await memory.conversations(tenant=scope.tenant)
    found: list[Any] = [
        [item for item in context.messages if "What of" not in str(item)],
        context.request.get("system"),
        [hit.text for hit in recalled.hits],
        [fact.content for fact in facts],
        history,
        [document.text for document in documents],
        [one.title for one in page.conversations],
        [one.message.raw for one in await chat.messages()],
        [(one.text, one.items, one.opaque) for one in await chat.digests()],
        await chat.items(),
        await chat.known(),
    ]
    return repr(found)


async def test_nothing_is_no_number_of_a_message(memory: Memory) -> None:
    nothing: Any = None
    with pytest.raises(InvalidInput, match="seqs is 'None'"):
        await memory.conversation("c", scope=SCOPE).erase(nothing)


async def test_at_once_no_verb_shows_it(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE, policy=ARCHIVING)
    await chat.append(user(f"My cat {SECRET} likes tuna.").with_metadata({"note": SECRET}), assistant("Noted."))
    await chat.append(*(one for n in range(4) for one in (user(f"Ann likes {n}."), assistant(f"Noted {n}."))))
    await memory.wait_for_digests()
    await memory.wait_for_index()
    assert SECRET in await told(memory, chat)
    manifest = (await chat.context("And?", budget=4_000)).manifest
    assert await chat.erase([0]) == 1
    assert SECRET not in await told(memory, chat)
    await memory.wait_for_digests()
    await memory.wait_for_index()
    after = await told(memory, chat)
    assert SECRET not in after
    assert "Ann likes 3." in after
    first = (await chat.messages())[0]
    assert (first.erased, first.seq, first.message.role.value, first.tokens > 0) == (True, 0, "user", True)
    assert await chat.erase(0) == 0
    with pytest.raises(NotReproducible):
        await chat.rebuild(manifest)


async def test_what_rests_on_others_too_is_made_anew_at_once(store: Store) -> None:
    """A summary whose statement rests on several messages is made again, without another append."""

    def all_in_one(prompt: Prompt) -> str:
        assert isinstance(prompt.task, DigestTask)
        lines = prompt.task.lines
        return items((" ".join(line.text for line in lines), [line.seq for line in lines]))

    async with open_on(store, model=Scripted(then=all_in_one), **ONE_TRY) as memory:
        chat = memory.conversation("c", scope=SCOPE, policy="rolling:threshold=4,keep_last=2")
        await chat.append(*(user(f"{SECRET if n == 1 else 'word'} {n}") for n in range(6)))
        await memory.wait_for_digests()
        (before,) = await chat.digests()
        assert SECRET in before.text
        await chat.erase([1])
        await memory.wait_for_digests()
        rows = await chat.digests()
        assert [row.status for row in rows] == [Status.SUPERSEDED, Status.COMPLETED]
        assert rows[-1].text.startswith("word 0 word 2")
        assert SECRET not in repr(rows)


async def test_confirmed_facts_go_and_those_added_by_hand_stay(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE, policy="rolling:threshold=2,keep_last=1,facts=true")
    await chat.append(user("Ann likes tea."), assistant("Noted."), user("Ann likes chess."), assistant("Noted."))
    await memory.wait_for_digests()
    facts = memory.facts(SCOPE)
    (tea, *_) = await facts.list()
    await facts.confirm(tea.id)
    await facts.add("Sails.")
    await chat.erase([0])
    assert "Ann likes tea." not in [fact.content for fact in await facts.list(state=None)]
    assert "Sails." in [fact.content for fact in await facts.list()]


async def test_what_was_superseded_before_keeps_nothing(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE, policy="rolling:threshold=4,keep_last=2")
    await chat.append(*(user(f"{SECRET} {n}") for n in range(6)))
    await memory.wait_for_digests()
    await chat.rewind(to=1)
    (row,) = await chat.digests()
    assert (row.status, SECRET in row.text) == (Status.SUPERSEDED, True)
    await chat.erase(range(6))
    assert SECRET not in repr(await chat.digests())


class Slow(Scripted):
    """Answers when it is told to."""

    def __init__(self) -> None:
        super().__init__(then=says_each)
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()

    async def complete(self, prompt: Prompt) -> Completion:
        self.begun.set()
        await self.go_on.wait()
        return await super().complete(prompt)


async def test_a_digest_in_progress_brings_nothing_back(store: Store) -> None:
    model = Slow()
    async with open_on(store, model=model, **ONE_TRY) as memory:
        chat = memory.conversation("c", scope=SCOPE, policy="rolling:threshold=4,keep_last=2")
        await chat.append(*(user(f"{n}") for n in range(6)))
        await model.begun.wait()
        await chat.erase([1])
        model.go_on.set()
        await memory.wait_for_digests()
        shown = [row.text for row in await chat.digests() if row.status is Status.COMPLETED]
        assert shown == ["<0>\n<2>\n<3>"]


async def test_a_replay_writes_nothing(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    batch = [user(SECRET), assistant("Yes.")]
    await chat.append(*batch, key="k")
    await chat.erase([0, 1])
    again = await chat.append(*batch, key="k")
    assert (again.replayed, again.start, again.end) == (True, 0, 1)
    assert SECRET not in repr(await chat.messages())


@lasting
@settings(max_examples=examples(4))
@given(st.data())
async def test_contexts_stay_whole_whatever_is_erased(databases: Databases, data: st.DataObject) -> None:
    """Every message with one fate, calls with their results, and nothing of what was erased. Of the contexts that are
    kept, none showed it, and each can be made again."""
    async with open_on(await databases.store(), model=Scripted(then=says_each), keep_contexts=50, **ONE_TRY) as memory:
        policy = data.draw(
            st.sampled_from(
                [
                    "rolling:threshold=6,keep_last=2",
                    "sliding_window",
                    "chunks:threshold=6,batch=4,context=4",
                    "redact:trigger_turns=2,keep=1",
                ]
            )
        )
        chat = memory.conversation("c", scope=SCOPE, policy=policy)
        for number in range(data.draw(st.integers(1, 8))):
            call = hitherto.Call(id=f"{number}", name="look")
            tools = [assistant(calls=[call]), hitherto.tool_result(call.id, f"found {number}")] * data.draw(
                st.booleans()
            )
            await chat.append(user(f"ask {number}"), *tools, assistant(f"answer {number}"))
            await memory.wait_for_digests()
            length = len(await chat.messages())
            await chat.erase(data.draw(st.sets(st.integers(0, length - 1), max_size=3)))
            await memory.wait_for_digests()
            context = await chat.context("And?", budget=data.draw(st.integers(200, 3_000)))
            await check(chat, context)
            erased = [one.seq for one in await chat.messages() if one.erased]
            standing = "".join(row.text for row in await chat.digests())
            assert all(f"<{seq}>" not in standing for seq in erased)
            for kept in await chat.contexts(limit=50):
                shown = record_of(kept.manifest, []).shown
                assert not any(first <= seq <= last for seq in erased for first, last in shown)
                await chat.rebuild(kept.manifest)


async def test_a_context_without_room_for_a_digest_is_made_again_once_that_is_smaller() -> None:
    async with hitherto.open("memory:", model=Scripted(then=remembers), keep_contexts=500, **ONE_TRY) as memory:
        chat = memory.conversation("c", scope=SCOPE, policy="rolling:threshold=4,keep_last=2")
        await chat.append(user("One. " * 60), assistant("Two. " * 20), *[user("Three. " * 9), assistant("Four.")] * 2)
        await memory.wait_for_digests()
        sent = [await chat.context("And?", budget=budget) for budget in range(20, 600, 5)]
        without = [made for made in sent if made.manifest.digest is None]
        assert 1 < len(without) < len(sent)
        await chat.erase([0])
        assert [kept.manifest for kept in reversed(await chat.contexts(limit=500))] == [one.manifest for one in without]
        for made in without:
            assert (await chat.rebuild(made.manifest)).request == made.request


@pytest.mark.parametrize("seqs", [[7], [-1], -1, [True], ["0"], [0.0], [0, 99]])
async def test_what_is_no_message(memory: Memory, seqs: Any) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    with pytest.raises(InvalidInput):
        await chat.erase([0])
    await chat.append(user("Hello."))
    with pytest.raises(InvalidInput):
        await chat.erase(seqs)
    assert not (await chat.messages())[0].erased


async def filled(memory: Memory, scope: Scope) -> None:
    """A user with conversations of two agents, a document, a fact by hand, facts of messages, and subjects."""
    for agent in (scope.agent, "second"):
        mine = Scope(tenant=scope.tenant, user=scope.user, agent=agent)
        chat = memory.conversation("c", scope=mine, policy="rolling:threshold=2,keep_last=1,facts=true")
        await chat.append(user(f"{scope.user} likes {SECRET}."), assistant("Noted."), user("And?"), assistant("Yes."))
        await memory.facts(mine).add(f"{scope.user} sails with {SECRET}.")
    await memory.documents(scope).add(f"# {SECRET}\n\n{scope.user} wrote this.")
    await memory.wait_for_digests()
    await memory.wait_for_index()


async def kept_of(memory: Memory, tenant: str) -> dict[str, tuple[int, int, int]]:
    page = await memory.scopes("user", tenant=tenant)
    return {one.name: (one.conversations, one.documents, one.facts) for one in page.scopes}


async def test_a_user_is_erased_with_all_agents(memory: Memory) -> None:
    await filled(memory, SCOPE)
    await filled(memory, OTHER)
    await memory.configure_subject(tenant=SCOPE.tenant, subject="boat", members=[SCOPE.user, OTHER.user])
    before = await kept_of(memory, SCOPE.tenant)
    report = await memory.erase_user(SCOPE.tenant, SCOPE.user)
    assert (report.conversations, report.messages, report.documents) == (2, 8, 1)
    assert report.facts >= 2
    assert await kept_of(memory, SCOPE.tenant) == {OTHER.user: before[OTHER.user]}
    chat = memory.conversation("c", scope=SCOPE)
    assert await chat.head() is None
    assert (await memory.recall(SECRET, scope=SCOPE, all_agents=True)).hits == ()
    assert await memory.facts(SCOPE, all_agents=True).list(state=None) == []
    assert await memory.documents(SCOPE).list() == []
    subject = await memory.subject("boat", tenant=SCOPE.tenant)
    assert subject is not None
    assert subject.members == (OTHER.user,)
    costs = {one.group: one.calls for one in await memory.costs("user", tenant=SCOPE.tenant)}
    assert SCOPE.user not in costs
    assert costs[""] > 0, "the costs stay"
    assert (await memory.recall(SECRET, scope=OTHER, all_agents=True)).hits != ()
    await chat.append(user("I am back."))
    assert len(await chat.messages()) == 1
    await memory.wait_for_erasure()
    await memory.wait_for_index()
    assert [hit.text for hit in (await memory.recall("I am back", scope=SCOPE)).hits] == ["I am back."]


async def test_a_tenant_is_erased(memory: Memory) -> None:
    elsewhere = Scope(tenant="elsewhere", user="u", agent="a")
    for scope in (SCOPE, OTHER, elsewhere):
        await filled(memory, scope)
    await memory.configure_agent(tenant=SCOPE.tenant, agent=SCOPE.agent, policy="none")
    await memory.configure_subject(tenant=SCOPE.tenant, subject="boat", members=[SCOPE.user])
    before = await kept_of(memory, "elsewhere")
    report = await memory.erase_tenant(SCOPE.tenant)
    assert report.conversations == 4
    assert [one.name for one in (await memory.scopes("tenant")).scopes] == ["elsewhere"]
    assert await kept_of(memory, "elsewhere") == before
    assert await memory.subjects(tenant=SCOPE.tenant) == []
    assert (await memory.conversation("c", scope=SCOPE).policy()).name == "balanced"
    assert SCOPE.tenant not in {one.group for one in await memory.costs("tenant")}
    assert (await memory.erase_tenant("nobody")).conversations == 0


async def test_two_erasures_at_once_and_appends_meanwhile(memory: Memory) -> None:
    for number in range(20):
        await memory.conversation(f"{number}", scope=SCOPE).append(user(SECRET))
    reports = await asyncio.gather(
        memory.erase_user(SCOPE.tenant, SCOPE.user),
        memory.erase_user(SCOPE.tenant, SCOPE.user),
        *(memory.conversation(f"{n}", scope=OTHER).append(user("Hello.")) for n in range(20)),
    )
    assert max(one.conversations for one in reports[:2]) == 20  # pyright: ignore[reportAttributeAccessIssue]
    assert list(await kept_of(memory, SCOPE.tenant)) == [OTHER.user]


async def test_a_report_has_what_a_worker_erased_of_it(memory: Memory, store: Store) -> None:
    """Workers go on with any erasure that lasts for more than a minute."""
    for number in range(20):
        await memory.conversation(f"{number}", scope=SCOPE).append(user(SECRET))
    erasing = asyncio.create_task(memory.erase_user(SCOPE.tenant, SCOPE.user))
    while not erasing.done() and not await store.erasures():  # noqa: ASYNC110
        await asyncio.sleep(0)
    await resume_erasures(store)
    report = await erasing
    assert (report.conversations, report.messages) == (20, 20)


async def test_an_erasure_that_was_cut_off_goes_on(memory: Memory, store: Store) -> None:
    """As after the end of the process in its middle: what was recorded is done later."""
    await filled(memory, SCOPE)
    await store.begin_erasure(tenant=SCOPE.tenant, user=SCOPE.user)
    await memory.conversation("new", scope=SCOPE).append(user("Said afterwards."))
    assert len(await store.erasures()) == 1
    await memory.wait_for_erasure()
    assert await store.erasures() == []
    assert await kept_of(memory, SCOPE.tenant) == {SCOPE.user: (1, 0, 0)}


async def test_who_cannot_be_erased(memory: Memory) -> None:
    cases: list[Any] = [("", "u"), ("t", ""), (None, "u"), ("t", None), ("t", 7)]
    for names in cases:
        with pytest.raises(InvalidScope):
            await memory.erase_user(*names)
        with pytest.raises(InvalidScope):
            await memory.erase_tenant("")


async def test_a_range_of_any_size_is_looked_at_and_not_listed(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    await chat.append(user(SECRET), assistant("Noted."))
    with pytest.raises(InvalidInput, match="has no message 2: its log has 0 to 1"):
        await chat.erase(range(10**15))
    assert await chat.erase(range(2)) == 2
