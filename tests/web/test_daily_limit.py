"""What a daily limit has put off, and why, where digests, costs and health are shown."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import expect

import hitherto
from hitherto import Memory, Scope, assistant, user
from hitherto.providers.scripted import items
from tests.web.conftest import ADA, SignIn
from tests.web.test_runs_and_costs import HERE, Counting


@pytest.fixture
async def memory(database: str) -> AsyncIterator[Memory]:
    """A user who shares the limit gets one digest."""
    model = Counting(then=items("They talk."), name="gpt-4.1-mini")
    async with hitherto.open(
        database, model=model, daily_cost=0.0008, daily_user_share=0.25, row_security=True
    ) as opened:
        yield opened


async def talk_until_put_off(memory: Memory) -> None:
    chat = memory.conversation("monday", scope=ADA, policy="rolling")
    while not (await memory.backlog(tenant="acme")).put_off:
        await chat.append(user("Question?"), assistant("Answer."))
        await memory.wait_for_digests()


async def test_what_was_put_off_says_when_it_is_tried(memory: Memory, signed_in: SignIn, site: str) -> None:
    """And a button that can do nothing about it says so."""
    await talk_until_put_off(memory)
    page = await signed_in("admin")
    await page.goto(f"{site}/{HERE}/digests")
    last = page.locator(".digest").last
    await expect(last.locator("strong")).to_have_text("put off")
    await expect(last).to_contain_text("It is tried again by itself")
    await expect(page.get_by_text("Some are still being made")).to_have_count(0)
    await page.get_by_role("button", name="Make due digests now").click()
    await expect(page.get_by_text("Nothing was begun: what was put off is tried again by itself")).to_be_visible()


@pytest.mark.parametrize(
    ("others", "says"),
    [(True, "1 user has had a user's share of today's limit"), (False, "Today's limit is reached")],
    ids=["a user's share", "the tenant's limit"],
)
async def test_costs_say_whom_the_limit_stops(memory: Memory, signed_in: SignIn, others: bool, says: str) -> None:
    """Health leads there. Who has but facts is no other user, as the limit sees it."""
    await memory.facts(Scope(tenant="acme", user="eve", agent="cook")).add("Likes tea.")
    if others:
        await memory.conversation("c", scope=Scope(tenant="acme", user="bob", agent="cook")).append(user("Hello"))
    await talk_until_put_off(memory)
    page = await signed_in("admin")
    await page.get_by_role("link", name="Health").click()
    await expect(page.get_by_text("was put off.")).to_be_visible()
    await page.get_by_role("main").get_by_role("link", name="Costs").click()
    await expect(
        page.get_by_text("Daily limit: $0.0008, and for a user $0.0002 where there are others.")
    ).to_be_visible()
    await expect(page.get_by_text(says)).to_be_visible()
    await expect(page.get_by_role("main").get_by_role("link", name="ada")).to_have_count(int(others))
