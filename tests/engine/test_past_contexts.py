"""A context at a past revision recalls from other conversations what was there then; one that is rebuilt, what its
manifest says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from hitherto import Context, Conversation, Memory, RecallOptions, assistant, chunks, token_threshold, user
from hitherto.core.log.head import Head
from hitherto.core.recall.filter import EntryKind
from hitherto.engine.handle import Handle
from hitherto.errors import NotReproducible
from hitherto.store.store import Store
from tests.acceptance.dialogue import PLENTY
from tests.conftest import SCOPE
from tests.memories import open_on

EARLY, LATE = "The dough of the rye bread rests for nine hours.", "The dough of the rye bread rests for seven hours."
ASKED = "How long does the dough of the rye bread rest?"

Told = Callable[[Memory, str, str], Awaitable[object]]


async def said(memory: Memory, name: str, text: str, **given: Any) -> Conversation:
    chat = memory.conversation(name, scope=replace(SCOPE, agent=given.pop("agent", SCOPE.agent)), **given)
    await chat.append(user(text), assistant("Noted."))
    return chat


async def said_in_the_same(memory: Memory, name: str, text: str) -> None:
    await said(memory, "one", text)


async def said_to_another(memory: Memory, name: str, text: str) -> None:
    await said(memory, name, text, agent="another")


async def archived(memory: Memory, name: str, text: str) -> None:
    """In a digest and an archive, no longer in what the conversation shows."""
    chat = await said(memory, name, text, policy=token_threshold(20, keep_messages=2, archive=True))
    await chat.append(user("And the oven?"), assistant("It is hot, at two hundred and fifty degrees."))
    await memory.wait_for_digests()


async def added(memory: Memory, name: str, text: str) -> None:
    await memory.documents(SCOPE).add(text)


def shown(context: Context) -> set[str]:
    return {text for text in (EARLY, LATE) if text in repr(context.request)}


WAYS: dict[str, tuple[Told, dict[str, Any]]] = {
    "messages": (said, {}),
    "messages of the same conversation": (said_in_the_same, {}),
    "messages to another agent": (said_to_another, {"recall": RecallOptions(all_agents=True)}),
    "digests": (archived, {"recall": RecallOptions(kinds=frozenset({EntryKind.DIGEST}))}),
    "archives": (archived, {"recall": RecallOptions(kinds=frozenset({EntryKind.PASSAGE}))}),
    "documents": (added, {}),
    "across sessions": (said, {"cross_session": "always", "recall": "own"}),
    "the newest summary": (archived, {"cross_session": "latest", "recall": "own"}),
    "the newest summaries": (archived, {"asked": "What was said?", "cross_session": "triggers", "recall": "own"}),
}


def opened(store: Store) -> Any:
    return open_on(store, embedder="none", relevance_threshold=0.0, search_triggers=["what was said"])


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("way", WAYS)
async def test_what_came_later_is_not_shown(store: Store, way: str, indexed: bool) -> None:
    tell, options = WAYS[way]
    asked, options = options.get("asked", ASKED), {one: of for one, of in options.items() if one != "asked"}
    async with opened(store) as memory:
        await tell(memory, "early", EARLY)
        chat = await said(memory, "chat", "Hello.")
        head = await chat.head()
        assert head is not None
        before = await chat.context(user(asked), budget=PLENTY, **options)
        assert shown(before) == {EARLY}
        await tell(memory, "late", LATE)
        if indexed:
            await memory.wait_for_index()
        for rev in (None, head.rev):
            assert LATE in shown(await chat.context(user(asked), budget=PLENTY, at=rev, **options)), "it is the newest"
        await chat.append(user("And hello again."))
        past = await chat.context(user(asked), budget=PLENTY, at=head.rev, **options)
        assert shown(past) == {EARLY}
        assert shown(await chat.context(user(asked), budget=PLENTY, at=0, **options)) == {EARLY}
        for made in (before, past):
            assert (await chat.rebuild(made.manifest)).request == made.request


async def test_a_message_that_comes_meanwhile_is_not_shown(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the revision was the newest when its context was asked for."""
    async with opened(store) as memory:
        chat = await said(memory, "chat", "Hello.")
        look = Handle.head

        async def then_append(handle: Handle, at: int | None = None) -> Head:
            head = await look(handle, at)
            monkeypatch.setattr(Handle, "head", look)
            await chat.append(user("And hello again."))
            return head

        monkeypatch.setattr(Handle, "head", then_append)
        made = await chat.context(at=1)
        assert (made.manifest.rev, made.manifest.next_seq) == (1, 2)


@pytest.mark.parametrize("later", ["messages", "digests", "archives"])
async def test_what_came_later_takes_no_place_of_the_rest(store: Store, later: str) -> None:
    """However well it matches."""
    policies = {"digests": chunks(threshold=4, batch=4, context=1), "archives": token_threshold(20, archive=True)}
    async with opened(store) as memory:
        await said(memory, "early", "It is said that a password was chosen once, " + "on some day or other, " * 10)
        chat = await said(memory, "chat", "Hello.")
        late = memory.conversation("late", scope=SCOPE, policy=policies.get(later))
        for start in range(0, 300, 6):
            await late.append(*[user(f"The password, password number {start + at}.") for at in range(6)])
            if later != "messages":
                await memory.wait_for_digests()
        await chat.append(user("And hello again."))
        await memory.wait_for_index()
        context = await chat.context(user("Which password?"), budget=2_000, at=1)
        assert [one.conversation for one in context.manifest.recalled] == ["early"]


@pytest.mark.parametrize("gone", ["erased", "deleted", "of a user"])
async def test_what_is_gone_is_not_rebuilt(store: Store, gone: str) -> None:
    async with opened(store) as memory:
        early = await said(memory, "early", EARLY)
        chat = await said(memory, "chat", "Hello.")
        made = await chat.context(user(ASKED))
        assert shown(made) == {EARLY}
        match gone:
            case "erased":
                await early.erase([0])
            case "deleted":
                await early.delete()
            case _:
                await memory.erase_user(SCOPE.tenant, SCOPE.user)
        with pytest.raises(NotReproducible):
            await chat.rebuild(made.manifest)
