"""`fork`: a conversation of its own that begins as another one does. What they have in common is erased in all, is not
digested or read for facts twice, and is in the search index once."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from dataclasses import dataclass
from io import BytesIO
from itertools import count
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import hitherto
from hitherto import Conversation, Memory, Policy, assistant, policies, user
from hitherto.core.digests.prompts import DigestTask, FactsOnlyTask
from hitherto.errors import Conflict, InvalidBatch, InvalidInput, NotFound
from hitherto.providers.scripted import Scripted
from hitherto.store.store import Store
from tests.acceptance.dialogue import says_each
from tests.acceptance.test_facts_by_default import hears
from tests.conftest import SCOPE
from tests.databases import OpenStore
from tests.engine.log.test_open_calls import calls, result
from tests.engine.turn.asking import shown
from tests.faults.waiting import until
from tests.lengths import examples, lasting
from tests.memories import open_on
from tests.postgres.asking import rows

_names = count(1)
WAITING = "select pid from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"


@pytest.fixture
async def chat(memory: Memory) -> Conversation:
    chat = memory.conversation("c", scope=SCOPE)
    await chat.append(user("Which day?"), assistant("Monday."), user("Which month?"), assistant("May."))
    return chat


async def test_a_fork_goes_on_by_itself(memory: Memory, chat: Conversation) -> None:
    await chat.configure(title="Dates", metadata={"of": 1}, policy="sliding_window")
    fork = await chat.fork(at=1, id="f")
    assert fork.id == "f"
    await fork.append(user("Which year?"))
    await chat.append(user("Thanks."))
    assert await shown(fork) == ["Which day?", "Monday.", "Which year?"]
    assert await shown(chat) == ["Which day?", "Monday.", "Which month?", "May.", "Thanks."]
    listed = {one.conversation: one for one in (await memory.conversations(scope=SCOPE)).conversations}
    assert (listed["f"].title, listed["f"].metadata, listed["f"].messages) == ("Dates", {"of": 1}, 3)
    assert (await fork.policy()).name == (await chat.policy()).name == "sliding_window"
    whole = await fork.fork()
    assert whole.id not in ("c", "f")
    assert await shown(whole) == await shown(fork)
    listed = {one.conversation: one for one in (await memory.conversations(scope=SCOPE)).conversations}
    assert listed[whole.id].said_at == listed["f"].said_at


async def test_what_was_done_behind_its_end_is_not_done_in_it(store: Store) -> None:
    async with open_on(store, model=Scripted(then=hears)) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user("Hello."), assistant("Hello!"), user("I live in Lisbon."), assistant("How nice!"))
        await chat.finish()
        await memory.wait_for_digests()
        await chat.erase(3)
        fork = await chat.fork(at=1)
        await fork.append(user("I live in Porto."), assistant("How nice!"))
        await fork.finish()
        await memory.wait_for_digests()
        assert "I live in Porto." in [one.content for one in await memory.facts(SCOPE).list()]
        assert await fork.erase(3) == 1


async def test_its_branches_are_those_of_the_messages_in_common(chat: Conversation) -> None:
    await chat.append(assistant("Tuesday."), at=0)  # 4
    await chat.append(user("Why?"))  # 5
    fork = await chat.fork(at=4)
    assert [(one.seq, one.shown) for one in await fork.branches(4)] == [(1, False), (4, True)]
    await fork.switch(1)
    assert await shown(fork) == ["Which day?", "Monday.", "Which month?", "May."]
    assert await shown(chat) == ["Which day?", "Tuesday.", "Why?"]


async def test_what_cannot_be_forked(memory: Memory, chat: Conversation) -> None:
    await chat.append(assistant("June."), at=2)
    for at in (-2, 5, 3):
        with pytest.raises(InvalidInput):
            await chat.fork(at=at)
    with pytest.raises(Conflict, match="'c' already"):
        await chat.fork(id="c")
    again = [await chat.fork(at=at, id="again") for at in (1, 1, None)]
    assert [one.id for one in again] == ["again"] * 3, "it is there, whoever asked for it"
    with pytest.raises(Conflict, match="'again' already"):
        await chat.fork(at=2, id="again")
    await again[0].append(user("Why?"))
    with pytest.raises(Conflict, match="'again' already"):
        await chat.fork(at=1, id="again")
    await again[0].delete()
    with pytest.raises(NotFound):
        await memory.conversation("none", scope=SCOPE).fork()
    assert [one.conversation for one in (await memory.conversations(scope=SCOPE)).conversations] == ["c"]
    fork = await chat.fork(at=-1)
    assert await shown(fork) == []


async def test_its_revisions_begin_with_it(chat: Conversation) -> None:
    before = await chat.head()
    fork = await chat.fork(at=1)
    first = await fork.head()
    assert before is not None
    assert first is not None
    await fork.append(user("Which year?"))
    assert len((await fork.context(at=first.rev, recall=False)).messages) == 2
    with pytest.raises(NotFound):
        await fork.context(at=before.rev)


async def test_no_model_is_asked_twice(store: Store) -> None:
    def answer(prompt: Any) -> Any:
        return hears(prompt) if isinstance(prompt.task, FactsOnlyTask) else says_each(prompt)

    model = Scripted(then=answer)
    async with open_on(store, model=model, policy=policies.rolling(threshold=4, keep_last=2)) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(*(user(f"old {number}") for number in range(6)))
        await chat.finish()
        await memory.wait_for_digests()
        asked, facts = len(model.calls), await memory.facts(SCOPE).list()
        fork = await chat.fork()
        assert (await fork.context()).request == (await chat.context()).request
        await fork.finish()
        await memory.wait_for_digests()
        assert len(model.calls) == asked
        await fork.append(*(user(f"new {number}") for number in range(6)))
        await memory.wait_for_digests()
        new = [line.seq for one in model.calls[asked:] if isinstance(one.task, DigestTask) for line in one.task.lines]
        assert new
        assert min(new) >= 4, "what the digest had covered is not told again"
        assert len(new) == len({*new})
        assert [one.id for one in await memory.facts(SCOPE).list()][: len(facts)] == [one.id for one in facts]


async def test_digests_of_a_branch_that_was_left_are_used_in_a_fork(store: Store) -> None:
    model = Scripted(then=says_each)
    async with open_on(store, model=model, policy=policies.rolling(threshold=4, keep_last=2)) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(*(user(f"The {number}th heron.") for number in range(6)))
        await memory.wait_for_digests()
        await chat.append(user("Other."), at=0)
        fork, asked = await chat.fork(), len(model.calls)
        for one in (chat, fork):
            await one.switch(5)
            await one.append(user("Another heron."))
            await memory.wait_for_digests()
            head = await one.head()
            assert head is not None
            assert head.digest is not None
        assert len(model.calls) == asked


async def test_what_is_left_to_be_read_is_not_read_in_the_fork_until_it_goes_on(store: Store) -> None:
    model = Scripted(then=hears)
    async with open_on(store, model=model, worker=False, rest_after=3_600) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user("I play the cello."), assistant("How nice!"))
        await chat.finish()
        for fork in (await chat.fork(), await chat.fork(at=0)):
            head = await fork.head()
            assert head is not None
            assert (head.finish_seq, head.facts_due_at) == (0, None)


async def test_how_much_they_have_in_common(store: Store, memory: Memory, chat: Conversation) -> None:
    """By whichever way: most of it counts."""
    first = await chat.fork(at=1, id="first")
    await first.append(user("Which year?"), assistant("2026."))
    second = await first.fork(id="second")
    third = await second.fork(at=0, id="third")
    refs: dict[str, int] = {}
    for one in (chat, first, second, third):
        async with store.write(SCOPE, one.id) as unit:
            refs[one.id] = unit.head.ref
    common = {"c": (1, 1, 0), "first": (1, 3, 0), "second": (1, 3, 0), "third": (0, 0, 0)}
    for name, ends in common.items():
        async with store.write(SCOPE, name) as unit:
            assert await unit.relatives() == dict(
                zip((ref for one, ref in refs.items() if one != name), ends, strict=True)
            )


async def test_it_is_erased_everywhere(memory: Memory, chat: Conversation) -> None:
    """From a fork of a fork, whose source is gone."""
    middle = await chat.fork(at=2, id="middle")
    fork = await middle.fork(at=1, id="fork")
    beside = await chat.fork(id="beside")
    await middle.delete()
    assert await fork.erase(1) == 1
    for one in (chat, fork, beside):
        assert [logged.seq for logged in await one.messages() if logged.erased] == [1], one
    assert await beside.erase([2, 3]) == 2
    assert [logged.seq for logged in await chat.messages() if logged.erased] == [1, 2, 3]
    assert [logged.seq for logged in await fork.messages() if logged.erased] == [1]


async def test_messages_in_common_have_their_ids(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    await chat.append(user("Which day?").with_id("m-1"), assistant("Monday.").with_id("m-2"))
    fork = await chat.fork()
    await fork.append(user("Which day?").with_id("m-1"), user("Why?").with_id("m-3"), skip_known=True)
    assert [one.message.id for one in await fork.messages()] == ["m-1", "m-2", "m-3"]
    await chat.append(user("When?").with_id("m-3"))
    assert await fork.erase("m-2") == await fork.erase("m-3") == 1
    assert [one.seq for one in await chat.messages() if one.erased] == [1], "the others are of the fork alone"


async def test_they_are_exported_and_imported(memory: Memory, database: str) -> None:
    """Also where the first message was edited, and where the source is gone."""
    chat = memory.conversation("c", scope=SCOPE)
    await chat.append(user("Which day?"), assistant("Monday."))
    await chat.append(user("Which month?"), assistant("May."), at=-1)
    for at, name in ((-1, "empty"), (2, "f"), (3, "g")):
        await chat.fork(at=at, id=name)
    await chat.delete()
    file = BytesIO()
    await memory.export_to(file, tenant=SCOPE.tenant)
    async with hitherto.open(database, worker=False) as other:
        for conversations in (3, 0):
            file.seek(0)
            done = await other.import_from(file)
            assert (done.conversations, done.refused) == (conversations, ())
        f, g = (other.conversation(name, scope=SCOPE) for name in ("f", "g"))
        assert [(one.seq, one.shown) for one in await g.branches()] == [(0, False), (2, True)]
        await f.erase(2)
        assert [one.seq for one in await g.messages() if one.erased] == [2]


LINK = re.compile(rb'"fork":\{"source":"c","messages":\d+')


@pytest.mark.parametrize("link", [b"f", b"c"], ids=["itself", "one that differs"])
async def test_an_import_makes_forks_of_nothing_else(memory: Memory, chat: Conversation, link: bytes) -> None:
    """A file may say what it likes: what is erased in a fork is no other conversation's message."""
    await chat.fork(at=1, id="f")
    file = BytesIO()
    await memory.export_to(file, tenant=SCOPE.tenant)
    text, found = LINK.subn(b'"fork":{"source":"%s","messages":2' % link, file.getvalue())
    assert found == 1
    for one in ("c", "f"):
        await memory.conversation(one, scope=SCOPE).delete()
    await chat.append(user("Something else."), user("And more."))
    await memory.import_from(BytesIO(text))
    await memory.conversation("f", scope=SCOPE).erase(0)
    assert not [one for one in await chat.messages() if one.erased]


