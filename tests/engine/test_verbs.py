"""The verbs beside append and context, and what happens around the edges of them, on both stores."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

import hitherto
from hitherto import Call, Conversation, Manifest, Memory, Policy, assistant, none, sliding_window, tool_result, user
from hitherto.core.digest import Done, Status
from hitherto.core.manifest import Fate, Reason
from hitherto.errors import (
    InvalidBatch,
    InvalidBudget,
    InvalidInput,
    InvalidMessage,
    InvalidPolicy,
    InvalidScope,
    NotFound,
    OverBudget,
)
from hitherto.models.scripted import Gate, Hang, Scripted, items
from hitherto.ports.model import Prompt
from hitherto.ports.store import Store
from tests.conftest import SCOPE


@pytest.fixture
async def memory(store: Store) -> AsyncIterator[Memory]:
    async with hitherto.open(store=store, model=Scripted(then=each)) as opened:
        yield opened


def each(prompt: Prompt) -> str:
    return items(*((f"<{line.seq}> {line.text}", [line.seq]) for line in getattr(prompt.task, "lines", ())))


async def rounds(chat: Conversation, memory: Memory, numbers: range) -> None:
    for number in numbers:
        await chat.append(user(f"question {number}"), assistant(f"answer {number}"))
        await memory.settled()


async def until_made(chat: Conversation) -> None:
    """Returns once no digest is in progress, whoever makes them."""
    async with asyncio.timeout(10):
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
    async with hitherto.open(store=store, model=Scripted([gate], then=each)) as memory:
        chat = memory.conversation("c", scope=SCOPE, policy=sliding_window(after_seq=1))
        await chat.append(user("my secret"), assistant("kept"))
        await gate.reached()
        assert await chat.clear() == 2
        gate.open()
        await memory.settled()
        rows = await chat.digests()
        assert [(row.done, row.status) for row in rows] == [
            (Done.SUMMARISE, Status.SUPERSEDED),
            (Done.CLEAR, Status.COMPLETED),
        ]
        assert all("secret" not in row.text for row in rows)
        await chat.append(user("new"), assistant("start"))
        await memory.settled()
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
    assert await memory.conversations(SCOPE) == []


async def test_delete_while_a_digest_is_made(store: Store) -> None:
    gate = Gate(each)
    async with hitherto.open(store=store, model=Scripted([gate], then=each)) as memory:
        chat = memory.conversation("c", scope=SCOPE, policy=sliding_window(after_seq=1))
        await chat.append(user("a"), assistant("b"))
        await gate.reached()
        await chat.delete()
        gate.open()
        await memory.settled()
        assert await chat.head() is None


# expiry


async def test_what_expires_is_gone_from_log_digests_and_contexts(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE, policy=sliding_window(after_seq=1))
    soon = datetime.now(UTC) + timedelta(seconds=0.4)
    secret = user("the code is 1234").with_metadata({"note": "1234"}).expiring(soon)
    await chat.append(user("hello"), assistant("hello"))
    await memory.settled()
    await chat.append(secret, assistant("I will remember it"))
    await memory.settled()
    assert "1234" in json.dumps((await chat.context(user("?"))).messages)
    await asyncio.sleep(max(0.0, (soon - datetime.now(UTC)).total_seconds()) + 0.05)

    context = await chat.context(user("?"))
    assert "1234" not in json.dumps(context.messages)
    assert (2, 2, Fate.DROPPED, Reason.EXPIRED) in spans(context)
    gone = (await chat.messages())[2]
    assert gone.erased
    assert "1234" not in f"{gone.message.raw}{gone.message.text}{gone.message.metadata}"
    assert all("1234" not in row.text and "1234" not in str(row.items) for row in await chat.digests())
    assert (await chat.digests())[-1].text == "<0> hello\n<1> hello\n<3> I will remember it"


async def test_a_statement_that_rests_partly_on_it_takes_its_digest_along(store: Store) -> None:
    async with hitherto.open(store=store, model=Scripted(["They share the code 1234."], then=each)) as memory:
        chat = memory.conversation("c", scope=SCOPE, policy=sliding_window(after_seq=1))
        soon = datetime.now(UTC) + timedelta(seconds=0.4)
        await chat.append(user("the code is 1234").expiring(soon), assistant("thanks"))
        await memory.settled()
        await asyncio.sleep(max(0.0, (soon - datetime.now(UTC)).total_seconds()) + 0.05)
        context = await chat.context(user("?"))
        assert [item["content"] for item in context.messages] == ["thanks", "?"]
        (old,) = await chat.digests()
        assert (old.status, old.text, old.items) == (Status.SUPERSEDED, "", ())
        # The next digest is made anew from what is left.
        await chat.append(user("go on"), assistant("yes"))
        await memory.settled()
        new = (await chat.digests())[-1]
        assert new.base is None
        assert new.text == "<1> thanks\n<2> go on\n<3> yes"


async def test_tidy_finds_what_nobody_reads(store: Store) -> None:
    async with hitherto.open(store=store) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user("x").expiring(datetime.now(UTC) - timedelta(days=1)))
    async with hitherto.open(store=store) as memory:
        assert (await memory.conversation("c", scope=SCOPE).messages())[0].erased


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(InvalidMessage, match="zone"):
        user("x").expiring(datetime(2030, 1, 1))


# waiting, closing


async def test_wait_gives_a_digest_that_is_in_progress_the_time_it_asks(store: Store) -> None:
    gate = Gate(each)
    async with hitherto.open(store=store, model=Scripted([gate], then=each)) as memory:
        chat = memory.conversation("c", scope=SCOPE, policy=sliding_window(after_seq=1))
        await chat.append(user("a"), assistant("b"))
        assert (await chat.context(user("?"), wait=0.05)).manifest.digest is None
        waiting = asyncio.create_task(chat.context(user("?"), wait=True))
        await gate.reached()
        gate.open()
        assert (await waiting).manifest.digest is not None


async def test_closing_hands_back_what_is_in_hand(store: Store) -> None:
    hung = Gate(Hang())
    async with hitherto.open(store=store, model=Scripted([hung]), grace=0.05) as memory:
        chat = memory.conversation("c", scope=SCOPE, policy=sliding_window(after_seq=1))
        await chat.append(user("a"), assistant("b"))
        await hung.reached()
    (row,) = await chat.digests()
    assert (row.status, row.claimed, row.error) == (Status.PROCESSING, False, None)
    assert (row.attempt, row.tries) == (2, 0), "whoever had it can write no more, and it did not count as a try"
    assert row.due_at is not None
    assert row.due_at <= datetime.now(UTC), "due at once"
    async with hitherto.open(store=store, model=Scripted(then=each), take_over_after=0.3) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await until_made(chat)
        (row,) = await chat.digests()
        assert (row.status, row.attempt, row.tries, row.text) == (Status.COMPLETED, 3, 1, "<0> a\n<1> b")
        await chat.append(user("c"), assistant("d"))
        await memory.settled()
        assert (await chat.digests())[-1].text == "<0> a\n<1> b\n<2> c\n<3> d"


# policies


async def test_the_policy_is_stored_and_the_next_one_builds_on_its_digests(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE, policy=sliding_window(window=6, after_seq=1))
    await rounds(chat, memory, range(3))
    plain = memory.conversation("c", scope=SCOPE)
    await rounds(plain, memory, range(3, 4))
    head = await plain.head()
    assert head is not None
    assert head.policy == sliding_window(window=6, after_seq=1)
    assert (await plain.digests())[-1].start == 2

    wider = memory.conversation("c", scope=SCOPE, policy=sliding_window(window=8, after_seq=1))
    await rounds(wider, memory, range(4, 5))
    last = (await wider.digests())[-1]
    assert (last.start, last.end) == (2, 9)
    assert [item.first for item in last.items] == list(range(2, 10)), "nothing was digested again"

    everything = await wider.context(user("?"), policy=none())
    assert spans(everything) == [(0, 9, Fate.IN, Reason.VERBATIM)]


async def test_the_memorys_own_policy_counts_where_there_is_none(store: Store) -> None:
    async with hitherto.open(store=store, model=Scripted(then=each), policy=sliding_window(after_seq=1)) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await rounds(chat, memory, range(1))
        assert len(await chat.digests()) == 1


@pytest.mark.parametrize("policy", [none(), sliding_window(), sliding_window(window=3, after_seq=0, limit=9)])
def test_policies_are_values(policy: Policy) -> None:
    assert Policy.from_json(json.loads(json.dumps(policy.to_json()))) == policy
    assert hash(policy) == hash(Policy.from_json(policy.to_json()))


# budgets


async def test_a_message_over_the_budget_says_by_how_much(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    with pytest.raises(OverBudget, match="more than the budget") as refused:
        await chat.context(user("word " * 500), budget=100)
    enough = 100 + refused.value.over_by
    assert (await chat.context(user("word " * 500), budget=enough)).tokens == enough
    with pytest.raises(OverBudget):
        await chat.context(user("word " * 500), budget=enough - 1)


@pytest.mark.parametrize("budget", [0, -1, True, 1.5, "many"])
async def test_a_budget_is_a_positive_number(memory: Memory, budget: object) -> None:
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
        await chat.context(user("x"), wire="morse")
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
    assert memory.conversation("c", scope=SCOPE, policy="sliding-window:window=4") is not None
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
    with pytest.raises(OverBudget):
        await chat.context(budget=50)


async def test_a_past_result_without_its_call_is_refused(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    await rounds(chat, memory, range(1))
    with pytest.raises(InvalidBatch, match="call"):
        await chat.context(tool_result("nobody", "?"), at=1)


async def test_an_unanswered_call_gets_its_placeholder_as_soon_as_anything_follows(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    await chat.append(user("look"), assistant(calls=[Call(id="x", name="look")]))
    await chat.append(assistant("I am waiting."))
    roles = [item["role"] for item in (await chat.context()).messages]
    assert roles == ["user", "assistant", "tool", "assistant"]


async def test_a_digest_of_nothing_is_a_failed_one(store: Store) -> None:
    nothing = '{"add": [], "replace": [], "drop": []}'
    async with hitherto.open(store=store, model=Scripted([nothing, nothing], then=each)) as memory:
        chat = memory.conversation("c", scope=SCOPE, policy=sliding_window(after_seq=1))
        await chat.append(user("I am Ada."), assistant("Hello, Ada."))
        await memory.settled()
        assert [row.status for row in await chat.digests()] == [Status.FAILED]
        assert (await chat.context(user("Who am I?"))).messages[0]["content"] == "I am Ada."


async def test_closing_hands_back_what_was_not_begun(store: Store) -> None:
    async with hitherto.open(store=store, model=Scripted(then=Hang()), grace=0, digests_at_once=1) as memory:
        for name in ("a", "b", "c"):
            chat = memory.conversation(name, scope=SCOPE, policy=sliding_window(after_seq=1))
            await chat.append(user("a"), assistant("b"))
    rows = [row for name in ("a", "b", "c") for row in await memory.conversation(name, scope=SCOPE).digests()]
    assert [(row.status, row.attempt, row.tries) for row in rows[1:]] == [(Status.PROCESSING, 0, 0)] * 2, "nobody's yet"
    async with hitherto.open(store=store, take_over_after=0.3) as memory:
        for name in ("a", "b", "c"):
            chat = memory.conversation(name, scope=SCOPE)
            await until_made(chat)
            (row,) = await chat.digests()
            assert (row.status, row.tries) == (Status.COMPLETED, 1)


async def test_the_counter_of_a_setting_is_rebuilt(store: Store) -> None:
    image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    async with hitherto.open(store=store, encoding="gpt-4o-mini") as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user([image]), assistant("A dog."))
        context = await chat.context(user("?"), budget=100_000)
        assert (await chat.rebuild(context.manifest)).manifest == context.manifest


@pytest.mark.parametrize("scope", [None, "acme", {"tenant": "t"}])
async def test_no_verb_without_a_scope(memory: Memory, scope: Any) -> None:
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


async def test_a_text_is_no_incoming_message(memory: Memory) -> None:
    for text in ("", "hello"):
        with pytest.raises(InvalidMessage):
            await memory.conversation("c", scope=SCOPE).context(text)  # type: ignore[arg-type] (on purpose)


async def test_the_newest_result_brings_its_call_also_without_an_incoming_message(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    await chat.append(user("q"), assistant(calls=[Call(id="c1", name="n")]))
    await chat.append(user("long " * 300), assistant("ok"), tool_result("c1", "late result"))
    messages = (await chat.context(budget=100)).messages
    assert [item["role"] for item in messages][:2] == ["assistant", "tool"]
    assert messages[0]["tool_calls"][0]["id"] == messages[1]["tool_call_id"] == "c1"


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
    for bad in ("{", "[" * 100_000):
        request = context.manifest.request.model_copy(update={"tools": [bad]})
        with pytest.raises(InvalidInput, match="manifest"):
            await chat.rebuild(context.manifest.model_copy(update={"request": request}))
        with pytest.raises(InvalidInput, match="manifest"):
            Manifest.from_json(bad)
