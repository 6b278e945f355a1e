"""What a model saw, what it would see, and what another policy would send."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import replace
from typing import Any

import pytest
from playwright.async_api import Page, expect

from hitherto import Memory, assistant, user
from hitherto.core.context.manifest import Manifest
from hitherto.core.policy.span import Fate, Reason, Span
from hitherto.engine.conversation import Conversation
from hitherto.errors import BudgetExceeded
from hitherto.pricing import shipped
from hitherto.web.manifests import Sought, what_became
from hitherto.web.requests import parts
from hitherto.web.views import context, tokens
from hitherto.wire import CODECS
from tests.web.conftest import ADA, SignIn
from tests.web.test_conversation import HOSTILE

THERE = "acme/conversations/ada/cook/monday/context"
RULES = "You are a cook."
TOOL = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object", "properties": {}}}}


async def talk(memory: Memory, turns: int = 3, *, model: str = "gpt-4.1-mini") -> Conversation:
    """A conversation whose contexts are kept."""
    chat = memory.conversation("monday", scope=ADA, policy="none")
    for at in range(turns):
        asked = f"Question {at}?"
        async with chat.turn(asked, budget=600, reserve=50, instructions=RULES, model=model, tools=[TOOL]) as turn:
            await turn.add(assistant(f"Answer {at}."))
    return chat


async def tokens_in(page: Page, row: str, column: int = 0) -> str:
    """What the table of tokens has in a row."""
    found = page.locator("table.figures tr").filter(has=page.get_by_role("rowheader", name=row, exact=True))
    return await found.locator("td").nth(column).inner_text()


async def test_what_the_model_saw_and_what_of_it_was_as_before(signed_in: SignIn, site: str, memory: Memory) -> None:
    chat = await talk(memory)
    newest, before, _ = await chat.contexts()
    page = await signed_in("read")
    await page.goto(f"{site}/acme/conversations/ada/cook/monday")
    await page.get_by_role("link", name="What the model sees").click()
    await page.wait_for_url(f"**?kept={newest.id}")
    await expect(page.get_by_role("heading", level=1)).to_have_text("What the model saw")
    await expect(page.locator("main")).to_contain_text("for the question “Question 2?”")
    sections = newest.manifest.sections
    assert await tokens_in(page, "Word for word") == str(sections["verbatim"])
    assert await tokens_in(page, "Kept free for the answer") == "50"
    assert await tokens_in(page, "Sent") == f"{newest.manifest.total} of 600"
    marks = await page.locator(".part h4").all_inner_texts()
    same = len((await chat.rebuild(before.manifest)).messages)
    assert [("as before" in one) for one in marks] == [True] * (1 + same) + [False] * 2  # the tools, too
    page_of_json = await page.request.get(f"{site}/{THERE}/request?kept={newest.id}")
    assert await page_of_json.json() == (await chat.rebuild(newest.manifest)).request


async def test_tokens_by_turn(signed_in: SignIn, site: str, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many are shown as fit on a page, and what each repeats is what its own page says."""
    chat = await talk(memory, 10)
    kept = await chat.contexts()
    page = await signed_in("read")
    await page.goto(f"{site}/acme/conversations/ada/cook/monday")
    await page.get_by_role("link", name="Tokens by turn").click()
    rows, columns = page.locator("tbody tr"), page.locator("figure > svg")
    await expect(rows).to_have_count(8)
    await expect(columns.locator("rect.foot")).to_have_count(8)
    total, same = await rows.first.locator("td.count").nth(0).inner_text(), rows.first.locator("td.count").nth(1)
    assert total == str(kept[0].manifest.total)
    await expect(columns.locator("title").last).to_have_text(f"{total} tokens, {await same.inner_text()} as before")
    shown = await same.inner_text()
    await rows.first.get_by_role("link").click()
    assert await tokens_in(page, "Of it, as in the context before") == shown
    await page.go_back()
    await page.get_by_role("link", name="Earlier ones").click()
    await expect(rows).to_have_count(2)
    await expect(rows.last.locator("td.count").nth(1)).to_have_text("–")
    monkeypatch.setattr(tokens, "_COMPARED", kept[0].manifest.total + kept[1].manifest.total)
    await page.get_by_role("link", name="Newest").click()
    await expect(columns.locator("rect.foot")).to_have_count(1)