async def test_a_fact_stays_as_long_as_one_shows_what_says_it(store: Store) -> None:
    async with open_on(store, model=Scripted(then=hears)) as memory:
        facts = memory.facts(SCOPE)

        async def current() -> int:
            return len(await facts.list())

        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user("I play the cello."), assistant("How nice!"))
        await chat.finish()
        await memory.wait_for_digests()
        fork = await chat.fork(id="f")
        await chat.rewind(to=-1)
        assert await current() == 1
        await fork.rewind(to=-1)
        assert await current() == 0
        await chat.switch(0)
        assert await current() == 1
        await fork.switch(0)
        await chat.delete()
        assert await current() == 1
        again = await fork.fork()
        await fork.delete()
        await again.erase(0)
        assert await current() == 0
        assert "cello" not in str([await facts.list(state="withdrawn"), await facts.list(state="superseded")])


async def test_facts_that_were_not_read_yet_are_read_in_a_fork(store: Store) -> None:
    async with open_on(store, model=Scripted(then=hears)) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user("I play the cello."), assistant("How nice!"))
        fork = await chat.fork()
        await chat.delete()
        await fork.finish()
        await memory.wait_for_digests()
        assert [one.content for one in await memory.facts(SCOPE).list()] == ["I play the cello."]


async def test_a_fork_takes_what_it_has_in_common_for_its_own(memory: Memory, chat: Conversation) -> None:
    fork = await chat.fork(id="f")
    await fork.append(user("Which season?"), assistant("Spring."))
    await memory.wait_for_index()
    found = await memory.recall("Which month?", scope=SCOPE, conversation="f")
    assert ("f", 2) in {(hit.conversation, hit.start) for hit in found.hits}
    context = await fork.context(user("Which month was it?"), budget=4_000, recall=True)
    assert str(context.messages).count("Which month?") == 1, "it is not recalled beside itself"
    await fork.append(assistant("June."), at=2)
    await memory.wait_for_index()
    for conversation in ("f", None):
        found = await memory.recall("May.", scope=SCOPE, conversation=conversation)
        own = [hit for hit in found.hits if hit.conversation == "f"]
        assert "May." not in {hit.text for hit in own}, "it is not shown there"


