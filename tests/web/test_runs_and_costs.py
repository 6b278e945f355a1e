"""What an agent did, what its models cost, what waits, and what stood in the place of messages."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from aiohttp import ClientSession
from playwright.async_api import expect

import hitherto
from hitherto import Memory, assistant, user
from hitherto.ports.models import Completion, Prompt
from hitherto.providers.scripted import Scripted, items
from hitherto.web.sessions import COOKIE, form_token
from hitherto.web.views import health
from tests.web.conftest import ADA, SignIn
from tests.web.test_sessions import seen, sign_in


class Counting(Scripted):
    """Says how many tokens its calls had."""

    async def complete(self, prompt: Prompt) -> Completion:
        return replace(await super().complete(prompt), tokens_in=1_000, tokens_cached=600, tokens_out=20)


HERE = "acme/conversations/ada/cook/monday"


async def test_a_branch_that_was_left_is_shown_again(signed_in: SignIn, site: str, memory: Memory) -> None:
    chat = memory.conversation("monday", scope=ADA)
    await chat.append(user("What is it?"), assistant("A fish."))
    await chat.append(assistant("A bird."), at=0)
    page = await signed_in("read", "write")
    await page.goto(f"{site}/{HERE}/branches")
    await page.get_by_role("button", name="Make this the current answer").click()
    await expect(page.locator("#m1 .fate")).to_have_text("in: verbatim")
    await expect(page.locator("#m2 .fate")).to_have_text("dropped: undone, or on another branch")
    page = await signed_in("read")
    await page.goto(f"{site}/{HERE}/branches")
    await expect(page.get_by_text("A bird.")).to_be_visible()
    await expect(page.get_by_role("button", name="Make this the current")).to_have_count(0)


async def talk_in_vain(database: str) -> None:
    """A conversation whose digest fails."""
    broken = Scripted(then=ValueError("the model speaks in riddles"))
    async with hitherto.open(database, model=broken, digest_max_attempts=1, backoff=0, row_security=True) as memory:
        chat = memory.conversation("monday", scope=ADA, policy="rolling")
        for at in range(40):
            await chat.append(user(f"Question {at}"), assistant(f"Answer {at}."))
        await memory.wait_for_digests()


async def test_a_failed_digest_says_why_and_is_tried_again(database: str, signed_in: SignIn, site: str) -> None:
    await talk_in_vain(database)
    page = await signed_in("admin")
    await page.get_by_role("link", name="Health").click()
    await page.get_by_role("link", name="failed in Question 0").click()
    await expect(page.locator(".digest strong.error").first).to_have_text("failed")
    await page.get_by_role("button", name="Try again now").click()
    await expect(page.locator(".digest").last).to_contain_text("completed")


async def test_what_a_day_cost(database: str, signed_in: SignIn, site: str) -> None:
    async with hitherto.open(database, model=Counting(then=items("They talk.")), row_security=True) as memory:
        chat = memory.conversation("monday", scope=ADA, policy="rolling")
        for at in range(40):
            await chat.append(user(f"Question {at}"), assistant(f"Answer {at}."))
        await memory.wait_for_digests()
        (spent,) = await memory.costs("day", tenant="acme")
    page = await signed_in("admin")
    await page.get_by_role("link", name="Costs").click()
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name=spent.group))
    await expect(row.get_by_role("cell").nth(2)).to_have_text(f"{spent.calls:,}")
    drawn = page.locator("figure", has_text="what the provider had in its cache")
    await expect(drawn.locator("rect.foot")).to_have_count(1)
    expected = f"{spent.group}: {spent.tokens_in:,} tokens in, {spent.tokens_cached:,} cached"
    await expect(drawn.locator("title").last).to_have_text(expected)
    await page.goto(f"{site}/acme/costs?since=2000-01-01")
    await expect(page.get_by_role("link", name=spent.group)).to_be_visible()
    await row.get_by_role("link").click()
    by_model = page.get_by_role("row").filter(has_text="scripted")
    await expect(by_model.get_by_role("cell").nth(2)).to_have_text(f"{spent.calls:,}")


async def test_days_of_which_nothing_can_be_shown(signed_in: SignIn, site: str) -> None:
    today = datetime.now(UTC).date()
    page = await signed_in("admin")
    for asked, says in (
        ("since=2026-03-02&until=2026-03-01", "The first day is after the last one."),
        ("since=2998-01-01&until=2999-01-01", "These days are yet to come."),
        ("since=1900-01-01&until=2999-01-01", f"those from {today - timedelta(days=365)} to {today}"),
        ("since=2026-03-01&until=2026-03-02", "No model was called from 2026-03-01 to 2026-03-02."),
    ):
        await page.goto(f"{site}/acme/costs?{asked}")
        await expect(page.locator("main")).to_contain_text(says)
        await expect(page.get_by_text("HITHERTO_MODEL")).to_have_count(0)


async def test_a_run_by_its_events(signed_in: SignIn, site: str, memory: Memory) -> None:
    runs = memory.runs(ADA)
    await memory.conversation("monday", scope=ADA).append(user("Look it up."))
    run = await runs.begin("monday", strategy="balanced")
    await runs.add(run.id, {"kind": "tool_call", "payload": {"city": "<b>Faro"}, "name": "look_up"})
    await runs.add(run.id, {"kind": "tool_result", "payload": "<b>sunny " * 50, "name": "look_up"})
    await runs.add(run.id, {"kind": "error", "payload": {"why": "no answer"}})
    await runs.end(run.id, failed=True)
    page = await signed_in("read")
    await page.goto(f"{site}/{HERE}/runs")
    await expect(page.get_by_role("cell", name="failed")).to_be_visible()
    await page.locator("tbody a").first.click()
    await expect(page.locator("tbody tr")).to_have_count(3)
    await expect(page.locator("pre").first).to_have_text('{"city": "<b>Faro"}')
    await expect(page.locator("pre").nth(1)).to_be_hidden()
    await page.locator("summary").click()
    await expect(page.locator("pre").nth(1)).to_contain_text("<b>sunny <b>sunny")
    await page.goto(f"{site}/acme/conversations/ada/cook/tuesday/runs/{run.id}")
    await expect(page.get_by_role("alert")).to_have_text("there is no such run in this conversation")


async def test_large_events_are_all_reached(signed_in: SignIn, site: str, memory: Memory) -> None:
    runs = memory.runs(ADA)
    await memory.conversation("monday", scope=ADA).append(user("Look it up."))
    run = await runs.begin("monday")
    for _ in range(5):
        await runs.add(run.id, {"kind": "tool_result", "payload": "x" * 1_500_000, "name": "look_up"})
    await runs.add(run.id, {"kind": "error", "payload": "no answer"})
    page = await signed_in("read")
    await page.goto(f"{site}/{HERE}/runs/{run.id}")
    for _ in range(2):
        await page.get_by_role("link", name="Later events").click()
    await expect(page.locator("pre").last).to_have_text("no answer")
    await expect(page.get_by_role("link", name="Later events")).to_have_count(0)


async def test_the_tokens_of_model_calls(signed_in: SignIn, site: str, memory: Memory) -> None:
    """Where the event of a call has them: an application may record anything."""
    runs = memory.runs(ADA)
    await memory.conversation("monday", scope=ADA).append(user("Look it up."))
    run = await runs.begin("monday")
    first, second = {"tokens_in": 1_200, "tokens_cached": None}, {"tokens_in": 1_500, "tokens_cached": 1_100}
    for payload in (first, {"tokens_in": 10**400}, {"tokens_in": "many"}, ["tokens_in"], None, second):
        await runs.add(run.id, {"kind": "model_call", "name": "gpt-4.1", "payload": payload})
    page = await signed_in("read")
    await page.goto(f"{site}/{HERE}/runs/{run.id}")
    await page.get_by_text("As a table").click()
    rows = page.locator("table.figures tbody tr")
    await expect(rows).to_have_count(2)
    assert [(await row.locator("td").all_inner_texts())[1:] for row in await rows.all()] == [
        ["1,200", "–", "–"],
        ["1,500", "1,100", "–"],
    ]
    drawn = page.locator("figure > svg")
    await expect(drawn.locator("rect.foot")).to_have_count(1)
    assert await drawn.locator("title").all_text_contents() == [
        "Call 1: 1,200 tokens in, – cached",
        "Call 2: 1,500 tokens in, 1,100 cached",
    ]


@pytest.mark.parametrize(
    ("answer", "shown", "errors"),
    [
        ("error: the card was declined", "error: the card was declined", 1),
        ('{"error": "declined"}', '{"error": "declined"}', 1),
        ({"error": "declined"}, '{"error": "declined"}', 1),
        ({"hotel": 2, "error": None}, '{"hotel": 2, "error": null}', 0),
        ("booked, without an error", "booked, without an error", 0),
    ],
)
async def test_an_error_of_a_tool_is_counted_and_shown(
    memory: Memory, site: str, http: ClientSession, answer: object, shown: str, errors: int
) -> None:
    """In a run that went on all the same, and as text. It may begin before anything is said."""
    runs = memory.runs(ADA)
    run = await runs.begin("monday")
    await runs.add(run.id, {"kind": "tool_call", "payload": {}, "name": "book"})
    await runs.add(run.id, {"kind": "tool_result", "payload": answer, "name": "book"})
    await runs.end(run.id)
    reader = (await sign_in(http, site, (await memory.keys("acme").create("r", rights=["read"])).secret))[2]
    _, listed = await seen(http, f"{site}/{HERE}/runs", reader)
    assert re.findall(r'<td class="count( error)?">(\d+)</td>', listed)[1] == (" error" if errors else "", f"{errors}")
    _, text = await seen(http, f"{site}/{HERE}/runs/{run.id}", reader)
    assert text.count("<strong>error</strong>") == errors
    assert shown in unescape(text)
    assert len(re.findall('aria-label="took [0-9.]+ seconds"', text)) == 1


async def test_what_waits_and_the_checks(signed_in: SignIn, site: str, memory: Memory) -> None:
    """The checks are about the whole database: an administrator of one tenant is told who can run them."""
    page = await signed_in("admin")
    await page.get_by_role("link", name="Health").click()
    await expect(page.get_by_role("row").filter(has_text="Wait to be made").get_by_role("cell")).to_have_text("0")
    await page.goto(f"{site}/acme/health?check=true")
    await expect(page.get_by_role("alert")).to_contain_text("hitherto doctor")


async def test_failed_digests_of_older_conversations(
    database: str, signed_in: SignIn, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Are a link away: one page looks at a few conversations, and says so."""
    monkeypatch.setattr(health, "LAST", 1)
    await talk_in_vain(database)
    await memory.conversation("tuesday", scope=ADA).append(user("Hello"))
    page = await signed_in("admin")
    await page.get_by_role("link", name="Health").click()
    await expect(page.get_by_text("Conversations before these were not looked at.")).to_be_visible()
    await expect(page.get_by_role("link", name="failed in Question 0")).to_have_count(0)
    await page.get_by_role("link", name="Look at older ones").click()
    await expect(page.get_by_role("link", name="failed in Question 0")).to_be_visible()
    await expect(page.get_by_text("were not looked at")).to_have_count(0)


async def test_no_right_no_page_and_no_change(memory: Memory, site: str, http: ClientSession) -> None:
    """Nor a change by a form that another page has made up."""
    chat = memory.conversation("monday", scope=ADA)
    await chat.append(user("What is it?"), assistant("A fish."))
    await chat.append(assistant("A bird."), at=0)
    reader = (await sign_in(http, site, (await memory.keys("acme").create("r", rights=["read"])).secret))[2]
    writer = (await sign_in(http, site, (await memory.keys("acme").create("w", rights=["write"])).secret))[2]
    for there in ("acme/costs", "acme/health"):
        assert (await seen(http, f"{site}/{there}", reader))[0] == 403
    for session, token, refused in (
        (reader, form_token(reader), "does not have the right"),
        (writer, "", "not of this session"),
        (writer, form_token(reader), "not of this session"),
    ):
        form, carried = {"seq": "1", "rev": "2", "form_token": token}, {"Cookie": f"{COOKIE}={session}"}
        for there in ("branches", "digests"):
            async with http.post(f"{site}/{HERE}/{there}", data=form, headers=carried) as done:
                assert (done.status, refused in await done.text()) == (403, True)
    assert [one.text for one in (await chat.transcript()).entries] == ["What is it?", "A bird."]
