"""What an agent forgets at the user's wish: a fact, what it had replaced, and the messages that say so, for good."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil
from operator import itemgetter

from hitherto.arrays import np
from hitherto.aside import aside
from hitherto.core.facts.change import no_such_fact
from hitherto.core.facts.fact import LONGEST_FACT, Fact, FactAction, FactState, fingerprint_of_fact
from hitherto.core.facts.queries import FactChange
from hitherto.core.log.conversations import MessageRange
from hitherto.core.log.message import Logged
from hitherto.core.recall.filter import EntryKind, SearchFilter
from hitherto.core.recall.terms import QuestionTerms, analyzed, question_terms
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

_MENTIONS = 100
"""The most that are named, and erased by another call."""


@dataclass(frozen=True, slots=True)
class ForgottenFact:
    """What went with a fact that was forgotten: how many `facts`, itself and those it had replaced, and how many
    `messages`. `mentions` are messages that are still there and may mention it, as they have half of its words: the
    likeliest first, at most 100."""

    facts: int
    messages: int
    mentions: tuple[Hit, ...] = ()


async def forget(handle: Handle, recaller: Recaller | None, fact: int, *, mentions: bool) -> ForgottenFact:
    """See `Conversation.forget`."""
    services, scope, number = handle.services, handle.scope, number_of(fact, "fact")
    private = handle.private(await handle.head())  # which erases what has expired
    known = await services.store.facts.fact(scope, number)
    forgotten = known is not None and known.state is FactState.DELETED
    if known is None or known.user != scope.user or (forgotten and not mentions):
        raise no_such_fact(scope, number)
    async with services.store.write(scope, handle.id) as unit:
        turn, begins = await running_turn(unit)
        check_bounds(await unit.forgettings(turn), "forgotten")
        await unit.note_forgetting(turn, begins, private=handle.private(unit.head))
    # A policy may act within a turn.
    if await undigest(services.store, scope, handle.id, begins, services.canonical):
        await refire(handle)
    numbers = [] if forgotten else await services.store.facts.to_forget(scope, number)
    found = [await services.store.facts.fact(scope, one) for one in numbers]
    facts = [one for one in found if one is not None]
    messages = await _erase_said(handle, facts, begins)
    named = await _mentions(handle, recaller, facts, begins, private=private)
    # Before the facts go: whoever is cut off here asks again.
    await services.store.facts.note_mentions(scope, number, [(hit.conversation or "", hit.start or 0) for hit in named])
    deleted = 0
    for one in sorted(facts, key=lambda one: one.id == number):
        with suppress(NotFound):  # deleted by somebody else meanwhile
            await services.store.facts.change(scope, one.id, FactChange(action=FactAction.DELETED))
            deleted += 1
    if mentions:
        messages += await _erase_mentions(handle, number, begins)
        named = []
    services.appended.set()
    return ForgottenFact(deleted, messages, tuple(named))


async def _erase_said(handle: Handle, facts: Sequence[Fact], begins: int) -> int:
    """Erase the messages that say any of the facts, and what has a word of them in the rest of their turns. Returns how
    many messages that were."""
    messages, asked = 0, [question_terms(one.content) for one in facts]
    for one in facts:
        # Of a fact that is said very often, some of its messages are named at a time.
        while said := _by_conversation(
            await handle.services.store.facts.messages_of(handle.scope, one.id, mentions=False)
        ):
            erased = 0
            for conversation, seqs in said.items():
                gone = set(seqs)
                for seq in seqs:
                    gone |= await _rest_of_turn(handle, conversation, seq, asked)
                erased += await _erase(handle, conversation, gone, begins)
            messages += erased
            if not erased:
                break
    return messages


async def _rest_of_turn(handle: Handle, conversation: str, seq: int, asked: Sequence[QuestionTerms]) -> set[int]:
    """The messages behind `seq`, up to the end of its turn, that have a word of one of these."""
    found = set[int]()
    for logged in await _read(handle, conversation, seq + 1, seq + _ANSWERS):
        if logged.message.opens_turn:
            break
        text = logged.message.text
        if any(await aside(len(text), _words, asked, text)):
            found.add(logged.seq)
    return found


async def _mentions(
    handle: Handle, recaller: Recaller | None, facts: Sequence[Fact], begins: int, *, private: bool
) -> list[Hit]:
    """The messages with half of the words of a fact that tell something, those with the most words first; of its own
    conversation those before `begins`. A private one names its own. Those that say another fact, and nothing else, are
    left out: what they say holds, until that fact is forgotten."""
    if recaller is None:
        return []
    criteria = SearchFilter(
        scope=handle.scope,
        kinds=frozenset({EntryKind.MESSAGE}),
        conversation=handle.id if private else None,
        hidden={handle.id: begins},
    )
    others = await _others(handle, facts)
    today, found = datetime.now(UTC).date(), dict[tuple[str, int], tuple[int, float, Hit]]()
    for fact in facts:
        terms = question_terms(fact.content)
        least = ceil(len(terms.begins) / 2)
        hits = await recaller.recall(fact.content, criteria, today=today, limit=_NEAREST, rerank=False)
        for hit in hits.hits if least else ():
            (words,) = await aside(len(hit.text), _words, [terms], hit.text)
            if words < least or (len(hit.text) <= LONGEST_FACT and fingerprint_of_fact(hit.text) in others):
                continue
            if hit.conversation is not None and hit.start is not None:
                place, new = (hit.conversation, hit.start), (words, hit.score, hit)
                found[place] = max(new, found.get(place, new), key=itemgetter(0, 1))
    likeliest = sorted(found.values(), key=itemgetter(0, 1), reverse=True)
    return [hit for _, _, hit in likeliest[:_MENTIONS]]


async def _others(handle: Handle, facts: Sequence[Fact]) -> set[str]:
    """The fingerprints of the other facts that hold about the subjects of these."""
    found = set[str]()
    for subject in {one.subject for one in facts}:
        current = await handle.services.store.facts.current_facts(handle.scope, subject)
        found |= {fingerprint_of_fact(one.content) for one in current.facts}
    return found - {fingerprint_of_fact(one.content) for one in facts}


async def _erase_mentions(handle: Handle, number: int, begins: int) -> int:
    """Erase the messages that may mention a fact that was forgotten. Returns how many messages that were."""
    places = await handle.services.store.facts.messages_of(handle.scope, number, mentions=True)
    said = _by_conversation(places)
    return sum([await _erase(handle, conversation, seqs, begins) for conversation, seqs in said.items()])


def _by_conversation(places: Iterable[tuple[str, int]]) -> Mapping[str, list[int]]:
    found = defaultdict[str, list[int]](list)
    for conversation, seq in places:
        found[conversation].append(seq)
    return found


async def _read(handle: Handle, conversation: str, start: int, stop: int) -> Sequence[Logged]:
    head = await _beside(handle, conversation).head()
    reading = MessageRange(start=min(start, head.next_seq), stop=min(stop, head.next_seq))
    return await handle.services.store.messages(handle.scope, conversation, head.ref, reading)


async def _erase(handle: Handle, conversation: str, seqs: Collection[int], begins: int) -> int:
    """Erase these messages of a conversation, of the handle's own only those before `begins`. Returns how many messages
    that were: none of a conversation that was deleted meanwhile."""
    other = _beside(handle, conversation)
    gone = [seq for seq in seqs if other is not handle or seq < begins]
    if not gone or not (await other.head()).rev:
        return 0
    services = handle.services
    erased = await erase_messages(services.store, handle.scope, conversation, gone, services.canonical, keep_facts=True)
    await refire(other)
    return erased


def _beside(handle: Handle, conversation: str) -> Handle:
    return handle if conversation == handle.id else handle.beside(conversation)


def _words(asked: Sequence[QuestionTerms], text: str) -> list[int]:
    """How many words that tell something of each of these are in a text."""
    hashes = analyzed(text).hashes
    return [
        int(np.logical_or.reduceat(np.isin(one.words, hashes), one.begins).sum()) if len(one.words) else 0
        for one in asked
    ]