async def test_what_waits_for_the_index_is_found_where_it_is_shown(memory: Memory, chat: Conversation) -> None:
    fork = await chat.fork(id="f")

    async def found(conversation: str | None = None) -> list[str | None]:
        hits = (await memory.recall("Which month?", scope=SCOPE, conversation=conversation)).hits
        return [hit.conversation for hit in hits if hit.text == "Which month?"]

    assert (await found(), await found("f"), await found("c")) == (["c"], ["f"], ["c"])
    await chat.rewind(to=1)
    assert (await found(), await found("f"), await found("c")) == (["f"], ["f"], [])
    await chat.switch(2)
    await fork.clear()
    assert (await found(), await found("f"), await found("c")) == (["c"], [], ["c"])


@pytest.mark.parametrize("policy", [policies.rolling(threshold=4, keep_last=2), policies.chunks(threshold=4, batch=2)])
async def test_a_digest_is_found_once(store: Store, policy: Policy) -> None:
    async with open_on(store, model=Scripted(then=says_each), policy=policy) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(*(user(f"The {number}th heron.") for number in range(6)))
        await memory.wait_for_digests()
        digests = await chat.digests()
        shown = str((await chat.context(user("What of <1>?"), recall=True)).request).count("<1>")
        fork = await chat.fork(id="f")

        async def found(named: str | None) -> set[tuple[str | None, int | None]]:
            hits = (await memory.recall(digests[0].text, scope=SCOPE, conversation=named, kinds=["digest"])).hits
            assert len(hits) == len({(hit.start, hit.end) for hit in hits}), "each is found once"
            return {(hit.conversation, hit.start) for hit in hits}

        for _ in ("waiting", "indexed"):
            assert len(await found(None) & {("c", digests[0].start), ("f", digests[0].start)}) == 1
            for named in ("c", "f"):
                assert (named, digests[0].start) in await found(named)
            context = await fork.context(user("What of <1>?"), recall=True)
            assert str(context.request).count("<1>") == shown
            await memory.wait_for_index()
        await chat.delete()
        assert await found(None) == await found("f") != set()


