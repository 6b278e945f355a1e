"""What a user says of himself is a fact in the next conversation, by default: it is read once enough is unread, when a
conversation is finished, and when it rests. Each message is read once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hitherto import Call, Conversation, Memory, Message, assistant, balanced, chunks, tool_result, user
from hitherto.core.changes import Changes
from hitherto.core.digests.digest import Status
from hitherto.core.digests.prompts import FactsOnlyTask
from hitherto.core.ledger import Purpose
from hitherto.core.log.frontier import DigestAction
from hitherto.core.prompt import Prompt
from hitherto.engine.digests import attempt, worker
from hitherto.errors import ModelRejected, ModelUnavailable
from hitherto.providers.extractive import Extractive
from hitherto.providers.scripted import Gate, Reply, Scripted, items
from hitherto.store.store import Store
from tests.acceptance.dialogue import ONE_TRY, says_each
from tests.conftest import SCOPE
from tests.engine.metered import Metered
from tests.memories import open_on
from tests.times import time_of

SOON: dict[str, Any] = {"lease_timeout": 12, "rest_after": 0.05}
"""Settings with which a conversation rests at once, and a worker looks for it every other second."""

LATER: dict[str, Any] = {"rest_after": 3_600}

THREE = (
    *(user("Hello, I am Ana and I play the cello."), assistant("How nice!")),
    *(user("I am a nurse in Lyon."), assistant("I see.")),
    *(user("And I am allergic to nuts."), assistant("Noted.")),
)

FACTS = [("hobby", "Plays the cello", [0]), ("occupation", "Is a nurse in Lyon", [2]), ("other", "No nuts", [4])]


def hears(prompt: Prompt) -> str:
    """A model that takes down as a fact whatever a user says."""
    if not isinstance(prompt.task, FactsOnlyTask):
        return says_each(prompt)
    said = [line for line in prompt.task.lines if line.role == "user"]
    return items(facts=[("other", line.text, [line.seq]) for line in said])


def read(model: Scripted) -> list[int]:
    """The messages that the model was asked for the facts of, call by call."""
    tasks = [prompt.task for prompt in model.calls]
    return [line.seq for task in tasks if isinstance(task, FactsOnlyTask) for line in task.lines]


async def until(there: Callable[[], Awaitable[object]]) -> None:
    """Returns when a worker has done it."""
    while not await there():  # noqa: ASYNC110 (its doing sets no event here)
        await asyncio.sleep(0.02)


async def told(memory: Memory, *messages: Message, name: str = "monday") -> Conversation:
    chat = memory.conversation(name, scope=SCOPE)
    await chat.append(*messages)
    return chat


async def known(memory: Memory) -> list[str]:
    return sorted(one.content for one in await memory.facts(SCOPE).list())


async def test_three_messages_are_facts_in_the_next_conversation(store: Store) -> None:
    model = Scripted([items(facts=FACTS)])
    async with open_on(store, model=model, **SOON) as memory:
        await told(memory, *THREE)
        await until(lambda: known(memory))
        context = await memory.conversation("friday", scope=SCOPE).context(user("Hello again."))
        shown = str(context.messages[0]["content"])
        assert [content for _, content, _ in FACTS if content not in shown] == [], context.messages
        (call,) = model.calls
        assert isinstance(call.task, FactsOnlyTask)
        (row,) = await memory.conversation("monday", scope=SCOPE).digests()
        assert (row.action, row.start, row.end, row.text, row.items) == (DigestAction.FACTS, 0, 5, "", ())
        (cost,) = await memory.costs("purpose", tenant=SCOPE.tenant)
        assert (cost.group, cost.calls) == (Purpose.FACTS, 1)


async def test_a_reading_leaves_the_instructions_as_they_are(store: Store) -> None:
    """It changes no view: what it found stands before the incoming message."""
    async with open_on(store, model=Scripted(then=hears), budget=100_000, **LATER) as memory:
        await memory.facts(SCOPE).add("Rows on the lake.", category="hobby")
        chat = await told(memory, user("Hello."), assistant("Hello."))
        before = await chat.context(user("What now?"), instructions="Be brief.")
        await chat.append(user("I have two cats."), assistant("word " * 2_000))
        await memory.wait_for_digests()
        after = await chat.context(user("What now?"), instructions="Be brief.")
        assert after.messages[0] == before.messages[0]
        assert "I have two cats." in str(after.messages[-2]["content"])


async def test_it_is_no_digest_that_anything_shows(store: Store) -> None:
    async with open_on(store, model=Scripted(then=hears), cross_session="latest", **LATER) as memory:
        chat = await told(memory, *THREE)
        head = await chat.head()
        assert await chat.finish() is not None
        await memory.wait_for_digests()
        after = await chat.head()
        assert head is not None
        assert after is not None
        (row,) = [one for one in await chat.digests() if one.action is DigestAction.FACTS]
        assert after.rev == head.rev + 1, "the summary's revision; the reading changes no view"
        assert after.digest is not None
        assert after.digest.id != row.id
        (listed,) = (await memory.conversations(SCOPE)).conversations
        assert listed.summary == after.digest.text
        next_one = await memory.conversation("friday", scope=SCOPE).context(user("Hello."))
        assert next_one.manifest.injected is None or next_one.manifest.injected.digest != row.id


async def test_once_enough_is_unread(store: Store) -> None:
    model = Scripted(then=hears)
    async with open_on(store, model=model, budget=100_000, **LATER) as memory:
        chat = memory.conversation("monday", scope=SCOPE)
        number = 0
        while not await chat.digests():
            await chat.append(user(f"I like the number {number}. " + "word " * 90), assistant("Good."))
            number += 1
        await memory.wait_for_digests()
        tokens = [one.tokens for one in await chat.messages()]
        assert sum(tokens) > 2_000 >= sum(tokens[:-2])
        assert read(model) == [*range(2 * number)]
        assert len(await known(memory)) == number


async def test_what_rested_meanwhile_is_found_by_the_next_process(store: Store) -> None:
    model = Scripted(then=hears)
    async with open_on(store, model=model, worker=False, rest_after=0.01) as memory:
        await told(memory, *THREE)
    async with open_on(store, model=model, **SOON) as memory:
        await until(lambda: known(memory))
    assert read(model) == [*range(6)]


async def test_two_workers_read_it_once(store: Store) -> None:
    model = Scripted(then=hears)
    async with open_on(store, model=model, **SOON) as one, open_on(store, model=model, **SOON) as other:
        for number in range(6):
            await told((one, other)[number % 2], user(f"I am number {number}."), assistant("Yes."), name=f"c{number}")

        async def all_known() -> bool:
            return len(await known(one)) == 6

        await until(all_known)
        await one.wait_for_digests()
        await other.wait_for_digests()
    assert sorted(read(model)) == [0] * 6 + [1] * 6


async def test_each_message_is_read_once_whatever_it_is_read_for(store: Store) -> None:
    model = Scripted(then=hears)
    async with open_on(store, model=model, **SOON) as memory:
        chat = await told(memory, *THREE)
        await until(lambda: known(memory))
        await chat.append(user("I live in Porto."), assistant("Oh."))
        await chat.finish()
        await memory.wait_for_digests()
        await chat.configure(policy=chunks(threshold=2, batch=2, context=2), create=True)
        await chat.configure(policy=balanced(), create=True)
        await chat.append(*(user("I collect stamps. " + "word " * 1_500), assistant("Fine.")))
        await memory.wait_for_digests()
        await chat.finish()
        await memory.wait_for_digests()
    assert read(model) == [*range(10)]


async def test_what_the_assistant_and_tools_say_alone_is_not_read(store: Store) -> None:
    model = Scripted(then=hears)
    async with open_on(store, model=model, **SOON) as memory:
        chat = await told(memory, *THREE)
        await until(lambda: known(memory))
        await chat.append(assistant("By the way, Ana: it rains."))
        assert (head := await chat.head()) is not None
        assert head.facts_due_at is None
        await chat.finish()
        await memory.wait_for_digests()
    assert read(model) == [*range(6)]


async def test_calls_and_results_are_not_shown(store: Store) -> None:
    model = Scripted(then=hears)
    async with open_on(store, model=model, **LATER) as memory:
        call = assistant(calls=[Call(id="1", name="look", arguments="{}")])
        chat = await told(memory, user("I row. What is the weather?"), call, tool_result("1", "Rain " * 9_000))
        await chat.append(assistant("It rains."))
        assert {one.action for one in await chat.digests()} == {DigestAction.REDACT}, "results do not count as unread"
        await chat.finish()
        await memory.wait_for_digests()
    assert read(model) == [0, 3]


@pytest.mark.parametrize("off", [{"facts": False}, {"policy": "balanced:facts=false"}, {"model_output": "text"}])
async def test_it_is_switched_off(store: Store, off: dict[str, Any]) -> None:
    model = Scripted(then="They talk.") if "model_output" in off else Scripted(then=hears)
    async with open_on(store, model=model, **SOON, **off) as memory:
        chat = await told(memory, *THREE)
        assert (head := await chat.head()) is not None
        assert head.facts_due_at is None
        await chat.finish()
        await memory.wait_for_digests()
        assert read(model) == []
        assert await known(memory) == []


async def test_facts_off_finds_none_with_a_digest_either(store: Store) -> None:
    model = Scripted(then=says_each)
    async with open_on(store, model=model, policy=chunks(2, 2, 2), facts=False) as memory:
        await told(memory, *THREE)
        await memory.wait_for_digests()
        assert model.calls
        assert all("facts" not in str(one.schema) for one in model.calls)


async def test_without_a_model_nothing_changes(store: Store) -> None:
    async with open_on(store, model=Extractive(), **SOON) as memory:
        chat = await told(memory, *THREE)
        assert (head := await chat.head()) is not None
        assert head.facts_due_at is None
        assert await chat.finish() is None
        assert await chat.digests() == []


async def test_whoever_cannot_read_its_policy_leaves_it_to_others(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It puts it off for nobody else; and one that cannot go on holds up no other that rests."""
    model = Scripted(then=hears)
    monkeypatch.setattr(worker, "_BATCH", 1)
    monkeypatch.setattr(worker, "_REST_LONGER", timedelta(seconds=1))
    async with open_on(store, model=model, worker=False, rest_after=0.01) as memory:
        chat = await told(memory, *THREE, name="first")
        await told(memory, user("I row."), name="second")
        async with store.write(SCOPE, chat.id) as unit:
            elsewhere = balanced().text.replace("FindFacts", "Elsewhere").replace("find_facts", "elsewhere")
            await unit.commit(Changes(head=replace(unit.head, policy=elsewhere), background=True))
    async with open_on(store, model=model, **SOON) as memory:
        await until(lambda: known(memory))
        assert await known(memory) == ["I row."]
        assert await store.unread() == [(SCOPE, "first")]
        await memory.conversation("first", scope=SCOPE).configure(
            policy=balanced(), create=True
        )  # as where it can be read

        async def all_known() -> bool:
            return len(await known(memory)) == 4

        await until(all_known)


