"""Learning facts with a digest: the task for the model, and merging what it found with the known facts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hitherto.core.facts.extract import FactsTask
from hitherto.core.facts.fact import ExtractedFact, KnownFact, LearnedFacts
from hitherto.core.facts.known import MOST_SHOWN, known_facts_to_show
from hitherto.core.facts.merge import merged
from hitherto.core.ledger import ModelCall
from hitherto.core.log.head import Head
from hitherto.core.log.message import Role
from hitherto.core.log.ranges import joined
from hitherto.core.policy.action import Chunk, Summarize
from hitherto.core.scope import THE_USER
from hitherto.engine.calls import Calls
from hitherto.engine.recall.embedding import Embedding
from hitherto.engine.services import Services
from hitherto.logs import logger
from hitherto.ports.digests import DigestWork
from hitherto.ports.facts import FactStore
from hitherto.ports.log import Unit

log = logger("hitherto.facts")

_SPEAKERS = frozenset({Role.USER, Role.ASSISTANT})

_PATIENCE = 10
"""Times `embedder_timeout`, as all that is embedded in the background."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFacts:
    """The facts about a subject that a model found in a digest's messages, `start` to `end` (inclusive)."""

    subject: str
    found: tuple[ExtractedFact, ...]
    start: int
    end: int


class FactsTasks:
    """Makes the task of finding facts, for the model that makes a digest; vectors come through `calls`."""

    def __init__(self, services: Services, calls: Calls) -> None:
        self._services, self._embedding = services, Embedding(services, calls)

    async def task(
        self, work: DigestWork, action: Summarize | Chunk, ledger: list[ModelCall]
    ) -> tuple[str, FactsTask] | None:
        """The subject's id, and the task of finding facts about it in the messages of `work`. None where facts are not
        wanted or cannot be kept. A call of an embedder is added to `ledger`."""
        services = self._services
        if not action.facts or services.facts is None or not work.messages:
            return None
        head = await services.store.head(work.scope, work.conversation)
        subject = THE_USER if head is None else head.subject
        current = await services.facts.current_facts(work.scope, subject)
        known = current.facts[::-1]
        if len(known) > MOST_SHOWN:
            known = await self._chosen(services.facts, work, subject, known, ledger)
        return subject, FactsTask(
            subject=current.subject.name,
            about_user=subject == THE_USER,
            categories=services.settings.fact_categories,
            single=services.settings.single_fact_categories,
            known=known,
        )

    async def _chosen(
        self, facts: FactStore, work: DigestWork, subject: str, known: Sequence[KnownFact], ledger: list[ModelCall]
    ) -> tuple[KnownFact, ...]:
        """The facts among `known` that bear on the messages. Tool calls and their outputs do not count: facts are what
        users say."""
        texts = [one.message.text for one in work.messages if one.message.role in _SPEAKERS and one.message.text]
        columns = await facts.known(work.scope, subject, space=self._embedding.space)
        vectors = None
        if columns.codes is not None and texts:
            vectors = await self._embedding.documents_within(
                _PATIENCE * self._services.settings.embedder_timeout,
                texts,
                work.scope.tenant,
                ledger,
                otherwise="the known facts that a model is shown are chosen by words only",
            )
        categories = self._services.settings.single_fact_categories
        single = np.array([one in categories for one in columns.categories], np.bool_)
        places = await asyncio.to_thread(known_facts_to_show, columns, texts, vectors, own=columns.own, single=single)
        by_id = {one.id: one for one in known}
        return tuple(by_id[number] for number in columns.ids[places].tolist() if number in by_id)


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
