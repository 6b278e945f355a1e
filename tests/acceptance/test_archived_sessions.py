"""The second seed's archived conversations: cross-session context from them, and its two tools."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from hitherto import Memory, assistant, token_threshold, user
from hitherto.core.digests.prompts import ArchiveTask
from hitherto.core.prompt import Prompt
from hitherto.integrations.document_tools import document_tools
from hitherto.providers.scripted import Scripted
from hitherto.store.store import Store
from tests.acceptance.dialogue import ONE_TRY, PLENTY, says_each
from tests.acceptance.test_cross_session import BUILDING, PLANNING, SCOPE, asks, crossing, second_session
from tests.memories import open_on

ANSWER = """\
## SUMMARY
The user builds a REST API. Access is granted by signed tokens that expire after an hour.

## TOPICS
authentication, JWT, security

## ENTITIES
UserService, Redis

## DECISIONS
Use JWT with 1-hour expiration

## QUESTIONS
Should we implement refresh tokens?
"""


def archives(prompt: Prompt) -> str:
    """Under the seed's headings what the first digest is about; of a later one, little."""
    if not isinstance(prompt.task, ArchiveTask):
        return says_each(prompt)
    return ANSWER if prompt.task.lines[0].seq == 0 else "## SUMMARY\nSmall talk."


@asynccontextmanager
async def archived(store: Store, **given: Any) -> AsyncGenerator[tuple[Memory, int]]:
    """A memory whose first session was long enough to be archived, and the number of messages in the archive."""
    policy = token_threshold(threshold=60, keep_messages=2, archive=True)
    wanted: dict[str, Any] = {"cross_session": "triggers", **ONE_TRY, **given}
    async with open_on(store, model=Scripted(then=archives), **wanted) as memory:
        chat = memory.conversation("session1", scope=SCOPE, policy=policy)
        for text in (BUILDING, PLANNING, "The users are kept in a service of their own", "Redis has the rest"):
            await chat.append(user(text), assistant("That is a sound choice, and I have noted it down for later on."))
            await memory.wait_for_digests()
        await memory.wait_for_index()
        (digest, *_) = await chat.digests()
        yield memory, digest.end + 1


async def test_the_archived_summary_is_found(store: Store) -> None:
    """ "Searches archived conversations … excludes current session … before recent messages"."""
    async with archived(store) as (memory, count):
        await second_session(memory)
        question = "Remind me: when do the signed tokens expire, by which access is granted?"
        context = await asks(memory, question)
        (one,) = [one for one in context.manifest.recalled if one.kind == "passage"]
        assert (one.why, one.conversation, one.start, one.end) == ("cross_session", "session1", 0, count - 1)
        assert one.score >= 0.7
        shown = str(context.messages[-2]["content"])
        assert "signed tokens that expire after an hour" in shown
        assert 'conversation "session1":\n- passage: ' in shown
        # In the session that it is from, it is not another one's.
        own = memory.conversation("session1", scope=SCOPE)
        assert crossing(await own.context(user(question), budget=PLENTY)) == []


async def test_it_is_found_by_what_it_says_and_not_by_its_headings(store: Store) -> None:
    """By its topics, entities, decisions and questions; every archive has the same headings."""
    async with archived(store, worker=True) as (memory, _):
        for said in ("UserService", "Redis"):
            found = await memory.recall(said, scope=SCOPE, kinds=["passage"])
            best = found.hits[0]
            assert (best.conversation, best.start) == ("session1", 0), said
            assert said in best.text
        for heading in ("date range", "conversation summary", "topics discussed"):
            found = await memory.recall(heading, scope=SCOPE, kinds=["passage"], min_score=0.7)
            assert found.hits == (), heading


async def test_the_seeds_two_tools(store: Store) -> None:
    """`search_knowledge_base(query="authentication discussion", search_type="conversations", limit=5)` and
    `list_documents(doc_type="conversations", limit=10)`."""
    async with archived(store) as (memory, count):
        await memory.documents(SCOPE).add("# Handbook\n\nAuthentication is by badge at the door.", title="Handbook")
        await memory.wait_for_index()
        # The knowledge base is the user's, whichever agent asks.
        tools = document_tools(memory, replace(SCOPE, agent="other_agent"))
        listed = await tools.list_documents(doc_type="conversations", limit=10)
        found = await tools.search_knowledge_base(
            query="authentication discussion", search_type="conversations", limit=5
        )
        assert listed != []
        assert {one["doc_type"] for one in (*listed, *found)} == {"conversation"}
        first = listed[-1]
        assert first["namespace"] == "conversations:user123"
        assert first["content"].startswith("# Conversation Summary\n## Date Range: ")
        assert "\n## Summary: The user builds a REST API." in first["content"]
        metadata = first["metadata"]
        start, end = metadata["date_range"].pop("start"), metadata["date_range"].pop("end")
        assert start <= end
        assert start.endswith("Z")
        assert metadata == {
            "session_id": "session1",
            "agent_id": "knowledge_agent",
            "conversation_topics": ["authentication", "JWT", "security"],
            "entities_mentioned": ["UserService", "Redis"],
            "decisions_made": ["Use JWT with 1-hour expiration"],
            "open_questions": ["Should we implement refresh tokens?"],
            "message_count": count,
            "date_range": {},
        }
        everything = await tools.search_knowledge_base(query="authentication by badge")
        assert everything[0]["title"] == "Handbook"
        assert len(await tools.list_documents()) == len(listed) + 1
        nobody = document_tools(memory, replace(SCOPE, user="nobody"))
        assert await nobody.list_documents() == await nobody.search_knowledge_base("authentication") == []
        json.dumps([listed, found, tools.schemas])
