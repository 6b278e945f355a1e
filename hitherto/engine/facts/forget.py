"""What an agent forgets at the user's wish: a fact, what it had replaced, and the messages that say so, for good."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np

from hitherto.aside import aside
from hitherto.core.facts.change import no_such_fact
from hitherto.core.facts.fact import Fact, FactAction, FactState
from hitherto.core.facts.queries import FactChange
from hitherto.core.log.conversations import MessageRange
from hitherto.core.log.message import Logged, Role
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

_ENDS = re.compile(r"[.!?\u3002\uff01\uff1f\n]+")
"""What ends a sentence."""

_TELLING = 3
"""A fact that has fewer words that tell something is not recognized where it is repeated: "Lives in Rome" may be said
of anybody."""

_NEAREST = 500
"""Messages of the scope, those nearest to the fact, of which it is looked at a time whether they repeat or mention
it."""

_LIKELY, _MENTIONS = 0.5, 20
"""The score from which on a message mentions a fact whatever its words; and the most that are named."""


@dataclass(frozen=True, slots=True)
class ForgottenFact:
    """What went with a fact that was forgotten: how many `facts`, itself and those it had replaced, and how many
    `messages`. `mentions` are messages that are still there and may mention it, the likeliest first, at most 20: in
    other words, in a part of its words, or of somebody else."""

    facts: int
    messages: int
    mentions: tuple[Hit, ...] = ()


async def forget(handle: Handle, recaller: Recaller | None, fact: int) -> ForgottenFact:
    """See `Conversation.forget`."""
    services, scope, number = handle.services, handle.scope, number_of(fact, "fact")
    private = handle.private(await handle.head())  # which erases what has expired
    known = await services.store.facts.fact(scope, number)
    if known is None or known.user != scope.user or known.state is FactState.DELETED:
        raise no_such_fact(scope, number)
    async with services.store.write(scope, handle.id) as unit:
        turn, begins = await running_turn(unit)
        check_bounds(await unit.forgettings(turn), "forgotten")
        await unit.note_forgetting(turn, private=handle.private(unit.head))
    # A policy may act within a turn.
    if await undigest(services.store, scope, handle.id, begins, services.canonical):
        await refire(handle)
    numbers = await services.store.facts.to_forget(scope, number)
    gone = [known for one in numbers if (known := await services.store.facts.fact(scope, one)) is not None]
    facts = messages = 0
    for one in numbers:
        # Of a fact that is said very often, some of its messages are named at a time.
        while erased := await _erase_said(handle, one, gone, begins):
            messages += erased
    messages += await _erase_taken_back(handle, gone, begins)
    mentions = dict[tuple[str, int], Hit]()
    for known in gone:
        erased, found = await _erase_repeated(handle, recaller, known, begins, private=private)
        messages += erased
        with suppress(NotFound):  # deleted by somebody else meanwhile
            await services.store.facts.change(scope, known.id, FactChange(action=FactAction.DELETED))
            facts += 1
        mentions |= found
        # Of what has all of its words, another reading would make the fact again.
        sure = [place for place, hit in found.items() if hit.score >= _LIKELY or _has_all(known, hit.text)]
        await services.store.facts.note_mentions(scope, known.id, sure)
    services.appended.set()
    likeliest = sorted(mentions.values(), key=lambda hit: -hit.score)
    return ForgottenFact(facts, messages, tuple(likeliest[:_MENTIONS]))


async def _erase_taken_back(handle: Handle, facts: Sequence[Fact], begins: int) -> int:
    """Erase the messages that repeat one of the facts among those that were taken back or cleared, which no search
    finds. Returns how many messages that were."""
    store, erased = handle.services.store, 0
    for conversation, ref, hidden in await store.facts.taken_back(handle.scope, handle.id):
        for first, last in hidden:
            start = first
            while start <= last:
                found = await store.page(handle.scope, conversation, ref, MessageRange(start=start, stop=last + 1))
                texts = {one.seq: one.message.text for one in found}
                gone = await aside(sum(map(len, texts.values())), _repeating, facts, texts)
                erased += await _erase(handle, conversation, gone, begins)
                start = found[-1].seq + 1 if found else last + 1
    return erased


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


async def _erase_repeated(
    handle: Handle, recaller: Recaller | None, fact: Fact, begins: int, *, private: bool
) -> tuple[int, dict[tuple[str, int], Hit]]:
    """Erase what agents and tools have repeated of the fact in other turns, of private conversations only in the
    handle's own. Returns how many messages that were, and those that are left and may mention it, by conversation and
    seq."""
    everywhere = SearchFilter(scope=handle.scope, kinds=frozenset({EntryKind.MESSAGE}))
    searched = (everywhere, replace(everywhere, conversation=handle.id))[: 2 if private else 1]
    today, erased, mentions = datetime.now(UTC).date(), 0, dict[tuple[str, int], Hit]()
    for criteria in searched:
        while recaller is not None:
            found = await recaller.recall(fact.content, criteria, today=today, limit=_NEAREST, rerank=False)
            gone = defaultdict[str, set[int]](set)
            for hit in found.hits:
                if hit.conversation is None or hit.start is None:
                    continue
                if hit.role not in (Role.USER, None) and await aside(len(hit.text), _repeats, fact, hit.text):
                    gone[hit.conversation].add(hit.start)
                elif hit.score >= _LIKELY or await aside(len(hit.text), _mentions, fact, hit.text):
                    mentions[hit.conversation, hit.start] = hit
            taken = sum([await _erase(handle, conversation, seqs, begins) for conversation, seqs in gone.items()])
            erased += taken
            if not taken:
                break
    return erased, mentions


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


def _repeating(facts: Sequence[Fact], texts: Mapping[int, str]) -> set[int]:
    """The messages of which the text repeats one of the facts."""
    return {seq for seq, text in texts.items() if any(_repeats(fact, text) for fact in facts)}


def _repeats(fact: Fact, text: str) -> bool:
    """Whether a sentence has all words of the fact that tell something, and these are enough to know it by."""
    words = len(question_terms(fact.content).begins)
    return words >= _TELLING and _has_all(fact, text) and any(_has_all(fact, one) for one in _ENDS.split(text))


def _has_all(fact: Fact, text: str) -> bool:
    """Whether a text has all of the fact's words that tell something."""
    words = len(question_terms(fact.content).begins)
    return words > 0 and _words(fact, text) == words


def _mentions(fact: Fact, text: str) -> bool:
    """Whether a text has half of these words."""
    return 2 * _words(fact, text) >= max(len(question_terms(fact.content).begins), 1)


def _words(fact: Fact, text: str) -> int:
    """How many of the fact's words that tell something are in a text."""
    asked = question_terms(fact.content)
    if not len(asked.words):
        return 0
    return int(np.logical_or.reduceat(np.isin(asked.words, analyzed(text).hashes), asked.begins).sum())