async def test_calls_wait_for_their_results_in_a_fork(memory: Memory) -> None:
    """Also where many messages come after the call, and where it was answered behind the last one."""
    chat = memory.conversation("c", scope=SCOPE, policy="none")
    await chat.append(user("Look."), calls("a", "b"), *(user(str(number)) for number in range(300)))
    early, whole = await chat.fork(at=200), await chat.fork()
    await chat.append(result("a"))
    late = await chat.fork(at=300)
    for fork in (early, whole, late):
        await fork.append(result("a"), result("b"))
        with pytest.raises(InvalidBatch):
            await fork.append(result("b"))


async def test_calls_of_the_last_turn_are_awaited_in_a_fork(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    await chat.append(user("Look."), calls("a", "b"), result("a"), user("And?"))
    heads = [await one.head() for one in (chat, await chat.fork(), await chat.fork(at=2))]
    assert [head.awaited for head in heads if head is not None] == [((1, 1),)] * 3


async def test_what_was_to_be_forgotten_stays_hidden(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    fact = await memory.facts(SCOPE).add("Has a pelican.")
    await chat.append(user("Forget my pelican."))
    await chat.forget(fact.id)
    await chat.append(assistant("The pelican is forgotten."))
    await chat.fork(id="f")
    await memory.wait_for_index()
    await chat.delete()
    assert (await memory.recall("pelican", scope=SCOPE)).hits == ()


async def test_forgetting_counts_once_in_a_family(memory: Memory) -> None:
    chat, facts = memory.conversation("c", scope=SCOPE), memory.facts(SCOPE)
    for number in range(4):
        await chat.append(user(f"Forget my pelican {number}."))
        await chat.forget((await facts.add(f"Keeps {number} pelicans.")).id)
        await chat.append(assistant("Forgotten."))
    for _ in range(12):
        await chat.fork()
    other = memory.conversation("other", scope=SCOPE)
    await other.append(user("Forget my cat."))
    await other.forget((await facts.add("Keeps a cat.")).id)


async def test_items_in_the_place_of_a_beginning_that_was_cleared(chat: Conversation) -> None:
    await chat.clear()
    fork = await chat.fork()
    await fork.replace([{"role": "user", "content": "Instead."}])
    assert await fork.items(wire="openai.responses") == [{"role": "user", "content": "Instead."}]


async def test_a_user_who_forks_while_he_is_erased(store: Store, memory: Memory, chat: Conversation) -> None:
    """A fork is as old as what it says."""
    begun = await store.begin_erasure(tenant=SCOPE.tenant, user=SCOPE.user)
    await chat.fork()
    assert len(await store.conversations_of(begun, limit=9)) == 2


async def test_a_fact_that_is_erased_while_it_is_forked(store: OpenStore) -> None:
    async with open_on(store, model=Scripted(then=hears)) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user("I live in Lisbon."), assistant("How nice!"))
        await chat.finish()
        await memory.wait_for_digests()
        async with await psycopg.AsyncConnection.connect(store.owners_url) as connection:
            await connection.execute("delete from hitherto.fact where tenant = %s", [SCOPE.tenant])
            forking = asyncio.create_task(chat.fork())
            await until(lambda: rows(store.owners_url, WAITING), "the fork waits for the fact")
        assert await shown(await forking) == ["I live in Lisbon.", "How nice!"]


async def test_two_of_a_family_are_deleted_at_once(memory: Memory) -> None:
    for number in range(12):
        chat = memory.conversation(f"c-{number}", scope=SCOPE)
        await chat.append(user("0"), user("1"), user("2"))
        fork, other = await chat.fork(), await chat.fork(at=1)
        last = await fork.fork(at=1)
        await asyncio.gather(chat.delete(), fork.delete())
        await other.erase(0)
        assert (await last.messages())[0].erased


@dataclass(eq=False)
class Copy:
    """What a conversation would be as a copy: what is shown, by message."""

    chat: Conversation
    log: list[int]
    shown: set[int]
    cleared: int = 0

    async def digests(self) -> dict[int, tuple[int, int, str]]:
        """The digests in use: from where to which message, and what they say."""
        found = [one for one in await self.chat.digests() if one.text and one.visible_rev and one.hidden_rev is None]
        found = [one for one in found if one.end >= self.cleared]
        if found and found[0].action == "summarize":
            found = [max(found, key=lambda one: (one.end, one.id))]
        return {one.id: (one.start, self.log[one.end], one.text) for one in found}


STEPS = st.one_of(
    st.tuples(st.just("append"), st.integers(0, 9), st.integers(1, 3)),
    *(st.tuples(st.just("fork"), st.integers(0, 9), st.integers(0, 9)),) * 3,
    st.tuples(st.just("rewind"), st.integers(0, 9), st.integers(0, 9)),
    st.tuples(st.just("switch"), st.integers(0, 9), st.integers(0, 99)),
    st.tuples(st.just("clear"), st.integers(0, 9), st.just(0)),
    st.tuples(st.just("delete"), st.integers(0, 9), st.just(0)),
    st.tuples(st.just("erase"), st.integers(0, 9), st.integers(0, 99)),
)


@lasting
@pytest.mark.parametrize("policy", [policies.rolling(threshold=4, keep_last=2), policies.chunks(threshold=4, batch=2)])
@settings(
    max_examples=examples(10),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(steps=st.lists(st.tuples(STEPS, st.booleans()), min_size=3, max_size=25))
@example([(("fork", 0, 2), True), (("rewind", 0, 0), True)])
@example([(("fork", 0, 2), True), (("rewind", 0, 0), True), (("switch", 0, 2), True), (("delete", 1, 0), True)])
@example([(("fork", 0, 2), True), (("rewind", 0, 0), True), (("switch", 0, 2), True)])
@example([(("fork", 0, 0), True), (("append", 1, 3), True), (("fork", 0, 2), True), (("rewind", 0, 0), True)])
@example([(("append", 0, 2), False), (("fork", 0, 4), False), (("fork", 1, 3), False)])
@example([(("fork", 0, 0), True), (("append", 1, 3), True), (("rewind", 0, 0), True), (("delete", 0, 0), True)])
@example([(("append", 0, 3), True), (("fork", 0, 3), True), (("rewind", 0, 0), True)])
@example([(("append", 0, 3), True), (("fork", 0, 9), True), (("append", 0, 3), True), (("delete", 0, 0), True)])
@example([(("append", 0, 3), False), (("fork", 0, 5), False), (("fork", 1, 5), True), (("clear", 0, 0), True)])
@example([(("append", 0, 3), True), (("fork", 0, 5), True), (("clear", 1, 0), True), (("clear", 0, 0), True)])
@example([(("fork", 0, 0), True), (("append", 0, 3), True), (("append", 1, 3), True), (("append", 1, 2), True)])
@example([*((("append", 0, 3), True),) * 3, (("fork", 0, 3), True)])
async def test_what_is_shown_has_one_entry(
    store: OpenStore, policy: Policy, steps: list[tuple[tuple[str, int, int], bool]]
) -> None:
    """Whatever is forked, taken back, cleared, erased and deleted: as if forks were copies, of which each message and
    each digest is indexed once."""
    async with open_on(store, model=Scripted(then=says_each), policy=policy, embedder=None) as memory:
        scope, ids = SCOPE.__class__(tenant=SCOPE.tenant, user=f"forks {next(_names)}", agent="a"), count()
        chats, gone = [Copy(memory.conversation("c", scope=scope), [], set())], set[int]()
        for (step, which, what), indexes in [(("append", 0, 3), True), *steps]:
            one = chats[which % len(chats)]
            shown = sorted(seq for seq in range(one.cleared, len(one.log)) if one.log[seq] in one.shown)
            match step:
                case "append":
                    new = [next(ids) for _ in range(what)]
                    await one.chat.append(*(user(f"text {number}") for number in new))
                    one.log += new
                    one.shown |= {*new}
                case "fork" if shown:
                    at = shown[what % len(shown)]
                    made = await one.chat.fork(at=at)
                    log = one.log[: at + 1]
                    chats.append(Copy(made, log, one.shown & {*log}, one.cleared))
                case "rewind" if shown:
                    to = shown[what % len(shown)]
                    await one.chat.rewind(to=to)
                    one.shown -= {*one.log[to + 1 :]}
                case "switch" if len(one.log) > one.cleared:
                    seq = one.cleared + what % (len(one.log) - one.cleared)
                    await one.chat.switch(seq)
                    now = [logged.seq for logged in await one.chat.messages() if logged.retracted_rev is None]
                    one.shown = {one.log[seq] for seq in now}
                case "clear":
                    await one.chat.clear()
                    one.cleared = len(one.log)
                case "delete" if len(chats) > 1:
                    await one.chat.delete()
                    chats.remove(one)
                case "erase" if one.log:
                    seq = what % len(one.log)
                    await one.chat.erase(seq)
                    gone.add(one.log[seq])
                case _:
                    pass
            await memory.wait_for_digests()
            if indexes:
                await memory.wait_for_index()
        await memory.wait_for_index()
        held = await rows(
            store.owners_url,
            "select c.id, e.place, e.kind from search_entry e join conversation c on c.ref = e.origin"
            f" where c.user_id = '{scope.user}'",
        )
        used = {at: digest for one in chats for at, digest in (await one.digests()).items()}
        digests = Counter(used[row["place"]] for row in held if row["kind"] == 2)
        assert digests == Counter({*used.values()})
        held = [row for row in held if row["kind"] == 1]
        by_id = {one.chat.id: one for one in chats}
        entries = Counter(by_id[row["id"]].log[row["place"]] for row in held)
        there = {one.log[seq] for one in chats for seq in range(one.cleared, len(one.log)) if one.log[seq] in one.shown}
        assert entries == Counter(there - gone)
        for row in held:
            one = by_id[row["id"]]
            assert one.cleared <= row["place"]
            assert one.log[row["place"]] in one.shown
        for one in chats:
            for seq, logged in enumerate(await one.chat.messages()):
                assert logged.erased == (one.log[seq] in gone)
                assert logged.erased or logged.message.text == f"text {one.log[seq]}"


async def test_forks_while_it_goes_on(store: Store) -> None:
    """Two processes, as it were: each fork is the conversation as it was at one moment."""
    async with open_on(store, worker=False) as memory, open_on(store, worker=False) as other:
        chat, same = (one.conversation("c", scope=SCOPE) for one in (memory, other))
        await chat.append(user("0"))
        appending = asyncio.gather(*(chat.append(user(str(number)), assistant("ok")) for number in range(1, 9)))
        forks = await asyncio.gather(*(same.fork() for _ in range(8)))
        assert len({one.id for one in await asyncio.gather(*(same.fork(id="one") for _ in range(4)))}) == 1
        await appending
        log = [one.message.text for one in await chat.messages()]
        for fork in forks:
            texts = [one.message.text for one in await fork.messages()]
            assert texts == log[: len(texts)]
        await asyncio.gather(chat.delete(), *(fork.delete() for fork in forks[:4]), forks[5].erase(0))
        for fork in forks[4:]:
            assert (await fork.messages())[0].erased
