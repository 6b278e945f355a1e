"""Who may look: sign-in with a key, sessions that end with it, forms of a session's own pages, and headers."""

from __future__ import annotations

import base64
import os
import re
from pathlib import Path
from urllib.parse import quote, urlencode
from uuid import UUID

import pytest
from aiohttp import ClientSession
from fastapi import FastAPI

from hitherto import Memory, Scope, user
from hitherto.core.key import Right
from hitherto.http.server import gate
from hitherto.web import sessions, templating
from hitherto.web.app import create_inspector
from hitherto.web.templating import ROOT, path
from hitherto.web.views import ROUTES
from tests.http.serving import LIMITS, listening
from tests.http.test_bodies import head, raw
from tests.web.conftest import ADA, SignIn


async def sign_in(http: ClientSession, site: str, secret: str, **headers: str) -> tuple[int, str, str]:
    """The status, where it leads, and the session."""
    form = {"key": secret, "to": f"{ROOT}/acme/conversations"}
    async with http.post(f"{site}/sign-in", data=form, headers=headers, allow_redirects=False) as done:
        kept = done.cookies.get(sessions.COOKIE)
        return done.status, done.headers.get("Location", ""), kept.value if kept else ""


async def seen(http: ClientSession, address: str, session: str, **headers: str) -> tuple[int, str]:
    """The status and the text of a page, with a session."""
    carried = {"Cookie": f"{sessions.COOKIE}={session}", **headers}
    async with http.get(address, headers=carried, allow_redirects=False) as done:
        return done.status, await done.text()


async def test_a_session_lasts_as_long_as_its_key(memory: Memory, site: str, http: ClientSession) -> None:
    key = await memory.keys("acme").create("one", rights=["read"])
    assert (await seen(http, f"{site}/acme/conversations", ""))[0] == 303
    assert (await sign_in(http, site, "hitherto_wrong"))[0::2] == (401, "")
    status, leads, session = await sign_in(http, site, key.secret)
    assert (status, leads) == (303, f"{ROOT}/acme/conversations")
    assert (await seen(http, f"{site}/acme/conversations", session))[0] == 200
    await memory.keys("acme").revoke(key.key.id)
    assert (await seen(http, f"{site}/acme/conversations", session))[0] == 303


async def test_head_is_answered_as_get(memory: Memory, site: str, http: ClientSession) -> None:
    """But for an export, which would be made for nothing."""
    key = await memory.keys("acme").create("one", rights=["read"])
    admin = await memory.keys("acme").create("two", rights=["admin"])
    headers, more = [
        {"Cookie": f"{sessions.COOKIE}={(await sign_in(http, site, one.secret))[2]}"} for one in (key, admin)
    ]
    for there, sent, status in (
        ("acme/conversations", headers, 200),
        ("acme/conversations", {}, 303),
        ("acme/costs", headers, 403),
        ("acme/costs", more, 200),
        ("export?tenant=acme", more, 403),
        ("sign-in", {}, 200),
        ("static/inspector.js", {}, 200),
    ):
        async with http.head(f"{site}/{there}", headers=sent, allow_redirects=False) as done:
            assert (done.status, await done.read()) == (status, b""), there


