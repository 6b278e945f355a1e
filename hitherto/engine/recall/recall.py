"""Recall: searches a scope's messages, digests, passages and facts for what answers a question."""

from __future__ import annotations

import asyncio
import json
import time
from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from itertools import accumulate
from typing import Any

from hitherto.aside import aside
from hitherto.core.ledger import ModelCall, Purpose
from hitherto.core.plain_text import without_data
from hitherto.core.recall import rank
from hitherto.core.recall.filter import CODES, EntryKind, SearchFilter
from hitherto.core.recall.index import Candidate, Key, SearchData, Source
from hitherto.core.recall.passages import CharRange
from hitherto.core.recall.terms import QuestionTerms, question_ends, question_terms
from hitherto.core.recall.vectors import Space, Vector
from hitherto.core.scope import Scope
from hitherto.engine.calls import CallContext, Calls, told
from hitherto.engine.purge import purge
from hitherto.engine.recall.embedding import Embedding
from hitherto.engine.recall.search import RankedCandidate, Search, WaitingSource, cut_waiting, population, search
from hitherto.engine.services import Services
from hitherto.limiter import LateTurn
from hitherto.logs import logger
from hitherto.ports.models import RerankResult
from hitherto.uninterrupted import uninterrupted

log = logger("hitherto.recall")

_WAITING = 500
"""At most so many sources without an entry are searched, the newest ones."""

_WAITING_TEXT = 1_000_000
"""At most so many characters of them."""

_EACH = 10_000
"""Characters at each end of a question that are read."""

_LAG = 0.1
"""The part of all that is searched that may be without vectors before `missing` names "vectors"."""

_OF_DOCUMENTS = 500
"""So many candidates go on to the second stage where documents or facts are filtered by what only that stage looks
at."""

_ENTRY = 3
"""What an entry counts for in the first stage, in characters of a source without one."""

_LARGE = 10_000
"""Entries of a scope from which on few searches load it at once: each holds 100 bytes of an entry."""

