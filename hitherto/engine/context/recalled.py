"""What a context recalls for a question: the queries, the searches, and the hits that it does not show already."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Literal

from hitherto.core.context.recalled import RecalledPiece, RecallReason
from hitherto.core.cross_session import CrossSession
from hitherto.core.log.message import Kind, Message, Role
from hitherto.core.policy.parts import Recalled as RecalledRender
from hitherto.core.policy.policy import Policy
from hitherto.core.policy.span import Span
from hitherto.core.policy.view import View
from hitherto.core.recall.filter import UNLIKELY, EntryKind, SearchFilter
from hitherto.core.recall.terms import question_ends, question_terms
from hitherto.core.recall.trigger_phrases import triggered, without
from hitherto.engine.arguments import MOST, checked_kinds, checked_limit, checked_share, checked_switch
from hitherto.engine.context.recalled_texts import GroupReader, newest_summaries, recollection_of
from hitherto.engine.handle import Handle
from hitherto.engine.recall.recall import Hit, LoadedSearch, Recaller
from hitherto.errors import InvalidInput, StoreError
from hitherto.limiter import LateTurn
from hitherto.logs import logger

log = logger("hitherto.recall")

SAID = frozenset(EntryKind) - {EntryKind.FACT}
"""The kinds of entry that contexts recall; facts have a place of their own in them."""

_SMALLEST = 24
"""Tokens that are too few for anything to be recalled."""

_BEST = 5
"""Of so many that answer best, none is passed over for its size."""

_AT_ONCE = 20
"""Hits whose groups are read at once: of many, not all may have room."""

_HITS, _TOKENS_A_HIT = 60, 40
"""At least so many hits, and one for so many tokens of the room, are recalled at most."""

_SHORT_HIT = 30
"""Tokens of a hit where many are short: the hits that fill the room by that are looked for at first."""

_ROOM = 24_000
"""Where all of its own is shown, what is from elsewhere has so many tokens for each unit by which the mean score of the
`_FIRST` hits, the probability that they are evidence, is above `UNLIKELY`."""

_FIRST = 3
"""Hits of which one alone may score high by chance."""

_NEAR_THE_BEST = 0.8
"""The part of the best own score that others have, where own messages are cut."""

_FEW = 90
"""Tokens of what is elsewhere, beside their frame, where nothing of it is likely: in a small scope, right answers score
little."""

_LAGGING = ("vectors", "index")
"""What recall may do without for a while, because it is still being made: no manifest calls it missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallOptions:
    """What a context recalls: at most `limit` hits of these `kinds` (None: 200 where the budget is 8,000 tokens, and so
    on), with a score of at least `min_score` (0 to 1). None: any score in the context's own conversation. Where all of
    that is shown, what is from elsewhere may take the more of what is left of the budget the higher the best of it
    scores; the best few are shown in any case, in about 120 tokens. Where some of its own is cut, at most the part
    `recall_others_share` of what is recalled is from elsewhere, and nothing that scores much less than the best of its
    own.

    Where the budget cuts, the part `share` of it is reserved for them (None: the setting `recall_share`); they take
    whatever else is left too. `other_conversations`: from the scope's other conversations and its user's documents too.
    `all_agents`: from those of the user's other agents too."""

    limit: int | None = None
    share: float | None = None
    min_score: float | None = None
    kinds: frozenset[EntryKind] = SAID
    other_conversations: bool = True
    all_agents: bool = False

    def __post_init__(self) -> None:
        if self.limit is not None:
            checked_limit(self.limit)
        if self.min_score is not None:
            checked_share(self.min_score, "min_score", ends=True)
        if self.share is not None:
            checked_share(self.share, "share", ends=False)
        object.__setattr__(self, "kinds", checked_kinds(self.kinds))
        if EntryKind.FACT in self.kinds:
            raise InvalidInput(
                "contexts show facts in a place of their own (see the setting facts); leave them out here"
            )
        for name in ("other_conversations", "all_agents"):
            checked_switch(getattr(self, name), name)


