"""Messages that say when they were said: what is recalled, digested and archived goes by it; order, expiry, receipts
and triggers do not."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hitherto
from hitherto import Memory, Message, assistant, rolling, system, tool_result, user
from hitherto.core.digests.prompts import DigestTask
from hitherto.errors import IdempotencyKeyReused, InvalidMessage
from hitherto.providers.scripted import Scripted
from hitherto.store.store import Store
from tests.acceptance.dialogue import answers, opener, says_each
from tests.acceptance.receipts import check
from tests.conftest import SCOPE
from tests.lengths import examples, lasting
from tests.memories import open_on

MAY = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
MOON = datetime(1969, 7, 20, 20, 17, tzinfo=UTC)
_numbers = count(1)
FUTURE = datetime(2101, 2, 3, tzinfo=timezone(timedelta(hours=9)))


async def diary(memory: Memory) -> hitherto.Conversation:
    """An import, out of order, and one message of today."""
    chat = memory.conversation("diary", scope=SCOPE)
    await chat.append(
        user("The heron was fed at the pond.", at=MAY),
        assistant("Noted.", at=MAY + timedelta(minutes=1)),
        user("The heron landed on the moon.", at=MOON),
        user("The heron will retire.", at=FUTURE),
        user("The heron sleeps."),
    )
    await memory.wait_for_index()
    return chat


@pytest.mark.parametrize("indexed", [True, False])
async def test_recall_goes_by_when_it_was_said(store: Store, indexed: bool) -> None:
    async with open_on(store, worker=indexed) as memory:
        await diary(memory)

        async def seqs(after: datetime | None = None, before: datetime | None = None) -> set[int | None]:
            found = await memory.recall("heron", scope=SCOPE, after=after, before=before)
            return {hit.start for hit in found.hits if "heron" in hit.text}

        assert await seqs() == {0, 2, 3, 4}
        assert await seqs(before=datetime(2000, 1, 1, tzinfo=UTC)) == {2}
        assert await seqs(after=MAY, before=MAY) == {0}
        assert await seqs(after=datetime(2100, 1, 1, tzinfo=UTC)) == {3}
        assert await seqs(after=datetime.now(UTC) - timedelta(days=1), before=datetime.now(UTC)) == {4}
        best = (await memory.recall("heron pond", scope=SCOPE, limit=1)).hits[0]
        assert best.said_at == MAY


async def test_recalled_lines_stand_by_when_they_were_said(store: Store) -> None:
    async with open_on(store) as memory:
        chat = await diary(memory)
        await chat.append(assistant("And so on. " * 100))
        context = await chat.context("What of the heron?", budget=300)
        await check(chat, context)
        (text,) = [str(item["content"]) for item in context.messages if "landed" in str(item["content"])]
        lines = [line for line in text.splitlines()[1:] if "Noted" not in line]
        assert lines[:6] == [
            "1969-07-20:",
            "- user: The heron landed on the moon.",
            "2023-05-08:",
            "- user: The heron was fed at the pond.",
            f"{datetime.now(UTC):%Y-%m-%d}:",
            "- user: The heron sleeps.",
        ]
        assert lines[6:] == ["2101-02-02:", "- user: The heron will retire."]
        assert (await chat.rebuild(context.manifest)).request == context.request


async def test_the_log_its_times_and_its_triggers_go_by_when_it_was_appended(store: Store) -> None:
    async with opener(store, rolling(threshold=3, keep_last=2))(Scripted(then=says_each)) as (memory, chat):
        begun = datetime.now(UTC) - timedelta(minutes=1)
        await chat.append(user("a", at=FUTURE), assistant("b", at=MOON))
        await chat.append(user("c", at=MAY), assistant("d"))
        await memory.wait_for_digests()
        log = await chat.messages()
        assert [one.message.text for one in log] == ["a", "b", "c", "d"]
        assert all(begun <= one.created_at <= datetime.now(UTC) + timedelta(minutes=1) for one in log)
        assert [(row.start, row.end) for row in await chat.digests()] == [(0, 1)]
        assert await memory.purge_expired() == 0
        assert len(await chat.messages()) == 4


async def test_a_digests_prompt_has_the_dates(store: Store) -> None:
    model = Scripted(then=says_each)
    async with opener(store, rolling(threshold=3, keep_last=2))(model) as (memory, chat):
        await chat.append(
            user("I moved last May.", at=MAY),
            assistant("b", at=MAY),
            user("c", at=MOON),
            assistant("d"),
            user("e"),
            answers(3),
        )
        await memory.wait_for_digests()
        (prompt,) = model.calls
        assert isinstance(prompt.task, DigestTask)
        assert [line.day and line.day.isoformat() for line in prompt.task.lines[:3]] == [
            "2023-05-08",
            "2023-05-08",
            "1969-07-20",
        ]
        assert prompt.user.count('"date": "2023-05-08"') == 1


async def test_a_key_is_for_the_same_times(store: Store) -> None:
    async with opener(store)(Scripted()) as (_, chat):
        await chat.append(user("a", at=MAY), key="k")
        assert (await chat.append(user("a", at=MAY.astimezone(FUTURE.tzinfo)), key="k")).replayed
        for other in (user("a"), user("a", at=MOON)):
            with pytest.raises(IdempotencyKeyReused):
                await chat.append(other, key="k")


def test_every_maker_takes_a_time() -> None:
    call = hitherto.Call(id="a", name="look", arguments="{}")
    made = [
        user("a", at=MAY),
        assistant("a", at=MAY),
        assistant(calls=[call], at=MAY),
        tool_result("a", "b", at=MAY),
        system("a", at=MAY),
        user("a").dated(MAY),
    ]
    assert [one.said_at for one in made] == [MAY] * len(made)
    assert user("a", at=MAY).payload == user("a").payload, "no model is shown it"


@pytest.mark.parametrize("at", [datetime(2023, 5, 8), "2023-05-08", 7, datetime(1, 1, 1, tzinfo=UTC)])
def test_what_is_no_time_is_refused(at: object) -> None:
    with pytest.raises(InvalidMessage, match=r"^at is "):
        user("a", at=at)  # type: ignore[arg-type]  # what a caller without a checker does


times = st.datetimes(datetime(2, 1, 2), datetime(9998, 12, 30), timezones=st.just(UTC))


@lasting
@settings(max_examples=examples(5), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.none() | times, min_size=1, max_size=12))
async def test_any_times_in_any_order(store: Store, said: list[datetime | None]) -> None:
    async with open_on(store, worker=False) as memory:
        chat = memory.conversation(f"c{next(_numbers)}", scope=SCOPE)
        batch: list[Message] = [user(f"Heron {n} " + "flies " * 30, at=at) for n, at in enumerate(said)]
        await chat.append(*batch)
        assert [one.message.said_at for one in await chat.messages()] == said
        context = await chat.context("What of the heron?", budget=200)
        await check(chat, context)
        shown = json.dumps(context.request)
        for one in context.manifest.recalled:
            assert one.start is not None
            at = (await chat.messages())[one.start].said_at
            assert f"{at.astimezone(UTC):%Y-%m-%d}"[-6:] in shown