async def test_at_rest_only_facts_are_found(store: Store) -> None:
    """No summary is made, and a question that nobody answered is read too."""
    model = Scripted(then=hears)
    async with open_on(store, model=model, **SOON) as memory:
        chat = await told(memory, *THREE, user("I have two cats."))
        await until(lambda: known(memory))
        assert read(model) == [*range(7)]
        assert {one.action for one in await chat.digests()} == {DigestAction.FACTS}


async def test_what_is_appended_under_another_policy_does_not_keep_it_from_resting(store: Store) -> None:
    """Such as a question whose answer broke off: nothing is due by it."""
    model = Scripted(then=hears)
    async with open_on(store, model=model, worker=False, rest_after=0.01) as memory:
        chat = await told(memory, *THREE)
        await chat.append(user("And what do I play?"), policy="none")
    async with open_on(store, model=model, **SOON) as memory:
        await until(lambda: known(memory))
    assert read(model) == [*range(7)]


async def test_a_failed_reading_is_tried_again(store: Store) -> None:
    model = Scripted([ModelUnavailable("down")], then=hears)
    async with open_on(store, model=model, **{**ONE_TRY, "backoff": 0.05}, **SOON) as memory:
        chat = await told(memory, *THREE)
        await until(lambda: known(memory))
        assert [one.status for one in await chat.digests()] == [Status.FAILED, Status.COMPLETED]


