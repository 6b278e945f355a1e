"""What a question finds, why in this order, and from where."""

from __future__ import annotations

import re

from aiohttp import ClientSession
from playwright.async_api import expect

import hitherto
from hitherto import Memory, assistant, user
from hitherto.errors import ModelUnavailable
from hitherto.providers.scripted import ScriptedEmbedder
from hitherto.web.app import create_inspector
from hitherto.web.templating import ROOT
from tests.http.serving import LIMITS, listening
from tests.web.conftest import ADA, SignIn
from tests.web.test_conversation import HOSTILE
from tests.web.test_sessions import seen

THERE = "acme/recall?user=ada&agent=cook"


async def test_hits_say_where_they_come_from_and_what_they_are_made_of(
    signed_in: SignIn, site: str, memory: Memory
) -> None:
    chat = memory.conversation("monday", scope=ADA)
    for at in range(30):
        await chat.append(user(f"How long is bread number {at} in the oven?"), assistant(f"{at} minutes."))
    await chat.append(user("My dog Rex eats salmon."), assistant("Noted."))
    await memory.wait_for_index()
    found = await memory.recall("What does the dog eat?", scope=ADA, limit=15)
    page = await signed_in("read")
    await page.get_by_role("link", name="Recall").click()
    await page.get_by_label("User").fill("ada")
    await page.get_by_label("Agent").fill("cook")
    await page.get_by_label("Question").fill("What does the dog eat?")
    await page.get_by_role("button", name="Search").click()
    await expect(page.get_by_role("status").first).to_contain_text(f"{found.searched} entries were searched")
    hit = page.get_by_role("article", name="Hit 1", exact=True)
    await expect(hit.locator(".text")).to_have_text("My dog Rex eats salmon.")
    parts, total = (await hit.locator(".meta").nth(1).inner_text()).split(" = ")
    assert total == f"{found.hits[0].scores.fused:.2f}"
    assert abs(sum(map(float, re.findall(r"[0-9.]+", parts))) - float(total)) < 0.03
    assert await hit.locator("rect").count() == len(re.findall(r"[0-9.]+", parts))
    likely = sum(one.score >= 0.05 for one in found.hits[:10])
    listed = page.get_by_role("list").filter(has=page.get_by_role("article"))
    await expect(listed.nth(0).get_by_role("article")).to_have_count(likely)
    await expect(page.get_by_role("heading", name="Just missed")).to_be_visible()
    await hit.get_by_role("link", name="monday, message 60").click()
    await expect(page.locator("#m60")).to_be_visible()


async def test_a_fact_and_a_document_lead_to_their_pages(signed_in: SignIn, site: str, memory: Memory) -> None:
    """And who is asked for need not be known by heart."""
    await memory.conversation("monday", scope=ADA).append(user("Hello"))
    await memory.facts(ADA).add("The dog Rex eats salmon.")
    await memory.documents(ADA).add("The boiler is in the cellar.", title="Boiler manual")
    await memory.wait_for_index()
    page = await signed_in("read")
    for question, link in (("What does the dog eat?", "fact 1"), ("Where is the boiler?", "Boiler manual")):
        await page.goto(f"{site}/{THERE}&question={question}")
        await page.get_by_role("link", name=link, exact=True).click()
        await expect(page.locator("h1")).to_have_text(re.compile("^(The dog Rex|Boiler)"))
    await page.goto(f"{site}/acme/recall?user=ada")
    proposed = page.locator("datalist option")
    assert [await one.get_attribute("value") for one in await proposed.all()] == ["ada", "cook"]


async def test_what_was_missing_is_said(database: str, http: ClientSession) -> None:
    embedder = ScriptedEmbedder()
    async with hitherto.open(database, embedder=embedder) as memory:
        await memory.conversation("monday", scope=ADA).append(user("My dog Rex eats salmon."))
        await memory.wait_for_index()
        embedder._then = ModelUnavailable("gone")
        async with listening(create_inspector(memory, False, LIMITS)) as url:
            _, text = await seen(http, f"{url}{ROOT}/{THERE}&question=dog", "")
    assert "Something was missing: the embedder was not available, so only words were compared." in text


async def test_what_a_user_wrote_is_text(signed_in: SignIn, site: str, memory: Memory) -> None:
    await memory.conversation('"<b>', scope=ADA).append(user(HOSTILE + " word" * 5_000))
    await memory.wait_for_index()
    page = await signed_in("read")
    await page.goto(f"{site}/{THERE}&question=evil+word")
    await expect(page.get_by_role("article").first).to_be_visible()
    assert await page.locator("main script, main img, main b, main form:not(.filter)").count() == 0
    assert not set("\u202e\x1b\0") & set(await page.locator("main").inner_text())
    assert len(await page.content()) < 20_000
