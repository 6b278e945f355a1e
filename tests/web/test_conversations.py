"""The list of conversations, and the way from a message to what a model sees of it."""

from __future__ import annotations

import re

from playwright.async_api import expect

from hitherto import Memory, assistant, user
from tests.web.conftest import ADA, SignIn


async def test_what_is_found_of_a_text_is_shown(signed_in: SignIn, site: str, memory: Memory) -> None:
    """And leads there; without a user, nothing is listed."""
    for name, said in (("monday", "My dog Rex eats salmon."), ("tuesday", "Bread takes an hour.")):
        await memory.conversation(name, scope=ADA).append(user("Hello"), assistant("Hi."), user(said))
    await memory.wait_for_index()
    page = await signed_in("read")
    await page.get_by_label("Text").fill("dog")
    await page.get_by_role("button", name="Show").click()
    await expect(page.locator("tbody tr")).to_have_count(0)
    await page.get_by_label("User").fill("ada")
    await page.get_by_role("button", name="Show").click()
    await expect(page.locator("tbody tr")).to_have_count(1)
    await page.get_by_role("link", name="My dog Rex eats salmon.").click()
    await expect(page.locator("#m2")).to_be_visible()


async def test_equal_titles_are_told_apart_and_a_search_says_how_it_finds(
    signed_in: SignIn, site: str, memory: Memory
) -> None:
    for name, said in (("monday", "Which bread?"), ("tuesday", "Which bread?"), ("sunday", "Which soup?")):
        await memory.conversation(name, scope=ADA).append(user(said))
    page = await signed_in("read")
    await expect(page.locator("td:first-child .meta")).to_have_text(["tuesday", "monday"])
    await expect(page.locator("td time").first).to_have_attribute("title", re.compile(r" \d+:\d\d:\d\d "))
    await page.goto(f"{site}/acme/conversations?user=ad&text=the")
    await expect(page.locator(".empty")).to_contain_text("found by their whole names")
    await expect(page.locator(".empty")).to_contain_text("such as “the” finds nothing")


async def test_a_message_leads_to_its_neighbors_and_to_what_the_model_saw(
    signed_in: SignIn, site: str, memory: Memory
) -> None:
    """On each page of a conversation stands its title, with its name."""
    chat = memory.conversation("monday", scope=ADA)
    await chat.append(user("My dog Rex eats salmon."), assistant("Noted."))
    await chat.configure(title="Walks and weather")
    page = await signed_in("read")
    await page.goto(f"{site}/acme/conversations/ada/cook/monday/messages/0")
    await expect(page.get_by_role("link", name="Message before")).to_have_count(0)
    await page.get_by_role("link", name="Message after").click()
    await expect(page.locator("h1")).to_have_text("Message 1")
    await expect(page.get_by_role("link", name="Message after")).to_have_count(0)
    await page.get_by_role("link", name="Did the model see it?").click()
    await expect(page.get_by_role("heading", name="Did the model see message 1?")).to_be_visible()
    await page.get_by_role("link", name="Digests").click()
    await expect(page.get_by_label("Where this is")).to_contain_text("Walks and weather (its name: monday)")