async def test_a_session_ends_by_itself(
    memory: Memory, site: str, http: ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless it is used: then a new one takes its place."""
    key = await memory.keys("acme").create("one", rights=["read"])
    _, _, session = await sign_in(http, site, key.secret)
    now = sessions.time.time()
    monkeypatch.setattr(sessions.time, "time", lambda: now + sessions.LASTS / 2)
    headers = {"Cookie": f"{sessions.COOKIE}={session}"}
    async with http.get(f"{site}/acme/conversations", headers=headers) as done:
        renewed = done.cookies[sessions.COOKIE].value
    monkeypatch.setattr(sessions.time, "time", lambda: now + sessions.LASTS + 1)
    assert (await seen(http, f"{site}/acme/conversations", session))[0] == 303
    assert (await seen(http, f"{site}/acme/conversations", renewed))[0] == 200


async def test_a_form_of_a_session_that_is_over_leads_back_to_its_page(
    signed_in: SignIn, site: str, memory: Memory
) -> None:
    key = await memory.keys("acme").create("one", rights=["read", "review"])
    page = await signed_in("read", "review")
    await page.goto(f"{site}/acme/people/ada/cook?category=hobby")
    await page.context.clear_cookies()
    await page.get_by_label("One sentence").fill("Plays the cello.")
    await page.get_by_role("button", name="Add").click()
    await page.get_by_label("Key").fill(key.secret)
    await page.get_by_role("button", name="Sign in").click()
    await page.wait_for_url(f"{site}/acme/people/ada/cook?category=hobby")


@pytest.mark.parametrize("page", ["https://evil.example/inspect/acme", "/inspect/acme", "", "http://[", "é"])
async def test_no_other_page_is_that_of_a_form(site: str, http: ClientSession, page: str) -> None:
    async with http.post(f"{site}/sign-out", headers={"Referer": page}, allow_redirects=False) as done:
        assert done.headers["Location"] == f"{ROOT}/sign-in?to={quote(ROOT, safe='')}"


async def test_what_a_page_asks_for_by_itself_is_no_use_of_its_session(
    memory: Memory, site: str, http: ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once it is over, the page is loaded anew."""
    key = await memory.keys("acme").create("one", rights=["read"])
    _, _, session = await sign_in(http, site, key.secret)
    now = sessions.time.time()
    headers = {"Cookie": f"{sessions.COOKIE}={session}", "HX-Request": "true"}
    monkeypatch.setattr(sessions.time, "time", lambda: now + sessions.LASTS / 2)
    async with http.get(f"{site}/acme/conversations", headers=headers) as done:
        assert (done.status, sessions.COOKIE in done.cookies) == (200, False)
    monkeypatch.setattr(sessions.time, "time", lambda: now + sessions.LASTS + 1)
    async with http.get(f"{site}/acme/conversations", headers=headers) as done:
        assert (done.status, done.headers.get("HX-Refresh")) == (401, "true")


async def test_a_session_ends_half_a_day_after_its_sign_in(
    memory: Memory, site: str, http: ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However much it is used. Until then, forms of pages that were loaded before it was made anew are its own."""
    key = await memory.keys("acme").create("one", rights=["read"])
    _, _, session = await sign_in(http, site, key.secret)
    now, token = sessions.time.time(), sessions.form_token(session)
    for passed in range(0, sessions.LONGEST, sessions.LASTS // 2):
        monkeypatch.setattr(sessions.time, "time", lambda passed=passed: now + passed)
        async with http.get(f"{site}/acme/conversations", headers={"Cookie": f"{sessions.COOKIE}={session}"}) as done:
            assert (done.status, token in await done.text()) == (200, True)
            session = done.cookies[sessions.COOKIE].value if sessions.COOKIE in done.cookies else session
    monkeypatch.setattr(sessions.time, "time", lambda: now + sessions.LONGEST + 1)
    assert (await seen(http, f"{site}/acme/conversations", session))[0] == 303


async def test_a_session_that_is_signed_out_is_over(
    memory: Memory, site: str, http: ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With those that were made of it. The key's other sessions go on, and no page but its own signs it out."""
    key = await memory.keys("acme").create("one", rights=["read"])
    (_, _, session), (_, _, other) = await sign_in(http, site, key.secret), await sign_in(http, site, key.secret)
    headers = {"Cookie": f"{sessions.COOKIE}={session}"}
    now = sessions.time.time()
    monkeypatch.setattr(sessions.time, "time", lambda: now + sessions.LASTS / 2)
    async with http.get(f"{site}/acme/conversations", headers=headers) as done:
        renewed = done.cookies[sessions.COOKIE].value

    async def sign_out(token: str, **more: str) -> int:
        form = {"form_token": token}
        asked = http.post(f"{site}/sign-out", data=form, headers={**headers, **more}, allow_redirects=False)
        async with asked as done:
            return done.status

    token = sessions.form_token(session)
    assert await sign_out("") == await sign_out(sessions.form_token(other)) == 403
    assert await sign_out(token, **{"Sec-Fetch-Site": "same-site"}) == 403
    assert (await seen(http, f"{site}/acme/conversations", session))[0] == 200
    assert await sign_out(token) == 303
    for one, status in ((session, 303), (renewed, 303), (other, 200)):
        assert (await seen(http, f"{site}/acme/conversations", one))[0] == status
    _, _, again = await sign_in(http, site, key.secret)
    assert (await seen(http, f"{site}/acme/conversations", again))[0] == 200


PAGE = {"user": "ada", "agent": "cook", "name": "monday", "seq": "0", "no": "1", "id": "1", "run": str(UUID(int=0))}
"""What stands for the parts of an address but the tenant."""

LOCAL = Scope(tenant="local", user="ada", agent="cook")

FIELDS = {
    **{"what": "subject", "name": "nobody", "typed": "nothing", "first": "0", "last": "0", "seq": "0", "rev": "1"},
    **{"fact": "1", "after": "0", "expect": "1", "action": "edit", "content": "A", "category": "other", "subject": ""},
}
"""What stands for the fields of forms."""


def routes() -> list[tuple[str, str, list[str]]]:
    """The method, the address and the parameters of each page of a tenant and of each form."""
    app = FastAPI()
    app.include_router(ROUTES)
    return [
        (method.upper(), at.removeprefix(ROOT), [of["name"] for of in one.get("parameters", ()) if of["in"] == "query"])
        for at, ways in app.openapi()["paths"].items()
        for method, one in ways.items()
        if "{tenant}" in at
    ]


async def test_no_page_and_no_form_is_for_others(memory: Memory, site: str, http: ClientSession) -> None:
    """Whatever is there or not: another tenant's are not found, those of another user than the key's are refused, and
    so are forms by who may only read, and forms without the token of the session's pages."""
    sent = dict[str, tuple[dict[str, str], str]]()
    for whose, tenant, rights, of in (
        ("other", "other", [Right.ADMIN], None),
        ("bob", "acme", [Right.READ, Right.WRITE, Right.REVIEW], "bob"),
        ("reader", "acme", [Right.READ], None),
        ("operator", "acme", [Right.ADMIN], None),
    ):
        key = await memory.keys(tenant).create(whose, rights=rights, user=of)
        _, _, session = await sign_in(http, site, key.secret)
        sent[whose] = {"Cookie": f"{sessions.COOKIE}={session}"}, sessions.form_token(session)

    async def status(whose: str, method: str, address: str, token: str | None = None) -> int:
        headers, own = sent[whose]
        form = {"form_token": own if token is None else token} if method == "POST" else None
        async with http.request(method, site + address, data=form, headers=headers, allow_redirects=False) as done:
            return done.status

    for method, at, _ in routes():
        address = at.format(tenant="acme", **PAGE)
        assert await status("other", method, address) == 404, (method, at)
        if "{user}" in at or method == "POST":
            assert await status("bob", method, address) == 403, (method, at)
        if method == "POST":
            assert await status("reader", method, address) == 403, at
            assert await status("operator", method, address, "") == 403, at
            assert await status("operator", method, address, sent["reader"][1]) == 403, at


@pytest.mark.parametrize("right", [Right.WRITE, Right.REVIEW])
async def test_who_may_not_read_reads_nothing(memory: Memory, site: str, http: ClientSession, right: Right) -> None:
    """Not of what they may erase or change, either: no text and no title, which the first message makes."""
    await memory.conversation("monday", scope=ADA).append(user("Tom cannot eat peanuts."), user("Peanuts are nuts."))
    await memory.facts(ADA).add("Tom cannot eat peanuts.")
    key = await memory.keys("acme").create("one", rights=[right])
    _, _, session = await sign_in(http, site, key.secret)
    headers = {"Cookie": f"{sessions.COOKIE}={session}"}
    for method, at, _ in routes():
        address = f"{site}{at.format(tenant='acme', **PAGE)}"
        for asked in ("", f"?{urlencode(FIELDS)}"):
            form = {**FIELDS, "form_token": sessions.form_token(session)} if method == "POST" else None
            async with http.request(method, address + asked, data=form, headers=headers) as done:
                assert "peanuts" not in (await done.text()).lower(), (method, at)


@pytest.mark.parametrize(
    "change", [lambda one: one[:-1] + ("0" if one[-1] != "0" else "1"), lambda _: "a.b", lambda _: "."]
)
async def test_a_session_that_was_made_up_is_none(
    memory: Memory, site: str, http: ClientSession, change: object
) -> None:
    key = await memory.keys("acme").create("one", rights=["read"])
    _, _, session = await sign_in(http, site, key.secret)
    assert (await seen(http, f"{site}/acme/conversations", change(session)))[0] == 303  # type: ignore[operator]


async def test_nothing_of_another_tenant(memory: Memory, site: str, http: ClientSession) -> None:
    await memory.conversation("monday", scope=ADA).append(user("Tom cannot eat peanuts."))
    key = await memory.keys("other").create("one", rights=["admin"])
    _, _, session = await sign_in(http, site, key.secret)
    for there in (
        "conversations",
        "conversations/ada/cook/monday",
        "conversations/ada/cook/monday/context",
        "conversations/ada/cook/monday/context/request",
        "recall?user=ada&agent=cook&question=peanuts+Tom",
    ):
        status, text = await seen(http, f"{site}/acme/{there}", session)
        assert (status, "cannot eat" in text) == (404, False)
        status, text = await seen(http, f"{site}/other/{there}", session)
        assert "cannot eat" not in text


@pytest.mark.parametrize("name", [".", "..", "...", "~", "~.", "~~..", "~a", "a/b", "%2E", "a b"])
async def test_any_name_can_be_looked_at(memory: Memory, site: str, http: ClientSession, name: str) -> None:
    """Even one that browsers take for the part of an address above."""
    scope = Scope(tenant=name, user=name, agent=name)
    await memory.conversation(name, scope=scope).append(user("Tom cannot eat peanuts."))
    fact = await memory.facts(scope).add("Tom cannot eat peanuts.")
    key = await memory.keys(name).create("one", rights=["read"])
    _, _, session = await sign_in(http, site, key.secret)
    for there in (
        path(name, "conversations", name, name, name),
        path(name, "people", name, name),
        path(name, "people", name, name, "facts", fact.id),
    ):
        status, text = await seen(http, site.removesuffix(ROOT) + there, session)
        assert (status, "peanuts" in text) == (200, True), there
    assert (
        f'href="{path(name, "conversations", name, name, name)}"'
        in (await seen(http, site.removesuffix(ROOT) + path(name, "conversations"), session))[1]
    )


async def test_a_key_of_one_user_sees_that_user(memory: Memory, site: str, http: ClientSession) -> None:
    await memory.conversation("monday", scope=ADA).append(user("Tom cannot eat peanuts."))
    key = await memory.keys("acme").create("one", rights=["read"], user="bob")
    _, _, session = await sign_in(http, site, key.secret)
    assert "peanuts" not in (await seen(http, f"{site}/acme/conversations", session))[1]
    assert (await seen(http, f"{site}/acme/conversations?user=ada", session))[0] == 403
    for there in ("", "/context", "/context/request"):
        assert (await seen(http, f"{site}/acme/conversations/ada/cook/monday{there}", session))[0] == 403
    assert (await seen(http, f"{site}/acme/recall?user=ada&agent=cook&question=peanuts", session))[0] == 403


async def test_a_link_leads_to_no_other_site(memory: Memory, site: str, http: ClientSession) -> None:
    key = await memory.keys("acme").create("one", rights=["read"])
    for to in (
        "https://evil.example",
        "//evil.example",
        f"{ROOT}@evil.example",
        "javascript:alert(1)",
        f"{ROOT}/\\evil",
        f"{ROOT}/../api/v1/settings",
        f"{ROOT}/..//evil.example",
        f"{ROOT}/acme/%2e%2E/.%2e/api?a=b",
        f"{ROOT}/.#a",
    ):
        form = {"key": key.secret, "to": to}
        async with http.post(f"{site}/sign-in", data=form, allow_redirects=False) as done:
            assert done.headers["Location"] == ROOT


async def test_a_form_that_drips_signs_nobody_in(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor one without an end: who has no session holds no connection."""
    monkeypatch.setattr(gate, "_STRANGERS", 0.3)
    monkeypatch.setattr(gate, "_LINGER", 0.2)
    drops = (b"a" for _ in range(1_000))
    there = f"{ROOT}/sign-in"
    answer = await raw(site, head(path=there, **{"Content-Length": "1000"}), *drops, pause=0.05)
    assert b" 408 " in answer.split(b"\r\n")[0]
    answer = await raw(site, head(path=there, **{"Transfer-Encoding": "chunked"}), b"4000\r\n" + b"a" * 0x4000)
    assert b" 413 " in answer.split(b"\r\n")[0]


async def test_a_link_says_of_nothing_that_it_was_done(memory: Memory, site: str, http: ClientSession) -> None:
    """A form's answer does, to the session that has sent it."""
    await memory.conversation("monday", scope=ADA).append(user("Tom cannot eat peanuts."))
    fact = await memory.facts(ADA).add("Cannot eat peanuts.")
    kept = await memory.documents(ADA).add("A text.")
    key = await memory.keys("acme").create("one", rights=["admin"])
    (_, _, session), (_, _, other) = await sign_in(http, site, key.secret), await sign_in(http, site, key.secret)
    person, chat = path("acme", "people", "ada", "cook"), path("acme", "conversations", "ada", "cook", "monday")
    of_fact = {"action": "confirm", "fact": str(fact.id), "after": "0", "expect": "1"}
    for to, form, leads, says in (
        (
            f"{person}/review",
            of_fact,
            f"{person}/review?after=0&at={fact.id + 1}&did=confirm&fact={fact.id}",
            f"Fact {fact.id} is confirmed.",
        ),
        (f"{person}/documents/{kept.id}", {}, f"{person}/documents?removed=True", "is removed"),
        (f"{chat}/erase", {"first": "0", "last": "0", "typed": "monday"}, f"{chat}/erase?erased=1", "1 message erased"),
    ):
        host = site.removesuffix(ROOT)
        headers = {"Cookie": f"{sessions.COOKIE}={session}"}
        sent = {**form, "form_token": sessions.form_token(session)}
        async with http.post(host + to, data=sent, headers=headers, allow_redirects=False) as done:
            address, _, seal = done.headers["Location"].partition("&seal=")
        assert address == leads
        for asked, by, told in (
            (address, session, False),
            (f"{address}&seal=", session, False),
            (f"{address}&a=b&seal={seal}", session, False),
            (f"{address}&seal={seal}", other, False),
            (f"{address}&seal={seal}", session, True),
        ):
            status, text = await seen(http, host + asked, by)
            assert (status, says in text) == (200, told), asked


async def test_who_gets_an_error_can_go_on(memory: Memory, site: str, http: ClientSession) -> None:
    """To the tenant's other pages, and out, with a key that opens none of them too."""
    for right, pages in ((Right.READ, 3), (Right.WRITE, 0)):
        key = await memory.keys("acme").create("one", rights=[right])
        _, _, session = await sign_in(http, site, key.secret)
        for there in (
            "acme/nothing",
            "acme/conversations/ada/cook/none",
            "other/people",
            "acme/people/ada/cook?state=a",
        ):
            status, text = await seen(http, f"{site}/{there}", session)
            assert status >= 400, there
            around = text.partition("<main")[0]
            assert (around.count(f'href="{ROOT}/acme/'), "Sign out" in around) == (pages, True), there
            assert ("To the conversations" in text) == (right is Right.READ)


async def test_errors_are_said_in_words_of_the_pages(memory: Memory, site: str, http: ClientSession) -> None:
    """And not in those of the API, of its scopes and of its verbs."""
    key = await memory.keys("acme").create("one", rights=["read", "review"], user="ada")
    _, _, session = await sign_in(http, site, key.secret)
    for there, says in (
        ("acme/nothing", "<h1>Not found</h1>"),
        ("acme/costs", "<h1>Not allowed</h1>"),
        ("acme/people/bob/cook", "your key is for one user alone, and this page is another user&#39;s"),
        (f"acme/people/ada/{'a' * 201}", "<h1>Not possible</h1>"),
    ):
        _, text = await seen(http, f"{site}/{there}", session)
        assert says in text, there
    headers = {"Cookie": f"{sessions.COOKIE}={session}"}
    facts = f"{site}/acme/people/ada/cook/facts"
    for to, field, says in (
        (facts, {"content": "a" * 501}, "the fact has 501 characters; at most 500 are kept: give one sentence"),
        (f"{site}/sign-in", {"key": "a" * 20_000}, "what the form has sent is too long for it"),
    ):
        sent = {**field, "form_token": sessions.form_token(session)}
        async with http.post(to, data=sent, headers=headers) as done:
            assert says in await done.text(), to


async def test_another_sites_page_signs_nobody_in(memory: Memory, site: str, http: ClientSession) -> None:
    key = await memory.keys("acme").create("one", rights=["read"])
    assert (await sign_in(http, site, key.secret, Origin="https://evil.example"))[0] == 403
    assert (await sign_in(http, site, key.secret, **{"Sec-Fetch-Site": "cross-site"}))[0] == 403


async def test_without_keys_only_pages_of_this_machine(memory: Memory, http: ClientSession) -> None:
    async with listening(create_inspector(memory, False, LIMITS)) as url:
        assert (await seen(http, f"{url}{ROOT}/acme/conversations", ""))[0] == 200
        assert f'href="{ROOT}/acme/people"' in (await seen(http, f"{url}{ROOT}/acme/nothing", ""))[1]
        assert (await seen(http, f"{url}{ROOT}/acme/conversations", "", Host="evil.example"))[0] == 403
        assert (await seen(http, f"{url}{ROOT}/acme/conversations", "", Origin="https://evil.example"))[0] == 403


async def test_no_form_is_large(memory: Memory, site: str, http: ClientSession) -> None:
    key = await memory.keys("acme").create("one", rights=["read"])
    _, _, session = await sign_in(http, site, key.secret)
    headers = {"Cookie": f"{sessions.COOKIE}={session}"}
    sent = {"form_token": sessions.form_token(session), "a": "%" * 200_000}
    async with http.post(f"{site}/sign-out", data=sent, headers=headers) as done:
        assert done.status == 413


async def test_without_a_session_nothing_was_done(memory: Memory, http: ClientSession) -> None:
    """What seals an address is nobody's secret then."""
    await memory.conversation("monday", scope=LOCAL).append(user("Hello."))
    address = path(LOCAL.tenant, "conversations", "ada", "cook", "monday", "erase", erased=2)
    sealed = f"{address}&seal={sessions.seal_of('', address)}"
    async with listening(create_inspector(memory, False, LIMITS)) as url, http.get(url + sealed) as done:
        text = await done.text()
        assert (done.status, "Erase" in text, "2 messages erased" in text) == (200, True, False)


@pytest.mark.parametrize("other", ['prefs={"a": 1}', "flag", "a=b c", "secure", 'a="b\\\\"'])
async def test_other_cookies_do_not_hide_a_session(memory: Memory, site: str, http: ClientSession, other: str) -> None:
    key = await memory.keys("acme").create("one", rights=["read"])
    _, _, session = await sign_in(http, site, key.secret)
    carried = {"Cookie": f"{other}; {sessions.COOKIE}={session}"}
    async with http.get(f"{site}/acme/conversations", headers=carried, allow_redirects=False) as done:
        assert done.status == 200


async def test_the_headers_of_each_answer(memory: Memory, site: str, http: ClientSession) -> None:
    key = await memory.keys("acme").create("one", rights=["read"])
    form = {"key": key.secret, "to": ROOT}
    async with http.post(f"{site}/sign-in", data=form, allow_redirects=False) as done:
        kept = done.headers["Set-Cookie"]
    assert re.search("; HttpOnly; Max-Age=3600; Path=/inspect; SameSite=strict$", kept)
    headers = {"Cookie": kept.partition(";")[0]}
    for there in ("/acme/conversations", "/sign-in", "/acme/nothing", "/acme/conversations?cursor=%00"):
        async with http.get(site + there, headers=headers) as done:
            assert done.headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'; ")
            assert done.headers["X-Frame-Options"] == "DENY"
            assert done.headers["Referrer-Policy"] == "same-origin"
            assert done.headers["Content-Type"] == "text/html; charset=utf-8"


MADE_UP = [
    f'["acme", "{UUID(int=0)}", Infinity, 9999999999, "a"]',
    f'["acme", "{UUID(int=0)}", {"9" * 5_000}, 9999999999, "a"]',
    '["acme", "none", 9999999999, 9999999999, "a"]',
    f'["ac\\u0000me", "{UUID(int=0)}", 9999999999, 9999999999, "a"]',
    f'["ac\\ud800me", "{UUID(int=0)}", 9999999999, 9999999999, "a"]',
    '{"acme": 1, "b": 2, "c": 3, "d": 4, "e": 5}',
    "[" * 3_000,
]


async def test_nothing_that_strangers_send_is_an_error_of_the_service(
    memory: Memory, site: str, http: ClientSession
) -> None:
    key = await memory.keys("acme").create("one", rights=["read"])
    _, _, session = await sign_in(http, site, key.secret)
    payload = session.partition(".")[0]
    made_up = [f"{base64.urlsafe_b64encode(one.encode()).decode()}.x" for one in MADE_UP]
    for carried in (*made_up, f'"{payload}.\\351"', '"\\351"', "é"):
        assert (await seen(http, f"{site}/acme/conversations", carried))[0] == 303, carried
    for method, there in (
        ("GET", "static/conversations"),
        ("POST", "static/erase"),
        ("GET", "static/people/ada/cook"),
        ("GET", "static/none.css"),
        ("GET", "%00/conversations"),
    ):
        async with http.request(method, f"{site}/{there}", allow_redirects=False) as done:
            assert done.status == 303, there
    for to in ("//[", f"{ROOT}//[", "[", "\0", "é"):
        form = {"key": key.secret, "to": to}
        async with http.post(f"{site}/sign-in", data=form, allow_redirects=False) as done:
            assert done.status == 303, to


@pytest.mark.parametrize("value", ["\0", "9" * 30, "0001-01-01", "(" * 500])
async def test_no_address_and_no_form_is_an_error_of_the_service(
    memory: Memory, http: ClientSession, value: str
) -> None:
    """Whatever a part of it, a parameter or a field is."""
    await memory.conversation("monday", scope=LOCAL).append(user("Tom cannot eat peanuts."))
    await memory.facts(LOCAL).add("Cannot eat peanuts.")
    session = sessions.new_session()
    headers = {"Cookie": f"{sessions.COOKIE}={session}"}

    async def check(method: str, address: str, **sent: object) -> None:
        asked = http.request(method, address, headers=headers, allow_redirects=False, **sent)  # type: ignore[arg-type]
        async with asked as done:
            assert done.status < 500, (method, address, sent)
            await done.read()

    async with listening(create_inspector(memory, False, LIMITS)) as url:
        for method, at, parameters in routes():
            parts = {"tenant": LOCAL.tenant, **PAGE}
            for part in re.findall(r"\{(\w+)\}", at):
                await check(method, url + ROOT + at.format(**{**parts, part: quote(value, safe="")}))
            for name in parameters:
                await check(method, f"{url}{ROOT}{at.format(**parts)}?{urlencode({**FIELDS, **PAGE, name: value})}")
            for name in FIELDS if method == "POST" else ():
                form = {**FIELDS, name: value, "form_token": sessions.form_token(session)}
                await check(method, url + ROOT + at.format(**parts), data=form)
            if method == "POST":
                many = [("form_token", sessions.form_token(session)), *((f"a{at}", "") for at in range(1_001))]
                await check(method, url + ROOT + at.format(**parts), data=many)


def test_a_page_stays_as_it_was_first_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another version that is installed meanwhile has other values for its templates."""
    (tmp_path / "templates").mkdir()
    page = tmp_path / "templates" / "page.html"
    monkeypatch.setattr(templating, "HERE", tmp_path)
    page.write_text("old")
    templates = templating.environment()
    assert templates.get_template("page.html").render() == "old"
    page.write_text("new")
    os.utime(page, (0, 0))
    assert templates.get_template("page.html").render() == "old"
