"""What an agent forgets at the user's wish: a fact, what it had replaced, and the messages that say so, for good."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress

import numpy as np

from hitherto.core.facts.change import no_such_fact
from hitherto.core.facts.fact import MOST_OF_A_DAY, MOST_OF_A_TURN, Fact, FactAction, FactState
from hitherto.core.facts.queries import FactChange, ForgottenFact
from hitherto.core.log.conversations import MessageRange
from hitherto.core.recall.terms import analyzed, question_terms
from hitherto.engine.digests.fire import refire
from hitherto.engine.facts.arguments import number_of
from hitherto.engine.facts.remember import running_turn
from hitherto.engine.handle import Handle
from hitherto.engine.log.erase import erase_messages
from hitherto.errors import InvalidFact, NotFound

_ANSWERS = 50
"""Messages after one that says a fact, up to the end of its turn, that are looked at for the fact's words."""


async def forget(handle: Handle, fact: int) -> ForgottenFact:
    """See `Conversation.forget`."""
    services, scope, number = handle.services, handle.scope, number_of(fact)
    await handle.head()  # erases what has expired
    known = await services.store.facts.fact(scope, number)
    if known is None or known.user != scope.user or known.state is FactState.DELETED:
        raise no_such_fact(scope, number)
    async with services.store.write(scope, handle.id) as unit:
        turn, begins = await running_turn(unit)
        of_turn, of_day = await unit.forgettings(turn)
        if of_turn >= MOST_OF_A_TURN:
            raise InvalidFact(
                f"{MOST_OF_A_TURN} facts were forgotten in this turn already, the most that one can end; go on "
                "without, and forget the rest when the user asks for it again"
            )
        if of_day >= MOST_OF_A_DAY:
            raise InvalidFact(
                f"{MOST_OF_A_DAY} facts of this user were forgotten in the last 24 hours, the most that a day can end; "
                "go on without"
            )
        await unit.note_forgetting(turn)
    facts = messages = 0
    for one in (*await services.store.facts.replaced(scope, number), number):
        # Of a fact that is said very often, some of its messages are named at a time.
        while (known := await services.store.facts.fact(scope, one)) is not None:
            if not (erased := await _erase_said(handle, known, begins)):
                break
            messages += erased
        with suppress(NotFound):  # deleted by somebody else meanwhile
            await services.store.facts.change(scope, one, FactChange(action=FactAction.DELETED))
            facts += 1
    services.appended.set()
    return ForgottenFact(facts, messages)


async def _erase_said(handle: Handle, fact: Fact, begins: int) -> int:
    """Erase the messages that are named as saying the fact, and what has its words in the rest of their turns; nothing
    of the handle's own conversation from `begins` on. Returns how many messages that were."""
    store, erased = handle.services.store, 0
    said = defaultdict[str, list[int]](list)
    for one in fact.evidence:
        said[one.conversation].append(one.seq)
    for conversation, seqs in said.items():
        other = handle if conversation == handle.id else handle.beside(conversation)
        head = await other.head()
        end = min(head.next_seq, begins) if other is handle else head.next_seq
        gone = set[int]()
        for seq in seqs:
            if seq < end:
                reading = MessageRange(start=seq, stop=min(seq + _ANSWERS, end))
                for logged in await store.messages(handle.scope, conversation, head.ref, reading):
                    if logged.seq > seq and logged.message.opens_turn:
                        break
                    if logged.seq == seq or _names(logged.message.text, fact):
                        gone.add(logged.seq)
        if gone:
            erased += await erase_messages(
                store, handle.scope, conversation, gone, handle.services.canonical, keep_facts=True
            )
            await refire(other)
    return erased


def _names(text: str, fact: Fact) -> bool:
    """Whether a text has a word of the fact that tells something."""
    return bool(np.isin(question_terms(fact.content).words, analyzed(text).hashes).any())
