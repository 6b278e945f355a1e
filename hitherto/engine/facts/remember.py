"""What an agent remembers by itself: a fact that rests on the user's message of the turn, so many a turn and a day."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hitherto.core.facts.extract import UNSURE
from hitherto.core.facts.fact import MOST_OF_A_DAY, MOST_OF_A_TURN
from hitherto.core.facts.queries import AddedFact
from hitherto.core.log.probe import Mark, TurnAt
from hitherto.core.log.ranges import any_in
from hitherto.engine.facts.arguments import new_fact
from hitherto.engine.handle import Handle
from hitherto.errors import InvalidFact

if TYPE_CHECKING:
    from hitherto.store.unit import Unit


async def remember(handle: Handle, content: str, category: str | None) -> AddedFact:
    """See `Conversation.remember`."""
    services = handle.services
    fact = new_fact(services, content, category, confidence=UNSURE)
    await handle.head()  # erases what has expired
    async with services.store.write(handle.scope, handle.id) as unit:
        head = unit.head
        if handle.private(head):
            raise InvalidFact("the conversation is private: nothing of it is remembered; go on without")
        _, seq = await running_turn(unit)
        if any_in(head.erased, seq, seq):
            raise InvalidFact("the user's message of this turn was erased: nothing can be remembered of it")
        check_bounds(await unit.remembered(seq), "remembered")
        added = await unit.remember(handle.about(head), replace(fact, seqs=(seq,)))
    services.appended.set()
    return added


async def running_turn(unit: Unit) -> tuple[int, int]:
    """The number of the turn that waits for its answer, and the seq of the user's message that opens it; where the log
    ends with an answer, or shows nothing, of the turn that is appended next."""
    head = unit.head
    if head.sums.turns and not head.round_ended:
        opening = await unit.probe(TurnAt(head.sums.turns))
        if isinstance(opening, Mark) and opening.seq >= head.view_start:
            return head.sums.turns, opening.seq
    return head.sums.turns + 1, head.next_seq


def check_bounds(counts: tuple[int, int], what: str) -> None:
    """Raises InvalidFact where an agent has done this with so many facts, of a turn and of 24 hours, as it can."""
    of_turn, of_day = counts
    if of_turn >= MOST_OF_A_TURN:
        raise InvalidFact(
            f"{MOST_OF_A_TURN} facts were {what} in this turn already, the most that one can bring; go on without, "
            "and do the rest when the user says it again"
        )
    if of_day >= MOST_OF_A_DAY:
        raise InvalidFact(
            f"{MOST_OF_A_DAY} facts of this user were {what} in the last 24 hours, the most that a day can bring; go "
            "on without"
        )
