"""Takes the pictures of docs/inspector.md. Needs chromium.

python scripts/picture_pages.py
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from importlib import resources
from pathlib import Path

from playwright.async_api import async_playwright

import hitherto
from hitherto import Memory, Scope, assistant, user
from hitherto.importers import import_file
from hitherto.providers.scripted import Scripted, items

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
HERE = "local/conversations/ada/travel/lisbon"

PAGES = {
    "log": f"{HERE}?start=60",
    "context": f"{HERE}/context?question=What+is+Tom+allergic+to%3F&other=trim&budget=1500",
    "recall": "local/recall?user=ada&agent=travel&question=What+is+Tom+allergic+to%3F",
    "facts": "local/people/ada/travel",
}


async def filled(memory: Memory) -> None:
    """A trip that is planned, the conversation that ships with the package, and what was learned of Ada."""
    scope = Scope(tenant="local", user="ada", agent="travel")
    trip = memory.conversation("lisbon", scope=scope, policy="rolling")
    for day in range(1, 51):
        wish = " Somewhere without shellfish: Tom is allergic to it." if day == 3 else ""
        await trip.append(user(f"Dinner on day {day} at {18 + day % 4}:00, please.{wish}"), assistant("Booked."))
    await memory.wait_for_digests()
    with resources.as_file(resources.files("hitherto").joinpath("data/demo.jsonl")) as file:
        await import_file(memory, file, scope=scope)
    facts = memory.facts(scope)
    for content, category in (("Tom is allergic to shellfish.", "health"), ("Ada eats late.", "preference")):
        await facts.add(content, category=category)
    await memory.wait_for_index()


async def main() -> None:
    from hitherto.web.app import create_inspector
    from hitherto.web.templating import ROOT as PREFIX
    from tests.http.serving import LIMITS, listening

    told = Scripted(then=items("Dinners are booked for each evening; Tom must not eat shellfish."), name="scripted")
    async with hitherto.open("memory:", model=told, facts=False) as memory, async_playwright() as playwright:
        await filled(memory)
        browser = await playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        async with listening(create_inspector(memory, False, LIMITS)) as url:
            for name, there in PAGES.items():
                page = await browser.new_page(viewport={"width": 1_200, "height": 760})
                await page.goto(f"{url}{PREFIX}/{there}", wait_until="networkidle")
                await page.screenshot(path=ROOT / "docs" / "images" / f"inspector-{name}.png")
                await page.close()
        await browser.close()


asyncio.run(main())
