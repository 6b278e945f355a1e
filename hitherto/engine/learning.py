"""Learning facts with a digest: what a model is shown of those that are known, and what becomes of what it found."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from hitherto.core.action import Chunk, Summarise
from hitherto.core.comparisons import Comparisons
from hitherto.core.digest import Ranges, joined
from hitherto.core.fact import HIMSELF, Extracted, Learnt
from hitherto.core.head import Head
from hitherto.core.merging import bearing, merged
from hitherto.core.prompts import FactsTask
from hitherto.engine.calls import Calls
from hitherto.engine.embedding import Embedding
from hitherto.engine.parts import Parts
from hitherto.errors import HithertoError
from hitherto.logs import logger
from hitherto.ports.embedder import Vector
from hitherto.ports.facts import Book
from hitherto.ports.store import DigestWork, Unit

log = logger("hitherto.facts")

MEASURED_IN = "wordllama-256/"
"""What `core.repetition` was measured with: cosines of another embedder mean something else and are not asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """What a digest's messages make known of a subject: `found` by the model, from the messages `start` to `end`
    (inclusive)."""

    subject: str
    found: tuple[Extracted, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A lesson of `work`, what it teaches as long as the `book` and what has been `extracted` before are as they were,
    the vectors of all that is compared, by their texts (empty where words alone are), and what comparing found."""

    lesson: Lesson
    work: DigestWork
    book: Book
    extracted: Ranges
    learnt: Learnt
    vectors: dict[str, Vector]
    comparisons: Comparisons


KEPT = 16_384
"""The vectors of so many texts are kept (1 KB each): a book is compared with every digest about its subject."""


class Learner:
    """Learns facts for digests. Embedders are asked through `calls`."""

    def __init__(self, parts: Parts, calls: Calls) -> None:
        self._parts = parts
        self._embedding = Embedding(parts, calls)
        self._kept = OrderedDict[bytes, Vector]()
        """By a hash of the text, so that nothing of what is deleted stays here; those last used last."""

    async def task(self, work: DigestWork, action: Summarise | Chunk) -> tuple[str, FactsTask] | None:
        """What a model is asked to find in the messages of `work` beside the digest, and the subject's id; None where
        facts are not wanted, or cannot be kept."""
        facts = self._parts.facts
        if not action.facts or facts is None or not work.messages:
            return None
        head = await self._parts.store.head(work.scope, work.conversation)
        subject = HIMSELF if head is None else head.subject
        book = await facts.book(work.scope, subject)
        settings = self._parts.settings
        texts = [one.message.text for one in work.messages]
        known = await asyncio.to_thread(bearing, book.facts, texts, single=settings.single_fact_categories)
        return subject, FactsTask(
            subject=book.subject.name,
            himself=subject == HIMSELF,
            categories=settings.fact_categories,
            single=settings.single_fact_categories,
            known=known,
        )

    async def prepared(self, work: DigestWork, lesson: Lesson) -> Prepared | None:
        """The lesson with all that it is to be compared with. Where the embedder is away, words alone are compared.

        None where a defect keeps it from being learnt: the digest that was made and paid for must not go with it. Its
        messages do not count as read then, so that the next digest of them can learn what they say."""
        try:
            return await self._prepared(work, lesson)
        except HithertoError:
            raise
        except Exception:
            log.exception("A defect in what compares facts; those of digest %s are not learnt", work.digest.id)
            return None

    async def _prepared(self, work: DigestWork, lesson: Lesson) -> Prepared:
        facts = self._parts.facts
        assert facts is not None, "who has a lesson has a store for facts"
        book = await facts.book(work.scope, lesson.subject)
        contents = [*(one.content for one in book.facts), *(one.content for one in lesson.found)]
        vectors = await self._embedded(contents, work)
        head = await self._parts.store.head(work.scope, work.conversation)
        extracted: Ranges = () if head is None else head.extracted
        comparisons = Comparisons()
        learnt = await asyncio.to_thread(
            self._merged, lesson, work, book, extracted=extracted, vectors=vectors, comparisons=comparisons
        )
        return Prepared(
            lesson=lesson,
            work=work,
            book=book,
            extracted=extracted,
            learnt=learnt,
            vectors=vectors,
            comparisons=comparisons,
        )

    async def settled(self, prepared: Prepared, unit: Unit) -> Learnt | None:
        """What the lesson teaches as things stand in `unit`, about the subject that was asked for.

        What others have learnt meanwhile is embedded and compared here, while the conversation is held: that takes no
        network and no more than moments, and to begin anew instead might have no end. None where a defect keeps it from
        being learnt, as `prepared`.
        """
        try:
            return await self._settled(prepared, unit)
        except HithertoError:
            raise
        except Exception:
            digest = prepared.work.digest.id
            log.exception("A defect in what compares facts; those of digest %s are not learnt", digest)
            return None

    async def _settled(self, prepared: Prepared, unit: Unit) -> Learnt:
        extracted, vectors = unit.head.extracted, prepared.vectors
        book = await unit.book(prepared.lesson.subject)
        if (book.rev, extracted) == (prepared.book.rev, prepared.extracted):
            return prepared.learnt
        if vectors:
            new = (one.content for one in book.facts if one.content not in vectors)
            vectors = vectors | await self._embedded(new, prepared.work)
        return await asyncio.to_thread(
            self._merged,
            prepared.lesson,
            prepared.work,
            book,
            extracted=extracted,
            vectors=vectors,
            comparisons=prepared.comparisons,
        )

    async def _embedded(self, texts: Iterable[str], work: DigestWork) -> dict[str, Vector]:
        """The texts' vectors: those that are kept, and the others as they are made; none where that fails."""
        space = self._embedding.space
        if space is None or not space.name.startswith(MEASURED_IN) or not self._embedding.local:
            return {}
        keys = {text: _key(text) for text in texts}
        found = {text: self._kept[key] for text, key in keys.items() if key in self._kept}
        new = [text for text in keys if text not in found]
        try:
            _, made = await self._embedding.documents(new, work.scope.tenant, [])
        except Exception as error:  # noqa: BLE001 (whatever an embedder does, there are words)
            log.warning("New facts are compared by words alone: %s", error, tenant=work.scope.tenant)
            return {}
        # Copies: a row would hold all that was made with it.
        found |= {text: vector.copy() for text, vector in zip(new, made, strict=True)}
        for text, vector in found.items():
            self._kept[keys[text]] = vector
            self._kept.move_to_end(keys[text])
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return found

    def _merged(
        self,
        lesson: Lesson,
        work: DigestWork,
        book: Book,
        *,
        extracted: Ranges,
        vectors: Mapping[str, Vector],
        comparisons: Comparisons,
    ) -> Learnt:
        def cosine(one: str, other: str) -> float | None:
            mine, theirs = vectors.get(one), vectors.get(other)
            return None if mine is None or theirs is None else float(np.dot(mine, theirs))

        return merged(
            book.facts,
            lesson.found,
            subject=lesson.subject,
            extracted=extracted,
            single=self._parts.settings.single_fact_categories,
            cosine=cosine,
            count=self._parts.canonical.count,
            said_at={one.seq: one.created_at for one in work.messages},
            comparisons=comparisons,
        )


def _key(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def lesson_of(work: DigestWork, subject: str, found: Sequence[Extracted]) -> Lesson:
    """What was found in the messages of `work`."""
    return Lesson(subject=subject, found=tuple(found), start=work.messages[0].seq, end=work.messages[-1].seq)


def noted(head: Head, lesson: Lesson) -> tuple[tuple[int, int], ...]:
    """The messages from which facts have been extracted, those of the lesson among them."""
    return joined((*head.extracted, (lesson.start, lesson.end)))
