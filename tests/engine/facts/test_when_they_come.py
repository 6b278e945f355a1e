"""When a conversation's first facts come under each preset, as docs/facts.md says it."""

from __future__ import annotations

import pytest

import hitherto
from hitherto import Scope, assistant, user
from hitherto.providers.scripted import Scripted, items

SCOPE = Scope(tenant="acme", user="ana", agent="support")
TOLD = items("They talked.", facts=[("hobby", "Plays the cello")])


@pytest.mark.parametrize(
    ("policy", "first", "read"),
    [
        ("chunks", 32, (0, 19)),
        ("sliding_window:facts=true", 6, (0, 5)),
        ("sliding_window:after_seq=1,facts=true", 2, (0, 1)),
        ("rolling:facts=true", 42, (0, 29)),
        ("summarize:facts=true", 40, (0, 29)),
    ],
)
async def test_the_first_facts_of_a_conversation(policy: str, first: int, read: tuple[int, int]) -> None:
    async with hitherto.open("memory:", model=Scripted(then=TOLD), embedder="none", policy=policy) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        for messages in range(2, first + 1, 2):
            assert await memory.facts(SCOPE).list() == []
            await chat.append(user("I play the cello."), assistant("How lovely."))
            await memory.wait_for_digests()
            assert bool(await memory.facts(SCOPE).list()) is (messages == first)
        (digest,) = await chat.digests()
        assert (digest.start, digest.end) == read


async def test_a_window_leaves_nothing_unread() -> None:
    """Each round is read as it ends, so that what a short conversation said last is known too."""
    policy = "sliding_window:facts=true"
    async with hitherto.open("memory:", model=Scripted(then=TOLD), embedder="none", policy=policy) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        for number in range(7):
            await chat.append(user(f"Said {number}."), assistant("I see."))
            await memory.wait_for_digests()
        assert max(digest.end for digest in await chat.digests()) == 13
