"""Times: messages that say when they were said, and how long those are kept that say nothing of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from io import BytesIO
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hitherto
from hitherto import (
    Memory,
    Message,
    Scope,
    UserDefaults,
    assistant,
    rolling,
    system,
    token_threshold,
    tool_result,
    user,
)
from hitherto.core.digests.prompts import DigestTask
from hitherto.core.recall.filter import EntryKind
from hitherto.errors import IdempotencyKeyReused, InvalidInput, InvalidMessage, InvalidScope, InvalidSettings
from hitherto.integrations.memory_tools import memory_tools
from hitherto.providers.scripted import Scripted
from hitherto.store.store import Store
from tests.acceptance.dialogue import answers, opener, says_each
from tests.acceptance.receipts import check
from tests.conftest import SCOPE
from tests.engine.log.test_erase import remembers
from tests.lengths import examples, lasting
from tests.memories import open_on

MAY = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
MOON = datetime(1969, 7, 20, 20, 17, tzinfo=UTC)
_numbers = count(1)
ARCHIVING = token_threshold(30, keep_messages=2, archive=True, facts=True)
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
        lines = [line for line in text.splitlines()[1:-1] if "Noted" not in line and line != "2023-05-08:"]
        assert lines == [
            "1969-07-20:",
            "- user: The heron landed on the moon.",
            f"{datetime.now(UTC):%Y-%m-%d}:",
            "- user: The heron sleeps.",
            "2101-02-03:",
            "- user: The heron will retire.",
        ], "the first message stands in the context itself"
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


LEAP_SECOND = "2016-12-31T23:59:60Z"
"""Python's times have none."""


@pytest.mark.parametrize("at", [datetime(2023, 5, 8), LEAP_SECOND, 7, datetime.min.replace(tzinfo=UTC), datetime.max])
def test_what_is_no_time_is_refused(at: object) -> None:
    with pytest.raises(InvalidMessage, match=r"^at is .*; give (a time|one)"):
        user("a", at=at)  # type: ignore[arg-type]  # what a caller without a checker does


zones = st.integers(-86_399, 86_399).map(lambda seconds: timezone(timedelta(seconds=seconds)))
times = st.datetimes(datetime(2, 1, 2), datetime(9998, 12, 30), timezones=zones)


@lasting
@settings(max_examples=examples(5), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.none() | times, min_size=1, max_size=12))
async def test_any_times_in_any_order(store: Store, said: list[datetime | None]) -> None:
    async with open_on(store, worker=False) as memory:
        chat = memory.conversation(f"c{next(_numbers)}", scope=SCOPE)
        batch: list[Message] = [user(f"Heron {n} " + "flies " * 30, at=at) for n, at in enumerate(said)]
        await chat.append(*batch)
        found = [one.message.said_at for one in await chat.messages()]
        assert found == said
        assert [at and at.utcoffset() for at in found] == [at and at.utcoffset() for at in said]
        context = await chat.context("What of the heron?", budget=200, recall="own")
        await check(chat, context)
        shown = json.dumps(context.request)
        for one in context.manifest.recalled:
            assert one.start is not None
            at = (await chat.messages())[one.start].said_at
            assert f"{at:%Y-%m-%d}"[-6:] in shown


DAY = timedelta(days=1)
BRIEF = timedelta(milliseconds=50)
SOME = st.none() | st.integers(0, 9).map(lambda days: days * DAY)


@pytest.fixture
async def memory(store: Store) -> AsyncIterator[Memory]:
    async with open_on(store, embedder="none") as opened:
        yield opened


async def lives(memory: Memory, scope: Scope = SCOPE, id: str = "c") -> list[timedelta | None]:
    """How long each message of a conversation is kept."""
    found = await memory.conversation(id, scope=scope).messages()
    times = [(one.message.expires_at, one.created_at) for one in found]
    return [None if expires is None else expires - created for expires, created in times]


@lasting
@settings(max_examples=examples(4))
@given(setting=st.none() | st.integers(1, 9).map(lambda days: days * DAY), tenant=SOME, agent=SOME, own=SOME)
async def test_the_nearest_rule_counts(
    setting: timedelta | None, tenant: timedelta | None, agent: timedelta | None, own: timedelta | None
) -> None:
    async with hitherto.open("memory:", embedder="none", ttl=setting) as memory:
        if tenant is not None:
            await memory.configure_tenant(tenant=SCOPE.tenant, ttl=tenant)
        await memory.configure_agent(tenant=SCOPE.tenant, agent=SCOPE.agent, ttl=agent, policy="none")
        chat = memory.conversation("c", scope=SCOPE)
        await chat.configure(ttl=own, title="A title", create=True)
        at = datetime.now(UTC) + 99 * DAY
        await chat.append(user("Hello."), assistant("Hello!").expiring(at))
        rule = next((one for one in (own, agent, tenant, setting) if one is not None), None)
        assert (await lives(memory))[0] == (rule or None)
        assert (await chat.messages())[1].message.expires_at == at, "its own"


