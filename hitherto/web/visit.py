"""A visit: what a view has of a request, and how it answers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from hmac import compare_digest
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import Depends, Path, Request
from pydantic import AfterValidator
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import Scope as HttpScope

from hitherto.core.key import Right
from hitherto.core.scope import Scope, checked_name
from hitherto.engine.conversation import Conversation
from hitherto.engine.facts.facts import Facts
from hitherto.engine.memory import Memory
from hitherto.errors import Forbidden, InvalidInput, NotFound
from hitherto.http.server.callers import Caller
from hitherto.web.sessions import COOKIE, LASTS, Sessions, check_form, form_token, new_session, seal_of, session_in
from hitherto.web.templating import ROOT, environment, name_in

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with no-referrer, browsers would not say where a form comes from
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

templates = cache(environment)


NAVIGATION = (
    ("conversations", "Conversations", Right.READ),
    ("people", "People", Right.READ),
    ("recall", "Recall", Right.READ),
    ("costs", "Costs", Right.ADMIN),
    ("health", "Health", Right.ADMIN),
    ("export", "Export", Right.ADMIN),
    ("erase", "Erase", Right.ADMIN),
)
"""The pages of a tenant that every page links to: the name in the address, the label, and the right."""

Name = Annotated[str, AfterValidator(name_in), Path()]
"""A name in an address, in which the gate has left "/" and "%" encoded."""


class Visit:
    """A request to a page of a tenant: the memory, who looks at it and what they may."""

    navigation = NAVIGATION

    def __init__(self, request: Request, tenant: str) -> None:
        self.request, self.tenant = request, tenant
        self.memory: Memory = request.scope["memory"]
        self.caller: Caller = request.scope["caller"]
        self.sessions: Sessions = request.scope["authentication"]
        if self.caller.key is not None and tenant != self.caller.tenant:
            raise NotFound("this key sees nothing of that name")
        checked_name(tenant, "tenant")

    def may(self, right: str) -> bool:
        """Whether the visitor has this right."""
        return self.caller.key is None or self.caller.key.allows(Right(right))

    def user(self, given: str | None) -> str:
        """The user whom a page is asked for, or else that of the visitor's key; "" for any. Raises Forbidden for one
        whom the key is not for."""
        try:
            return self.caller.user(given or None) or ""
        except Forbidden:
            raise Forbidden("your key is for one user alone, and this page is another user's") from None

    def scope(self, user: str, agent: str) -> Scope:
        """A scope of the tenant. Raises Forbidden for a user whom the visitor's key is not for."""
        self.user(user)
        return Scope(tenant=self.tenant, user=user, agent=agent)

    async def form(self) -> Mapping[str, str]:
        """What a form has sent. Raises Forbidden for one of another session or site."""
        return await form_of(self.request)

    async def page(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """The page that a template makes of these values."""
        session = session_in(self.request.headers)
        fresh = None if self.sessions.needed else session or new_session()
        if "HX-Request" not in self.request.headers:  # which a page sends by itself, and is no use of the session
            fresh = fresh or await self.sessions.renewed(session)
        text = (
            templates()
            .get_template(template)
            .render(
                visit=self,
                tenant=self.tenant,
                form_token=form_token(fresh or session),
                here=here_of(self.request.scope),
                **values,
            )
        )
        answer = HTMLResponse(text, status, HEADERS)
        if fresh:
            keep_session(answer, fresh, self.request)
        return answer

    def to(self, address: str) -> Response:
        """Go on at a page, after a change."""
        return RedirectResponse(address, 303, HEADERS)

    def to_told(self, address: str) -> Response:
        """Go on at a page whose query says what was done."""
        return self.to(f"{address}&seal={seal_of(session_in(self.request.headers), address)}")

    @property
    def told(self) -> bool:
        """Whether `to_told` led here: else what the query says need not have been done."""
        address, _, seal = here_of(self.request.scope).rpartition("&seal=")
        session = session_in(self.request.headers)
        return bool(session) and compare_digest(seal.encode(), seal_of(session, address).encode())


class ConversationVisit(Visit):
    """A visit to a page of a conversation. Its templates extend `in_conversation.html`."""

    def __init__(self, request: Request, tenant: str, user: str, agent: str, name: str) -> None:
        super().__init__(request, tenant)
        self.chat: Conversation = self.memory.conversation(name, scope=self.scope(user, agent))
        self.base: tuple[str, ...] = (tenant, "conversations", user, agent, name)

    async def page(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """The page, with the names that it says and links to, and the title for those who may read. Without an `info`,
        which may be None, raises NotFound where there is no such conversation."""
        _, _, user, agent, name = self.base
        if "info" in values:
            info = values["info"]
        elif (info := await self.chat.info()) is None:
            raise NotFound("there is no such conversation")
        title = info.title if info and self.may("read") else ""
        named = {"user": user, "agent": agent, "name": name, "title": title, "base": self.base, "there": bool(info)}
        return await super().page(template, status=status, **named, **values)


class PersonVisit(Visit):
    """A visit to a page of a user with an agent, who need not be known. Its templates extend `in_person.html`."""

    def __init__(self, request: Request, tenant: str, user: str, agent: str) -> None:
        super().__init__(request, tenant)
        self.person = self.scope(user, agent)
        self.facts: Facts = self.memory.facts(self.person)
        self.base: tuple[str, ...] = (tenant, "people", user, agent)

    async def page(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """The page, with the names that it says and links to."""
        named = {"user": self.person.user, "agent": self.person.agent, "base": self.base}
        return await super().page(template, status=status, **named, **values)


async def form_of(request: Request) -> Mapping[str, str]:
    """What a form has sent. Raises Forbidden for one of another session or site."""
    body = (await request.body()).decode(errors="replace")
    try:
        found = dict(parse_qsl(body, keep_blank_values=True, max_num_fields=1_000))
    except ValueError:
        raise InvalidInput("no form of these pages has so many fields") from None
    check_form(session_in(request.headers), found.pop("form_token", ""))
    if request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
        raise Forbidden("this form was sent by a page of another site")
    return found


def number_in(form: Mapping[str, str], name: str) -> int:
    """A number of a form. Raises InvalidInput."""
    given = form.get(name, "")
    if not given.isdecimal() or len(given) > 18:
        raise InvalidInput(f"this form has no number {name!r}; load the page again, and send it then")
    return int(given)


def keep_session(answer: Response, session: str, request: Request) -> None:
    """Have the browser keep a session, for the pages alone."""
    secure = request.url.scheme == "https" or request.headers.get("Origin", "").startswith("https://")
    answer.set_cookie(COOKIE, session, max_age=LASTS, path=ROOT, secure=secure, httponly=True, samesite="strict")


def here_of(scope: HttpScope) -> str:
    """The address that was asked for, without the host."""
    query: bytes = scope.get("query_string", b"")
    path: bytes = scope.get("raw_path") or b""
    return (path.split(b"?")[0] + (b"?" + query if query else b"")).decode("ascii", "replace")


def _visit(request: Request, tenant: Name) -> Visit:
    return Visit(request, tenant)


Visiting = Annotated[Visit, Depends(_visit)]
"""The visit, as a parameter of a view."""


def _conversation_visit(request: Request, tenant: Name, user: Name, agent: Name, name: Name) -> ConversationVisit:
    return ConversationVisit(request, tenant, user, agent, name)


InConversation = Annotated[ConversationVisit, Depends(_conversation_visit)]
"""The visit to a conversation, as a parameter of a view."""


def _person_visit(request: Request, tenant: Name, user: Name, agent: Name) -> PersonVisit:
    return PersonVisit(request, tenant, user, agent)


OfPerson = Annotated[PersonVisit, Depends(_person_visit)]
"""The visit to a user with an agent, as a parameter of a view."""
