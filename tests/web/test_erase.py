"""Erasing and exporting: what would go is said first, the name is asked for, and the report is shown."""

from __future__ import annotations

import asyncio
import json
import re
from html import unescape
from pathlib import Path

import pytest
from aiohttp import ClientSession, DummyCookieJar
from playwright.async_api import expect

from hitherto import Memory, Scope, assistant, user
from hitherto.web.sessions import COOKIE, form_token
from hitherto.web.templating import ROOT, path, plain
from hitherto.web.views.erase import is_typed
from tests.faults.waiting import until
from tests.web.conftest import ADA, SignIn
from tests.web.test_sessions import sign_in

BOB = Scope(tenant="acme", user="bob", agent="cook")


async def test_some_messages_go(signed_in: SignIn, memory: Memory) -> None:
    chat = memory.conversation("monday", scope=ADA)
    await chat.append(*(user(f"Peanuts {at}") for at in range(6)))
    page = await signed_in("read", "write")
    await page.locator("tbody a").first.click()
    await page.get_by_role("link", name="Erase").click()
    await page.get_by_label("From number").fill("2")
    await page.get_by_label("to", exact=True).fill("4")
    await page.get_by_role("button", name="Go on").click()
    await expect(page.locator(".sources li")).to_have_text(["user Peanuts 2", "user Peanuts 3", "user Peanuts 4"])
    await page.get_by_label("type the conversation's name").fill("tuesday")
    await page.get_by_role("button", name="Erase 3 messages").click()
    await expect(page.get_by_role("alert")).to_contain_text("Nothing was erased")
    assert not any(one.erased for one in await chat.messages())
    await page.get_by_label("type the conversation's name").fill("monday")
    await page.get_by_role("button", name="Erase 3 messages").click()
    await expect(page.get_by_role("status")).to_have_text("3 messages erased, and all that rested on them.")
    assert [one.seq for one in await chat.messages() if one.erased] == [2, 3, 4]


async def test_a_conversation_goes(signed_in: SignIn, site: str, memory: Memory) -> None:
    """With the facts that nothing else says, or without."""
    for name, content in (("monday", "Plays the cello."), ("tuesday", "Has a dog.")):
        chat = memory.conversation(name, scope=ADA)
        await chat.append(user(content))
        await chat.remember(content)
    page = await signed_in("write", "read")
    for name in ("monday", "tuesday"):
        await page.goto(f"{site}/acme/conversations/ada/cook/{name}/erase")
        await expect(page.get_by_text("1 fact rests on what was said in it.")).to_be_visible()
        if name == "tuesday":
            await page.get_by_label("The facts too").uncheck()
            await page.get_by_label("type the conversation's name").fill("thursday")
            await page.get_by_role("button", name="Erase the conversation").click()
            await expect(page.get_by_label("The facts too")).not_to_be_checked()
        await page.get_by_label("type the conversation's name").fill(name)
        await page.get_by_role("button", name="Erase the conversation").click()
        await expect(page.get_by_role("status")).to_have_text("1 message erased, and all that rested on it.")
        assert await page.locator(f"main a[href*='/{name}']").count() == 0  # nothing of it is left to look at
    assert (await memory.conversations(ADA)).conversations == ()
    assert [one.content for one in await memory.facts(ADA).list()] == ["Has a dog."]


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
async def test_a_user_goes_in_the_background(
    signed_in: SignIn, site: str, memory: Memory, monkeypatch: pytest.MonkeyPatch, scripts: bool
) -> None:
    for scope in (ADA, BOB):
        await memory.conversation("monday", scope=scope).append(user("Peanuts"), assistant("Noted."))
        await memory.facts(scope).add("Likes peanuts.")
    held, erase_user = asyncio.Event(), memory.erase_user

    async def erase_later(tenant: str, of: str) -> object:
        await held.wait()
        return await erase_user(tenant, of)

    monkeypatch.setattr(memory, "erase_user", erase_later)
    page = await signed_in("admin", java_script_enabled=scripts)
    await page.get_by_role("link", name="Erase").click()
    await page.get_by_label("A user").fill("ada")
    await page.get_by_role("button", name="Go on").first.click()
    await expect(page.locator("main li").first).to_contain_text("1 conversation with 2 messages")
    await expect(page.locator("main li")).to_contain_text(["", "", "go for everybody with whom they are shared", ""])
    await page.get_by_label("type the name").fill("bob")
    await page.get_by_role("button", name="Erase it").click()
    await expect(page.get_by_role("alert")).to_contain_text("Nothing was erased")
    await page.get_by_label("type the name").fill("ada")
    await page.get_by_role("button", name="Erase it").click()
    await expect(page.locator("#progress")).to_contain_text("Still there: 1 conversation, 2 messages")
    held.set()
    while "Done" not in await page.locator("#progress").inner_text():
        await (asyncio.sleep(0.1) if scripts else page.reload())
    await expect(page.get_by_role("status")).to_have_text("Erased: 1 conversation, 2 messages, 0 documents, 1 fact.")
    assert (await memory.conversations(ADA)).conversations == ()
    assert len((await memory.conversations(BOB)).conversations) == 1


