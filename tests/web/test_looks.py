"""Every page, light and dark, wide and narrow, with and without entries: nothing that axe finds, nothing that scrolls
sideways, nothing heavy."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

import pytest
from axe_playwright_python.async_playwright import Axe

from hitherto import Memory, Scope, assistant, user
from hitherto.web.templating import path
from tests.web.conftest import ADA, SignIn

PAGES = (
    "conversations",
    "conversations?user=nobody",
    "conversations/ada/cook/monday",
    "conversations/ada/cook/monday?digest=1&statement=0",
    "conversations/ada/cook/monday/messages/0",
    "conversations/ada/cook/monday/context",
    "conversations/ada/cook/monday/context?kept=1",
    "conversations/ada/cook/monday/context?question=What+is+it%3F&other=trim&model=gpt-4.1&budget=900",
    "conversations/ada/cook/monday/context?question=What+is+it%3F&of=monday&seq=3&wire=anthropic",
    "conversations/ada/cook/monday/context?policy=unknown",
    "recall",
    "recall?user=ada&agent=cook&question=Which+question%3F&conversation=monday",
    "conversations/ada/cook/nothing",
    "conversations/ada/cook/monday/branches",
    "conversations/ada/cook/monday/digests",
    "conversations/ada/cook/monday/tokens",
    "conversations/ada/cook/monday/runs",
    "costs",
    "costs?since=2026-03-02&until=2026-03-01",
    "health",
    "people",
    "people?user=ada",
    "people?user=nobody",
    "people/ada/cook",
    "people/ada/cook?state=every&category=hobby",
    "people/nobody/cook",
    "people/ada/cook/review",
    "people/nobody/cook/review",
    "people/ada/cook/facts/1",
    "people/ada/cook/facts/2",
    "people/ada/cook/facts/2/similar",
    "people/ada/cook/documents",
    "people/nobody/cook/documents",
    "people/ada/cook/documents/1",
    "conversations/ada/cook/monday/erase",
    "conversations/ada/cook/monday/erase?first=2&last=40",
    "conversations/ada/cook/gone/erase?erased=3",
    "erase",
    "erase?what=user&name=ada",
    "erase?what=tenant&name=acme",
    "erase/progress?what=user&name=ada",
    "erase/progress?what=subject&name=cat",
    "export",
    "export?user=ada&agent=cook",
)
WEIGHT = 150_000
"""Bytes of a page with what it loads."""
LOADED = """
    ["navigation", "resource"].flatMap(kind => performance.getEntriesByType(kind))
        .reduce((sum, one) => sum + one.decodedBodySize, 0)
"""


async def filled(memory: Memory) -> UUID:
    """Something of each kind that pages show. Returns the id of a run."""
    chat = memory.conversation("monday", scope=ADA, policy="rolling")
    for at in range(40):
        await chat.append(user(f"Question {at}\n```py\nprint({at})\n```"), assistant(f"Answer {at}."))
    call = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
    await chat.append(
        user("Look it up."),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "found"},
    )
    await memory.wait_for_digests()
    await memory.facts(ADA).add("Ada is allergic to shellfish.")
    await chat.context("What was the question?", budget=2_000, model="gpt-4.1-mini", recall="own")
    about = memory.facts(ADA, subject="dog")
    await memory.configure_subject(tenant="acme", subject="dog", name="Rex", members=["ada", "bob"])
    dog = await about.add("Rex, the dog, is afraid of thunder.", category="other")
    await about.share(dog.id)
    for content in ("Plays the cello.", "Plays the cello in an orchestra.", "Lives in Rome."):
        await chat.remember(content, category="hobby")
    fact = (await memory.facts(ADA).list(category="hobby"))[0]
    await memory.facts(ADA).edit(fact.id, content="Plays the violoncello.")
    await memory.documents(ADA).add("# Handbook\n\nRead me.\n```\ncode\n```\n" * 50, metadata={"by": "Tom"})
    await memory.wait_for_index()
    run = await memory.runs(ADA).begin("monday")
    tokens = {"tokens_in": 1_200, "tokens_cached": 900, "tokens_out": 20}
    await memory.runs(ADA).add(run.id, {"kind": "model_call", "name": "gpt-4.1", "payload": tokens})
    return run.id


@pytest.mark.parametrize(
    ("scheme", "width"), [("light", 1_280), ("dark", 360)], ids=["light and wide", "dark and narrow"]
)
async def test_every_page(
    signed_in: SignIn, site: str, memory: Memory, scheme: Literal["light", "dark"], width: int
) -> None:
    run = await filled(memory)
    page = await signed_in("admin", color_scheme=scheme, viewport={"width": width, "height": 800})
    heavy = dict[str, int]()
    for there in (*PAGES, f"conversations/ada/cook/monday/runs/{run}"):
        answer = await page.goto(f"{site}/acme/{there}")
        assert answer is not None
        assert answer.status == (404 if "nothing" in there else 200), there
        weight = await page.evaluate(LOADED)
        assert weight > 0, there
        heavy |= {there: weight} if weight > WEIGHT else {}
        found = await Axe().run(page)
        assert found.violations_count == 0, f"{there}: {found.generate_report()}"
        assert await page.evaluate("document.documentElement.scrollWidth") <= width, there
    assert heavy == {}


async def test_a_long_word_does_not_widen_a_page(signed_in: SignIn, site: str, memory: Memory) -> None:
    """Such as an address, in a message, a title, a fact and each name."""
    word = "x" * 150
    scope = Scope(tenant="acme", user=f"u{word}", agent=f"a{word}")
    chat = memory.conversation(word, scope=scope)
    await chat.append(user(f"{word}\n```\n{word}\n```"), assistant(word))
    await chat.configure(title=word)
    await memory.facts(scope, subject=word).add(word)
    await memory.documents(scope).add(word, title=word)
    run = await memory.runs(scope).begin(word, strategy=word)
    await memory.runs(scope).add(run.id, {"kind": "tool_call", "name": word, "payload": word})
    page = await signed_in("admin", viewport={"width": 360, "height": 800})
    base, person = ((scope.tenant, kind, scope.user, scope.agent) for kind in ("conversations", "people"))
    tabs = ((), ("messages", 0), ("context",), ("digests",), ("branches",), ("erase",), ("runs",), ("runs", run.id))
    for there in (
        path("acme", "conversations"),
        path("acme", "people"),
        path("acme", "export", user=scope.user),
        path("acme", "recall", user=scope.user, agent=scope.agent, question=word),
        path("acme", "erase", what="user", name=scope.user),
        path("acme", "erase", what="subject", name=word),
        *(path(base, word, *tab) for tab in tabs),
        *(path(person, *tab) for tab in ((), ("facts", 1), ("review",), ("documents",), ("documents", 1))),
    ):
        answer = await page.goto(f"{site.removesuffix(path())}{there}")
        assert answer is not None
        assert answer.status == 200, there
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360, there
