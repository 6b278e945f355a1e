"""What an agent forgets at the user's wish: a fact, what it had replaced, and the messages that say so, for good."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np

from hitherto.aside import aside
from hitherto.core.facts.change import no_such_fact
from hitherto.core.facts.fact import Fact, FactAction, FactState
from hitherto.core.facts.queries import FactChange
from hitherto.core.log.conversations import MessageRange
from hitherto.core.log.message import Logged
from hitherto.core.recall.filter import EntryKind, SearchFilter
from hitherto.core.recall.terms import analyzed, question_terms
from hitherto.engine.digests.fire import refire
from hitherto.engine.facts.arguments import number_of
from hitherto.engine.facts.remember import check_bounds, running_turn
from hitherto.engine.handle import Handle
from hitherto.engine.log.erase import erase_messages, undigest
from hitherto.engine.recall.recall import Hit, Recaller
from hitherto.errors import NotFound

_ANSWERS = 50
"""Messages after one that says a fact, up to the end of its turn, that are looked at for the fact's words."""

_NEAREST = 200
"""Messages of the scope, those nearest to the fact, of which it is looked whether they mention it."""

_MENTIONS = 20
"""The most that are named, and erased by one call."""


@dataclass(frozen=True, slots=True)
class ForgottenFact:
    """What went with a fact that was forgotten: how many `facts`, itself and those it had replaced, and how many
    `messages`. `mentions` are messages that are still there and may mention it, as they have half of its words: the
    likeliest first, at most 20."""

    facts: int
    messages: int
    mentions: tuple[Hit, ...] = ()


async def forget(handle: Handle, recaller: Recaller | None, fact: int, *, mentions: bool) -> ForgottenFact:
    """See `Conversation.forget`."""
    services, scope, number = handle.services, handle.scope, number_of(fact, "fact")
    private = handle.private(await handle.head())  # which erases what has expired
    known = await services.store.facts.fact(scope, number)
    if known is None or known.user != scope.user or (known.state is FactState.DELETED and not mentions):
        raise no_such_fact(scope, number)
    async with services.store.write(scope, handle.id) as unit:
        turn, begins = await running_turn(unit)
        check_bounds(await unit.forgettings(turn), "forgotten")
        await unit.note_forgetting(turn, begins, private=handle.private(unit.head))
    # A policy may act within a turn.
    if await undigest(services.store, scope, handle.id, begins, services.canonical):
        await refire(handle)
    numbers = await services.store.facts.to_forget(scope, number)
    gone = [known for one in numbers if (known := await services.store.facts.fact(scope, one)) is not None]
    facts = messages = 0
    for one in numbers:
        messages += await _erase_all_said(handle, one, gone, begins)
    found = dict[tuple[str, int], tuple[int, Hit]]()
    for known in gone:
        for place, mention in (await _mentions(handle, recaller, known, private=private)).items():
            found[place] = max(mention, found.get(place, mention), key=_likelihood)
        with suppress(NotFound):  # deleted by somebody else meanwhile
            await services.store.facts.change(scope, known.id, FactChange(action=FactAction.DELETED))
            facts += 1
    named = sorted(found, key=lambda place: _likelihood(found[place]), reverse=True)[:_MENTIONS]
    await services.store.facts.note_mentions(scope, number, named)
    if mentions:
        messages += await _erase_all_said(handle, number, (), begins)
        named = []
    services.appended.set()
    return ForgottenFact(facts, messages, tuple(found[place][1] for place in named))


async def _mentions(
    handle: Handle, recaller: Recaller | None, fact: Fact, *, private: bool
) -> dict[tuple[str, int], tuple[int, Hit]]:
    """The messages with half of the fact's words that tell something, by conversation and seq, each with how many it
    has; of private conversations, those of the handle's own."""
    everywhere = SearchFilter(scope=handle.scope, kinds=frozenset({EntryKind.MESSAGE}))
    today, mentions = datetime.now(UTC).date(), dict[tuple[str, int], tuple[int, Hit]]()
    for criteria in (everywhere, replace(everywhere, conversation=handle.id))[: 2 if private else 1]:
        if recaller is None:
            break
        found = await recaller.recall(fact.content, criteria, today=today, limit=_NEAREST, rerank=False)
        for hit in found.hits:
            words = await aside(len(hit.text), _words, fact, hit.text)
            if 2 * words >= max(len(question_terms(fact.content).begins), 1) and hit.conversation is not None:
                mentions[hit.conversation, hit.start or 0] = words, hit
    return mentions


def _likelihood(mention: tuple[int, Hit]) -> tuple[int, float]:
    words, hit = mention
    return words, hit.score


async def _erase_all_said(handle: Handle, number: int, facts: Sequence[Fact], begins: int) -> int:
    """As `_erase_said`, until nothing is left: of a fact that is said very often, some messages are named at a time."""
    messages = 0
    while erased := await _erase_said(handle, number, facts, begins):
        messages += erased
    return messages


async def _erase_said(handle: Handle, number: int, facts: Sequence[Fact], begins: int) -> int:
    """Erase the messages that are named as saying the fact of this number, and what has words of the facts in the rest
    of their turns. Returns how many messages that were."""
    erased = 0
    said = defaultdict[str, list[int]](list)
    for conversation, seq in await handle.services.store.facts.messages_of(handle.scope, number):
        said[conversation].append(seq)
    for conversation, seqs in said.items():
        gone = set[int]()
        for seq in seqs:
            for logged in await _read(handle, conversation, seq, seq + _ANSWERS):
                if logged.seq > seq and logged.message.opens_turn:
                    break
                if logged.seq == seq or any(_words(fact, logged.message.text) for fact in facts):
                    gone.add(logged.seq)
        erased += await _erase(handle, conversation, gone, begins)
    return erased


async def _read(handle: Handle, conversation: str, start: int, stop: int) -> Sequence[Logged]:
    head = await _beside(handle, conversation).head()
    reading = MessageRange(start=min(start, head.next_seq), stop=min(stop, head.next_seq))
    return await handle.services.store.messages(handle.scope, conversation, head.ref, reading)


async def _erase(handle: Handle, conversation: str, seqs: Collection[int], begins: int) -> int:
    """Erase these messages of a conversation, of the handle's own only those before `begins`."""
    other = _beside(handle, conversation)
    gone = [seq for seq in seqs if other is not handle or seq < begins]
    if not gone:
        return 0
    services = handle.services
    erased = await erase_messages(services.store, handle.scope, conversation, gone, services.canonical, keep_facts=True)
    await refire(other)
    return erased


def _beside(handle: Handle, conversation: str) -> Handle:
    return handle if conversation == handle.id else handle.beside(conversation)


def _words(fact: Fact, text: str) -> int:
    """How many of the fact's words that tell something are in a text."""
    asked = question_terms(fact.content)
    if not len(asked.words):
        return 0
    return int(np.logical_or.reduceat(np.isin(asked.words, analyzed(text).hashes), asked.begins).sum())
