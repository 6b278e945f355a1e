"""What a daily limit has put off, and why, where digests, costs and health are shown."""

from __future__ import annotations

from playwright.async_api import expect

import hitherto
from hitherto import assistant, user
from hitherto.providers.scripted import items
from tests.web.conftest import ADA, SignIn
from tests.web.test_runs_and_costs import HERE, Counting


async def stopped_by_a_limit(database: str) -> None:
    """One digest is made, and the next is put off."""
    async with hitherto.open(
        database, model=Counting(then=items("They talk.")), daily_tokens=1_000, row_security=True
    ) as memory:
        chat = memory.conversation("monday", scope=ADA, policy="rolling")
        for at in range(40):
            await chat.append(user(f"Question {at}"), assistant(f"Answer {at}."))
            await memory.wait_for_digests()


async def test_what_was_put_off_says_when_it_is_tried(database: str, signed_in: SignIn, site: str) -> None:
    """And a button that can do nothing about it says so."""
    await stopped_by_a_limit(database)
    page = await signed_in("admin")
    await page.goto(f"{site}/{HERE}/digests")
    last = page.locator(".digest").last
    await expect(last.locator("strong")).to_have_text("put off")
    await expect(last).to_contain_text("It is tried again by itself")
    await expect(page.get_by_text("Some are still being made")).to_have_count(0)
    await page.get_by_role("button", name="Make due digests now").click()
    await expect(page.get_by_text("Nothing was begun: what was put off is tried again by itself")).to_be_visible()
