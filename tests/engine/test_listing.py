"""Lists of conversations and of scopes, page by page, while conversations move."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hitherto
from hitherto import Memory, Scope, assistant, user
from hitherto.errors import InvalidInput, InvalidScope
from tests.conftest import SCOPE
from tests.lengths import examples, lasting


async def names(memory: Memory, **asked: Any) -> list[str]:
    return [one.conversation for one in (await memory.conversations(SCOPE, **asked)).conversations]


async def test_a_list_has_pages(memory: Memory) -> None:
    for number in range(7):
        await memory.conversation(f"{number}", scope=SCOPE).append(user("Hello."))
    seen: list[list[str]] = []
    cursor = None
    while True:
        page = await memory.conversations(SCOPE, limit=3, cursor=cursor)
        seen.append([one.conversation for one in page.conversations])
        if (cursor := page.next) is None:
            break
    assert seen == [["6", "5", "4"], ["3", "2", "1"], ["0"]]
    assert (await memory.conversations(SCOPE, limit=7)).next is None
    assert (await memory.conversations(tenant="nobody")).conversations == ()


@lasting
@settings(max_examples=examples(5))
@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=30), st.integers(1, 4))
async def test_no_page_shows_one_twice_however_they_move(moves: list[tuple[int, bool]], limit: int) -> None:
    """And what is not written to meanwhile is shown."""
    async with hitherto.open("memory:", worker=False) as memory:
        for number in range(10):
            await memory.conversation(f"{number}", scope=SCOPE).append(user("Hello."))
        shown: list[str] = []
        cursor, left, moved = None, list(moves), set[str]()
        while True:
            page = await memory.conversations(tenant=SCOPE.tenant, limit=limit, cursor=cursor)
            shown += [one.conversation for one in page.conversations]
            if (cursor := page.next) is None:
                break
            for number, deleted in left[:3]:
                chat = memory.conversation(f"{number}", scope=SCOPE)
                moved.add(chat.id)
                await (chat.delete() if deleted else chat.append(assistant("Still here.")))
            del left[:3]
        assert len(shown) == len(set(shown))
        assert set(shown) >= {f"{number}" for number in range(10)} - moved


async def test_what_is_set_is_listed(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    await chat.append(user("Where is the key?\nI lost it."), assistant("Behind the kayak."))
    (before,) = (await memory.conversations(SCOPE)).conversations
    assert (before.title, before.metadata, before.messages) == ("Where is the key? I lost it.", {}, 2)
    await chat.configure(title="  The key 🔑 ", metadata={"ticket": 7, "tags": ["vip"]}, create=True)
    (after,) = (await memory.conversations(SCOPE, metadata={"tags": "vip"})).conversations
    assert (after.title, after.metadata) == ("The key 🔑", {"ticket": 7, "tags": ["vip"]})
    assert (after.created_at, after.rev) == (before.created_at, before.rev)
    assert await names(memory, metadata={"ticket": "7"}) == []
    await chat.configure(title="", metadata={}, create=True)
    (again,) = (await memory.conversations(SCOPE)).conversations
    assert (again.title, again.metadata) == (before.title, {})
    assert await names(memory, after=again.said_at) == await names(memory, before=again.said_at) == ["c"]


async def test_one_that_was_only_given_a_title_is_there_and_can_be_deleted(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    await chat.configure(title="To be", create=True)
    (found,) = (await memory.conversations(SCOPE)).conversations
    assert (found.title, found.messages) == ("To be", 0)
    assert await chat.delete() == 0
    assert await names(memory) == []


async def test_what_is_empty_was_said_when_it_was_made(memory: Memory) -> None:
    for number in range(50):  # the clock moves between two looks at it, but not always
        await memory.conversation(f"{number}", scope=SCOPE).configure(title="Nothing yet", create=True)
    listed = (await memory.conversations(SCOPE, limit=50)).conversations
    assert [one.conversation for one in listed if one.said_at != one.created_at] == []


async def test_deleting_what_is_not_there_makes_nothing(memory: Memory) -> None:
    assert await memory.conversation("c", scope=SCOPE).delete() == 0
    assert await names(memory) == []


async def test_scopes_have_pages_and_count_documents_and_facts(memory: Memory) -> None:
    for tenant, person in (("a", "ann"), ("a", "bob"), ("b", "cy")):
        scope = Scope(tenant=tenant, user=person, agent="planner")
        await memory.conversation("c", scope=scope).append(user("Hello."))
    await memory.documents(Scope(tenant="a", user="dee", agent="planner")).add("A text about boats.")
    await memory.facts(Scope(tenant="a", user="ann", agent="planner")).add("Sails.")
    page = await memory.scopes("user", tenant="a", limit=2)
    assert [(one.name, one.conversations, one.documents, one.facts) for one in page.scopes] == [
        ("ann", 1, 0, 1),
        ("bob", 1, 0, 0),
    ]
    rest = await memory.scopes("user", tenant="a", limit=2, cursor=page.next)
    assert [(one.name, one.conversations, one.documents, one.updated_at) for one in rest.scopes] == [
        ("dee", 0, 1, None)
    ]
    assert rest.next is None
    assert [one.name for one in (await memory.scopes("tenant")).scopes] == ["a", "b"]
    assert [(one.name, one.messages) for one in (await memory.scopes("agent", tenant="a")).scopes] == [("planner", 2)]
    assert (await memory.scopes("agent", tenant="a", user="dee")).scopes == ()


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({}, InvalidScope),
        ({"user": "u"}, InvalidScope),
        ({"scope": SCOPE, "tenant": "acme"}, InvalidScope),
        ({"scope": "acme"}, InvalidScope),
        ({"tenant": ""}, InvalidScope),
        ({"tenant": 3}, InvalidScope),
        ({"tenant": "acme", "user": "\ud800"}, InvalidScope),
        ({"scope": SCOPE, "limit": 0}, InvalidInput),
        ({"scope": SCOPE, "limit": 1_001}, InvalidInput),
        ({"scope": SCOPE, "cursor": "nonsense"}, InvalidInput),
        ({"scope": SCOPE, "cursor": "W10"}, InvalidInput),
        ({"scope": SCOPE, "cursor": "é" * 10_000}, InvalidInput),
        ({"scope": SCOPE, "cursor": 7}, InvalidInput),
        ({"scope": SCOPE, "after": "yesterday"}, InvalidInput),
        ({"scope": SCOPE, "metadata": {1, 2}}, InvalidInput),
    ],
)
async def test_what_cannot_be_asked_for(memory: Memory, asked: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        await memory.conversations(**asked)


@pytest.mark.parametrize(
    "asked",
    [{"by": "tenant", "tenant": "a", "user": "u"}, {"by": "tenant", "user": "u"}, {"by": "user"}, {"by": "day"}],
)
async def test_scopes_that_cannot_be_asked_for(memory: Memory, asked: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        await memory.scopes(**asked)


@pytest.mark.parametrize(
    "given", [{"title": 7}, {"title": "x" * 501}, {"metadata": [1]}, {"metadata": {"x": object()}}]
)
async def test_what_cannot_be_set(memory: Memory, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        await memory.conversation("c", scope=SCOPE).configure(**given, create=True)
    assert await names(memory) == []
