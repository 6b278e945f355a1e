"""Chat sessions, which are conversations here, with the summary of their older part."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import unquote

from fastapi import APIRouter, Path, Query, Request
from pydantic import AwareDatetime, BaseModel, ConfigDict
from pydantic.alias_generators import to_camel
from starlette.responses import Response

from hitherto import Conversation, ConversationInfo, Head, Logged, Memory, Right, Scope
from hitherto.errors import NotFound
from hitherto.http.server.callers import route_options
from hitherto.http.server.responses import answer
from hitherto.other_systems.request_scope import RequestScope

_MOST = 200
_LARGEST = 2**63 - 1

Limit = Annotated[int, Query(ge=1, le=_MOST)]


class _CamelCase(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class ChatSession(_CamelCase):
    """A session. `summary` stands for its older part, "" where nothing does; `summarizedCount` is how many user and
    final assistant messages that covers."""

    id: str
    user_id: str
    name: str
    summary: str
    summarized_count: int
    created_at: AwareDatetime
    updated_at: AwareDatetime


class ChatSessions(_CamelCase):
    """A page of sessions, the one in which something was said last first. `next` is the `cursor` of the next page, null
    at the end."""

    sessions: list[ChatSession]
    next: str | None


class ChatMessage(_CamelCase):
    """What a user or the assistant said."""

    id: str
    session_id: str
    role: Literal["user", "assistant"]
    content: str
    created_at: AwareDatetime


class ChatMessages(_CamelCase):
    """A page of a session's messages, the oldest first, and the summary of the session. `next` is the `cursor` of the
    next page, null at the end."""

    messages: list[ChatMessage]
    summary: str
    summarized_count: int
    next: int | None


def add_routes(router: APIRouter) -> None:
    """Add the routes."""

    @router.get(
        "/api/chat/sessions",
        response_model=ChatSessions,
        **route_options("chat_sessions", "Chat sessions", Right.READ, "The user's sessions with the agent."),
    )
    async def list_sessions(
        request: Request,
        scope: RequestScope,
        limit: Limit = 100,
        cursor: Annotated[str | None, Query()] = None,
    ) -> Response:
        memory: Memory = request.scope["memory"]
        page = await memory.conversations(scope, limit=limit, cursor=cursor)
        listed = [_session(info) for info in page.conversations]
        return await answer(ChatSessions(sessions=listed, next=page.next), ChatSessions)

    @router.get(
        "/api/chat/sessions/{session_id}",
        response_model=ChatSession,
        **route_options("chat_session", "Chat sessions", Right.READ, "A session."),
    )
    async def get_session(
        request: Request,
        scope: RequestScope,
        session_id: Annotated[str, Path()],
    ) -> Response:
        return await answer(_session(await _info(_chat(request, scope, session_id))), ChatSession)

    @router.get(
        "/api/chat/sessions/{session_id}/messages",
        response_model=ChatMessages,
        **route_options(
            "chat_messages",
            "Chat sessions",
            Right.READ,
            "What was said in a session and is neither cleared nor taken back, without tool calls.",
        ),
    )
    async def list_messages(
        request: Request,
        scope: RequestScope,
        session_id: Annotated[str, Path()],
        limit: Limit = 100,
        cursor: Annotated[int, Query(ge=0, le=_LARGEST)] = 0,
    ) -> Response:
        chat = _chat(request, scope, session_id)
        info, head = await _info(chat), await chat.head()
        if head is None:
            raise _no_session(chat)
        found, start, end = list[Logged](), max(cursor, head.view_start), head.next_seq
        while len(found) < limit and start < end:
            page = await chat.messages(start=start, stop=end, limit=_MOST)
            found = [*found, *(logged for logged in page if _shown(logged, head))][:limit]
            last = found[-1] if len(found) == limit else page[-1] if page else None
            start = end if last is None else last.seq + 1
        made = ChatMessages(
            messages=[_message(info, logged) for logged in found],
            summary=info.summary,
            summarized_count=info.summarized_count,
            next=start if start < end else None,
        )
        return await answer(made, ChatMessages)


def _chat(request: Request, scope: Scope, session_id: str) -> Conversation:
    memory: Memory = request.scope["memory"]
    return memory.conversation(unquote(session_id), scope=scope)


async def _info(chat: Conversation) -> ConversationInfo:
    found = await chat.info()
    if found is None:
        raise _no_session(chat)
    return found


def _no_session(chat: Conversation) -> NotFound:
    return NotFound(f"there is no session {chat.id!r} of this user with this agent")


def _shown(logged: Logged, head: Head) -> bool:
    return logged.message.counts and logged.live(head.rev) and not logged.expired(head.clock)


def _session(info: ConversationInfo) -> ChatSession:
    return ChatSession(
        id=info.conversation,
        user_id=info.scope.user,
        name=info.title,
        summary=info.summary,
        summarized_count=info.summarized_count,
        created_at=info.created_at,
        updated_at=info.said_at,
    )


def _message(info: ConversationInfo, logged: Logged) -> ChatMessage:
    role: Literal["user", "assistant"] = "user" if logged.message.opens_turn else "assistant"
    return ChatMessage(
        id=f"{info.ref}-{logged.seq:012}",
        session_id=info.conversation,
        role=role,
        content=logged.message.text,
        created_at=logged.said_at,
    )