async def test_a_subject_and_a_tenant_go(signed_in: SignIn, site: str, memory: Memory, http: ClientSession) -> None:
    await memory.conversation("monday", scope=ADA, subject="dog").append(user("Rex barks."))
    await memory.conversation("tuesday", scope=ADA).append(user("Peanuts"))
    await memory.conversation("monday", scope=Scope(tenant="other", user="ada", agent="cook")).append(user("Hello"))
    page = await signed_in("admin")
    for what, name, left in (("subject", "dog", 1), ("tenant", "acme", 0)):
        await page.goto(f"{site}/acme/erase?what={what}&name={name}")
        await expect(page.locator("main li").first).to_contain_text("1 conversation with 1 message")
        await page.get_by_label("type the name").fill(name)
        await page.get_by_role("button", name="Erase it").click()
        if what == "subject":
            await expect(page.locator("#progress")).to_contain_text("Done.")
        else:  # with the key that the visitor has signed in with
            await page.wait_for_url(f"{site}/sign-in?*")
            await expect(page.get_by_role("status")).to_contain_text("The tenant acme is erased, with its keys")
            async with http.get(page.url) as done:  # a link says nothing of it to anybody else
                assert "is erased" not in await done.text()
        assert len((await memory.conversations(tenant="acme")).conversations) == left
    assert len((await memory.conversations(tenant="other")).conversations) == 1


