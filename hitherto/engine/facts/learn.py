"""Learning facts with a digest: the task for the model, and merging what it found with the known facts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from hitherto.core.facts.extract import FactsTask
from hitherto.core.facts.fact import ExtractedFact, LearnedFacts
from hitherto.core.facts.known import known_facts_to_show
from hitherto.core.facts.merge import merged
from hitherto.core.log.head import Head
from hitherto.core.log.ranges import joined
from hitherto.core.policy.action import Chunk, Summarize
from hitherto.core.scope import THE_USER
from hitherto.engine.services import Services
from hitherto.logs import logger
from hitherto.ports.digests import DigestWork
from hitherto.ports.log import Unit

log = logger("hitherto.facts")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFacts:
    """The facts about a subject that a model found in a digest's messages, `start` to `end` (inclusive)."""

    subject: str
    found: tuple[ExtractedFact, ...]
    start: int
    end: int


async def facts_task(services: Services, work: DigestWork, action: Summarize | Chunk) -> tuple[str, FactsTask] | None:
    """The subject's id, and the task of finding facts about it in the messages of `work`, for the model that makes the
    digest. None where facts are not wanted or cannot be kept."""
    if not action.facts or services.facts is None or not work.messages:
        return None
    head = await services.store.head(work.scope, work.conversation)
    subject = THE_USER if head is None else head.subject
    current = await services.facts.current_facts(work.scope, subject)
    texts = [one.message.text for one in work.messages]
    single = services.settings.single_fact_categories
    return subject, FactsTask(
        subject=current.subject.name,
        about_user=subject == THE_USER,
        categories=services.settings.fact_categories,
        single=single,
        known=await asyncio.to_thread(known_facts_to_show, current.facts, texts, single=single),
    )


def found_facts_of(work: DigestWork, subject: str, found: Sequence[ExtractedFact]) -> FoundFacts:
    """What was found in the messages of `work`."""
    return FoundFacts(subject=subject, found=tuple(found), start=work.messages[0].seq, end=work.messages[-1].seq)


async def merge_found(unit: Unit, services: Services, work: DigestWork, found_facts: FoundFacts) -> LearnedFacts | None:
    """The found facts, merged with the facts current in `unit`, which may have changed since the model was asked.

    None where merging fails: an error here must not lose the digest that was made and paid for. The messages then do
    not count as extracted, so that the next digest of them can learn their facts.
    """
    current = await unit.current_facts(found_facts.subject)
    try:
        return await asyncio.to_thread(
            merged,
            current.facts,
            found_facts.found,
            subject=found_facts.subject,
            extracted=unit.head.extracted,
            single=services.settings.single_fact_categories,
            count=services.canonical.count,
            said_at={one.seq: one.created_at for one in work.messages},
        )
    except Exception:
        log.exception("Merging facts failed; those of digest %s are not stored", work.digest.id)
        return None


def noted(head: Head, found_facts: FoundFacts) -> tuple[tuple[int, int], ...]:
    """The ranges of messages from which facts have been extracted, those of `found_facts` among them."""
    return joined((*head.extracted, (found_facts.start, found_facts.end)))