_MANY = 100
"""Hits, beyond which few searches are made at once: each reads ten texts a hit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """The parts of a hit's score. Hits are ordered by `fused`, which is made of `lexical` (BM25), `semantic` (the
    cosine times a weight, None without a vector), `author` (the question names who said it, or it was probably said in
    this role), `day` (the question names the day on which it was said), `asking` (0, or negative for a text that asks
    something itself) and `neighbors` (what the messages around it add); docs/recall.md has the weights. `reranked` is
    the place that a reranker gave it, from 1."""

    lexical: float
    semantic: float | None
    author: float
    day: float
    asking: float
    neighbors: float
    fused: float
    reranked: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """Something that a search found. `score` (0 to 1) is how relevant it is, comparable between questions: see
    `core.recall.rank.relevance`.

    `kind` is "message", "digest", "passage" or "fact". It stands for the messages `start` to `end` (inclusive) of
    `conversation`; a fact, and a passage of a document that a user added, stands for none. `digest`, `fact`, or
    `document` with the `passage`'s place in it, identify it. `subject` is what it, or its conversation, is about ("":
    the user). `said_at` is when it was said. `text` is cut after 20,000 characters. `passages` are those of a
    long text that match, as ranges of its characters, the best first. `Memory.around` gives the messages
    around it.
    """

    kind: EntryKind
    score: float
    scores: Scores
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
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    role: str | None = None
    author: str | None = None
    passages: tuple[CharRange, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        names = [name for name in self.__slots__ if name not in ("scores", "kind", "said_at", "metadata", "passages")]
        return {
            "kind": self.kind.value,
            **{name: getattr(self, name) for name in names},
            "said_at": self.said_at.isoformat(),
            "metadata": dict(self.metadata),
            "passages": [list(one) for one in self.passages],
            "scores": {name: getattr(self.scores, name) for name in self.scores.__slots__},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallResult:
    """The hits, the best first. `missing` names what was unavailable: "embedder" (or its answer was unusable: only
    words were compared), "vectors" (more than a tenth is not embedded yet), "index" (so much waits to be indexed that
    only the newest of it was searched), "reranker" (the hits keep their fused order). `space` names the space in which
    meanings were compared, None if they were not. `searched` is how many entries were searched."""

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
class LoadedSearch:
    """The first half of a search: the data of its first stage, and the question's vector in its space. It does not
    depend on how the scope is filtered further."""

    question: str
    terms: QuestionTerms
    criteria: SearchFilter
    search_data: SearchData
    vector: Vector | None = None
    space: Space | None = None
    waiting: list[WaitingSource] = field(default_factory=list[WaitingSource])
    missing: list[str] = field(default_factory=list[str])
    last: _LastSearch | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _LastSearch:
    """The first stage of the last search in what was loaded, and the candidates that were read for it."""

    criteria: SearchFilter
    search: Search
    candidates: Sequence[Candidate]

    def begins(self, criteria: SearchFilter, search: Search) -> bool:
        """Whether that search has these candidates too."""
        return self.criteria == criteria and len(self.search.best) <= len(search.best)


class Recaller:
    """Searches the index; all calls to embedders and rerankers go through `calls`."""

    def __init__(self, services: Services, calls: Calls) -> None:
        self._services, self._calls = services, calls
        self._embedding = Embedding(services, calls)

    async def recall(
        self,
        question: str,
        criteria: SearchFilter,
        *,
        today: date,
        limit: int,
        min_score: float = 0.0,
        rerank: bool = True,
    ) -> RecallResult:
        """The `limit` best hits, all with a score of at least `min_score`. `today` is the day of the question."""
        began = time.perf_counter()
        with self._services.watch.span("recall", tenant=criteria.scope.tenant, limit=limit) as span:
            async with self._services.searches.late_turn() as turn:
                if limit > _MANY:
                    await turn.take()
                loaded = await self.load_search(question, criteria, turn, today=today)
                if loaded.search_data.due and await purge(self._services, criteria.scope.tenant):
                    del loaded  # else its data would be held beside what is loaded now
                    loaded = await self.load_search(question, criteria, turn, today=today)
                found = await self.find(loaded, criteria, limit=limit, min_score=min_score, rerank=rerank)
            span.set(hits=len(found.hits), searched=found.searched, missing=" ".join(found.missing))
        self._services.watch.recalled(seconds=time.perf_counter() - began)
        return found

    @property
    def space(self) -> Space | None:
        """The space that vectors are made in now."""
        return self._embedding.space

    async def vector(self, question: str, scope: Scope) -> Vector | None:
        """The vector of a question in `space`; None where there is no space, for an empty question, and where the
        embedder is unavailable."""
        space, asked = self._embedding.space, question_ends(question, each=_EACH).strip()
        if space is None or not asked:
            return None
        async with self._calls.recorded(scope) as ledger:
            return await self._vector(asked, space, scope.tenant, ledger, authors=())

    async def load_search(self, question: str, criteria: SearchFilter, turn: LateTurn, *, today: date) -> LoadedSearch:
        """Load the data of the first stage in one round trip, then the question's vector. `find` may get a narrower
        filter of the same scope, but not one that names conversations or times where this one names none. Where the
        scope is large, this takes its `turn` first, which is to be held as long as the result: through the calls of the
        embedder and the reranker too, which have their own times."""
        question = question_ends(without_data(question_ends(question)), each=_EACH).strip()
        terms = question_terms(question, today=today)
        spaces = self._embedding.spaces if question else ()
        search_data = await self._search_data(criteria, terms, spaces, turn)
        there, sources = len(search_data.waiting), _newest(search_data.waiting)
        search_data = replace(search_data, waiting=sources)
        waiting = await aside(_length(sources), cut_waiting, sources)
        loaded = LoadedSearch(
            question=question, terms=terms, criteria=criteria, search_data=search_data, waiting=waiting
        )
        if len(sources) >= _WAITING or len(sources) < there:
            loaded.missing.append("index")
        if self._services.embedder is None or not question:
            return loaded
        async with self._calls.recorded(criteria.scope) as ledger:
            await self._compare(loaded, spaces, ledger)
        if not self._embedding.known and "embedder" not in loaded.missing:
            loaded.missing.append("embedder")
        without = search_data.entries - search_data.embedded + sum(one.vectors is None for one in loaded.waiting)
        if "embedder" not in loaded.missing and without > _LAG * (search_data.entries + len(search_data.waiting)):
            loaded.missing.append("vectors")
        return loaded

    async def _search_data(
        self, criteria: SearchFilter, terms: QuestionTerms, spaces: Sequence[Space], turn: LateTurn
    ) -> SearchData:
        hashes, scope = terms.hashes.tolist(), criteria.scope
        whose = scope.tenant, scope.user, None if criteria.all_agents else scope.agent
        large = self._services.large_scopes
        while True:
            if whose in large:
                await turn.take()
            found = await uninterrupted(
                self._services.store.index.search_data(criteria, terms=hashes, spaces=spaces, limit=_WAITING)
            )
            if found.size < _LARGE:
                large.discard(whose)
                return found
            large.add(whose)
            if turn.tenant is not None:
                return found
            del found  # else it would be held while others have their turns

    async def _compare(self, loaded: LoadedSearch, spaces: Sequence[Space], ledger: list[ModelCall]) -> None:
        """Add to `loaded` the vectors by which meanings are compared, or "embedder" to what is missing."""
        search_data, tenant, space = loaded.search_data, loaded.criteria.scope.tenant, loaded.search_data.space
        if search_data.waiting and self._embedding.local and spaces and space in (None, spaces[0]):
            # A local embedder is fast enough to embed what is not indexed yet.
            space = spaces[0]
            vectors = await self._embedding.documents_within_timeout(
                [one.source.text[start:end] for one in loaded.waiting for start, end in one.passages],
                tenant,
                ledger,
                otherwise="what is not indexed yet is searched by words only",
            )
            if vectors is None:
                loaded.missing.append("embedder")
                return
            ends = accumulate(len(one.passages) for one in loaded.waiting)
            loaded.waiting = [
                replace(one, vectors=vectors[end - len(one.passages) : end])
                for one, end in zip(loaded.waiting, ends, strict=True)
            ]
        if space is not None:
            there = {
                term for block in search_data.blocks for term, (entries, _) in block.postings.items() if len(entries)
            }
            authors = there.intersection(loaded.terms.authors.tolist())
            terms = loaded.terms
            said = any(day in there for choices in terms.days for choice in choices for day in choice)
            asked = terms.beside_days if said and self._embedding.local else loaded.question
            loaded.vector = await self._vector(asked, space, tenant, ledger, authors=authors)
            loaded.space = space if loaded.vector is not None else None
            loaded.missing += [] if loaded.vector is not None else ["embedder"]

    async def find(
        self, loaded: LoadedSearch, criteria: SearchFilter, *, limit: int, min_score: float, rerank: bool
    ) -> RecallResult:
        """The second half: at most one more round trip, and a call of the reranker if there is one."""
        space = loaded.space
        hits: list[Hit] = []
        searched = 0
        if (last := await self.read(loaded, criteria, limit)) is not None:
            searched = last.search.population.size
            most = limit if not rerank or self._services.reranker is None else max(limit, self._services.reranker.limit)
            hits = [_hit(one) for one in last.search.weighed(last.candidates, most=most, min_score=min_score)]
        missing = list(loaded.missing)
        if rerank and self._services.reranker is not None and len(hits) > 1:
            async with self._calls.recorded(criteria.scope) as ledger:
                hits, fell_through = await self._reranked(loaded, hits, ledger)
            missing += ["reranker"] if fell_through else []
        return RecallResult(
            hits=tuple(hits[:limit]),
            missing=tuple(missing),
            space=None if space is None else space.name,
            searched=searched,
        )

    async def read(self, loaded: LoadedSearch, criteria: SearchFilter, limit: int) -> _LastSearch | None:
        """Read what `find` weighs; None for an empty question. A `find` that follows with the same filter and limit
        does not read it again."""
        if not loaded.question:
            return None
        begun = await self._first(loaded, criteria, limit)
        candidates = await self._candidates(loaded, criteria, begun)
        loaded.last = _LastSearch(criteria=criteria, search=begun, candidates=candidates)
        return loaded.last

    def more(self, loaded: LoadedSearch, limit: int) -> bool:
        """Whether the last `find` would weigh more if so many hits were to be found."""
        last = loaded.last
        return last is not None and len(last.search.first.best(_weighed(last.criteria, limit))) > len(last.search.best)

    async def _first(self, loaded: LoadedSearch, criteria: SearchFilter, limit: int) -> Search:
        """The first stage, off the event loop where there is much to go through."""
        most = _weighed(criteria, limit)

        def first() -> Search:
            last = loaded.last
            if last is not None and last.criteria == criteria:
                return replace(last.search, best=last.search.first.best(most))
            among = population(loaded.search_data, criteria, loaded.terms.hashes.tolist(), loaded.waiting)
            return search(among, loaded.terms, loaded.vector, most=most)

        return await aside(_length(loaded.search_data.waiting) + _ENTRY * loaded.search_data.size, first)

    async def _candidates(self, loaded: LoadedSearch, criteria: SearchFilter, begun: Search) -> Sequence[Candidate]:
        """The candidates of the first stage. Those of the last search, if it was a part of this one, are not read
        again."""
        last = loaded.last if loaded.last is not None and loaded.last.begins(criteria, begun) else None
        known = set[Key]() if last is None else set(last.search.keys)
        rest = [key for key in begun.keys if key not in known]
        beside = begun.waiting_messages - (set() if last is None else last.search.waiting_messages)
        if last is not None and not rest and not beside:
            return last.candidates
        found = self._services.store.index.candidates(
            criteria,
            rest,
            space=loaded.space,
            around=rank.AROUND,
            beside=beside,
            relatives=loaded.search_data.relatives,
        )
        found = await uninterrupted(found)
        if last is None:
            return found
        merged = {_place(one): one for one in (*last.candidates, *found)}  # one may have been indexed anew meanwhile
        return [merged[place] for place in sorted(merged)]  # as the store has them: sums are rounded by their order

    async def _vector(
        self, question: str, space: Space, tenant: str, ledger: list[ModelCall], *, authors: Collection[int]
    ) -> Vector | None:
        """The question's vector; None where the embedder is unavailable."""
        try:
            return await self._embedding.question(question, space, tenant, ledger, authors=authors)
        except Exception as error:  # noqa: BLE001 (a user-supplied embedder may raise anything; there are still words)
            log.warning("Embedder unavailable; searching by words only: %s", told(error), tenant=tenant)
            return None

    async def _reranked(self, loaded: LoadedSearch, hits: list[Hit], ledger: list[ModelCall]) -> tuple[list[Hit], bool]:
        """The hits in the reranker's order, and False; as they are, and True, where it fails or is slow."""
        reranker = self._services.reranker
        assert reranker is not None, "who calls this has looked"
        first, rest = hits[: reranker.limit], hits[reranker.limit :]
        tenant, user = loaded.criteria.scope.tenant, loaded.criteria.scope.user

        async def ask() -> RerankResult:
            async with asyncio.timeout(self._services.settings.reranker_timeout):
                return await reranker.rerank(loaded.question, [without_data(hit.text) for hit in first])

        try:
            what = CallContext(model=reranker.name, purpose=Purpose.RERANK, tenant=tenant, user=user)
            answer = await self._calls.make(ask, what, ledger, tries=1)
        except Exception as error:  # noqa: BLE001 (a user-supplied reranker may raise anything; the order stands)
            why = "it took too long" if isinstance(error, TimeoutError) else told(error)
            log.warning("Reranker unavailable; hits stay in the order of the search: %s", why, tenant=tenant)
            return hits, True
        usable = [at for at in dict.fromkeys(answer.order) if 0 <= at < len(first)]
        places = [*usable, *(at for at in range(len(first)) if at not in set(usable))]
        ordered = [
            replace(first[at], scores=replace(first[at].scores, reranked=place)) for place, at in enumerate(places, 1)
        ]
        return [*ordered, *rest], False


