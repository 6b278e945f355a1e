"""What becomes of a digest whose model fails, over a whole memory: it is put off, it fails, it is made
after all; and appends and contexts go on all the while."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto import Conversation, assistant, sliding_window, user
from hitherto.core.changes import Changes
from hitherto.core.digests.digest import Digest, Status
from hitherto.core.ledger import FailureCause, Purpose
from hitherto.core.log.append import extended
from hitherto.core.policy.span import Fate, Reason
from hitherto.engine.digests.attempt import backoff
from hitherto.errors import ModelRateLimited, ModelRejected, ModelUnavailable
from hitherto.ports.models import Completion
from hitherto.providers.scripted import Gate, Reply, Scripted
from hitherto.store.store import Store
from tests.acceptance.dialogue import PLENTY, asks, bodies, each, fates, opener, rounds, said, says_each
from tests.conftest import SCOPE
from tests.engine.metered import Metered, Told
from tests.patience import PATIENCE
from tests.times import BreakerTime, time_of

POLICY = sliding_window(after_seq=1)
SOON: dict[str, Any] = {"model_max_attempts": 1, "backoff": 0.05, "lease_timeout": 0.3}
"""Settings with which a digest that was put off comes back while a test waits for it."""


async def rows_when(chat: Conversation, done: Callable[[list[Digest]], bool]) -> list[Digest]:
    """The rows, once they are as `done` wants them."""
    async with asyncio.timeout(PATIENCE):
        while not done(rows := await chat.digests()):  # noqa: ASYNC110 (a worker's doing, which tells nobody)
            await asyncio.sleep(0.02)
    return rows


def ended(rows: list[Digest]) -> bool:
    return all(row.status is not Status.PROCESSING for row in rows)


def wait_of(row: Digest) -> timedelta:
    """How long it is until the row is due."""
    assert row.due_at is not None
    return row.due_at - datetime.now(UTC)


def ledger(told: Told) -> list[tuple[Purpose, FailureCause | None]]:
    return [(call.purpose, call.cause) for call in told.calls]


async def missing(chat: Conversation) -> list[str]:
    return (await chat.context(asks(99), budget=PLENTY)).manifest.missing


# A try that fails for a passing reason


async def test_a_digest_is_put_off_and_made_after_all(store: Store) -> None:
    told, gate = Told(), Gate(says_each)
    model = Metered([ModelUnavailable("no route"), ModelRateLimited("too many"), gate], then=says_each)
    async with opener(store, POLICY)(model, **{**SOON, "digest_max_attempts": 5}, watch=told) as (memory, chat):
        await rounds(memory, chat, [1])
        assert await missing(chat) == ["digest"]
        await gate.reached()
        (row,) = await chat.digests()
        assert (row.status, row.tries, row.claimed) == (Status.PROCESSING, 3, True)
        assert row.error == "ModelRateLimited: too many"
        assert await missing(chat) == ["digest"], "it is put off still: nothing stands for it yet"
        gate.open()
        (row,) = await rows_when(chat, ended)
        assert (row.status, row.tries, row.attempt, row.text) == (Status.COMPLETED, 3, 5, each(0, 1))
        assert row.error is None
        assert await missing(chat) == []
        assert ledger(told) == [
            (Purpose.DIGEST, FailureCause.UNREACHABLE),
            (Purpose.DIGEST, FailureCause.BUSY),
            (Purpose.DIGEST, None),
        ]
        (costs,) = await memory.costs("purpose")
        assert (costs.group, costs.calls, costs.failed, costs.tokens_in) == ("digest", 3, 2, 900)


async def test_it_waits_as_long_as_the_endpoint_asks(store: Store) -> None:
    model = Scripted([ModelRateLimited("come back later", retry_after=120.0)])
    async with opener(store, POLICY)(model, model_max_attempts=3, digest_max_attempts=5) as (memory, chat):
        await rounds(memory, chat, [1])
        (row,) = await chat.digests()
        assert (row.status, row.tries, row.claimed) == (Status.PROCESSING, 1, False)
        assert timedelta(seconds=110) < wait_of(row) <= timedelta(seconds=120)
        assert len(model.calls) == 1, "so long a wait is for no call on the spot"


async def test_after_its_last_try_it_has_failed_and_the_next_round_begins_another(store: Store) -> None:
    model = Scripted([ModelUnavailable("no route")] * 2, then=says_each)
    async with opener(store, POLICY)(model, **{**SOON, "digest_max_attempts": 2}) as (memory, chat):
        await rounds(memory, chat, [1])
        (row,) = await rows_when(chat, ended)
        assert (row.status, row.tries, row.error) == (Status.FAILED, 2, "ModelUnavailable: no route")
        assert await missing(chat) == ["digest"]
        await rounds(memory, chat, [2])
        assert [row.text for row in await chat.digests()] == ["", each(0, 3)]
        assert await missing(chat) == []


@given(first=st.timedeltas(timedelta(0), timedelta(minutes=15)), tries=st.integers(1, 2_000))
def test_the_wait_doubles_up_to_a_quarter_of_an_hour(first: timedelta, tries: int) -> None:
    longest = timedelta(minutes=15)
    assert backoff(first, 0) == backoff(first, 1) == first
    if tries < 20:
        assert backoff(first, tries + 1) == min(2 * backoff(first, tries), longest)
    assert backoff(first, tries) <= backoff(first, tries + 1) <= longest


# What another try would not change


async def test_a_refusal_is_one_call_and_one_message(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    told, model = Told(), Scripted([ModelRejected("the key is wrong")], then=says_each)
    settings: dict[str, Any] = {"model_max_attempts": 3, "digest_max_attempts": 5}
    async with opener(store, POLICY)(model, **settings, watch=told) as (memory, chat):
        with caplog.at_level(logging.WARNING, "hitherto"):
            await rounds(memory, chat, [1])
        (row,) = await chat.digests()
        assert (row.status, row.tries, row.error) == (Status.FAILED, 1, "ModelRejected: the key is wrong")
        assert ledger(told) == [(Purpose.DIGEST, FailureCause.REFUSED)]
        assert [record.getMessage() for record in caplog.records] == [
            "Summarization failed for conv_123: ModelRejected: the key is wrong"
        ]
        assert await missing(chat) == ["digest"]


async def test_it_is_refused_if_the_model_read_less_than_it_was_sent(store: Store) -> None:
    async with opener(store, POLICY)(Reading(2_050)) as (memory, chat):
        await chat.append(user("a long question " * 2_000), assistant("answer"))
        await memory.wait_for_digests()
        (row,) = await rows_when(chat, ended)
        assert row.status is Status.FAILED
        assert row.error is not None
        assert "read 2,050 tokens of a prompt of about" in row.error
        assert "num_ctx" in row.error
        (costs,) = await memory.costs("purpose")
        assert (costs.calls, costs.failed, costs.tokens_in) == (1, 1, 2_050)


@pytest.mark.parametrize("figure", [None, 0, -5, 2**40, 2050.0, "2050", [2050], True, 5_000])
async def test_a_model_whose_usage_is_nonsense_is_believed(store: Store, figure: Any) -> None:
    async with opener(store, POLICY)(Reading(figure)) as (memory, chat):
        await chat.append(user("a long question " * 2_000), assistant("answer"))
        await memory.wait_for_digests()
        assert [row.status for row in await rows_when(chat, ended)] == [Status.COMPLETED]
        (costs,) = await memory.costs("purpose")
        assert (costs.calls, costs.failed, costs.tokens_in) == (1, 0, 5_000 if figure == 5_000 else 0)


class Reading(Scripted):
    """A model that says it read so many tokens."""

    def __init__(self, tokens: Any) -> None:
        super().__init__(then=says_each)
        self._tokens = tokens

    async def complete(self, prompt: Any) -> Completion:
        return replace(await super().complete(prompt), tokens_in=self._tokens, asked=True)


@pytest.mark.parametrize("unusable", ["", '{"add": [{"te', "far too long " * 20_000], ids=["empty", "broken", "long"])
async def test_an_unusable_answer_is_corrected_once(store: Store, unusable: str) -> None:
    told = Told()
    model = Metered([unusable, says_each, unusable, unusable], then=says_each)
    async with opener(store, POLICY)(model, digest_max_attempts=5, watch=told) as (memory, chat):
        await rounds(memory, chat, [1, 2])
        made, failed = await chat.digests()
        assert (made.status, made.text) == (Status.COMPLETED, each(0, 1))
        assert (failed.status, failed.tries) == (Status.FAILED, 1)
        assert str(failed.error).startswith("InvalidModelAnswer: ")
        assert [purpose for purpose, _ in ledger(told)] == [Purpose.DIGEST, Purpose.CORRECT] * 2
        assert (await memory.costs("tenant"))[0].calls == 4


# Failure after failure


async def test_a_conversation_that_fails_again_and_again_rests(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "hitherto.digest")
    model = Scripted([ModelRejected("no")] * 2, then=says_each)
    async with opener(store, POLICY)(model, backoff=600) as (memory, chat):
        await rounds(memory, chat, [1, 2])
        head = await chat.head()
        assert head is not None
        assert (head.failures, head.resting) == (2, True)
        assert head.resume_at is not None
        assert (await memory.backlog()).resting == 1
        await rounds(memory, chat, [3, 4])
        assert len(await chat.digests()) == 2, "none begins"
        assert await missing(chat) == ["digest"]
        told = [one.getMessage() for one in caplog.records]
        assert f"Summarization of {chat.id} waits until {head.resume_at}: digests failed" in told
        assert f"Summarization already in progress for {chat.id}" not in told

        other = memory.conversation("another", scope=SCOPE, policy=POLICY)
        await rounds(memory, other, [1])
        assert [row.status for row in await other.digests()] == [Status.COMPLETED], "others go on"

        await time_of(store).pass_days(1)
        await rounds(memory, chat, [5])
        assert [(row.status, row.text) for row in await chat.digests()][2:] == [(Status.COMPLETED, each(0, 9))]
        head = await chat.head()
        assert head is not None
        assert (head.failures, head.resume_at) == (0, None)
        assert (await memory.backlog()).resting == 0


async def test_a_conversation_rests_no_longer_for_a_clock_that_was_ahead(store: Store) -> None:
    model = Scripted(then=ModelRejected("no"))
    async with opener(store, POLICY)(model, backoff=60) as (memory, chat):
        async with store.write(SCOPE, chat.id) as unit:
            ahead = replace(unit.head, now=unit.head.now + timedelta(hours=1))
            logged, head = extended(ahead, [asks(0)], [1])
            await unit.commit(Changes(head=head, messages=logged))
        await rounds(memory, chat, [1, 2])
        head = await chat.head()
        assert head is not None
        assert head.resume_at is not None
        assert head.resting
        assert head.resume_at - datetime.now(UTC) <= timedelta(minutes=1)


async def test_a_model_that_is_down_is_left_alone(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The breaker opens: digests are put off without a call, which is no try; once it closes they are made."""
    breaker_time = BreakerTime(monkeypatch)
    down: list[Reply] = [ModelUnavailable("no route")] * 2
    model = Scripted(down, then=says_each)
    settings: dict[str, Any] = {"breaker_failures": 2, "breaker_cooldown": 600, "lease_timeout": 0.3}
    async with opener(store, POLICY)(model, **settings) as (memory, _):
        chats = [memory.conversation(f"c{number}", scope=SCOPE, policy=POLICY) for number in range(4)]
        for chat in chats:
            await rounds(memory, chat, [1])
        rows = [row for chat in chats for row in await chat.digests()]
        assert [row.status for row in rows] == [Status.FAILED] * 2 + [Status.PROCESSING] * 2
        assert len(model.calls) == 2
        for row in rows[2:]:
            assert (row.tries, row.claimed) == (0, False)
            assert "failed several times in a row and is not called until" in str(row.error)
            assert "no route" not in str(row.error), "which may be another tenant's"
        assert await missing(chats[-1]) == ["digest"]
        breaker_time.pass_seconds(600)
        await rounds(memory, chats[0], [2])  # the one call that is let through: another would be put off meanwhile
        await time_of(store).pass_days(1)
        for chat in chats[2:]:
            (row,) = await rows_when(chat, ended)
            assert (row.status, row.tries) == (Status.COMPLETED, 1)
            assert await missing(chat) == []