async def test_large_contexts_are_all_reached(
    signed_in: SignIn, site: str, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each but the first is compared with the one before it; parts of large requests are made in a thread."""
    threads, made = set[threading.Thread](), context.parts

    def watched(*given: Any) -> Any:
        threads.add(threading.current_thread())
        return made(*given)

    monkeypatch.setattr(context, "parts", watched)
    chat = memory.conversation("monday", scope=ADA, policy="none")
    await chat.append(user("Question 0"))
    for at in range(4):
        await chat.context("And?", instructions=f"{at} " * 700_000, budget=10_000_000)
    page = await signed_in("read")
    for tab in ("context", "tokens"):
        await page.goto(f"{site}/acme/conversations/ada/cook/monday/{tab}")
        found = set(re.findall(r"context\?kept=(\d+)", await page.locator("main").inner_html()))
        while await page.get_by_role("link", name="Earlier ones").count():
            await page.get_by_role("link", name="Earlier ones").click()
            found |= set(re.findall(r"context\?kept=(\d+)", await page.locator("main").inner_html()))
        assert len(found) == 4, tab
    for one in sorted(found, key=int)[1:]:
        await page.goto(f"{site}/acme/conversations/ada/cook/monday/context?kept={one}")
        await expect(page.get_by_role("rowheader", name="Of it, as in the context before")).to_be_visible()
    assert threads
    assert threading.main_thread() not in threads


async def test_trying_leaves_no_trace(signed_in: SignIn, site: str, memory: Memory) -> None:
    """As the last one was made: with its instructions, tools, budget and model."""
    chat = await talk(memory)
    before, kept = await chat.head(), await chat.contexts()
    assert before is not None
    page = await signed_in("read")
    await page.goto(f"{site}/{THERE}")
    await page.get_by_role("link", name="Now").click()
    await page.get_by_label("Question").fill("And the dog?")
    await page.get_by_role("button", name="Try it").click()
    given = {"budget": 600, "reserve": 50, "instructions": RULES, "tools": [TOOL], "model": "gpt-4.1-mini"}
    made = await chat.context("And the dog?", **given, at=before.rev)  # type: ignore[arg-type]
    await expect(page.locator(".part .text").last).to_have_text("And the dog?")
    assert await tokens_in(page, "Sent") == f"{made.tokens} of 600"
    after = await chat.head()
    assert after is not None
    assert (replace(after, now=before.now, clock=before.clock), await chat.contexts()) == (before, kept)


async def test_something_else_beside_what_was_sent(signed_in: SignIn, site: str, memory: Memory) -> None:
    """For the same question, at the same revision, though the conversation went on."""
    chat = await talk(memory)
    sent = (await chat.contexts(limit=1))[0].manifest
    await chat.append(user("And then?"), assistant("Nothing."))
    page = await signed_in("read")
    await page.goto(f"{site}/{THERE}")
    await page.get_by_label("Budget").fill("140")
    await page.get_by_role("button", name="Try it beside").click()
    given = {"budget": 140, "reserve": 50, "instructions": RULES, "tools": [TOOL], "model": "gpt-4.1-mini"}
    made = await chat.context("Question 2?", **given, at=sent.rev)  # type: ignore[arg-type]
    assert made.tokens < sent.total
    assert await tokens_in(page, "Sent") == f"{sent.total} of 600"
    assert await tokens_in(page, "Sent", 1) == f"{made.tokens} of 140"
    await page.get_by_label("Budget").fill("")
    await page.get_by_label("Policy").fill("none")
    await page.get_by_role("button", name="Try it beside").click()
    await expect(page.get_by_role("status")).to_have_text("Both are the same, word for word.")


async def test_two_policies_side_by_side(signed_in: SignIn, site: str, memory: Memory) -> None:
    chat = memory.conversation("monday", scope=ADA, policy="trim:max_turns=12,keep_turns=4")
    for at in range(40):
        await chat.append(user(f"Question {at}?"), assistant(f"Answer {at}."))
    page = await signed_in("read")
    await page.goto(f"{site}/{THERE}")
    await page.get_by_label("Question").fill("Well?")
    await page.get_by_label("Beside it").fill("none")
    await page.get_by_label("Budget").fill("900")
    await page.get_by_label("Model").fill("gpt-4.1")
    await page.get_by_role("button", name="Try it").click()
    price = shipped().named("gpt-4.1")
    for column, policy in enumerate((None, "none")):
        made = await chat.context("Well?", budget=900, model="gpt-4.1", policy=policy, at=40)
        assert await tokens_in(page, "Sent", column) == f"{made.tokens} of 900"
        assert await tokens_in(page, "Cost of sending it", column) == f"${price.prompt(made.tokens, 0):.4f}"
    words = [await one.inner_text() for one in await page.locator(".words").all()]
    assert "64 messages dropped: by a stage of the policy" in words[0]
    assert "80 messages sent: verbatim" in words[1]
    await expect(page.locator("main")).to_contain_text("take effect when messages are appended")


async def test_each_format_is_an_address(signed_in: SignIn, site: str, memory: Memory) -> None:
    chat = memory.conversation("monday", scope=ADA)
    await chat.append(user("Hello"), assistant("Hi."))
    page = await signed_in("read")
    await page.goto(f"{site}/{THERE}")
    for wire in CODECS:
        await page.get_by_role("link", name=wire, exact=True).click()
        await page.get_by_role("link", name="JSON").click()
        shown = json.loads(await page.locator("pre").inner_text())
        assert shown == (await chat.context(wire=wire, at=1)).request  # type: ignore[arg-type]
        await page.go_back()


async def test_what_cannot_be_made_is_said_in_its_place(signed_in: SignIn, site: str, memory: Memory) -> None:
    chat = await talk(memory)
    kept = (await chat.contexts())[0].id
    page = await signed_in("read")
    await page.goto(f"{site}/{THERE}?policy=nothing&other=trim&question=x")
    await expect(page.locator("main .error")).to_contain_text("nothing: there is no policy named 'nothing'")
    await expect(page.get_by_role("region", name="trim")).to_be_visible()
    await page.goto(f"{site}/{THERE}?budget=5")
    with pytest.raises(BudgetExceeded) as refused:
        await chat.context(budget=5, instructions=RULES, tools=[TOOL], model="gpt-4.1-mini")
    await expect(page.locator("main .error")).to_have_text(str(refused.value))
    await chat.erase(0)
    await page.goto(f"{site}/{THERE}?kept={kept}")
    await expect(page.get_by_role("alert")).to_have_text("this context is not kept any more")
    await page.goto(f"{site}/{THERE}")
    await expect(page.get_by_label("Requests")).to_contain_text("HITHERTO_KEEP_CONTEXTS")


async def test_why_it_did_not_know_the_dog(signed_in: SignIn, site: str, memory: Memory) -> None:
    chat = memory.conversation("monday", scope=ADA, policy="none")
    await chat.append(user("Hello."), assistant("Hello."), user("My dog Rex eats salmon."), assistant("Noted."))
    for at in range(20):
        await chat.append(
            user(f"How long is bread number {at} in the oven?"), assistant(f"{at} minutes, at {at} degrees.")
        )
    await memory.wait_for_index()
    await chat.context("What does the dog eat?", budget=120, recall=False)  # kept
    page = await signed_in("read")
    await page.goto(f"{site}/acme/conversations/ada/cook/monday")
    await page.get_by_label("This conversation").get_by_role("link", name="Recall").click()
    await page.get_by_label("Question").fill("What does the dog eat?")
    await page.get_by_role("button", name="Search").click()
    await page.get_by_role("link", name="Did the model see it?").first.click()
    answers = page.locator("section.note li")
    await expect(answers.nth(0)).to_have_text(
        "No, in the last request: dropped: over the budget, and it was not recalled."
    )
    await page.get_by_label("Recall").select_option("own")
    await page.get_by_role("button", name="Try it").click()
    await expect(page.locator(".words")).to_contain_text(re.compile(r"Recalled for the incoming message:\s*message 2"))


async def test_what_a_user_wrote_is_text(signed_in: SignIn, site: str, memory: Memory) -> None:
    chat = memory.conversation("monday", scope=ADA, policy="none")
    await chat.append(user(HOSTILE), assistant("x" * 100_000))
    await chat.context(HOSTILE, budget=60_000)
    page = await signed_in("read")
    for query in ("?rev=1", f"?kept={(await chat.contexts())[0].id}"):
        await page.goto(f"{site}/{THERE}{query}")
        assert await page.locator("main script, main img, main form:not(.filter)").count() == 0
        assert "<script>alert(1)</script>" in await page.locator(".part .text").first.inner_text()
        assert not set("\u202e\x1b\0") & set(await page.locator("main").inner_text())
        assert len(await page.content()) < 50_000
        whole = await page.request.get(f"{site}/{THERE}/request{query}")
        assert (whole.status, whole.headers["content-type"]) == (200, "application/json")


@pytest.mark.parametrize("wire", CODECS)
async def test_the_parts_of_a_request(memory: Memory, wire: str) -> None:
    chat = memory.conversation("monday", scope=ADA)
    await chat.append(user("Hello"), assistant("Hi."))
    before = await chat.context("How are you?", instructions=RULES, wire=wire)  # type: ignore[arg-type]
    now = await chat.context("How are they?", instructions=RULES, wire=wire)  # type: ignore[arg-type]
    found = parts(now.request, before.request)
    assert [(one.text, one.whole, one.repeated) for one in found if one.text != RULES] == [
        ("Hello", True, 5),
        ("Hi.", True, 3),
        ("How are they?", False, len("How are ")),
    ]
    assert [one.place for one in found[-3:]] == [
        f"{'input' if wire == 'openai.responses' else 'messages'}[{at}]" for at in range(len(now.messages))[-3:]
    ]
    assert not any(one.repeated for one in parts(now.request, None))


def manifest(**more: object) -> Manifest:
    """The manifest of a context in which message 0 is digested, 1 is dropped, 2 is in it."""
    fates = [
        Span(start=0, end=0, fate=Fate.DIGESTED, reason=Reason.SUMMARIZED, digest=7),
        Span(start=1, end=1, fate=Fate.DROPPED, reason=Reason.BUDGET),
        Span(start=2, end=2, fate=Fate.IN, reason=Reason.VERBATIM),
    ]
    told: dict[str, object] = dict.fromkeys(("tenant", "user", "agent", "wire", "encoding", "sha256"), "")
    told |= dict.fromkeys(("budget", "reserve", "total", "rev"), 0)
    told |= {"request": {"incoming": [], "instructions": None, "tools": []}, "policy": {}, "sections": {}}
    return Manifest.model_validate(
        told | {"conversation": "monday", "exact": True, "next_seq": 3, "fates": fates, "digest": 7} | more
    )


ENTRY = {"why": "request", "kind": "message", "score": 0.5, "tokens": 9}
FACTS = {
    "subject": "",
    "name": "Ada",
    "place": "system",
    "known": 2,
    "shown": [{"fact": 1, "version": 1, "shared": False}],
}


@pytest.mark.parametrize(
    ("sought", "more", "answer"),
    [
        ({"seq": 2}, {}, (True, "in: verbatim")),
        ({"seq": 0}, {}, (False, "digested: summarized")),
        ({"seq": 1}, {}, (False, "dropped: over the budget, and it was not recalled")),
        ({"seq": 3}, {}, (False, "it was said later")),
        (
            {"seq": 1},
            {"recalled": [ENTRY | {"conversation": "monday", "start": 0, "end": 1}]},
            (True, "it was recalled"),
        ),
        (
            {"seq": 1},
            {"recalled": [ENTRY | {"conversation": "monday", "start": 0, "end": 1, "characters": [(0, 9)]}]},
            (True, "an excerpt of it was recalled"),
        ),
        (
            {"seq": 1},
            {"left_out": [ENTRY | {"conversation": "monday", "start": 1, "end": 1}]},
            (False, "no room for it"),
        ),
        ({"seq": 2, "of": "sunday"}, {}, (False, "it was not among what was recalled")),
        (
            {"seq": 2, "of": "sunday"},
            {"recalled": [ENTRY | {"conversation": "sunday", "start": 2, "end": 2}]},
            (True, ""),
        ),
        ({"seq": 0, "digest": 7}, {}, (True, "it is the digest")),
        ({"seq": 2, "digest": 8}, {}, (False, "it was not among what was recalled")),
        (
            {"document": 4, "passage": 2},
            {"recalled": [ENTRY | {"kind": "passage", "document": 4, "passage": 2}]},
            (True, ""),
        ),
        (
            {"document": 4, "passage": 3},
            {"recalled": [ENTRY | {"kind": "passage", "document": 4, "passage": 2}]},
            (False, ""),
        ),
        ({"fact": 1}, {"facts": FACTS}, (True, "it is among the known facts")),
        (
            {"fact": 2},
            {"facts": FACTS},
            (
                False,
                "1 of 2 known facts about Ada are shown, and it is not among them; one about something else is shown "
                "in conversations about it",
            ),
        ),
        ({"fact": 2}, {}, (False, "no facts are shown in it")),
    ],
)
def test_what_became_of_a_hit(sought: dict[str, object], more: dict[str, object], answer: tuple[bool, str]) -> None:
    shown, why = what_became(Sought.model_validate({"of": "monday"} | sought), manifest(**more))
    assert shown is answer[0]
    assert answer[1] in why
