"""The log of a conversation, and what a model sees of it."""

from __future__ import annotations

from playwright.async_api import expect

from hitherto import Call, Memory, Scope, assistant, system, tool_result, user
from hitherto.web.templating import LONGEST
from tests.web.conftest import ADA, SignIn

HOSTILE = (
    "<script>alert(1)</script> <img src=x onerror=alert(2)> <svg onload=alert(3)> {{ 7 * 7 }} [a](javascript:alert(4)) "
    "\u202egnirts \x1b[31mred\x1b[0m \ud800 \0 </bdi></div><form action=https://evil.example>"
)


async def test_conversations_by_user_agent_and_text(signed_in: SignIn, site: str, memory: Memory) -> None:
    """A text is searched in what one user has, with all agents or with one."""
    for who, agent, name, said in (
        ("ada", "cook", "soup", "The soup needs salt."),
        ("ada", "nurse", "pills", "Salt is bad for me."),
        ("bob", "cook", "fish", "Salt on the fish."),
    ):
        scope = Scope(tenant="acme", user=who, agent=agent)
        await memory.conversation(name, scope=scope).append(user(said), assistant("I see."))
    await memory.wait_for_index()
    page = await signed_in("read")
    titles = page.locator("tbody td:first-child > a:first-child")
    await page.get_by_label("Text").fill("salt")
    await page.get_by_role("button", name="Show").click()
    await expect(page.get_by_role("status")).to_contain_text("name the user")
    await expect(page.get_by_label("Text")).to_have_value("salt")
    await page.get_by_label("User").fill("ada")
    await page.get_by_role("button", name="Show").click()
    await expect(titles).to_have_count(2)
    assert sorted(await titles.all_inner_texts()) == ["Salt is bad for me.", "The soup needs salt."]
    await page.get_by_label("Agent").fill("nurse")
    await page.get_by_role("button", name="Show").click()
    await expect(titles).to_have_text(["Salt is bad for me."])
    await page.get_by_label("User").fill("nobody")
    await page.get_by_role("button", name="Show").click()
    await expect(page.locator(".empty")).to_contain_text("None.")
    await page.get_by_role("link", name="Show all").click()
    await expect(titles).to_have_count(3)
    await page.get_by_role("link", name="nurse").click()
    await expect(titles).to_have_text(["Salt is bad for me."])
    alone = await signed_in("read", user="bob")
    await alone.goto(f"{site}/acme/conversations?text=salt")
    await expect(alone.locator("tbody td:first-child > a:first-child")).to_have_text(["Salt on the fish."])


async def test_each_message_says_what_became_of_it(signed_in: SignIn, site: str, memory: Memory) -> None:
    chat = memory.conversation("monday", scope=ADA, policy="rolling")
    for at in range(40):
        await chat.append(user(f"Question {at}"), assistant(f"Answer {at}."))
    await memory.wait_for_digests()
    page = await signed_in("read")
    await page.get_by_role("link", name="Question 0").click()
    await expect(page.locator("#m79 .fate")).to_have_text("in: verbatim")
    await page.goto(f"{site}/acme/conversations/ada/cook/monday?start=0")
    await expect(page.locator("#m0 .fate")).to_have_text("digested: summarized")
    statement = page.get_by_label("Digest").get_by_role("link").nth(3)
    await statement.click()
    await expect(page.locator(".message.marked")).to_have_attribute("id", "m6")
    rests = await page.locator("aside li[aria-current] .meta").inner_text()
    assert rests == "6"


async def test_the_log_says_what_the_last_request_had(signed_in: SignIn, site: str, memory: Memory) -> None:
    chat = memory.conversation("monday", scope=ADA, policy="none")
    for at in range(20):
        await chat.append(user(f"Question {at}"), assistant(f"Answer {at}."))
    sent = await chat.context("And now?", budget=100)
    await chat.append(user("And now?"), assistant("Yes."))
    page = await signed_in("read")
    await page.goto(f"{site}/acme/conversations/ada/cook/monday")
    await expect(page.locator("main")).to_contain_text(f"{sent.tokens} tokens of at most 100")
    await expect(page.locator("#m3 .fate")).to_have_text("dropped: over the budget")
    await expect(page.locator("#m39 .fate")).to_have_text("in: verbatim")
    await expect(page.locator("#m40 .fate")).to_have_text("in: asked with this request")
    await expect(page.locator("#m41 .fate")).to_have_text("said since")
    await page.goto(f"{site}/acme/conversations/ada/cook/monday/context?of=monday&seq=40")
    await expect(page.locator("main")).to_contain_text("Yes, in the last request: it was asked with this request.")


async def test_calls_are_shown_where_no_request_is_possible(signed_in: SignIn, site: str, memory: Memory) -> None:
    chat = memory.conversation("monday", scope=ADA)
    await chat.append(system("Be brief. " * 20_000))
    await chat.append(
        user("Oslo?"), assistant(calls=[Call(id="c1", name="weather")]), tool_result("c1", "[error] No such place.")
    )
    page = await signed_in("read")
    await page.goto(f"{site}/acme/conversations/ada/cook/monday")
    await expect(page.get_by_role("status").first).to_contain_text("Nothing fits into the budget")
    await expect(page.locator("details summary")).to_have_text("weather 2 messages, 2 to 3 failed")


async def test_the_log_says_what_another_branch_has(signed_in: SignIn, site: str, memory: Memory) -> None:
    """Whatever the request had that was kept last."""
    chat = memory.conversation("monday", scope=ADA)
    await chat.append(user("Which planet?"), assistant("Saturn."))
    await chat.rewind(to=0)
    await chat.append(assistant("Jupiter."))
    await chat.context("Sure?", budget=100)
    await chat.switch(1)
    page = await signed_in("read")
    await page.goto(f"{site}/acme/conversations/ada/cook/monday")
    await expect(page.locator("#m1 .fate")).to_have_text(
        ["dropped: undone, or on another branch", "on the current branch again"]
    )
    await expect(page.locator("#m2 .fate")).to_have_text(["in: verbatim", "now undone, or on another branch"])