async def test_it_counts_for_what_is_appended_from_then_on(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    await chat.append(user("Kept."), key="before")
    await chat.configure(ttl=7 * DAY, create=True)
    await chat.append(user("For a week."))
    await chat.configure(metadata={"a": 1}, policy="none", create=True)
    await chat.append(user("For a week too."))
    await chat.configure(ttl=timedelta(0), create=True)
    await chat.append(user("For ever."))
    replayed = await chat.append(user("Kept."), key="before")
    assert replayed.replayed
    assert await lives(memory) == [None, 7 * DAY, 7 * DAY, None]


async def test_what_is_due_is_erased_in_the_background(memory: Memory) -> None:
    await memory.configure_tenant(tenant=SCOPE.tenant, ttl=BRIEF)
    beside = Scope(tenant="beside", user="u", agent="a")
    for scope in (SCOPE, beside):
        await memory.conversation("c", scope=scope).append(user("My code is 4711."))
    await asyncio.sleep(BRIEF.total_seconds())
    assert await memory.purge_expired() == 1
    (gone,) = await memory.conversation("c", scope=SCOPE).messages()
    assert (gone.erased, gone.message.text) == (True, "")
    assert not (await memory.conversation("c", scope=beside).messages())[0].erased


async def test_a_ttl_that_is_none(memory: Memory) -> None:
    cases: list[Any] = [-DAY, 36_501 * DAY, 60, "1 week"]
    for ttl in cases:
        chat = memory.conversation("c", scope=SCOPE)
        for refused in (
            chat.configure(ttl=ttl, create=True),
            memory.configure_agent(tenant="t", agent="a", ttl=ttl),
            memory.configure_tenant(tenant="t", ttl=ttl),
        ):
            with pytest.raises(InvalidInput, match="give a timedelta"):
                await refused
        with pytest.raises(InvalidScope):
            await memory.configure_tenant(tenant="", ttl=DAY)
        assert await chat.head() is None


async def test_a_setting_of_zero_keeps_for_ever() -> None:
    async with hitherto.open("memory:", ttl=0) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user("Hello."))
        assert [one.message.expires_at for one in await chat.messages()] == [None]


@pytest.mark.parametrize("ttl", [-1, "soon"])
async def test_a_setting_that_is_none(ttl: Any) -> None:
    with pytest.raises(InvalidSettings, match="HITHERTO_TTL"):
        async with hitherto.open("memory:", ttl=ttl):
            pass