# Ceilings


@pytest.mark.parametrize("ceiling", [{"daily_tokens": 2_000}, {"daily_cost": 0.0007}], ids=str)
async def test_a_ceiling_stops_digests_and_nothing_else(store: Store, ceiling: dict[str, float]) -> None:
    model = Metered(then=says_each)
    async with opener(store, POLICY)(model, **ceiling) as (memory, chat):
        await rounds(memory, chat, [1, 2, 3, 4])
        *made, put_off = await chat.digests()
        assert [row.status for row in made] == [Status.COMPLETED] * 2
        assert (put_off.status, put_off.tries) == (Status.PROCESSING, 0)
        assert "today, of " in str(put_off.error)
        assert timedelta(0) < wait_of(put_off) <= timedelta(minutes=15)
        assert len(model.calls) == 2
        context = await chat.context(asks(5), budget=PLENTY)
        assert bodies(context)[-4:] == [*said(3, 4)[1:], "question 5"]
        digested, verbatim = (0, 3, Fate.DIGESTED, Reason.SUMMARIZED), (4, 7, Fate.IN, Reason.VERBATIM)
        assert fates(context) == [digested, verbatim]
        assert context.manifest.missing == ["digest"]


async def test_digests_go_on_when_the_ceiling_is_raised_or_the_day_is_over(store: Store) -> None:
    time = time_of(store)
    model = Metered(then=says_each)
    quick: dict[str, Any] = {"daily_tokens": 1_000, "lease_timeout": 0.3}
    async with opener(store, POLICY)(model, **quick) as (memory, chat):
        await rounds(memory, chat, [1, 2])
        assert [row.status for row in await chat.digests()] == [Status.COMPLETED, Status.PROCESSING]
    await time.pass_days(1)
    async with opener(store, POLICY)(model, **{**quick, "daily_tokens": 2_000}) as (memory, chat):
        assert [row.text for row in await rows_when(chat, ended)][1:] == [each(0, 3)]
        await rounds(memory, chat, [3])
        assert len(await rows_when(chat, lambda rows: rows[-1].error is not None)) == 3
    await time.pass_days(1)
    await time.begin_another_day()
    async with opener(store, POLICY)(model, **quick) as (_, chat):
        assert [row.text for row in await rows_when(chat, ended)][2:] == [each(0, 5)], "another day"


# Messages that one call cannot take in