async def test_an_erasure_that_fails_says_so(
    signed_in: SignIn, site: str, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    await memory.conversation("monday", scope=ADA).append(user("Peanuts"))

    async def fail(tenant: str, of: str) -> object:
        raise RuntimeError("peanuts")

    monkeypatch.setattr(memory, "erase_user", fail)
    page = await signed_in("admin")
    await page.goto(f"{site}/acme/erase?what=user&name=ada")
    await page.get_by_label("type the name").fill("ada")
    await page.get_by_role("button", name="Erase it").click()
    await expect(page.get_by_role("alert")).to_contain_text("It has stopped")
    assert "peanuts" not in await page.locator("main").inner_text()
    monkeypatch.undo()
    await page.get_by_role("link", name="Begin again").click()
    await page.get_by_label("type the name").fill("ada")
    await page.get_by_role("button", name="Erase it").click()
    await expect(page.locator("#progress")).to_contain_text("Done.")


async def test_only_who_may_erases_and_exports(signed_in: SignIn, site: str, memory: Memory) -> None:
    """Messages: those who may write. All else: operators, of their own tenant."""
    for tenant in ("acme", "other"):
        await memory.conversation("monday", scope=Scope(tenant=tenant, user="ada", agent="cook")).append(
            user("Peanuts")
        )
    page = await signed_in("read", "review")
    await page.locator("tbody a").first.click()
    await expect(page.get_by_role("link", name="Erase")).to_have_count(0)
    there = "acme/conversations/ada/cook/monday/erase"
    of_user, form = "acme/erase?what=user&name=ada", {"what": "conversation", "typed": "monday"}
    async with ClientSession(cookie_jar=DummyCookieJar()) as http:
        for tenant, rights, of, method, address, data, status in (
            ("acme", ["read", "review"], None, "POST", there, form, 403),
            ("acme", ["read", "review"], None, "GET", there, {}, 403),
            ("acme", ["read", "write"], "bob", "POST", there, form, 403),
            ("other", ["admin"], None, "POST", there, form, 404),
            ("acme", ["read", "write", "review"], None, "POST", of_user, {"typed": "ada"}, 403),
            ("acme", ["read", "write", "review"], None, "GET", of_user, {}, 403),
            ("acme", ["read", "write", "review"], None, "GET", "export?tenant=acme", {}, 403),
            ("acme", ["read", "write", "review"], None, "GET", "acme/export", {}, 403),
            ("other", ["admin"], None, "POST", of_user, {"typed": "ada"}, 404),
            ("other", ["admin"], None, "GET", "export?tenant=acme", {}, 404),
            ("acme", ["admin"], None, "POST", "acme/erase?what=tenant&name=other", {"typed": "other"}, 422),
        ):
            key = await memory.keys(tenant).create("one", rights=rights, user=of)  # type: ignore[arg-type]
            _, _, session = await sign_in(http, site, key.secret)
            sent = {"Cookie": f"{COOKIE}={session}"}
            filled = data and {**data, "form_token": form_token(session)}
            async with http.request(method, f"{site}/{address}", data=filled or None, headers=sent) as done:
                assert (done.status, "Peanuts" in await done.text()) == (status, False), (tenant, method, address)
    for tenant in ("acme", "other"):
        assert len((await memory.conversations(tenant=tenant)).conversations) == 1


async def test_an_export_is_a_file(signed_in: SignIn, site: str, memory: Memory) -> None:
    for scope in (ADA, BOB):
        await memory.conversation("monday", scope=scope).append(user(f"I am {scope.user}."))
    page = await signed_in("admin")
    await page.goto(f"{site}/acme/people/ada/cook")
    await page.get_by_label("Of this person").get_by_role("link", name="Export").click()
    await expect(page.get_by_text("1 conversation, 1 message, ")).to_be_visible()
    async with page.expect_download() as waiting:
        await page.get_by_role("link", name="Download what is kept of ada with cook").click()
    file = await waiting.value
    assert file.suggested_filename == "hitherto-acme-ada-cook.jsonl"
    text = await asyncio.to_thread(Path(await file.path()).read_text)
    assert "I am ada." in text
    assert "I am bob." not in text
    assert json.loads(text.splitlines()[-1])["end"]["records"] == len(text.splitlines()) - 1


async def test_a_user_with_a_newline_goes(memory: Memory, site: str, http: ClientSession) -> None:
    """By the form of the page, which a browser would send with another newline in its fields."""
    await memory.conversation("monday", scope=Scope(tenant="acme", user="two\nlines", agent="cook")).append(user("Hi"))
    key = await memory.keys("acme").create("one", rights=["admin"])
    _, _, session = await sign_in(http, site, key.secret)
    sent, host = {"Cookie": f"{COOKIE}={session}"}, site.removesuffix(ROOT)
    async with http.get(host + path("acme", "erase", what="user", name="two\nlines"), headers=sent) as done:
        action, fields = re.findall(
            '<form method="post" action="([^"]+erase[^"]+)"(.+)</form>', await done.text(), re.S
        )[0]
    assert re.findall('name="([^"]+)"', fields) == ["form_token", "typed"]
    form = {"form_token": form_token(session), "typed": "two lines"}
    async with http.post(host + unescape(action), data=form, headers=sent) as done:
        assert done.status == 200

    async def gone() -> bool:
        return not (await memory.conversations(tenant="acme")).conversations

    await until(gone, "the user is erased")


@pytest.mark.parametrize(
    ("name", "typed"),
    [
        ("monday", " monday "),
        ("two  spa\u00a0ces", "two spa ces"),
        ("two\nlines", "two lines"),
        ("pay\u00adroll", "payroll"),
        ("pay\u200broll", plain("pay\u200broll")),
        ("plan\U000e0041", "plan"),
        ("ada\u3164", plain("ada\u3164")),
        ("x" + "\u0301" * 6, plain("x" + "\u0301" * 6)),
        ("cafe\u0301", "café"),
    ],
)
def test_a_name_is_typed_as_it_is_read(name: str, typed: str) -> None:
    assert is_typed({"typed": typed}, name)


@pytest.mark.parametrize(
    ("name", "typed"), [("monday", "Monday"), ("monday", ""), ("\u200b", " "), ("a-b", "ab"), ("a", "b")]
)
def test_another_name_is_not_the_one(name: str, typed: str) -> None:
    assert not is_typed({"typed": typed}, name)
