"""What becomes of facts when others write at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from hitherto import Conversation, Memory
from hitherto.ports.models import Prompt
from hitherto.providers.scripted import Gate, Scripted
from hitherto.store.store import Store
from tests.acceptance.family import (
    ANA,
    ROSA,
    Says,
    contents,
    listener,
    opened,
    sources,
)
from tests.engine.facts.reviewing import CITIES, added, two_turns
from tests.patience import PATIENCE

EIGHT = ("Hamlet", "Chopin", "Lisbon", "algebra", "chess", "Latin", "botany", "Kafka")


class TestAtOnce:
    """Digests of one user's conversations that end at the same time."""

    @asynccontextmanager
    async def ending_at_once(
        self, store: Store, texts: Sequence[str], answer: Callable[[Prompt], str], *known: str, **settings: Any
    ) -> AsyncGenerator[tuple[Memory, list[Conversation]]]:
        """Conversations of which each said one of `texts`, once all their digests have ended together; `known` are
        facts from before."""
        gates = [Gate(answer) for _ in texts]
        options: dict[str, Any] = {"digest_concurrency": len(texts), **settings}
        async with opened(store, model=Scripted(gates, then=answer), **options) as memory:
            await added(memory.facts(ANA, subject=ROSA), *known)
            chats = [memory.conversation(f"c{at}", scope=ANA, subject=ROSA) for at in range(len(texts))]
            for chat, text in zip(chats, texts, strict=True):
                await chat.append(*two_turns(text))
            await asyncio.gather(*(gate.reached() for gate in gates))
            for gate in gates:
                gate.open()
            await memory.wait_for_digests()
            yield memory, chats

    async def test_eight_digests_at_once(self, store: Store) -> None:
        """Facts of all of them, whoever is the last to be written."""
        told = [Says(f"She knew {what}.", "hobby", f"Knew {what} by heart.") for what in EIGHT]
        async with self.ending_at_once(store, [one.text for one in told], listener(*told)) as (memory, chats):
            assert sorted(await contents(memory)) == sorted(one.content for one in told)
            assert [len(await chat.digests()) for chat in chats] == [1] * 8

    async def test_the_same_fact_in_other_words(self, store: Store) -> None:
        """By the model's word, of what it was shown: nobody is asked about what others write meanwhile."""
        known = "Loved knitting sweaters for the family."
        told = [
            Says("She knitted.", "hobby", "Was a keen knitter.", again=known),
            Says("And how she knitted!", "hobby", "Loved to knit.", again=known),
        ]
        texts = [one.text for one in told]
        async with self.ending_at_once(store, texts, listener(*told), known) as (memory, _):
            (found,) = await memory.facts(ANA).list(state=None)
            assert (found.content, found.repeated) == (known, 2)
            assert sorted(sources(found)) == [("c0", 0), ("c1", 0)]

    async def test_one_value_at_a_time(self, store: Store) -> None:
        told = [Says(f"She moved to {city}.", "current city", f"Lives in {city}.") for city in EIGHT]
        texts = [one.text for one in told]
        async with self.ending_at_once(store, texts, listener(*told), **CITIES) as (memory, _):
            facts = memory.facts(ANA)
            (held,) = await facts.list()
            said = [
                logged.created_at
                for listed in (await memory.conversations(ANA)).conversations
                for logged in await memory.conversation(listed.conversation, scope=ANA).messages()
                if "She moved to" in logged.message.text
            ]
            assert [one.said_at for one in held.evidence] == [max(said)], "whichever was digested first"
            assert all(one.superseded_by is not None for one in await facts.list(state="superseded"))

    async def test_digests_and_reviewers(self, store: Store) -> None:
        """Nobody waits for ever, and nothing is lost."""
        told = [Says(f"She knew {what}.", "hobby", f"Knew {what} by heart.") for what in EIGHT]
        model = Scripted(then=listener(*told))
        async with opened(store, model=model, digest_concurrency=8) as memory:
            facts = memory.facts(ANA, subject=ROSA)
            numbers = await added(facts, *(f"Sang the song number {at}." for at in range(8)))

            async def review(number: int) -> None:
                await facts.share(number)
                await facts.edit(number, content=f"Sang {number} songs.")
                await facts.unshare(number)
                await facts.delete(number)

            async def say(at: int) -> None:
                await memory.conversation(f"c{at}", scope=ANA, subject=ROSA).append(*two_turns(told[at].text))

            async with asyncio.timeout(PATIENCE):
                await asyncio.gather(*(review(number) for number in numbers), *(say(at) for at in range(8)))
                await memory.wait_for_digests()
            assert sorted(await contents(memory)) == sorted(one.content for one in told)
