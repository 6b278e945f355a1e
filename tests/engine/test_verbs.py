"""The verbs beside append and context, and what happens around the edges of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, cast

import pytest

import hitherto
from hitherto import Call, Conversation, Manifest, Memory, assistant, none, sliding_window, tool_result, user
from hitherto.core.changes import Changes
from hitherto.core.digests.digest import Status
from hitherto.core.log.append import extended
from hitherto.core.log.frontier import DigestAction
from hitherto.core.policy.policy import policy_json
from hitherto.core.policy.span import Fate, Reason
from hitherto.errors import (
    BudgetExceeded,
    InvalidBatch,
    InvalidBudget,
    InvalidInput,
    InvalidMessage,
    InvalidPolicy,
    InvalidScope,
    NotFound,
)
from hitherto.ports.models import Prompt
from hitherto.providers.scripted import Gate, Hang, Scripted, items
from hitherto.store.store import Store
from tests.conftest import SCOPE
from tests.memories import open_on
from tests.patience import PATIENCE
from tests.times import LATER_TODAY, time_of


@pytest.fixture
async def memory(store: Store) -> AsyncIterator[Memory]:
    async with open_on(store, model=Scripted(then=each)) as opened:
        yield opened


def each(prompt: Prompt) -> str:
    return items(*((f"<{line.seq}> {line.text}", [line.seq]) for line in getattr(prompt.task, "lines", ())))


async def rounds(chat: Conversation, memory: Memory, numbers: range) -> None:
    for number in numbers:
        await chat.append(user(f"question {number}"), assistant(f"answer {number}"))
        await memory.wait_for_digests()


async def until_made(chat: Conversation) -> None:
    """Returns once no digest is in progress, whoever makes them."""
    async with asyncio.timeout(PATIENCE):
        while any(row.status is Status.PROCESSING for row in await chat.digests()):  # noqa: ASYNC110 (others work)
            await asyncio.sleep(0.02)


def spans(context: hitherto.Context) -> list[tuple[int, int, Fate, Reason]]:
    return [(span.start, span.end, span.fate, span.reason) for span in context.manifest.fates]


# clear


async def test_clear_hides_messages_and_digests_and_counts_them(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE, policy=sliding_window(after_seq=1))
    await rounds(chat, memory, range(4))
    assert await chat.clear() == 8
    assert await chat.clear() == 0
    context = await chat.context(user("hello again"))
    assert [item["content"] for item in context.messages] == ["hello again"]
    assert spans(context) == [(0, 7, Fate.DROPPED, Reason.CLEARED)]
    assert len(await chat.messages()) == 8, "the log keeps them"

    # What comes after starts a chain of its own.
    await rounds(chat, memory, range(4, 6))
    last = (await chat.digests())[-1]
    assert last.base is not None
    assert (last.start, last.end) == (8, 11)
    assert all(item.first >= 8 for item in last.items)
    assert "question 3" not in json.dumps((await chat.context(user("?"))).messages)


async def test_clear_fences_a_digest_in_progress(store: Store) -> None:
    gate = Gate(each)
    async with open_on(store, model=Scripted([gate], then=each)) as memory:
        chat = memory.conversation("c", scope=SCOPE, policy=sliding_window(after_seq=1))
        await chat.append(user("my secret"), assistant("kept"))
        await gate.reached()
        assert await chat.clear() == 2
        gate.open()
        await memory.wait_for_digests()
        rows = await chat.digests()
        assert [(row.action, row.status) for row in rows] == [
            (DigestAction.SUMMARIZE, Status.SUPERSEDED),
            (DigestAction.CLEAR, Status.COMPLETED),
        ]
        assert all("secret" not in row.text for row in rows)
        await chat.append(user("new"), assistant("start"))
        await memory.wait_for_digests()
        assert (await chat.digests())[-1].status is Status.COMPLETED


async def test_a_result_to_a_cleared_call_is_refused(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    await chat.append(user("look it up"), assistant(calls=[Call(id="x", name="look")]))
    await chat.clear()
    with pytest.raises(InvalidBatch, match="'x'"):
        await chat.append(tool_result("x", "found"))


# delete


async def test_delete_erases_with_what_was_derived(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE, policy=sliding_window(after_seq=1))
    await rounds(chat, memory, range(3))
    assert await chat.delete() == 6
    assert await chat.delete() == 0
    assert await chat.head() is None
    assert await chat.messages() == []
    assert await chat.digests() == []
    assert (await memory.conversations(SCOPE)).conversations == ()


async def test_delete_while_a_digest_is_made(store: Store) -> None:
    gate = Gate(each)
    async with open_on(store, model=Scripted([gate], then=each)) as memory:
        chat = memory.conversation("c", scope=SCOPE, policy=sliding_window(after_seq=1))
        await chat.append(user("a"), assistant("b"))
        await gate.reached()
        await chat.delete()
        gate.open()
        await memory.wait_for_digests()
        assert await chat.head() is None


# expiry


async def test_what_expires_is_gone_from_log_digests_and_contexts(memory: Memory, store: Store) -> None:
    chat = memory.conversation("c", scope=SCOPE, policy=sliding_window(after_seq=1))
    later = datetime.now(UTC) + LATER_TODAY
    secret = user("the code is 1234").with_metadata({"note": "1234"}).expiring(later)
    await chat.append(user("hello"), assistant("hello"))
    await memory.wait_for_digests()
    await chat.append(secret, assistant("I will remember it"))
    await memory.wait_for_digests()
    assert "1234" in json.dumps((await chat.context(user("?"))).messages)
    await time_of(store).pass_days(1)

    context = await chat.context(user("?"))
    assert "1234" not in json.dumps(context.messages)
    assert (2, 2, Fate.DROPPED, Reason.ERASED) in spans(context)
    gone = (await chat.messages())[2]
    assert gone.erased
    assert "1234" not in f"{gone.message.raw}{gone.message.text}{gone.message.raw_metadata}"
    assert all("1234" not in row.text and "1234" not in str(row.items) for row in await chat.digests())
    assert (await chat.digests())[-1].text == "<0> hello\n<1> hello\n<3> I will remember it"


async def test_a_statement_that_rests_partly_on_it_takes_its_digest_along(store: Store) -> None:
    async with open_on(store, model=Scripted([items("They share the code 1234.")], then=each)) as memory:
        chat = memory.conversation("c", scope=SCOPE, policy=sliding_window(after_seq=1))
        later = datetime.now(UTC) + LATER_TODAY
        await chat.append(user("the code is 1234").expiring(later), assistant("thanks"))
        await memory.wait_for_digests()
        await time_of(store).pass_days(1)
        context = await chat.context(user("?"))
        assert [item["content"] for item in context.messages] == ["thanks", "?"]
        (old,) = await chat.digests()
        assert (old.status, old.text, old.items) == (Status.SUPERSEDED, "", ())
        # The next digest is made anew from what is left.
        await chat.append(user("go on"), assistant("yes"))
        await memory.wait_for_digests()
        new = (await chat.digests())[-1]
        assert new.base is None
        assert new.text == "<1> thanks\n<2> go on\n<3> yes"


async def test_tidy_finds_what_nobody_reads(store: Store) -> None:
    async with open_on(store) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user("x").expiring(datetime.now(UTC) - timedelta(days=1)))
    async with open_on(store) as memory:
        assert (await memory.conversation("c", scope=SCOPE).messages())[0].erased


LONG_PAST = datetime.now(UTC) - timedelta(days=1)


@pytest.mark.parametrize("expired", [1, 200], ids=["few", "many"])
async def test_the_newest_message_that_is_left_is_shown(memory: Memory, expired: int) -> None:
    """Without an incoming message, within a budget that cuts, however many have expired since."""
    chat = memory.conversation("c", scope=SCOPE)
    await chat.append(*(user(f"question {number} " + "why " * 20) for number in range(10)))
    await chat.append(*(user("secret " * 20).expiring(LONG_PAST) for _ in range(expired)))
    context = await chat.context(budget=100)
    assert [item["content"][:10] for item in context.messages][-1:] == ["question 9"]
    assert spans(context)[-1] == (10, 9 + expired, Fate.DROPPED, Reason.ERASED)
    assert context.tokens <= 100


async def test_reasoning_is_shown_with_the_newest_answer(memory: Memory) -> None:
    """Wherever a budget cuts, and though it is a message of its own."""
    chat = memory.conversation("c", scope=SCOPE)
    answer = [{"type": "output_text", "text": "because " * 30, "annotations": []}]
    thought = [{"type": "summary_text", "text": "Let me see. " * 2}]
    await chat.append(
        {"type": "message", "role": "user", "content": "why " * 60},
        {"type": "reasoning", "id": "rs_1", "summary": thought},
        {"type": "message", "id": "msg_1", "role": "assistant", "content": answer},
    )
    for budget in range(60, 160):
        with suppress(BudgetExceeded):
            context = await chat.context(budget=budget, wire="openai.responses")
            kinds = [item.get("type", "message") for item in context.messages]
            assert kinds[-2:] == ["reasoning", "message"], budget


async def test_a_call_is_shown_with_what_was_said_behind_it(memory: Memory) -> None:
    """Though what came after that is cut: a reasoning item is refused without what it precedes."""
    chat = memory.conversation("c", scope=SCOPE)
    said = [{"type": "output_text", "text": "One moment.", "annotations": []}]
    await chat.append(
        user("Look it up."),
        {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "message", "id": "msg_1", "role": "assistant", "content": said},
        *[{"type": "function_call", "call_id": f"b{at}", "name": "look", "arguments": "{}"} for at in range(20)],
    )
    result = {"type": "function_call_output", "call_id": "a", "output": "Done."}
    context = await chat.context(result, budget=80, wire="openai.responses")
    kinds = [item.get("type", "message") for item in context.messages]
    assert kinds[-4:] == ["function_call", "function_call_output", "reasoning", "message"]


async def test_a_clock_that_was_ahead_erases_nothing(memory: Memory, store: Store) -> None:
    """An append while the database's clock was two hours ahead: what it wrote, and what comes after it is put right,
    is there until its own time."""
    now = datetime.now(UTC)
    chat = memory.conversation("c", scope=SCOPE)
    async with store.write(SCOPE, "c") as unit:
        ahead = replace(unit.head, now=now + timedelta(hours=2))
        logged, head = extended(ahead, [user("one").expiring(now + timedelta(hours=1))], [1])
        await unit.commit(Changes(head=head, messages=logged))
    await chat.append(user("two").expiring(now + timedelta(hours=1)), user("three").expiring(now))
    await memory.purge_expired()
    log = await chat.messages()
    assert [one.erased for one in log] == [False, False, True]
    assert [one.created_at for one in log] == sorted(one.created_at for one in log)
    assert [item["content"] for item in (await chat.context(user("?"))).messages] == ["one", "two", "?"]


class Nowhere(tzinfo):
    """A zone that knows no offset: a time in it counts as one without a zone."""

    def utcoffset(self, dt: datetime | None) -> timedelta | None:
        return None

    def dst(self, dt: datetime | None) -> timedelta | None:
        return None

    def tzname(self, dt: datetime | None) -> str:
        return "nowhere"


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(InvalidMessage, match="zone"):
        user("x").expiring(datetime(2030, 1, 1))


# waiting, closing


async def test_wait_gives_a_digest_that_is_in_progress_the_time_it_asks(store: Store) -> None:
    gate = Gate(each)
    async with open_on(store, model=Scripted([gate], then=each)) as memory:
        chat = memory.conversation("c", scope=SCOPE, policy=sliding_window(after_seq=1))
        await chat.append(user("a"), assistant("b"))
        assert (await chat.context(user("?"), wait=0.05)).manifest.digest is None
        waiting = asyncio.create_task(chat.context(user("?"), wait=True))
        await gate.reached()
        gate.open()
        assert (await waiting).manifest.digest is not None


async def test_closing_hands_back_what_is_in_hand(store: Store) -> None:
    hung = Gate(Hang())
    async with open_on(store, model=Scripted([hung]), grace=0.05) as memory:
        chat = memory.conversation("c", scope=SCOPE, policy=sliding_window(after_seq=1))
        await chat.append(user("a"), assistant("b"))
        await hung.reached()
    (row,) = await chat.digests()
    assert (row.status, row.claimed, row.error) == (Status.PROCESSING, False, None)
    assert (row.attempt, row.tries) == (2, 0), "whoever had it can write no more, and it did not count as a try"
    assert row.due_at is not None
    assert row.due_at <= datetime.now(UTC), "due at once"
    async with open_on(store, model=Scripted(then=each), lease_timeout=0.3) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await until_made(chat)
        (row,) = await chat.digests()
        assert (row.status, row.attempt, row.tries, row.text) == (Status.COMPLETED, 3, 1, "<0> a\n<1> b")
        await chat.append(user("c"), assistant("d"))
        await memory.wait_for_digests()
        assert (await chat.digests())[-1].text == "<0> a\n<1> b\n<2> c\n<3> d"


# policies


async def test_the_policy_is_stored_and_the_next_one_builds_on_its_digests(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE, policy=sliding_window(window=6, after_seq=1))
    await rounds(chat, memory, range(3))
    plain = memory.conversation("c", scope=SCOPE)
    await rounds(plain, memory, range(3, 4))
    head = await plain.head()
    assert head is not None
    assert head.policy == policy_json(sliding_window(window=6, after_seq=1))
    assert (await plain.digests())[-1].start == 2

    wider = memory.conversation("c", scope=SCOPE, policy=sliding_window(window=8, after_seq=1))
    await rounds(wider, memory, range(4, 5))
    last = (await wider.digests())[-1]
    assert (last.start, last.end) == (2, 9)
    assert [item.first for item in last.items] == list(range(2, 10)), "nothing was digested again"

    everything = await wider.context(user("?"), policy=none())
    assert spans(everything) == [(0, 9, Fate.IN, Reason.VERBATIM)]


# budgets


async def test_a_refused_context_leaves_no_search_behind(memory: Memory) -> None:
    with pytest.raises(BudgetExceeded):
        await memory.conversation("c", scope=SCOPE).context(user("word " * 500), budget=100, recall=True)
    assert not [task for task in asyncio.all_tasks() if "load_search" in str(task)]


async def test_a_message_over_the_budget_says_by_how_much(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    with pytest.raises(BudgetExceeded, match="more than the budget") as refused:
        await chat.context(user("word " * 500), budget=100)
    enough = 100 + refused.value.over_by
    assert (await chat.context(user("word " * 500), budget=enough)).tokens == enough
    with pytest.raises(BudgetExceeded):
        await chat.context(user("word " * 500), budget=enough - 1)


async def test_a_budget_is_a_positive_number(memory: Memory) -> None:
    cases: list[Any] = [0, -1, True, 1.5, "many"]
    for budget in cases:
        with pytest.raises(InvalidBudget, match="budget"):
            await memory.conversation("c", scope=SCOPE).context(user("x"), budget=budget)  # type: ignore[arg-type] (on purpose)


async def test_reserve_and_tools_count(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    await rounds(chat, memory, range(40))
    tool = {"type": "function", "function": {"name": "look", "description": "d " * 50, "parameters": {}}}
    bare = await chat.context(user("?"), budget=400)
    full = await chat.context(user("?"), budget=400, tools=[tool], reserve=100, instructions="Be brief.")
    assert full.manifest.sections["tools"] > 50
    assert full.tokens + 100 <= 400
    assert full.manifest.sections["verbatim"] < bare.manifest.sections["verbatim"]
    assert full.request["tools"] == [tool]


async def test_an_incoming_tool_result_brings_its_call(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    await rounds(chat, memory, range(10))
    await chat.append(user("look"), assistant(calls=[Call(id="x", name="look"), Call(id="y", name="look")]))
    await chat.append(tool_result("x", "found x"))
    context = await chat.context(tool_result("y", "found y"), budget=140)
    assert [item["role"] for item in context.messages[-3:]] == ["assistant", "tool", "tool"]
    assert [item.get("tool_call_id") for item in context.messages[-2:]] == ["x", "y"]
    with pytest.raises(InvalidBatch, match="'z'"):
        await chat.context(tool_result("z", "?"))


async def test_a_call_without_its_result_holds_no_digest_for_ever(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE, policy=sliding_window(after_seq=1))
    await chat.append(user("look"), assistant(calls=[Call(id="x", name="look")]))
    await rounds(chat, memory, range(2))
    assert await chat.digests() == [], "an approval may be pending"
    await rounds(chat, memory, range(2, 3))
    assert [row.status for row in await chat.digests()] == [Status.COMPLETED]
    late = await chat.append(tool_result("x", "found"))
    context = await chat.context(user("?"))
    assert late.start == 8
    assert all(item["role"] != "tool" for item in context.messages), "its call is in the digest"


# other inputs


async def test_unusable_keys_manifests_revisions(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    await chat.append(user("x"))
    with pytest.raises(InvalidInput, match="key"):
        await chat.append(user("x"), key="")
    with pytest.raises(NotFound, match="revision 9"):
        await chat.context(user("x"), at=9)
    with pytest.raises(InvalidInput, match="wire format"):
        await chat.context(user("x"), wire=cast(Any, "morse"))
    other = await memory.conversation("d", scope=SCOPE).context(user("x"))
    with pytest.raises(InvalidInput, match="manifest"):
        await chat.rebuild(other.manifest)


async def test_what_cannot_be_used_is_refused_in_our_words(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    with pytest.raises(InvalidMessage, match="tool schema"):
        await chat.context(user("x"), tools=[{"type": {1, 2}}])
    with pytest.raises(InvalidMessage, match=r"user\(…\)"):
        await chat.append("hi")  # type: ignore[arg-type] (on purpose)
    for policy in ("no-such", 7):
        with pytest.raises(InvalidPolicy):
            memory.conversation("c", scope=SCOPE, policy=policy)  # type: ignore[arg-type] (on purpose)
    assert memory.conversation("c", scope=SCOPE, policy="sliding_window:window=4") is not None
    with pytest.raises(InvalidPolicy, match="no-such"):
        async with hitherto.open("memory:", policy="no-such"):
            pass


async def test_a_late_result_to_a_digested_call_says_why_it_is_not_in(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE, policy=sliding_window(after_seq=1))
    await chat.append(user("look"), assistant(calls=[Call(id="x", name="look")]))
    await rounds(chat, memory, range(3))
    await chat.append(tool_result("x", "found"))
    context = await chat.context(user("?"))
    assert spans(context)[-1] == (8, 8, Fate.DROPPED, Reason.CALL_NOT_IN)


async def test_a_manifest_without_a_model_is_rebuilt_equal(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    await rounds(chat, memory, range(2))
    for model in (None, "gpt-4o-mini", "claude-sonnet-4", "cl100k_base"):
        context = await chat.context(user("?"), model=model)
        assert (await chat.rebuild(context.manifest)).manifest == context.manifest


async def test_without_an_incoming_message_the_newest_is_never_left_out(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    await rounds(chat, memory, range(20))
    await chat.append(user("word " * 90))
    assert (await chat.context(budget=120)).messages[-1]["content"] == "word " * 90
    shorter = await chat.context(budget=80)
    assert "characters left out" in shorter.messages[-1]["content"]
    assert spans(shorter)[-1] == (40, 40, Fate.SHORTENED, Reason.QUESTION)
    with pytest.raises(BudgetExceeded, match="the newest message"):
        await chat.context(budget=30)


async def test_a_past_result_without_its_call_is_refused(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    await rounds(chat, memory, range(1))
    with pytest.raises(InvalidBatch, match="call"):
        await chat.context(tool_result("nobody", "?"), at=1)


async def test_a_digest_of_nothing_is_a_failed_one(store: Store) -> None:
    nothing = '{"add": [], "replace": [], "drop": []}'
    async with open_on(store, model=Scripted([nothing, nothing], then=each)) as memory:
        chat = memory.conversation("c", scope=SCOPE, policy=sliding_window(after_seq=1))
        await chat.append(user("I am Ada."), assistant("Hello, Ada."))
        await memory.wait_for_digests()
        assert [row.status for row in await chat.digests()] == [Status.FAILED]
        assert (await chat.context(user("Who am I?"))).messages[0]["content"] == "I am Ada."


async def test_closing_hands_back_what_was_not_begun(store: Store) -> None:
    async with open_on(store, model=Scripted(then=Hang()), grace=0, digest_concurrency=1) as memory:
        for name in ("a", "b", "c"):
            chat = memory.conversation(name, scope=SCOPE, policy=sliding_window(after_seq=1))
            await chat.append(user("a"), assistant("b"))
    rows = [row for name in ("a", "b", "c") for row in await memory.conversation(name, scope=SCOPE).digests()]
    assert [(row.status, row.attempt, row.tries) for row in rows[1:]] == [(Status.PROCESSING, 0, 0)] * 2, "nobody's yet"
    async with open_on(store, model=Scripted(then=each), lease_timeout=0.3) as memory:
        for name in ("a", "b", "c"):
            chat = memory.conversation(name, scope=SCOPE)
            await until_made(chat)
            (row,) = await chat.digests()
            assert (row.status, row.tries) == (Status.COMPLETED, 1)


async def test_the_counter_of_a_setting_is_rebuilt(store: Store) -> None:
    image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    async with open_on(store, encoding="gpt-4o-mini") as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user([image]), assistant("A dog."))
        context = await chat.context(user("?"), budget=100_000)
        assert (await chat.rebuild(context.manifest)).manifest == context.manifest


async def test_no_verb_without_a_scope(memory: Memory) -> None:
    cases: list[Any] = [None, "acme", {"tenant": "t"}]
    for scope in cases:
        with pytest.raises(InvalidScope, match="Scope"):
            memory.conversation("c", scope=scope)
        with pytest.raises(InvalidScope):
            await memory.conversations(scope)


async def test_the_same_instant_in_another_zone_is_the_same_message(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    noon = datetime(2099, 1, 1, 12, tzinfo=UTC)
    await chat.append(user("x").expiring(noon), key="k")
    elsewhere = noon.astimezone(timezone(timedelta(hours=5)))
    assert (await chat.append(user("x").expiring(elsewhere), key="k")).replayed


async def test_what_was_cleared_is_not_sent_with_a_later_call(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    await chat.append(user("my PIN is 1234"), assistant("PIN 1234", calls=[Call(id="c1", name="save")]))
    await chat.clear()
    await chat.append(assistant(calls=[Call(id="c2", name="time")]))
    assert "1234" not in json.dumps((await chat.context(tool_result("c2", "noon"))).request)


@pytest.mark.parametrize("at", [datetime.max, datetime.min])
def test_a_time_that_not_every_zone_can_say_is_refused(at: datetime) -> None:
    with pytest.raises(InvalidMessage, match="years"):
        user("x").expiring(at.replace(tzinfo=timezone(-timedelta(hours=5))))


async def test_the_first_context_is_rebuilt_and_tampered_manifests_are_refused(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    context = await chat.context(user("hi"), instructions="\ud800")
    saved = Manifest.from_json(json.dumps(context.manifest.to_json()))
    assert (await chat.rebuild(saved)).request == context.request
    for field in ("kind", "why"):
        entry = {"why": "policy", "kind": "message", "score": 1.0, "tokens": 3, field: "bogus"}
        with pytest.raises(InvalidInput, match=rf"recalled.*{field}"):
            Manifest.from_json(context.manifest.to_json() | {"recalled": [entry]})
    for bad in ("{", "[" * 100_000):
        request = context.manifest.request.model_copy(update={"tools": [bad]})
        with pytest.raises(InvalidInput, match="manifest"):
            await chat.rebuild(context.manifest.model_copy(update={"request": request}))
        with pytest.raises(InvalidInput, match="manifest"):
            Manifest.from_json(bad)
