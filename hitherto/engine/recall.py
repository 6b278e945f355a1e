"""Recall: what was said that answers a question, from everything a scope has."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from hitherto.core import rank
from hitherto.core.analysis import QuestionTerms, question_terms
from hitherto.core.ledger import ModelCall, Purpose
from hitherto.core.scope import Scope
from hitherto.core.wanted import EntryKind, Wanted
from hitherto.engine.calls import Asked, Calls
from hitherto.engine.embedding import Embedding
from hitherto.engine.parts import Parts
from hitherto.engine.searching import Search, Weighed, population, search
from hitherto.errors import InvalidInput
from hitherto.logs import logger
from hitherto.ports.embedder import Space, Vector, Vectors
from hitherto.ports.index import Matter, SearchIndex
from hitherto.ports.reranker import Reranked
from hitherto.uninterrupted import uninterrupted

log = logger("hitherto.recall")

_WAITING = 500
"""So many of the newest things that have no entry yet are looked at."""

_LONGEST = 20_000
"""Characters of a question that are read."""

_LAG = 0.1
"""The part of all that is searched that may be without vectors for a while before it is worth a word."""

_OF_DOCUMENTS = 500
"""So many go on to the second stage where documents or facts are chosen by what only that looks at."""

_MANY = 20_000
"""So many entries are gone through before another thread is asked to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """The parts of a hit's place. `fused`, by which hits are ordered, is made of `lexical` (BM25), `semantic` (the
    cosine, None without a vector, times a weight), `author` (the question names who said it), `asking` (0, or less for
    what itself asks something) and `neighbours` (what the messages around it lend); docs/recall.md has the weights.
    `reranked` is the place that a reranker gave it, from 1."""

    lexical: float
    semantic: float | None
    author: float
    asking: float
    neighbours: float
    fused: float
    reranked: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """Something that was said. `score` (0 to 1) is how relevant it is, judged by itself: see `core.rank.relevance`.

    `kind` is "message", "digest", "passage" or "fact". It stands for the messages `start` to `end` (inclusive) of
    `conversation`; a fact, and a passage of a document that a user added, stands for none. `digest`, `fact`, or
    `document` with the `passage`'s place in it, say which one it is. `subject` is what it, or its conversation, is
    about ("": the user himself). `said_at` is when it was said. `text` is cut after 4,000 characters.
    `Memory.around` opens what is around it.
    """

    kind: EntryKind
    score: float
    parts: Scores
    text: str
    said_at: datetime
    agent: str
    conversation: str | None = None
    start: int | None = None
    end: int | None = None
    digest: int | None = None
    document: int | None = None
    passage: int | None = None
    fact: int | None = None
    subject: str | None = None
    title: str | None = None
    doc_type: str | None = None
    namespace: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    role: str | None = None
    author: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        names = [name for name in self.__slots__ if name not in ("parts", "kind", "said_at", "metadata")]
        return {
            "kind": self.kind.value,
            **{name: getattr(self, name) for name in names},
            "said_at": self.said_at.isoformat(),
            "metadata": dict(self.metadata),
            "parts": {name: getattr(self.parts, name) for name in self.parts.__slots__},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """What was found, the best first. `missing` names what it had to do without: "embedder" (it is away, or answered
    with what is no vector: only words were compared), "vectors" (more than a tenth is not embedded yet), "reranker"
    (the order of the fusion stands). `space` names the space in which meanings were compared, None if they were not.
    `searched` is among how many entries."""

    hits: tuple[Hit, ...]
    missing: tuple[str, ...] = ()
    space: str | None = None
    searched: int = 0

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "hits": [hit.to_json() for hit in self.hits],
            "missing": list(self.missing),
            "space": self.space,
            "searched": self.searched,
        }


@dataclass(slots=True)
class Looked:
    """The first part of a search, which does not depend on what is wanted within the walls: the matter, and the
    question's vector in its space."""

    question: str
    terms: QuestionTerms
    wanted: Wanted
    matter: Matter
    vector: Vector | None = None
    space: Space | None = None
    waiting: Vectors | None = None
    missing: list[str] = field(default_factory=list[str])


