"""Takes the pictures of docs/inspector.md: `python scripts/picture_pages.py`. Needs chromium.

`python scripts/picture_pages.py FOLDER` writes each page in each look there, to be looked at.
"""

from __future__ import annotations

import asyncio
import io
import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from PIL import Image
from playwright.async_api import async_playwright

import hitherto
from hitherto import Memory, Scope, assistant, user
from hitherto.cli.doctor.command import checks_of
from hitherto.core.prompt import Prompt
from hitherto.ports.models import Completion
from hitherto.providers.scripted import Scripted, items
from hitherto.settings import Settings

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
MAREN = Scope(tenant="local", user="maren", agent="planner")
HERE = "local/conversations/maren/planner/anniversary"
PERSON = "local/people/maren/planner"
ASKED = "Which+kitchen+is+free+of+nuts%3F"

Look = tuple[Literal["light", "dark"], Literal["wide", "narrow"]]
WIDE: Look = ("light", "wide")
DARK: Look = ("dark", "wide")
NARROW: Look = ("light", "narrow")
DARK_AND_NARROW: Look = ("dark", "narrow")
SIZES = {"wide": (1_200, 760), "narrow": (360, 760)}

PAGES: dict[str, tuple[str, Look]] = {
    "conversations": ("local/conversations", WIDE),
    "log": (f"{HERE}?digest=1&statement=1", WIDE),
    "message": (f"{HERE}/messages/49", DARK_AND_NARROW),
    "context": (f"{HERE}/context?question={ASKED}&of=anniversary&seq=43&budget=4000", WIDE),
    "digests": (f"{HERE}/digests", DARK),
    "branches": (f"{HERE}/branches", NARROW),
    "runs": (f"{HERE}/runs", NARROW),
    "run": (f"{HERE}/runs/RUN", WIDE),
    "recall": (f"local/recall?user=maren&agent=planner&question={ASKED}", DARK),
    "people": ("local/people", NARROW),
    "facts": (PERSON, WIDE),
    "fact": (f"{PERSON}/facts/2", WIDE),
    "review": (f"{PERSON}/review", DARK),
    "documents": (f"{PERSON}/documents", DARK_AND_NARROW),
    "document": (f"{PERSON}/documents/2", NARROW),
    "costs": ("local/costs", WIDE),
    "health": ("local/health?check=true", DARK),
    "export": ("local/export?user=maren", NARROW),
    "erase": ("local/erase?what=user&name=maren", WIDE),
    "erase-messages": (f"{HERE}/erase?first=31&last=32", DARK_AND_NARROW),
}

STATEMENTS = (
    ("Maren plans a weekend for 25 years of Quire Lane Bindery, for about 60 guests, at most €6,500.", [0, 1]),
    ("Ansa must not be near tree nuts: no kitchen that handles any.", [2, 3]),
    ("Bettany Crole bakes walnut cake each day, so that Saltmarsh Kitchen cooks, at €41 a head.", [41, 44]),
    ("The weekend is moved to 11 to 13 September, as Osric's hip is replaced in August.", [33, 36]),
)
FACTS = (
    ("Ansa Brightwell is allergic to tree nuts, and must not be near them.", "relationship", "workshop"),
    ("Osric Pell needs a way without steps.", "relationship", "workshop"),
    ("Prefers decisions written down at once.", "preference", None),
    ("Runs a bookbinding workshop, Quire Lane Bindery.", "occupation", None),
)
LEARNED = (
    ("Marbles paper in the yard on open days.", "hobby"),
    ("Likes to marble paper.", "hobby"),
    (
        "Has a workshop cat, Vellum, who walks across wet sheets whenever somebody leaves a tray within her reach.",
        "other",
    ),
)
HANDBOOK = """# House rules of the Ropewalk

No open flame anywhere. Everyone is out, with the lights off, by 22:45.

| what | where |
| --- | --- |
| keys | Hesper Lunde |
| tables | the long store |

```sh
unlock --door north && lights --on
```
"""


class PricedModel(Scripted):
    """Says how many tokens each call took."""

    async def complete(self, prompt: Prompt) -> Completion:
        return replace(await super().complete(prompt), tokens_in=11_200, tokens_cached=3_000, tokens_out=950)


