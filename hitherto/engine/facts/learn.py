"""Learning facts: the task for the model, and merging what it found with the known facts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hitherto.arrays import np
from hitherto.core.digests.digest import DigestWork
from hitherto.core.facts.extract import FactsTask
from hitherto.core.facts.fact import ExtractedFact, KnownFact, LearnedFacts, fingerprint_of_fact
from hitherto.core.facts.known import known_facts_to_show, pieces
from hitherto.core.facts.merge import merged
from hitherto.core.facts.queries import CurrentFacts
from hitherto.core.log.frontier import DigestAction
from hitherto.core.log.head import Head
from hitherto.core.log.message import Role
from hitherto.core.log.ranges import joined
from hitherto.core.scope import THE_USER
from hitherto.engine.recall.embedding import Embedding
from hitherto.engine.services import Services
from hitherto.logs import logger

if TYPE_CHECKING:
    from hitherto.store.facts.facts import FactStore
    from hitherto.store.unit import Unit

log = logger("hitherto.facts")

MOST_EXTRACTED = 1_000
"""The most separate ranges from which facts have been extracted that a head has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFacts:
    """The facts about a subject that a model found in a digest's messages, `start` to `end` (inclusive). It was shown
    the facts `known`."""

    subject: str
    found: tuple[ExtractedFact, ...]
    start: int
    end: int
    known: tuple[KnownFact, ...] = ()


async def facts_task(services: Services, embedding: Embedding, work: DigestWork) -> tuple[str, FactsTask] | None:
    """The subject's id, and the task of finding facts about it in the messages of `work`; None where there are none, or
    the conversation is private."""
    if not work.messages:
        return None
    head = await services.store.head(work.scope, work.conversation)
    if head is not None and head.private:
        return None
    subject = THE_USER if head is None else head.subject
    current = await services.store.facts.current_facts(work.scope, subject)
    categories, single = services.settings.fact_categories, services.settings.single_fact_categories
    known = ()
    if current.facts:
        known = await _bearing(services.store.facts, embedding, work, current, single)
    return subject, FactsTask(
        subject=current.subject.name,
        about_user=subject == THE_USER,
        categories=categories,
        single=single,
        known=known,
    )


async def _bearing(
    facts: FactStore, embedding: Embedding, work: DigestWork, current: CurrentFacts, single: Sequence[str]
) -> tuple[KnownFact, ...]:
    """The current facts to show with the messages: those that bear on what the user and the assistant say.

    Meanings are compared where the embedder computes in this process. No digest pays for another one, or waits for it.
    """
    messages = [one.message for one in work.messages if one.message.counts]
    users = [one.text for one in messages if one.role is Role.USER]
    said = pieces(users, [one.text for one in messages if one.role is not Role.USER])
    columns = await facts.known(work.scope, current.subject.id, space=embedding.space)
    vectors = None
    if embedding.local and columns.codes is not None and said:
        vectors = await embedding.documents_within_timeout(
            list(said),
            work.scope.tenant,
            [],
            otherwise="the known facts that a model is shown are chosen by words only",
        )
    is_single = np.array([one in single for one in columns.categories], np.bool_)
    places = await asyncio.to_thread(known_facts_to_show, columns, said, vectors, own=columns.own, single=is_single)
    by_id = {one.id: one for one in current.facts}
    return tuple(by_id[number] for number in columns.ids[places].tolist() if number in by_id)


def found_facts_of(
    work: DigestWork, subject: str, found: Sequence[ExtractedFact], known: tuple[KnownFact, ...] = ()
) -> FoundFacts:
    """What was found in the messages of `work`. A digest that only finds facts has read its range, whatever is left of
    its messages."""
    start, end = work.digest.start, work.digest.end
    if work.digest.action is not DigestAction.FACTS:
        start, end = work.messages[0].seq, work.messages[-1].seq
    return FoundFacts(subject=subject, found=tuple(found), start=start, end=end, known=known)


async def merge_found(unit: Unit, services: Services, work: DigestWork, found_facts: FoundFacts) -> LearnedFacts | None:
    """The found facts, merged with the facts current in `unit`, which may have changed since the model was asked. A
    message of which an agent had remembered something that was deleted says nothing, nor one that may mention what was
    forgotten, or that was read in a relative that has it too. What repeats a fact that was erased or deleted meanwhile,
    in its words, is left out: the model may have them from there alone.

    None where merging fails: an error here must not lose the digest that was made and paid for. The messages then do
    not count as extracted, so that the next digest of them can learn their facts.
    """
    current = await unit.current_facts(found_facts.subject)
    forgotten = await unit.forgotten(found_facts.start, found_facts.end)
    _, read = await unit.done_in_relatives()
    unknown = {one.repeats for one in found_facts.found if one.repeats is not None} - {one.id for one in current.facts}
    gone = unknown - await unit.facts_left(unknown) if unknown else unknown
    words = {one.id: fingerprint_of_fact(one.content) for one in found_facts.known if one.id in gone}
    try:
        return await asyncio.to_thread(
            merged,
            current.facts,
            [
                one
                for one in found_facts.found
                if one.repeats is None or words.get(one.repeats) != fingerprint_of_fact(one.content)
            ],
            subject=found_facts.subject,
            extracted=joined((*unit.head.extracted, *forgotten, *read)),
            single=services.settings.single_fact_categories,
            count=services.canonical.count,
            said_at={one.seq: one.said_at for one in work.messages},
        )
    except Exception:
        log.exception("Merging facts failed; those of digest %s are not stored", work.digest.id)
        return None


def noted(head: Head, found_facts: FoundFacts) -> tuple[tuple[int, int], ...]:
    """The ranges of messages from which facts have been extracted, those of `found_facts` among them: at most
    MOST_EXTRACTED. Beyond that, what lies between the two oldest counts as one with them."""
    first, *others = joined((*head.extracted, (found_facts.start, found_facts.end)))
    while len(others) >= MOST_EXTRACTED:
        first = (first[0], others.pop(0)[1])
    return (first, *others)