def recall_options_of(value: object) -> RecallOptions | Literal[False] | None:
    """The argument `recall` of `context` as options: True and "scope" stand for the defaults, "own" for those of its
    own conversation alone, a number for the `limit`; None leaves it to the conversation, its agent, the setting, the
    policy; False and "off" recall nothing. Raises InvalidInput."""
    match value:
        case None | RecallOptions():
            return value
        case "off":
            return False
        case "scope" | "own":
            return RecallOptions(other_conversations=value == "scope")
        case bool():
            return RecallOptions() if value else False
        case int() if 1 <= value <= MOST:
            return RecallOptions(limit=value)
        case int():
            raise InvalidInput(f'recall is {value}; give a number of hits from 1 to {MOST}, or "off" (False) for none')
        case _:
            raise InvalidInput(
                f'recall is {value!r}; give "scope", "own", "off", a number of things to recall, or RecallOptions(…)'
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallQuery:
    """One search that a context makes, and the reason for it. `newest`: the question tells nothing but that it asks for
    what was said before ("What did we discuss last time?"); it gets the newest summaries. `others_if_likely`: what is
    elsewhere is shown only where it is likely to bear on the question. `own_cut`: not all of the conversation itself is
    shown."""

    why: RecallReason
    question: str
    criteria: SearchFilter
    limit: int
    min_score: float
    today: date
    newest: bool = False
    others_if_likely: bool = False
    own_cut: bool = True


def recall_queries(
    handle: Handle,
    policy: Policy,
    shown: View,
    question: str,
    *,
    today: date,
    asked: RecallOptions | None,
    own_only: bool,
    until: datetime | None,
    own_cut: bool,
    limit: int,
    crossing: CrossSession,
    subject: str | None,
) -> list[RecallQuery]:
    """The queries of a context: one for the stages of the policy that render recalled digests, one for the scope's
    other conversations, and one for the request's options, which gets what room the others leave. None of these for a
    question that tells nothing, such as "Thanks!". With a `subject`, the policy's queries find only digests of
    conversations about it. `own_only`: from the conversation itself only. `until`: nothing that came later. `own_cut`
    is whether some of the conversation itself is not shown."""
    scope, settings = handle.scope, handle.services.settings
    hidden = {handle.id: shown.stop}
    but = frozenset([shown.digest.id] if shown.digest is not None else [])
    found: list[RecallQuery] = []
    if stages := [stage.render.top_k for stage in policy.stages if isinstance(stage.render, RecalledRender)]:
        digests = frozenset({EntryKind.DIGEST})
        named = handle.id if own_only else None
        criteria = SearchFilter(
            scope=scope, kinds=digests, conversation=named, hidden=hidden, but=but, subject=subject, until=until
        )
        found.append(
            RecallQuery(
                why=RecallReason.POLICY,
                question=question,
                criteria=criteria,
                limit=sum(stages),
                min_score=0.0,
                today=today,
            )
        )
    phrases = crossing.search_triggers or ()
    asks = crossing.recalls and triggered(question, phrases) is not None
    if crossing.always or (crossing.triggers and asks):
        found.append(
            RecallQuery(
                why=RecallReason.CROSS_SESSION,
                question=without(question, phrases) if asks else question,
                newest=asks and not question_terms(without(question, phrases)).telling,
                criteria=SearchFilter(scope=scope, kinds=SAID, exclude_conversation=handle.id, until=until),
                limit=settings.cross_session_limit,
                min_score=crossing.relevance_threshold or 0.0,
                today=today,
            )
        )
    if asked is not None and question_terms(question).telling:
        criteria = SearchFilter(
            scope=scope,
            all_agents=asked.all_agents,
            kinds=asked.kinds,
            conversation=None if asked.other_conversations else handle.id,
            hidden=hidden,
            but=but,
            until=until,
        )
        found.append(
            RecallQuery(
                why=RecallReason.REQUEST,
                question=question,
                criteria=criteria,
                limit=limit,
                min_score=asked.min_score or 0.0,
                today=today,
                others_if_likely=asked.other_conversations and asked.min_score is None,
                own_cut=own_cut,
            )
        )
    return found


def hits_within(tokens: int, each: int = _TOKENS_A_HIT) -> int:
    """How many hits may have room in so many tokens: at least 60."""
    return min(max(tokens // each, _HITS), MOST)


def question_of(messages: Sequence[Message]) -> str:
    """The text of the user messages, as the question to recall for, of a long one both ends; empty where there is
    none."""
    said = [one.text for one in messages if one.role is Role.USER and one.kind is Kind.TEXT and one.text.strip()]
    return question_ends("\n".join(said))


async def load_searches(
    recaller: Recaller, queries: Sequence[RecallQuery], turn: LateTurn
) -> list[LoadedSearch | None]:
    """The first half of each search, all at once and in one turn; None for one where the store failed."""

    async def load_search(one: RecallQuery) -> LoadedSearch | None:
        if one.newest:
            return None
        try:
            return await recaller.load_search(one.question, one.criteria, turn, today=one.today)
        except StoreError as error:
            log.warning("Recall failed; the context goes without it: %s", error, tenant=one.criteria.scope.tenant)
            return None

    # None of them goes on after another one has failed: it would take a turn that nobody gives back.
    made = await asyncio.gather(*(load_search(one) for one in queries), return_exceptions=True)
    found = list[LoadedSearch | None]()
    for one in made:
        if isinstance(one, BaseException):
            raise one
        found.append(one)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was found for the queries of a context: the pieces to show, the best first for each query, and what had no
    room."""

    pieces: tuple[RecalledPiece, ...] = ()
    left_out: tuple[RecalledPiece, ...] = ()


async def found(
    handle: Handle,
    recaller: Recaller,
    queries: Sequence[RecallQuery],
    begun: Sequence[LoadedSearch | None],
    *,
    visible: Sequence[Span],
    room: int,
    reserved: int,
    count: Callable[[str], int],
    missing: list[str],
) -> Found:
    """What fits into `room` tokens, each piece counted by itself: nothing twice, and nothing that overlaps `visible`.
    What the request did not ask for fits into the `reserved` tokens too. Adds to `missing` what was unavailable."""
    chosen = _Chosen(count=count, room=room, reserved=reserved)
    seen = _Seen(handle, visible)
    finder = _Finder(handle=handle, recaller=recaller, visible=visible, chosen=chosen, seen=seen, missing=missing)
    for query, loaded in zip(queries, begun, strict=True):
        if query.newest:
            newest = await newest_summaries(handle, query.limit, query.why, query.criteria.until)
            await chosen.choose(query, newest, seen)
        elif not query.others_if_likely:
            hits = await finder.first(query, loaded, query.criteria)
            await finder.fill(query, loaded, query.criteria, hits)
        elif query.own_cut:
            await finder.own_and_others(query, loaded)
        else:
            await finder.others(query, loaded)
    return Found(pieces=tuple(chosen.pieces), left_out=tuple(chosen.left_out))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Finder:
    """Finds the hits for the queries of one context, and has pieces chosen from them."""

    handle: Handle
    recaller: Recaller
    visible: Sequence[Span]
    chosen: _Chosen
    seen: _Seen
    missing: list[str]

    async def own_and_others(self, query: RecallQuery, loaded: LoadedSearch | None) -> None:
        """Where some of the conversation itself is cut: from elsewhere what is nearly as good, and its own."""
        elsewhere = replace(query.criteria, exclude_conversation=self.handle.id)
        within = replace(query.criteria, conversation=self.handle.id)
        share = self.handle.services.settings.recall_others_share
        fewer = replace(query, limit=int(share * query.limit))
        # What is elsewhere is read at the same time, and weighed when the best own score is known.
        ahead = None if loaded is None else replace(loaded)
        own, _ = await asyncio.gather(self.first(query, loaded, within), self.read(fewer, ahead, elsewhere))
        best = max((hit.score for hit in own), default=0.0)
        fewer = replace(fewer, min_score=max(UNLIKELY, _NEAR_THE_BEST * best))
        # Not reranked: each call takes its time and its price.
        others = await self.find(fewer, ahead, elsewhere, rerank=False)
        shown = await self.chosen.choose(fewer, others, self.seen, room=int(share * self.chosen.room))
        await self.fill(replace(query, limit=query.limit - shown), loaded, within, own)

    async def others(self, query: RecallQuery, loaded: LoadedSearch | None) -> None:
        """Where all of the conversation itself is shown: from elsewhere the more, the more likely it is to bear on the
        question."""
        elsewhere = replace(query.criteria, exclude_conversation=self.handle.id)
        others = await self.find(replace(query, limit=_BEST), loaded, elsewhere, rerank=False)
        likely = sum(hit.score for hit in others[:_FIRST]) / _FIRST - UNLIKELY
        tokens = min(self.chosen.room, max(_FEW, int(_ROOM * likely)))
        if tokens > _FEW:
            limit = min(query.limit, hits_within(tokens))
            others = await self.find(replace(query, limit=limit), loaded, elsewhere)
        await self.chosen.choose(query, others, self.seen, room=tokens)

    async def first(self, query: RecallQuery, loaded: LoadedSearch | None, criteria: SearchFilter) -> Sequence[Hit]:
        """As many hits as are likely to fill the room."""
        limit = min(query.limit, hits_within(self.chosen.room, _SHORT_HIT))
        return await self.find(replace(query, limit=limit), loaded, criteria)

    async def fill(
        self, query: RecallQuery, loaded: LoadedSearch | None, criteria: SearchFilter, hits: Sequence[Hit]
    ) -> None:
        """Choose from the `first` hits, and from those behind them if these do not fill the room."""
        limit = self._limit(query)
        left = query.limit - await self.chosen.choose(query, hits, self.seen)
        if left > 0 and self.chosen.room >= _SMALLEST and loaded is not None and self.recaller.more(loaded, limit):
            hits = await self.find(query, loaded, criteria, rerank=False)
            await self.chosen.choose(replace(query, limit=left), hits, self.seen)

    async def read(self, query: RecallQuery, loaded: LoadedSearch | None, criteria: SearchFilter) -> None:
        """Read what `find` weighs, while something else is done. Where this fails, `find` tries again."""
        if loaded is not None:
            with suppress(StoreError):
                await self.recaller.read(loaded, self._hidden(criteria), self._limit(query))

    async def find(
        self, query: RecallQuery, loaded: LoadedSearch | None, criteria: SearchFilter, *, rerank: bool = True
    ) -> Sequence[Hit]:
        """The hits within a filter; none where the store fails."""
        try:
            if loaded is not None:
                answer = await self.recaller.find(
                    loaded,
                    self._hidden(criteria),
                    limit=self._limit(query),
                    min_score=query.min_score,
                    rerank=rerank,
                )
                _miss(self.missing, [name for name in answer.missing if name not in _LAGGING])
                return answer.hits
        except StoreError as error:
            log.warning("Recall failed; the context goes without it: %s", error, tenant=self.handle.scope.tenant)
        _miss(self.missing, ("recall",))
        return ()

    def _limit(self, query: RecallQuery) -> int:
        """How many hits to ask for: as many more as may be shown already, at most 50 for visible messages before the
        newest span."""
        before = sum(span.end - span.start + 1 for span in self.visible[:-1])
        return query.limit + len(self.seen.names) + min(before, 50)

    def _hidden(self, criteria: SearchFilter) -> SearchFilter:
        """The filter that also leaves out the newest messages that are shown without a gap up to the end."""
        if self.handle.id not in criteria.hidden:
            return criteria
        start = criteria.hidden[self.handle.id]
        for span in reversed(self.visible):
            if span.end + 1 != start:
                break
            start = span.start
        return replace(criteria, hidden={self.handle.id: start})


@dataclass(slots=True)
class _Chosen:
    """The pieces to show, and what had no room. `room` and `reserved` are the tokens that are left."""

    count: Callable[[str], int]
    room: int
    reserved: int
    pieces: list[RecalledPiece] = field(default_factory=list[RecalledPiece])
    left_out: list[RecalledPiece] = field(default_factory=list[RecalledPiece])
    groups: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    async def choose(
        self, query: RecallQuery, hits: Sequence[Hit | RecalledPiece], seen: _Seen, *, room: int | None = None
    ) -> int:
        """Choose from the hits of a query, the best first, in at most `room` tokens. What fits is shown whole. What
        does not is cut to its passages: at once, if it is one of the few best or larger than all the room there was,
        else behind the smaller ones of these hits, which are shown whole. A group takes the place of its message that
        was shown. What sums up a message that is shown says the same again, and is not shown. Returns how many
        more pieces are shown now."""
        least = 0 if query.why is RecallReason.REQUEST else max(self.room - self.reserved, 0)
        held_back = least if room is None else max(self.room - room, 0)
        whole, before = self.room - held_back, len(self.pieces)
        most = before + query.limit
        looked_at, set_aside = 0, list[RecalledPiece]()
        for at, hit in enumerate(hits):
            if len(self.pieces) == most or self.room - held_back < _SMALLEST:
                break
            if at % _AT_ONCE == 0:
                await seen.read_around(hits[at : at + _AT_ONCE])
            one = await seen.piece(hit, query)
            if one is None or (one.kind is not EntryKind.MESSAGE and any(one.sums_up(shown) for shown in self.pieces)):
                continue
            left = self.room - held_back - self._above(one)
            takes = one.takes(whole, self.count)
            looked_at += 1
            inside = [shown for shown in self.pieces if shown.within(one)] if one.members else []
            freed = sum(self.count(shown.line) + 1 for shown in inside)
            if takes is not None and takes <= left + freed:
                self.pieces = [shown for shown in self.pieces if shown not in inside]
                self._show(one, takes - freed)
            elif inside:
                self.left_out.append(replace(one, characters=one.passages[:1]))
            elif takes is None or looked_at <= _BEST:
                self._cut(one, left)
            else:
                set_aside.append(one)
        for one in set_aside:
            self._cut(one, self.room - held_back - self._above(one) if len(self.pieces) < most else 0)
        return len(self.pieces) - before

    def _above(self, one: RecalledPiece) -> int:
        """The tokens of its heading, where nothing under the same is shown yet."""
        return 0 if one.group in self.groups else self.count(one.heading) + 1

    def _cut(self, one: RecalledPiece, left: int) -> None:
        cut = one.cut(left, self.count) if left >= _SMALLEST else None
        if cut is None:
            self.left_out.append(replace(one, characters=one.passages[:1]))
        else:
            self._show(cut, self.count(cut.line))

    def _show(self, one: RecalledPiece, takes: int) -> None:
        takes += self._above(one) + 1
        self.pieces.append(one)
        self.groups.add(one.group)
        self.room, self.reserved = self.room - takes, self.reserved - takes


class _Seen:
    """Tells what of the hits is new: nothing is shown twice, nor what is in the spans `visible`."""

    def __init__(self, handle: Handle, visible: Sequence[Span]) -> None:
        self.names: set[tuple[object, ...]] = set()
        self._handle, self._visible = handle, visible
        self._reader = GroupReader(handle)
        self._members: set[tuple[str | None, str | None, int | None]] = set()

    async def read_around(self, hits: Sequence[Hit | RecalledPiece]) -> None:
        """Read at once what the pieces of these hits are made of."""
        await self._reader.read_around([hit for hit in hits if isinstance(hit, Hit) and not self._shown(hit)])

    def _shown(self, hit: Hit | RecalledPiece) -> bool:
        """Whether it is of a group of which a piece has been made."""
        return hit.kind is EntryKind.MESSAGE and (hit.agent, hit.conversation, hit.start) in self._members

    async def piece(self, hit: Hit | RecalledPiece, query: RecallQuery) -> RecalledPiece | None:
        """The hit as a piece; None where it is not to be shown."""
        if query.why is RecallReason.CROSS_SESSION and hit.conversation is None:
            return None  # a document that the user added is from no conversation
        if self._shown(hit):
            return None  # the rest of its group came before
        one: RecalledPiece | None
        if isinstance(hit, RecalledPiece):
            one = hit
        else:
            one = await recollection_of(self._handle, self._reader, hit, query.why, query.question)
        if one is None or (name := _name(one)) in self.names or _in_sight(self._handle, one, self._visible):
            return None
        self.names.add(name)
        self._members.update((one.agent, one.conversation, seq) for seq in one.members)
        return one


def _in_sight(handle: Handle, one: RecalledPiece, visible: Sequence[Span]) -> bool:
    """Whether it is shown already: a digest if all of its messages are, anything else if one is."""
    if (one.agent, one.conversation) != (handle.scope.agent, handle.id) or one.start is None or one.end is None:
        return False
    if one.kind is EntryKind.DIGEST:
        shown = sum(max(min(span.end, one.end) - max(span.start, one.start) + 1, 0) for span in visible)
        return shown > one.end - one.start
    return any(span.start <= one.end and one.start <= span.end for span in visible)


def _name(one: RecalledPiece) -> tuple[object, ...]:
    return (one.kind, one.agent, one.conversation, one.start, one.digest, one.document, one.passage)


def _miss(missing: list[str], names: Sequence[str]) -> None:
    missing += [name for name in names if name not in missing]