async def filled(memory: Memory) -> str:
    """What people and a planner have talked about, with something for each page; the id of a run."""
    chat = memory.conversation("anniversary", scope=MAREN, policy="rolling")
    await chat.configure(title="25 years of Quire Lane Bindery: a weekend for sixty guests", create=True)
    runs = memory.runs(MAREN)
    file = resources.files("hitherto").joinpath("data/demo.jsonl")
    said: list[dict[str, Any]] = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    await chat.append(*said[:48])
    await memory.wait_for_digests()
    run = await runs.begin("anniversary", strategy="rolling")
    call = said[48]["tool_calls"][0]["function"]
    await runs.add(run.id, {"kind": "model_call", "name": "gpt-4.1-mini", "payload": {"tokens": 3_120}})
    await asyncio.sleep(0.6)  # so that the line of time has lengths to show
    await runs.add(run.id, {"kind": "tool_call", "name": call["name"], "payload": json.loads(call["arguments"])})
    await asyncio.sleep(0.3)
    await runs.add(run.id, {"kind": "error", "payload": {"why": "The hotel did not answer within 200 ms."}})
    await chat.append(*said[48:51])
    await asyncio.sleep(0.5)
    await runs.end(run.id)
    await chat.append(*said[51:83])
    await chat.context("Which kitchen is free of nuts?", budget=4_000, model="gpt-4.1-mini", recall="own")
    await chat.append(assistant("Rust red, and the music stops at 22:15."), at=81)
    await chat.append(user("And Vellum, who walks across wet sheets, is not invited. She marbles better than I do."))
    await memory.configure_subject(tenant="local", subject="workshop", name="Workshop", members=["maren", "tobin"])
    for content, category, subject in FACTS:
        added = await memory.facts(MAREN, subject=subject).add(content, category=category)
        if subject:
            await memory.facts(MAREN).share(added.id)
    await memory.facts(MAREN).edit(2, content="Osric Pell cannot climb stairs: he needs a way without steps.")
    for content, category in LEARNED:
        await chat.remember(content, category=category)
    documents = memory.documents(MAREN)
    await documents.add("Rust red linen, 12 m. Delivered on 22 June.", title="Cloth-merchant-invoice-2026-0622.pdf")
    await documents.add(HANDBOOK, title="House rules of the Ropewalk", metadata={"from": "Hesper Lunde"})
    for name, about in (("tobin", "What is left of the budget?"), ("ansa", "Wie viele Hefte sind es heute?")):
        other = memory.conversation("today", scope=Scope(tenant="local", user=name, agent="planner"))
        await other.append(user(about), assistant("I look it up."))
    await memory.wait_for_digests()
    await memory.wait_for_index()
    return str(run.id)


def pictures(folder: Path | None) -> Iterator[tuple[str, Look, Path]]:
    """The addresses to take, in which look, and where each goes."""
    for name, (there, look) in PAGES.items():
        if folder is None:
            yield there, look, ROOT / "docs" / "images" / f"inspector-{name}.png"
        else:
            for one in (WIDE, DARK, NARROW, DARK_AND_NARROW):
                yield there, one, folder / f"{name}-{'-'.join(one)}.png"


async def main(folder: Path | None) -> None:
    from hitherto.web.app import create_inspector
    from hitherto.web.templating import ROOT as PREFIX
    from tests.http.serving import LIMITS, listening

    model = PricedModel(then=items(*STATEMENTS), name="gpt-4.1-mini")
    kept: Any = {"keep_contexts": 5, "daily_cost": 0.02, "facts": False}
    async with hitherto.open("memory:", model=model, **kept) as memory, async_playwright() as playwright:
        run = await filled(memory)
        browser = await playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        doctor = partial(checks_of, Settings(database="memory:"))
        async with listening(create_inspector(memory, False, LIMITS, doctor=doctor)) as url:
            for there, (scheme, width), file in pictures(folder):
                size = dict(zip(("width", "height"), SIZES[width], strict=True))
                page = await browser.new_page(viewport=size, color_scheme=scheme)  # pyright: ignore[reportArgumentType]
                await page.goto(f"{url}{PREFIX}/{there.replace('RUN', run)}", wait_until="networkidle")
                taken = await page.screenshot(full_page=folder is not None)
                # So many colors are enough for pages, and a third of the bytes.
                few = Image.open(io.BytesIO(taken)).convert("RGB").quantize(128, Image.Quantize.MAXCOVERAGE)
                few.save(file, optimize=True)
                await page.close()
        await browser.close()


asyncio.run(main(Path(sys.argv[1]) if sys.argv[1:] else None))