class TestZones:
    """A message's day is that of its own zone, else of the setting's."""

    AUCKLAND = datetime(2026, 7, 9, 8, tzinfo=timezone(timedelta(hours=12)))  # 8 July in UTC
    IN_UTC = datetime(2026, 7, 8, 20, 30, tzinfo=UTC)  # 9 July in Auckland

    @pytest.mark.parametrize(
        ("zone", "at", "day"),
        [
            ("UTC", AUCKLAND, "2026-07-09"),
            ("UTC", IN_UTC, "2026-07-08"),
            ("Pacific/Auckland", IN_UTC, "2026-07-09"),
            ("America/New_York", AUCKLAND, "2026-07-09"),
            ("America/New_York", datetime(1883, 11, 18, 4, 56, tzinfo=UTC), "1883-11-17"),  # 4:56:02 behind
        ],
    )
    async def test_a_day_is_that_of_the_zone(self, zone: str, at: datetime, day: str) -> None:
        model = Scripted(then=says_each)
        async with hitherto.open("memory:", model=model, time_zone=zone, embedder="none") as memory:
            chat = memory.conversation("c", scope=SCOPE, policy=rolling(threshold=3, keep_last=2))
            await chat.append(user("The heron is fed.", at=at), assistant("b", at=at), user("c", at=at))
            await chat.append(assistant("d"), user("e"), answers(3))
            await memory.wait_for_digests()
            (prompt,) = model.calls
            assert isinstance(prompt.task, DigestTask)
            assert [str(line.day) for line in prompt.task.lines[:2]] == [day] * 2
            assert f"{day}:" in (await chat.expand((0, 0))).text
            for indexed in (False, True):
                if indexed:
                    await memory.wait_for_index()
                hits = (await memory.recall("What did I say on " + day, scope=SCOPE)).hits
                assert {hit.said_at.date().isoformat() for hit in hits if hit.start == 0} == {day}
                assert {hit.start for hit in hits if hit.scores.day} >= {0, 1}

    async def test_now_is_in_the_zone_too(self) -> None:
        async with hitherto.open("memory:", time_zone="Pacific/Kiritimati", embedder="none") as memory:
            chat = memory.conversation("c", scope=SCOPE)
            await chat.append(user("Hello."))
            (one,) = await chat.messages()
            assert one.said_at == one.created_at
            assert one.said_at.utcoffset() == timedelta(hours=14)
            found = await memory.recall("What did I say today?", scope=SCOPE)
            assert [hit.scores.day > 0 for hit in found.hits] == [True]

    async def test_an_agents_zone_comes_before_the_settings(self) -> None:
        async with hitherto.open("memory:", time_zone="America/New_York", embedder="none") as memory:
            await memory.configure_agent(tenant=SCOPE.tenant, agent=SCOPE.agent, time_zone="Pacific/Auckland")
            await memory.configure_agent(tenant=SCOPE.tenant, agent=SCOPE.agent, ttl=timedelta(days=1))
            chat = memory.conversation("c", scope=SCOPE)
            await chat.append(user("Hello.", at=self.IN_UTC))
            (one,) = await chat.messages()
            assert str(one.said_at.date()) == "2026-07-09"
            found = await memory.recall("What did I say yesterday?", scope=SCOPE, at=self.IN_UTC + timedelta(days=1))
            assert [hit.scores.day > 0 for hit in found.hits] == [True]
            for zone in ("Mars/Olympus", 7):
                with pytest.raises(InvalidInput, match="time_zone"):
                    await memory.configure_agent(tenant="t", agent="a", time_zone=zone)  # type: ignore[arg-type]

    @pytest.mark.parametrize("zone", ["America/New_York", "Pacific/Kiritimati"])
    async def test_a_question_of_any_time(self, store: Store, zone: str) -> None:
        async with open_on(store, time_zone=zone, embedder="none") as memory:
            await memory.conversation("c", scope=SCOPE).append(user("The heron is fed.", at=MOON))
            for at in (datetime.min, datetime.max, MOON):
                for question in ("What was the heron fed yesterday?", "Which heron, on 20 July?"):
                    found = await memory.recall(question, scope=SCOPE, at=at.replace(tzinfo=UTC))
                    assert [hit.start for hit in found.hits] == [0]
            for no_time in (LEAP_SECOND, "2016-12-31", 7, datetime(2023, 5, 8)):
                for name in ("at", "after", "before"):
                    given: dict[str, Any] = {name: no_time}
                    with pytest.raises(InvalidInput, match=f"{name} is .*; give one"):
                        await memory.recall("heron", scope=SCOPE, **given)

    async def test_a_users_zone_comes_before_the_agents(self) -> None:
        async with hitherto.open("memory:", embedder="none") as memory:
            await memory.configure_agent(tenant=SCOPE.tenant, agent=SCOPE.agent, time_zone="America/New_York")
            for zone in ("Asia/Tokyo", "Pacific/Auckland"):
                await memory.configure_user(tenant=SCOPE.tenant, user=SCOPE.user, time_zone=zone)
            for scope, at, day in (
                (SCOPE, self.IN_UTC, "2026-07-09"),
                (SCOPE, self.AUCKLAND.astimezone(timezone(timedelta(hours=1))), "2026-07-08"),
                (replace(SCOPE, agent="another"), self.IN_UTC, "2026-07-09"),
                (replace(SCOPE, user="another"), self.IN_UTC, "2026-07-08"),
            ):
                chat = memory.conversation(day, scope=scope)
                await chat.append(user("Hello.", at=at))
                assert [str(one.said_at.date()) for one in await chat.messages()][-1:] == [day]
            found = await memory.recall("What did I say yesterday?", scope=SCOPE, at=self.IN_UTC + timedelta(days=1))
            assert [hit.conversation for hit in found.hits if hit.scores.day] == ["2026-07-09"]
            for zone in ("Mars/Olympus", 7, None):
                with pytest.raises(InvalidInput, match="time_zone"):
                    await memory.configure_user(tenant="t", user="u", time_zone=zone)  # type: ignore[arg-type]

    async def test_a_zone_can_be_read_and_unset(self) -> None:
        of = {"tenant": SCOPE.tenant, "user": SCOPE.user}
        async with hitherto.open("memory:", embedder="none") as memory:
            for zone in ("Asia/Tokyo", ""):
                await memory.configure_user(**of, time_zone=zone)
                await memory.configure_agent(tenant=SCOPE.tenant, agent=SCOPE.agent, time_zone=zone)
                assert await memory.user(SCOPE.user, tenant=SCOPE.tenant) == UserDefaults(time_zone=zone or None)
                assert (await memory.agent(SCOPE.agent, tenant=SCOPE.tenant)).time_zone == (zone or None)
            await memory.conversation("c", scope=SCOPE).append(user("Hello.", at=self.AUCKLAND.astimezone(UTC)))
            (one,) = await memory.conversation("c", scope=SCOPE).messages()
            assert one.said_at.utcoffset() == timedelta()

    async def test_an_answer_is_of_its_questions_day(self) -> None:
        async with hitherto.open("memory:", embedder="none", time_zone="America/New_York") as memory:
            chat = memory.conversation("c", scope=SCOPE)
            async with chat.turn(user("Hello.", at=self.AUCKLAND), budget=4_000) as turn:
                call = {"id": "t", "type": "function", "function": {"name": "clock", "arguments": "{}"}}
                await turn.add({"role": "assistant", "tool_calls": [call]})
                await turn.add(tool_result("t", "12"))
                await turn.add("Twelve.")
            assert {one.said_at for one in await chat.messages()} == {self.AUCKLAND}
            assert {one.said_at.utcoffset() for one in await chat.messages()} == {timedelta(hours=12)}

    async def test_a_year_that_nobody_gave_is_not_refused(self) -> None:
        last = datetime(9998, 12, 31, 23, tzinfo=UTC)
        async with hitherto.open("memory:", embedder="none", time_zone="Pacific/Kiritimati") as memory:
            chat = memory.conversation("c", scope=SCOPE)
            await chat.append(user("Hello.", at=last))
            assert [one.said_at for one in await chat.messages()] == [last]

    async def test_a_new_conversation_asks_from_the_day_of_its_zone(self) -> None:
        async with hitherto.open("memory:", embedder="none") as memory:
            await memory.configure_agent(tenant=SCOPE.tenant, agent=SCOPE.agent, time_zone="Pacific/Auckland")
            await memory.conversation("c", scope=SCOPE).append(user("Hello.", at=self.AUCKLAND))
            asked = user("What did I say yesterday?", at=self.IN_UTC + timedelta(days=1))
            new = await memory.conversation("new", scope=SCOPE).context(asked, budget=4_000, recall=True)
            assert "Hello." in str(new.messages)

    async def test_what_rests_on_messages_is_of_their_zone(self) -> None:
        async with hitherto.open("memory:", model=Scripted(then=remembers), embedder="none") as memory:
            chat = memory.conversation("c", scope=SCOPE, policy=ARCHIVING)
            await chat.append(*(user(f"Ann likes herons {number}.", at=self.AUCKLAND) for number in range(4)))
            await memory.wait_for_digests()
            (document,) = await memory.documents(SCOPE).list()
            whole = await memory.documents(SCOPE).get(document.id)
            assert whole is not None
            assert "Date Range: 2026-07-09T08:00:00+12:00" in whole.text
            assert {one.said_at.isoformat() for one in (document, whole)} == {self.AUCKLAND.isoformat()}
            for indexed in (False, True):
                if indexed:
                    await memory.wait_for_index()
                hits = (await memory.recall("herons", scope=SCOPE)).hits
                assert {hit.kind for hit in hits} == {*EntryKind}
                assert {hit.said_at.utcoffset() for hit in hits} == {timedelta(hours=12)}
            made = await memory.conversation("new", scope=SCOPE).context(
                "herons?", budget=4_000, recall=hitherto.RecallOptions(kinds=frozenset({EntryKind.PASSAGE}))
            )
            assert "passage" in {one.kind for one in made.manifest.recalled}
            assert (await memory.conversation("new", scope=SCOPE).rebuild(made.manifest)).request == made.request
            found = await memory_tools(memory, SCOPE, "c").recall("herons")
            assert {hit["said_at"] for hit in found["hits"] if hit["kind"] != "fact"} == {self.AUCKLAND.isoformat()}

    async def test_an_export_keeps_it(self) -> None:
        async with (
            hitherto.open("memory:", embedder="none") as memory,
            hitherto.open("memory:", embedder="none") as other,
        ):
            await memory.conversation("c", scope=SCOPE).append(user("Hello.", at=FUTURE))
            file = BytesIO()
            await memory.export_to(file, tenant=SCOPE.tenant)
            await other.import_from(BytesIO(file.getvalue()))
            (one,) = await other.conversation("c", scope=SCOPE).messages()
            assert one.said_at.utcoffset() == FUTURE.utcoffset()

    @pytest.mark.parametrize("zone", ["Mars/Olympus", "", "../../etc/passwd", "UTC+25", "+25:00", "+02:00"])
    async def test_a_zone_that_is_none(self, zone: str) -> None:
        with pytest.raises(InvalidSettings, match="HITHERTO_TIME_ZONE"):
            async with hitherto.open("memory:", time_zone=zone):
                pass