def _weighed(criteria: SearchFilter, limit: int) -> int:
    """How many sources go on to the second stage for so many hits."""
    most = max(rank.FIRST, min(2 * limit, 2 * rank.FIRST), limit)
    of_a_subject = criteria.subject is not None and criteria.kinds & {EntryKind.PASSAGE, EntryKind.FACT}
    if criteria.of_documents or of_a_subject:
        return max(most, _OF_DOCUMENTS)  # their filters are looked at only then
    return most


def _newest(sources: Sequence[Source]) -> tuple[Source, ...]:
    """The last of them that have `_WAITING_TEXT` together."""
    sizes = accumulate(len(source.text) for source in reversed(sources))
    count = bisect_right([*sizes], _WAITING_TEXT)
    return tuple(sources[len(sources) - count :])


def _length(sources: Sequence[Source]) -> int:
    return sum([len(source.text) for source in sources])


def _place(one: Candidate) -> tuple[int, int, int, int]:
    return (one.scope, CODES[one.source.kind], one.source.origin, one.source.place)


def _hit(weighed: RankedCandidate) -> Hit:
    source = weighed.candidate.source
    return Hit(
        kind=source.kind,
        score=weighed.relevance,
        scores=Scores(
            lexical=weighed.words,
            semantic=weighed.likeness,
            author=weighed.author,
            day=weighed.day,
            asking=weighed.asking,
            neighbors=weighed.neighbors,
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
        passages=weighed.passages,
    )