async def test_time_travel_is_an_address(signed_in: SignIn, site: str, memory: Memory) -> None:
    chat = memory.conversation("monday", scope=ADA)
    for at in range(5):
        await chat.append(user(f"Question {at}"), assistant(f"Answer {at}."))
    page = await signed_in("read")
    await page.goto(f"{site}/acme/conversations/ada/cook/monday")
    await page.get_by_label("Revision").fill("2")
    await page.wait_for_url("**?rev=2")
    await expect(page.locator("article")).to_have_count(4)
    await page.get_by_role("link", name="Now").click()
    await expect(page.locator("article")).to_have_count(10)


async def test_what_a_user_wrote_is_text(signed_in: SignIn, site: str, memory: Memory) -> None:
    """In a log, in a title, in names: no element of it, nothing that turns the text around it."""
    scope = ADA
    chat = memory.conversation('<b>"monday"', scope=scope)
    await chat.append(user(HOSTILE), assistant("x" * 1_000_000))
    await chat.configure(title=HOSTILE)
    page = await signed_in("read")
    await page.locator("tbody a").first.click()
    assert await page.locator("article script, article img, article svg, article form, h1 script").count() == 0
    text = await page.locator("#m0 .text").inner_text()
    assert "<script>alert(1)</script>" in text
    assert not set("\u202e\x1b\0") & set(text)
    assert len(await page.locator("#m1 .text").inner_text()) < LONGEST + 100
    await page.locator("#m1").get_by_role("link", name="All of it").click()
    await expect(page.get_by_role("link", name="Goes on")).to_be_visible()
    assert len(await page.content()) < 150_000


async def test_pictures_are_shown_and_none_is_fetched(signed_in: SignIn, site: str, memory: Memory) -> None:
    """What would be fetched fails the test by itself."""
    dot = "data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw=="
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in (dot, "https://evil.example/a.png")]
    await memory.conversation("monday", scope=ADA).append({"role": "user", "content": parts})
    page = await signed_in("read")
    await page.goto(f"{site}/acme/conversations/ada/cook/monday")
    shown = page.locator("article img")
    await expect(shown).to_have_count(1)
    assert await shown.evaluate("image => image.decode().then(() => image.naturalWidth)") == 1


async def test_a_page_of_the_log_ends_where_it_is_large(signed_in: SignIn, site: str, memory: Memory) -> None:
    """It goes on at the message that follows, and has the one that is looked for."""
    function = {"name": "look_up", "arguments": "{}"}
    calls = [{"id": f"c{at}", "type": "function", "function": function} for at in range(100)]
    await memory.conversation("monday", scope=ADA).append(
        {"role": "assistant", "content": None, "tool_calls": calls}, *(user("tick " * 300_000) for _ in range(4))
    )
    page = await signed_in("read")

    async def seqs() -> list[int]:
        ids = [await one.get_attribute("id") or "" for one in await page.locator("article").all()]
        return [int(one.removeprefix("m")) for one in ids]

    log = f"{site}/acme/conversations/ada/cook/monday"
    await page.goto(f"{log}?start=0")
    assert await seqs() == [0, 1]
    found = await seqs()
    while await page.get_by_role("link", name="Later").count():
        await page.get_by_role("link", name="Later").click()
        found += await seqs()
    assert found == [0, 1, 2, 3, 4]
    for asked, last in (("", 4), ("?message=3", 3), ("?message=99", 4), ("?start=99", 4)):
        await page.goto(log + asked)
        assert last in await seqs(), asked


async def test_there_is_no_page_of_a_conversation_that_is_not_there(
    signed_in: SignIn, site: str, memory: Memory
) -> None:
    await memory.conversation("monday", scope=ADA).append(user("Question 0"))
    page = await signed_in("admin")
    for tab in ("", "/context", "/tokens", "/digests", "/branches", "/runs", "/erase"):
        await page.goto(f"{site}/acme/conversations/ada/cook/nothing{tab}")
        await expect(page.get_by_role("alert")).to_have_text("there is no such conversation")
    await page.goto(f"{site}/acme/conversations/ada/cook/monday?start=99")
    await expect(page.locator("#m0")).to_be_visible()


async def test_new_messages_are_told_of_while_somebody_looks(signed_in: SignIn, site: str, memory: Memory) -> None:
    chat = memory.conversation("monday", scope=ADA)
    await chat.append(user("Question 0"))
    page = await signed_in("read")
    await page.clock.install()
    asked = list[str]()
    page.on("request", lambda one: asked.append(one.url) if "/news?" in one.url else None)
    for tab in ("", "/digests"):
        await page.goto(f"{site}/acme/conversations/ada/cook/monday{tab}")
        async with page.expect_response("**/news?*told=0") as nothing:
            await page.clock.run_for(6_000)
        assert (await nothing.value).status == 204
        await page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
        asked.clear()
        await page.clock.run_for(60_000)
        assert asked == []
        await page.evaluate("delete document.hidden")
        await chat.append(user("Question 1"), user("Question 2"))
        await page.clock.run_for(6_000)
        news = page.locator(".news[role=status]")
        await expect(news).to_have_text("2 new messages. Show")
        async with page.expect_response("**/news?*told=2") as again:
            await page.clock.run_for(6_000)
        assert (await again.value).status == 204  # it is said once
        await news.get_by_role("link", name="Show").click()
        await expect(page.locator("article").last).to_contain_text("Question 2")