async def test_what_was_to_be_read_already_is_read_again_without_rests_too(store: Store) -> None:
    model = Scripted([ModelUnavailable("down")], then=hears)
    settings: dict[str, Any] = {**ONE_TRY, **SOON, "backoff": 0.05, "rest_after": 0}
    async with open_on(store, model=model, budget=100_000, **settings) as memory:
        chat = await told(memory, user("I row."), assistant("word " * 2_000))
        await until(lambda: known(memory))
        assert [one.status for one in await chat.digests()] == [Status.FAILED, Status.COMPLETED]


@pytest.mark.parametrize("fails", ["refused", "merging"])
async def test_a_failed_reading_holds_up_no_summary(store: Store, monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    """It is tried again a few times, after longer and longer waits."""
    if fails == "merging":
        monkeypatch.setattr(attempt, "merge_found", merging_fails)
    model = Scripted(then=ModelRejected("no") if fails == "refused" else hears)
    async with open_on(store, model=model, backoff=60, lease_timeout=1, rest_after=0.05) as memory:
        chat = await told(memory, *THREE)
        for failures in range(1, 7):

            async def failed(failures: int = failures) -> bool:
                return [one.status for one in await chat.digests()] == [Status.FAILED] * failures

            await until(failed)
            head = await chat.head()
            assert head is not None
            assert (head.failures, head.resume_at) == (0, None)
            if failures < 6:
                ended = (await chat.digests())[-1].completed_at
                assert ended is not None
                assert head.facts_due_at is not None
                rests = (head.facts_due_at - ended) / timedelta(minutes=1)
                assert rests == pytest.approx(min(2 ** (failures - 1), 15), abs=0.4)
            else:
                assert head.facts_due_at is None
            await time_of(store).pass_time(timedelta(minutes=20))


async def test_appends_do_not_pay_for_a_reading_that_fails(store: Store) -> None:
    model = Scripted(then=ModelRejected("no"))
    async with open_on(store, model=model, backoff=60, budget=100_000, **LATER) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        for number in range(6):
            await chat.append(user(f"I am a nurse, {number}. " + "So it is. " * 700), assistant("I see."))
            await memory.wait_for_digests()
        assert len(model.calls) == 1
        await time_of(store).pass_time(timedelta(minutes=2))
        await chat.append(user("And so on."), assistant("I see."))
        await memory.wait_for_digests()
        assert len(model.calls) == 2


async def merging_fails(*_: object) -> None:
    return None


async def test_a_reading_that_succeeds_lets_a_failed_summary_wait_as_long(store: Store) -> None:
    gate = Gate(hears)
    async with open_on(store, model=Scripted([gate], then=ModelRejected("no")), backoff=600, **SOON) as memory:
        chat = await told(memory, *THREE)
        await gate.reached()
        await chat.finish()

        async def failed() -> int:
            return 0 if (head := await chat.head()) is None else head.failures

        await until(failed)
        gate.open()
        await until(lambda: known(memory))
        await memory.wait_for_digests()
        assert await failed() == 2, "the one that the reading's end began"


SURE, DOWN = ["Sure!", "Sure!"], ModelUnavailable("down")
"""A try whose answer cannot be used, when it is corrected neither; one while the model is down."""


@pytest.mark.parametrize(
    ("answers", "status"),
    [
        ([DOWN, *SURE, DOWN], Status.COMPLETED),
        ([*[DOWN] * 4, *SURE], Status.COMPLETED),
        ([*SURE, DOWN, *SURE], Status.FAILED),
    ],
    ids=["between", "before", "two"],
)
async def test_outages_do_not_count_for_giving_up(
    store: Store, caplog: pytest.LogCaptureFixture, answers: list[Reply], status: Status
) -> None:
    """Only the second answer that cannot be used does."""
    model = Scripted(answers, then=hears)
    settings: dict[str, Any] = {"model_max_attempts": 1, "breaker_failures": 100, "backoff": 0.05}
    async with open_on(store, model=model, **settings, **SOON) as memory:
        chat = await told(memory, *THREE)

        async def ended() -> bool:
            return any(one.status is not Status.PROCESSING for one in await chat.digests())

        await until(ended)
        assert [one.status for one in await chat.digests()] == [status]
        assert ("given up" in caplog.text) is (status is Status.FAILED)


async def test_answers_that_cannot_be_read_are_asked_for_in_a_second_reading(store: Store) -> None:
    model = Scripted(["Sure!", "Sure!"], then=hears)
    async with open_on(store, model=model, backoff=0.05, **SOON) as memory:
        chat = await told(memory, *THREE)
        await until(lambda: known(memory))
        assert [(one.status, one.tries) for one in await chat.digests()] == [(Status.COMPLETED, 2)]


async def test_after_that_the_messages_are_given_up(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    """They are read no more, what comes after them is, and summaries are made meanwhile."""
    model = Scripted(["Sure!"] * 4, then=hears)
    async with open_on(store, model=model, backoff=0.05, **SOON) as memory:
        chat = await told(memory, *THREE)

        async def failed() -> bool:
            return any(one.status is Status.FAILED for one in await chat.digests())

        await until(failed)
        (line,) = [one.getMessage() for one in caplog.records if "given up" in one.getMessage()]
        assert line.startswith("Messages 0-5 of monday are given up, not read for facts: InvalidModelAnswer: ")
        head = await chat.head()
        assert head is not None
        assert (head.failures, head.resume_at, head.facts_due_at) == (0, None, None)
        await chat.append(user("I have two cats."), assistant("Oh."))
        await chat.finish()
        await memory.wait_for_digests()
        rows = [(one.action, one.status, one.start) for one in await chat.digests()]
        assert sorted(rows[1:]) == [
            (DigestAction.FACTS, Status.COMPLETED, 6),
            (DigestAction.SUMMARIZE, Status.COMPLETED, 0),
        ]
        assert await known(memory) == ["I have two cats."]
    assert read(model) == [*range(6)] * 4 + [6, 7]


async def test_a_model_that_knows_no_reading_makes_summaries(store: Store) -> None:
    def summarizes(prompt: Prompt) -> str:
        if isinstance(prompt.task, FactsOnlyTask):
            raise KeyError("facts")
        return says_each(prompt)

    async with open_on(store, model=Scripted(then=summarizes), budget=100_000, backoff=600, **LATER) as memory:
        chat = await told(memory, *THREE)
        for number in range(3):
            await chat.append(user(f"I have {number} cats. " + "word " * 2_000), assistant("Oh."))
            await memory.wait_for_digests()
        await chat.finish()
        await memory.wait_for_digests()
        rows = await chat.digests()
        assert [one.status for one in rows if one.action is DigestAction.SUMMARIZE] == [Status.COMPLETED]


async def test_ceilings_hold(store: Store) -> None:
    """What is read beyond the day's tokens is put off, not lost."""
    model = Metered(then=hears)
    async with open_on(store, model=model, daily_tokens=1_000, daily_user_share=1, **SOON) as memory:
        await told(memory, *THREE)
        await until(lambda: known(memory))
        chat = await told(memory, *THREE, name="tuesday")

        async def put_off() -> bool:
            return any(one.error is not None and not one.claimed for one in await chat.digests())

        await until(put_off)
        assert [one.status for one in await chat.digests()] == [Status.PROCESSING]
    assert read(model) == [*range(6)]


class TestWhileItIsRead:
    async def begun(self, memory: Memory, gate: Gate) -> Conversation:
        chat = await told(memory, *THREE)
        await gate.reached()
        return chat

    async def test_it_is_written_to(self, store: Store) -> None:
        gate = Gate(hears)
        model = Scripted([gate], then=hears)
        async with open_on(store, model=model, **SOON) as memory:
            chat = await self.begun(memory, gate)
            await chat.append(user("I moved to Porto."), assistant("Oh."))
            gate.open()

            async def all_known() -> bool:
                return len(await known(memory)) == 4

            await until(all_known)
        assert read(model) == [*range(8)]

    async def test_it_is_cleared_or_deleted(self, store: Store) -> None:
        for verb in ("clear", "delete"):
            gate = Gate(hears)
            model = Scripted([gate], then=hears)
            async with open_on(store, model=model, **SOON) as memory:
                chat = await self.begun(memory, gate)
                await getattr(chat, verb)()
                gate.open()
                await memory.wait_for_digests()
                assert await known(memory) == []
            assert read(model) == [*range(6)]
            async with open_on(store, worker=False) as memory:
                await memory.conversation("monday", scope=SCOPE).delete()

    async def test_a_message_of_it_is_erased(self, store: Store) -> None:
        """What is left of its messages is read again, as the reading is not taken."""
        gate = Gate(hears)
        model = Scripted([gate], then=hears)
        async with open_on(store, model=model, **SOON) as memory:
            chat = await self.begun(memory, gate)
            await chat.erase(2)
            gate.open()
            await until(lambda: known(memory))
            assert await known(memory) == sorted(one.text for one in (THREE[0], THREE[4]))
        assert read(model) == [*range(6), 0, 1, 3, 4, 5]

    async def test_messages_of_it_are_taken_back(self, store: Store) -> None:
        gate = Gate(hears)
        model = Scripted([gate], then=hears)
        async with open_on(store, model=model, **SOON) as memory:
            chat = await self.begun(memory, gate)
            await chat.rewind(to=1)
            gate.open()
            await until(lambda: known(memory))
            assert await known(memory) == [THREE[0].text]
        assert read(model) == [*range(6), 0, 1]
