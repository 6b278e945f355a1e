"""The facts of a person: who sees them, where they come from, and their review."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from aiohttp import ClientSession, DummyCookieJar
from playwright.async_api import Page, expect

import hitherto
from hitherto import Memory, Scope, assistant, user
from hitherto.web.sessions import COOKIE, form_token
from hitherto.web.templating import ROOT, path
from hitherto.web.views.people import people
from tests.web.conftest import ADA, SignIn
from tests.web.test_conversation import HOSTILE
from tests.web.test_sessions import sign_in


async def learn(memory: Memory, *contents: str) -> list[int]:
    """Facts that nobody has confirmed, each with a message that says it."""
    chat = memory.conversation("monday", scope=ADA)
    ids = list[int]()
    for content in contents:
        await chat.append(user(f"By the way: {content}"))
        ids.append((await chat.remember(content)).id)
        await chat.append(assistant("Noted."))
    return ids


async def test_from_a_conversation_to_who_sees_a_fact_and_why(signed_in: SignIn, site: str, memory: Memory) -> None:
    """In three clicks from the list of conversations."""
    await learn(memory, "Tom cannot eat peanuts.")
    page = await signed_in("read")
    await page.locator("tbody a").first.click()
    await page.get_by_role("link", name="Facts of ada").click()
    await page.get_by_role("link", name="Tom cannot eat peanuts.").click()
    await expect(page.get_by_text("ada alone, in conversations with cook.")).to_be_visible()
    await expect(page.locator(".sources")).to_contain_text("By the way: Tom cannot eat peanuts.")
    await page.get_by_role("link", name="message 0 of monday").click()
    await expect(page.locator("#m0")).to_be_visible()


async def test_operators_list_people_and_others_those_who_spoke(signed_in: SignIn, site: str, memory: Memory) -> None:
    await memory.facts(ADA).add("Plays the cello.")
    page = await signed_in("admin")
    await page.get_by_role("link", name="People").click()
    await page.locator("tbody").get_by_role("link", name="cook").click()
    await expect(page.locator("h1")).to_have_text("What cook knows about ada")
    await expect(page.locator(".facts")).to_contain_text("Plays the cello.")
    reader = await signed_in("read")
    await reader.goto(f"{site}/acme/people")
    await expect(reader.locator(".empty")).to_be_visible()
    await memory.conversation("monday", scope=ADA).append(user("Hello"))
    await reader.get_by_label("User").fill("ada")
    await reader.get_by_role("button", name="Show").click()
    await expect(reader.locator("tbody a")).to_have_text(["ada", "cook"])


async def test_a_user_with_many_agents_has_a_list_of_them(signed_in: SignIn, site: str, memory: Memory) -> None:
    for at in range(people.AGENTS + 1):
        await memory.facts(Scope(tenant="acme", user="ada", agent=f"agent {at:02}")).add("Plays the cello.")
    await memory.facts(Scope(tenant="acme", user="bob", agent="cook")).add("Has a dog.")
    page = await signed_in("admin")
    await page.goto(f"{site}/acme/people")
    await expect(page.locator("tbody tr")).to_have_count(people.AGENTS + 2)
    await page.get_by_role("link", name="all agents").click()
    await expect(page.locator("tbody tr")).to_have_count(people.AGENTS + 1)


async def test_a_remembered_fact_says_who_remembered_it(signed_in: SignIn, site: str, memory: Memory) -> None:
    """Before the message that it rests on has come, too, and with what it said then."""
    chat = memory.conversation("monday", scope=ADA)
    await chat.append(user("Hello"), assistant("Hi."))
    fact = (await chat.remember("Lives in Rome.")).id
    await memory.facts(ADA).edit(fact, content="Lives in Hamburg.")
    page = await signed_in("read")
    await page.goto(f"{site}/acme/people/ada/cook/facts/{fact}")
    await expect(page.get_by_text("It rests on message 2 of monday, which is not in the log")).to_contain_text(
        "the agent cook remembered it by itself, and that message has not come yet"
    )
    entries = page.locator(".history li")
    await expect(entries.nth(0)).to_contain_text("remembered by the agent cook")
    await expect(entries.nth(0).locator("blockquote")).to_have_text("Lives in Rome.")
    await expect(entries.nth(1)).to_contain_text("corrected by hand, in the name of ada")
    await expect(entries.nth(1).locator("blockquote")).to_have_text("Lives in Hamburg.")
    added = await memory.facts(ADA).add("Has a dog.")
    await page.goto(f"{site}/acme/people/ada/cook/facts/{added.id}")
    await expect(page.get_by_text("It was added by hand, in the name of ada.")).to_be_visible()


async def test_members_see_what_is_shared(signed_in: SignIn, site: str, memory: Memory) -> None:
    await memory.configure_subject(tenant="acme", subject="dog", name="Rex", members=["ada", "bob"])
    added = await memory.facts(ADA, subject="dog").add("Rex is afraid of thunder.", category="other")
    page = await signed_in("admin")
    await page.goto(f"{site}/acme/people/ada/cook/facts/{added.id}")
    await page.get_by_role("button", name="Share with the members of dog").click()
    await expect(page.get_by_text("Who sees it:")).to_be_visible()
    assert "the members of Rex, in conversations with cook: ada, bob." in await page.locator("main").inner_text()
    await page.goto(f"{site}/acme/people/bob/cook?whose=shared")
    await page.get_by_role("link", name="Rex is afraid of thunder.").click()
    await expect(page.locator(".note")).to_have_text(
        "ada shares it, and alone can change it and see where it comes from."
    )
    await expect(page.get_by_text("Delete it")).to_have_count(0)
    reviewer = await signed_in("read", "review")
    await reviewer.goto(f"{site}/acme/people/ada/cook/facts/{added.id}")
    assert "bob" not in await reviewer.locator("main").inner_text()
    await reviewer.get_by_role("button", name="Stop sharing").click()
    await expect(reviewer.get_by_text("ada alone, in conversations with cook.")).to_be_visible()


async def test_a_fact_is_corrected_put_back_deleted_and_restored(signed_in: SignIn, site: str, memory: Memory) -> None:
    old = await memory.facts(ADA).add("Works as a nurse.", category="occupation")
    page = await signed_in("read", "review")
    await page.goto(f"{site}/acme/people/ada/cook")
    await page.get_by_label("One sentence").fill("Plays the cello.")
    await page.locator(".stacked").get_by_label("Category").select_option("hobby")
    await page.get_by_role("button", name="Add").click()
    await expect(page.locator("h1")).to_have_text("Plays the cello.")
    await page.get_by_text("Correct it").click()
    await page.get_by_label("One sentence").fill("Plays the viola.")
    await page.get_by_role("button", name="Save").click()
    await expect(page.locator("h1")).to_have_text("Plays the viola.")
    await page.get_by_role("button", name="Put this back").click()
    await expect(page.locator("h1")).to_have_text("Plays the cello.")
    await page.get_by_text("Delete it").click()
    await page.get_by_role("button", name="Delete").click()
    await expect(page.locator("h1")).to_have_text("A deleted fact")
    await expect(page.locator("main")).not_to_contain_text("cello")
    await expect(page.locator("main")).not_to_contain_text("viola")
    await page.goto(f"{site}/acme/people/ada/cook/facts/{old.id}")
    await expect(page.get_by_role("button", name="Restore")).to_have_count(0)


async def test_a_fact_that_cannot_be_added_is_not_lost(signed_in: SignIn, site: str) -> None:
    page = await signed_in("read", "review")
    await page.goto(f"{site}/acme/people/ada/cook")
    add = page.locator("form", has=page.get_by_label("One sentence"))
    await add.get_by_label("One sentence").fill("Rex is afraid of thunder.")
    await add.get_by_label("Category").select_option("preference")
    await add.get_by_label("About").fill("dog" * 70)
    await add.get_by_role("button", name="Add").click()
    await expect(page.get_by_role("alert")).to_contain_text("subject has 210 characters")
    await expect(add.get_by_label("One sentence")).to_have_value("Rex is afraid of thunder.")
    await expect(add.get_by_label("Category")).to_have_value("preference")
    await expect(add.get_by_label("About")).to_have_value("dog" * 70)
    answer = await page.goto(page.url)  # as signing in anew would
    assert answer is not None
    assert answer.status == 200


async def test_what_a_fact_replaced_can_be_restored(signed_in: SignIn, site: str, database: str) -> None:
    """In a category that holds one value at a time, where what took its place may be under another by now."""
    async with hitherto.open(database, single_fact_categories=("occupation",), worker=False) as writing:
        await writing.facts(ADA).add("Works as a nurse.", category="occupation")
        new = await writing.facts(ADA).add("Works as a baker.", category="occupation")
        await writing.facts(ADA).edit(new.id, category="other")
    page = await signed_in("read", "review")
    await page.goto(f"{site}/acme/people/ada/cook")
    await page.get_by_role("link", name="Works as a baker.").click()
    await page.get_by_label("What it replaced").get_by_role("link", name="Works as a nurse.").click()
    await expect(page.get_by_text("nobody. Another fact took its place.")).to_be_visible()
    await page.get_by_role("button", name="Restore").click()
    await expect(page.get_by_text("ada alone, in conversations with cook.")).to_be_visible()


async def test_a_long_history_has_pages(signed_in: SignIn, site: str, memory: Memory) -> None:
    fact = (await memory.facts(ADA).add("Is 0 years old.")).id
    for age in range(1, 17):
        await memory.facts(ADA).edit(fact, content=f"Is {age} years old.")
    page = await signed_in("read")
    await page.goto(f"{site}/acme/people/ada/cook/facts/{fact}")
    await expect(page.locator(".history li")).to_have_count(15)
    await page.get_by_role("link", name="Later").click()
    await expect(page.locator(".history li")).to_have_count(2)
    await expect(page.locator(".history li").first).to_contain_text("Is 15 years old.")


async def test_two_reviewers_do_not_overwrite_each_other(signed_in: SignIn, site: str, memory: Memory) -> None:
    (fact,) = await learn(memory, "Tom cannot eat peanuts.")
    first, second, third = [await signed_in("read", "review") for _ in range(3)]
    await third.goto(f"{site}/acme/people/ada/cook/review")
    for page in (first, second):
        await page.goto(f"{site}/acme/people/ada/cook/facts/{fact}")
        await page.get_by_text("Correct it").click()
    await first.get_by_label("One sentence").fill("Tom is allergic to peanuts.")
    await first.get_by_role("button", name="Save").click()
    await expect(first.locator("h1")).to_have_text("Tom is allergic to peanuts.")
    await second.get_by_label("One sentence").fill("Tom hates peanuts.")
    await second.get_by_role("button", name="Save").click()
    await expect(second.get_by_role("alert")).to_contain_text("somebody changed it meanwhile")
    await expect(second.locator("h1")).to_have_text("Tom is allergic to peanuts.")
    await expect(second.get_by_label("One sentence")).to_have_value("Tom hates peanuts.")
    await second.get_by_role("button", name="Save").click()
    await expect(second.locator("h1")).to_have_text("Tom hates peanuts.")
    await third.get_by_role("button", name="Delete").click()
    await expect(third.get_by_role("alert")).to_contain_text("somebody changed it meanwhile")
    assert [one.content for one in await memory.facts(ADA).list()] == ["Tom hates peanuts."]
    await memory.facts(ADA).delete(fact)
    await second.get_by_text("Delete it").click()
    await second.get_by_role("button", name="Delete").click()
    await expect(second.get_by_role("alert")).to_have_text("there is no such fact of this person any more")
    await expect(second.locator("h1")).to_have_text("A deleted fact")


async def test_a_review_with_keys_alone(signed_in: SignIn, site: str, memory: Memory) -> None:
    await learn(memory, "Plays the cello.", "Has a dog.", "Likes peanuts.", "Lives in Rome.")
    page = await signed_in("read", "review")
    await page.goto(f"{site}/acme/people/ada/cook/review")
    await press(page, "j", "Has a dog.")
    await press(page, "k", "Plays the cello.")
    await press(page, "c", "Has a dog.")
    await page.keyboard.press("e")
    await page.keyboard.type("Has a cat. d")
    await press(page, "Control+Enter", "Likes peanuts.")
    await press(page, "d", "Lives in Rome.")
    await press(page, "u", "Lives in Rome.")
    await page.keyboard.press("c")
    await expect(page.locator(".empty")).to_contain_text("Nothing waits for a review")
    held = await memory.facts(ADA).list()
    assert [(one.content, one.confirmed) for one in held] == [
        ("Plays the cello.", True),
        ("Has a cat. d", True),
        ("Lives in Rome.", True),
        ("Likes peanuts.", True),
    ]
    await page.keyboard.press("u")
    await expect(page.locator("h1")).to_have_text("Lives in Rome.")


async def press(page: Page, key: str, then: str) -> None:
    """Press a key, and wait until that fact is in focus."""
    await page.keyboard.press(key)
    await expect(page.locator("#fact")).to_have_text(then)
    await expect(page.locator("#fact")).to_be_focused()


async def test_a_review_by_buttons_without_javascript(signed_in: SignIn, site: str, memory: Memory) -> None:
    await learn(memory, *(f"Fact {at:02}." for at in range(30)))
    page = await signed_in("read", "review", java_script_enabled=False)
    await page.goto(f"{site}/acme/people/ada/cook/review")
    await expect(page.locator(".waiting li")).to_have_count(25)
    await page.get_by_role("link", name="Fact 24.").click()
    await page.get_by_role("button", name="Confirm", exact=True).click()
    await expect(page.locator("#fact")).to_have_text("Fact 25.")
    await page.get_by_role("button", name="Delete").click()
    await expect(page.locator("#fact")).to_have_text("Fact 26.")
    await page.get_by_role("button", name="Undo").click()
    await expect(page.locator("#fact")).to_have_text("Fact 26.")
    assert len(await memory.facts(ADA).list()) == 30


async def test_similar_facts_stand_beside_each_other(signed_in: SignIn, site: str, memory: Memory) -> None:
    await learn(memory, "Tom is allergic to peanuts.", "Tom must not eat peanuts.", "Tom works as a nurse.")
    await memory.wait_for_index()
    page = await signed_in("read", "review")
    await page.goto(f"{site}/acme/people/ada/cook/review")
    await expect(page.locator("#similar")).to_contain_text("Tom must not eat peanuts.")
    await expect(page.locator("#similar")).not_to_contain_text("nurse")


async def test_a_list_of_facts_has_pages(signed_in: SignIn, site: str, memory: Memory) -> None:
    for at in range(60):
        await memory.facts(ADA).add(f"Fact {at:02}.", category="hobby" if at % 2 else "habit")
    page = await signed_in("read")
    await page.goto(f"{site}/acme/people/ada/cook?state=current")
    await expect(page.locator("main h2")).to_have_text(["hobby", "habit"])
    await expect(page.locator(".facts li")).to_have_count(50)
    await page.get_by_role("link", name="Later ones").click()
    await expect(page.locator(".facts li")).to_have_count(10)
    await page.goto(f"{site}/acme/people/ada/cook?category=habit")
    await expect(page.locator(".facts li")).to_have_count(30)
    await expect(page.get_by_text("30 facts hold now.")).to_be_visible()
    reviewer = await signed_in("read", "review")
    await reviewer.goto(page.url)
    await reviewer.get_by_role("link", name="Add a fact").click()
    await expect(reviewer.get_by_label("One sentence")).to_be_in_viewport()


async def test_a_deleted_fact_has_the_time_of_its_deletion(signed_in: SignIn, site: str, memory: Memory) -> None:
    fact = await memory.facts(ADA).add("Plays the cello.")
    await memory.facts(ADA).delete(fact.id)
    deleted = (await memory.facts(ADA).list(state="deleted"))[0].updated_at
    page = await signed_in("read", java_script_enabled=False)
    for there in ("?state=deleted", f"/facts/{fact.id}"):
        await page.goto(f"{site}/acme/people/ada/cook{there}")
        assert await page.locator(".meta time").last.get_attribute("datetime") == deleted.isoformat()


async def test_a_reader_changes_nothing(signed_in: SignIn, site: str, memory: Memory) -> None:
    (fact,) = await learn(memory, "Tom cannot eat peanuts.")
    kept = await memory.documents(ADA).add("The handbook of peanuts.")
    page = await signed_in("read")
    for there in ("", "/review", f"/facts/{fact}", f"/documents/{kept.id}"):
        await page.goto(f"{site}/acme/people/ada/cook{there}")
        await expect(page.locator("main form[method=post], main button.danger")).to_have_count(0)
    key = await memory.keys("acme").create("one", rights=["read"])
    async with ClientSession(cookie_jar=DummyCookieJar()) as http:
        _, _, session = await sign_in(http, site, key.secret)
        form = {"form_token": form_token(session), "action": "delete", "expect": "1", "fact": str(fact), "after": "0"}
        for there in ("/facts", "/review", f"/facts/{fact}", f"/documents/{kept.id}"):
            sent = {"Cookie": f"{COOKIE}={session}"}
            async with http.post(f"{site}/acme/people/ada/cook{there}", data=form, headers=sent) as done:
                assert done.status == 403
    assert len(await memory.facts(ADA).list()) == 1
    assert len(await memory.documents(ADA).list()) == 1


@pytest.mark.parametrize(("tenant", "of", "status"), [("other", None, 404), ("acme", "bob", 403)])
async def test_nothing_of_others(memory: Memory, site: str, tenant: str, of: str | None, status: int) -> None:
    (fact,) = await learn(memory, "Tom cannot eat peanuts.")
    kept = await memory.documents(ADA).add("The handbook of peanuts.")
    key = await memory.keys(tenant).create("one", rights=["read", "review"], user=of)
    async with ClientSession(cookie_jar=DummyCookieJar()) as http:
        _, _, session = await sign_in(http, site, key.secret)
        sent = {"Cookie": f"{COOKIE}={session}"}
        pages = ("", "/review", f"/facts/{fact}", f"/facts/{fact}/similar", "/documents", f"/documents/{kept.id}")
        for there in (*(f"/ada/cook{page}" for page in pages), "?user=ada"):
            async with http.get(f"{site}/acme/people{there}", headers=sent) as done:
                assert (done.status, "peanuts" in await done.text()) == (status, False)
        own = f"{site}/{tenant}/people/{of or 'ada'}/cook/facts/{fact}"
        async with http.get(own, headers=sent) as done:
            assert done.status == 404


async def test_a_document_is_read_and_removed(signed_in: SignIn, site: str, memory: Memory) -> None:
    await memory.documents(ADA).add("word " * 9_000 + "the end", title="Handbook", metadata={"by": "Tom"})
    page = await signed_in("read", "write")
    await page.goto(f"{site}/acme/people/ada/cook")
    await page.get_by_role("link", name="Documents").click()
    await page.get_by_role("link", name="Handbook").click()
    await page.get_by_role("link", name="Goes on").click()
    await expect(page.locator(".document")).to_contain_text("the end")
    await page.get_by_text("Remove it").click()
    await page.get_by_role("button", name="Remove").click()
    await expect(page.get_by_role("status")).to_contain_text("removed")
    assert await memory.documents(ADA).list() == []


async def test_a_fact_that_an_enemy_wrote_is_text(signed_in: SignIn, site: str, memory: Memory) -> None:
    """In its own page and in the review, where a reviewer with rights opens it."""
    (fact,) = await learn(memory, HOSTILE)
    kept = await memory.documents(ADA).add(
        HOSTILE.replace("\0", "").replace("\ud800", ""), title=f"{HOSTILE[:25]}\u202e"
    )
    page = await signed_in("admin")
    for there in ("", "/review", f"/facts/{fact}", f"/facts/{fact}/similar", "/documents", f"/documents/{kept.id}"):
        await page.goto(f"{site}/acme/people/ada/cook{there}")
        assert await page.locator("main script, main img, main svg, main form[action*=evil]").count() == 0
        text = await page.locator("main").inner_text()
        assert re.search("<script>alert", text)
        assert not set("\u202e\x1b\0") & set(text)


async def test_names_that_an_enemy_chose_are_text(signed_in: SignIn, site: str, memory: Memory) -> None:
    """Of a user, an agent, a subject, a type and metadata of a document; in titles of pages too."""
    sting = "<img src=x onerror=alert(1)>\u202e\x1b[31m"
    scope = Scope(tenant="acme", user=f"u{sting}", agent=f"a{sting}")
    subject = f"s{sting}"
    await memory.configure_subject(tenant="acme", subject=subject, name=f"n{sting}", members=[scope.user, f"m{sting}"])
    about = memory.facts(scope, subject=subject)
    fact = await about.share((await about.add("Rex is afraid of thunder.")).id)
    kept = await memory.documents(scope).add("Text.", doc_type=f"t{sting}", metadata={sting: sting})
    await memory.conversation(f"c{sting}", scope=scope).append(user("Hello"))
    page = await signed_in("admin")
    of = path("acme", "people", scope.user, scope.agent)
    chat = path("acme", "conversations", scope.user, scope.agent, f"c{sting}", "erase")
    for there in (
        *(of + more for more in ("", "/review", f"/facts/{fact.id}", "/documents", f"/documents/{kept.id}")),
        *(path("acme", "people"), path("acme", "people", user=scope.user), chat, f"{chat}?first=0&last=0"),
        *(path("acme", "erase", what="user", name=scope.user), path("acme", "erase", what="subject", name=subject)),
        *(path("acme", "erase", "progress", what="user", name=scope.user), path("acme", "export", user=scope.user)),
        f"{of}?category={quote(sting)}&state=every",
    ):
        answer = await page.goto(site.removesuffix(ROOT) + there)
        assert answer is not None
        assert answer.status == 200, there
        assert await page.locator("img").count() == 0, there
        text = await page.locator("body").inner_text() + await page.title()
        assert "<img src=x" in text, there
        assert not set("\u202e\x1b") & set(text), there