class Recaller:
    """Searches; what it asks of embedders and rerankers goes through `calls`."""

    def __init__(self, parts: Parts, calls: Calls) -> None:
        self._parts, self._calls = parts, calls
        self._embedding = Embedding(parts, calls)

    @property
    def able(self) -> bool:
        """Whether the store has an index to search in."""
        return self._parts.index is not None

    async def recall(self, question: str, wanted: Wanted, *, k: int, least: float = 0.0, rerank: bool = True) -> Recall:
        """The `k` best answers, all of a score of at least `least`. Raises InvalidInput where there is no index."""
        began = time.perf_counter()
        with self._parts.watch.span("recall", tenant=wanted.scope.tenant, k=k) as span:
            looked = await self.look(question, wanted)
            found = await self.find(looked, wanted, k=k, least=least, rerank=rerank)
            span.set(hits=len(found.hits), searched=found.searched, missing=" ".join(found.missing))
        self._parts.watch.recalled(seconds=time.perf_counter() - began)
        return found

    @property
    def space(self) -> Space | None:
        """The space that vectors are made in now."""
        return self._embedding.space

    async def vector(self, question: str, scope: Scope) -> Vector | None:
        """The vector of a question in `space`; None where there is none, and where the embedder is away."""
        space, asked = self._embedding.space, question[:_LONGEST].strip()
        if space is None or not asked:
            return None
        async with self._calls.booked(scope) as ledger:
            return await self._vector(asked, space, scope.tenant, ledger, authors=())

    async def look(self, question: str, wanted: Wanted) -> Looked:
        """One round trip, and then the question's vector. What `wanted` says beside its walls may be given
        more precisely to `find`, but not name conversations or times where this names none."""
        question = question[:_LONGEST].strip()
        terms = question_terms(question)
        spaces = self._embedding.spaces if question else ()
        every = [*terms.words.tolist(), *terms.authors.tolist()]
        matter = await uninterrupted(self._index().matter(wanted, terms=every, spaces=spaces, limit=_WAITING))
        looked = Looked(question=question, terms=terms, wanted=wanted, matter=matter)
        if self._parts.embedder is None or not question:
            return looked
        async with self._calls.booked(wanted.scope) as ledger:
            await self._compare(looked, spaces, ledger)
        if not self._embedding.known and "embedder" not in looked.missing:
            looked.missing.append("embedder")
        without = matter.entries - matter.embedded + (0 if looked.waiting is not None else len(matter.waiting))
        if not looked.missing and without > _LAG * (matter.entries + len(matter.waiting)):
            looked.missing.append("vectors")
        return looked

    async def _compare(self, looked: Looked, spaces: Sequence[Space], ledger: list[ModelCall]) -> None:
        """The vectors by which meanings are compared, or the word that the embedder is missing."""
        matter, tenant, space = looked.matter, looked.wanted.scope.tenant, looked.matter.space
        if matter.waiting and self._embedding.local and spaces and space in (None, spaces[0]):
            # What has just been said is compared by its meaning too: here that takes no time.
            space = spaces[0]
            looked.waiting = await self._documents([source.text for source in matter.waiting], tenant, ledger)
            if looked.waiting is None:
                looked.missing.append("embedder")
                return
        if space is not None:
            there = {term for block in matter.blocks for term, (entries, _) in block.postings.items() if len(entries)}
            authors = there.intersection(looked.terms.authors.tolist())
            looked.vector = await self._vector(looked.question, space, tenant, ledger, authors=authors)
            looked.space = space if looked.vector is not None else None
            looked.missing += [] if looked.vector is not None else ["embedder"]

    async def find(self, looked: Looked, wanted: Wanted, *, k: int, least: float, rerank: bool) -> Recall:
        """The second part: one round trip more, and the reranker's answer if there is one."""
        space = looked.space
        hits: list[Hit] = []
        searched = 0
        if looked.question:
            begun = await self._first(looked, wanted, k)
            searched = begun.population.size
            found = self._index().candidates(wanted, begun.keys, space=space, around=rank.AROUND)
            candidates = await uninterrupted(found)
            most = k if not rerank or self._parts.reranker is None else max(k, self._parts.reranker.limit)
            hits = [_hit(one) for one in begun.weighed(candidates, most=most, least=least)]
        missing = list(looked.missing)
        if rerank and self._parts.reranker is not None and len(hits) > 1:
            async with self._calls.booked(wanted.scope) as ledger:
                hits, fell_through = await self._reranked(looked, hits, ledger)
            missing += ["reranker"] if fell_through else []
        return Recall(
            hits=tuple(hits[:k]),
            missing=tuple(missing),
            space=None if space is None else space.name,
            searched=searched,
        )

    async def _first(self, looked: Looked, wanted: Wanted, k: int) -> Search:
        """The first stage, off the event loop where there is much to go through."""
        most = max(rank.FIRST, 2 * k)
        of_a_subject = wanted.subject is not None and wanted.kinds & {EntryKind.PASSAGE, EntryKind.FACT}
        if wanted.of_documents or of_a_subject:
            most = max(most, _OF_DOCUMENTS)  # their filters are looked at only then

        def first() -> Search:
            every = [*looked.terms.words.tolist(), *looked.terms.authors.tolist()]
            among = population(looked.matter, wanted, every, waiting=looked.waiting)
            return search(among, looked.terms, looked.vector, most=most)

        many = sum(len(block.lengths) for block in looked.matter.blocks) > _MANY
        return await asyncio.to_thread(first) if many else first()

    async def _documents(self, texts: Sequence[str], tenant: str, ledger: list[ModelCall]) -> Vectors | None:
        """The vectors of what has no entry yet, waited for no longer than a question's; None where the embedder is
        away."""
        try:
            async with asyncio.timeout(self._parts.settings.embedder_timeout):
                return (await self._embedding.documents(texts, tenant, ledger))[1]
        except Exception as error:  # noqa: BLE001 (an embedder may be somebody's own; whatever it does, there are words)
            why = "it took too long" if isinstance(error, TimeoutError) else error
            log.warning("What is not indexed yet is compared by words alone: %s", why, tenant=tenant)
            return None

    async def _vector(
        self, question: str, space: Space, tenant: str, ledger: list[ModelCall], *, authors: Collection[int]
    ) -> Vector | None:
        """The question's vector; None where the embedder is away."""
        try:
            return await self._embedding.question(question, space, tenant, ledger, authors=authors)
        except Exception as error:  # noqa: BLE001 (an embedder may be somebody's own; whatever it does, there are words)
            log.warning("A question is compared by words alone: %s", error, tenant=tenant)
            return None

    async def _reranked(self, looked: Looked, hits: list[Hit], ledger: list[ModelCall]) -> tuple[list[Hit], bool]:
        """The hits in the reranker's order, or as they are where it is away, slow or answers with nothing of use."""
        reranker = self._parts.reranker
        assert reranker is not None, "who calls this has looked"
        first, rest = hits[: reranker.limit], hits[reranker.limit :]
        tenant = looked.wanted.scope.tenant

        async def ask() -> Reranked:
            async with asyncio.timeout(self._parts.settings.reranker_timeout):
                return await reranker.rerank(looked.question, [hit.text for hit in first])

        try:
            what = Asked(model=reranker.name, purpose=Purpose.RERANK, tenant=tenant)
            answer = await self._calls.make(ask, what, ledger, tries=1)
        except Exception as error:  # noqa: BLE001 (a reranker may be somebody's own; whatever it does, there is an order)
            why = "it took too long" if isinstance(error, TimeoutError) else error
            log.warning("The reranker is left out: %s", why, tenant=tenant)
            return hits, True
        usable = [at for at in dict.fromkeys(answer.order) if 0 <= at < len(first)]
        places = [*usable, *(at for at in range(len(first)) if at not in set(usable))]
        ordered = [
            replace(first[at], parts=replace(first[at].parts, reranked=place)) for place, at in enumerate(places, 1)
        ]
        return [*ordered, *rest], False

    def _index(self) -> SearchIndex:
        if self._parts.index is None:
            raise InvalidInput("this memory's store has no search index; open it on PostgreSQL, or as 'memory:'")
        return self._parts.index


def _hit(weighed: Weighed) -> Hit:
    source = weighed.candidate.source
    return Hit(
        kind=source.kind,
        score=weighed.relevance,
        parts=Scores(
            lexical=weighed.words,
            semantic=weighed.likeness,
            author=weighed.author,
            asking=weighed.asking,
            neighbours=weighed.neighbours,
            fused=weighed.score,
        ),
        text=source.text,
        said_at=source.said_at,
        agent=source.agent,
        conversation=source.conversation,
        start=source.start,
        end=source.end,
        digest=source.place if source.kind is EntryKind.DIGEST else None,
        document=source.origin if source.kind is EntryKind.PASSAGE else None,
        passage=source.place if source.kind is EntryKind.PASSAGE else None,
        fact=source.origin if source.kind is EntryKind.FACT else None,
        subject=source.subject,
        title=source.title,
        doc_type=source.doc_type,
        namespace=source.namespace,
        metadata=json.loads(source.metadata) if source.kind is EntryKind.PASSAGE else {},
        role=source.role,
        author=source.author,
    )
