"""Building a context: what it needs is gathered, fitted into the budget, and written down."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, tzinfo
from typing import Literal

from hitherto.aside import aside
from hitherto.core.context.fit import Fitted, Fitting
from hitherto.core.context.gathered import Gathered
from hitherto.core.context.manifest import FactsShown
from hitherto.core.context.recalled_block import lead_tokens, with_recalled
from hitherto.core.context.request import ContextRequest
from hitherto.core.cross_session import CrossSession
from hitherto.core.facts.queries import KnownFacts
from hitherto.core.log.frontier import DigestAction
from hitherto.core.log.head import Head, HeadWithCalls
from hitherto.core.log.message import CHAT, Message, Role, size_of
from hitherto.core.log.ranges import any_in
from hitherto.core.log.time_zone import in_zone
from hitherto.core.policy.policy import Policy, UnreadablePolicy
from hitherto.core.policy.presets import none
from hitherto.core.policy.span import Fate, Reason
from hitherto.engine.context.context import Context, finished
from hitherto.engine.context.facts import FactsQuestion, ShownFacts, all_of, chosen_facts, none_of
from hitherto.engine.context.injection import chosen
from hitherto.engine.context.log_reader import LogReader, view_of
from hitherto.engine.context.recalled import (
    Found,
    RecallOptions,
    RecallQuery,
    found,
    hits_within,
    load_searches,
    question_of,
    recall_options_of,
    recall_queries,
)
from hitherto.engine.handle import Handle
from hitherto.engine.recall.recall import Recaller

_REPLY = 40
"""Characters of a user's message that says by itself what it is about."""

_CHARACTERS = 4
"""Of a token, about."""

_AT_WORK, _ENOUGH = 2.5, 1_000
"""So many times the share for recall is set aside where an agent works with tools, up to so many tokens: of old results
a later step needs a name here and a number there, and of the newest ones all."""

_GONE = (Reason.CLEARED, Reason.ERASED, Reason.RETRACTED)


async def fitting_of(request: ContextRequest, gathered: Gathered) -> Fitting:
    """The fitting, begun in a thread where it is much."""
    return await aside(_size(request, gathered), Fitting, request, gathered)


async def fitted(request: ContextRequest, fitting: Fitting) -> Fitted:
    """As `Fitting.fit`, in a thread where it is much."""
    return await aside(_size(request, fitting.gathered), fitting.fit, request)


def _size(request: ContextRequest, gathered: Gathered) -> int:
    return request.size + gathered.head.size + size_of([one.message for one in gathered.messages])


@dataclass(frozen=True, slots=True)
class ContextBuilder:
    """Builds the contexts of one conversation. Reads only. Without a `recaller` nothing is recalled and no facts are
    shown."""

    handle: Handle
    recaller: Recaller | None = None

    async def build(
        self,
        request: ContextRequest,
        policy: Policy | None,
        at: int | None,
        *,
        recall: RecallOptions | Literal[False] | None = None,
        cross_session: CrossSession | None = None,
        facts: bool | None = None,
    ) -> Context:
        """The context: one round trip for the head and the facts, one for the messages that can fit, one more where an
        opaque item or the digest of another conversation is shown, and one where something is recalled.

        `cross_session` is the request's own choice. `recall` are the request's options (None: the policy's), and
        `facts` is whether facts are shown (None: as the setting says).
        """
        calls = {call for message in request.incoming for call in message.answers}
        head, known, others = await self._head_and_known(facts, at, request.upto, calls)
        request = replace(request, incoming=_without_erased_calls(request.incoming, head))
        if self.handle.services.settings.date_messages and not request.framework:
            zone = await self.handle.zone(head)
            days = [in_zone(one.said_at or head.now, zone).date() for one in request.incoming]
            request = replace(request, days=tuple(days))
        defaults = await self.handle.defaults(head)
        used, whose = self.handle.governing(head, policy, defaults)
        asked = cross_session or CrossSession()
        until = None if at is None else await self._reader.newest_at(head)
        source = await chosen(self.handle, head, asked, defaults, until)
        request = replace(request, injected=None if source is None else source.text)
        shown, request = await self._reader.seen(used, head, request)
        missing = [] if at is not None else _missing(used, head)
        gathered = await self._reader.gathered(request, shown, head, at)
        fitting = await fitting_of(request, gathered)
        request, says = await self._with_facts(known, request, fitting, missing)
        if recall is False or self.recaller is None:
            made, pieces = await fitted(request, fitting), Found()
        else:
            crossing = self.handle.crossing(head, asked, defaults)
            options = recall or recall_options_of(crossing.recall or ("scope" if used.recall else "off")) or None
            own_only = self.handle.private(head)
            if options is not None and (own_only or not (others or options.all_agents)):
                options = replace(options, other_conversations=False)
            wanted = _Wanted(options, crossing, used, own_only, until)
            request, made, pieces = await self._with_recall(request, fitting, wanted, missing)
        mine = (self.handle.scope.agent, self.handle.id)
        made = with_recalled(made, pieces.pieces, request, own=mine, left_out=pieces.left_out)
        return await aside(
            request.size + _CHARACTERS * made.total,
            finished,
            request,
            made,
            gathered=gathered,
            policy=used,
            policy_from=whose,
            scope=self.handle.scope,
            conversation=self.handle.id,
            injected=None if source is None else source.says,
            facts=says,
            missing=missing,
        )

    async def _with_recall(
        self, request: ContextRequest, fitting: Fitting, wanted: _Wanted, missing: list[str]
    ) -> tuple[ContextRequest, Fitted, Found]:
        """The payload, the request it was made for, and what is to be recalled into it. What a search has loaded is
        held no longer than its turn."""
        gathered = fitting.gathered
        # Whatever the question: what is cut must not depend on it.
        today = _today(request, gathered, await self.handle.zone(gathered.head))
        asks = bool(self._queries(gathered, _said(request, gathered), today, wanted, request.budget))
        if asks or wanted.options is not None or wanted.policy.recalls:
            share = None if wanted.options is None else wanted.options.share
            request = replace(request, recall_tokens=self._set_aside(request, fitting, share))
        made = await fitted(request, fitting)
        own_cut = not all(span.fate is Fate.IN or span.reason in _GONE for span in made.fates)
        if not own_cut and wanted.options is not None and not wanted.options.other_conversations:
            wanted = replace(wanted, options=None)  # all is shown: there is nothing to find, and no embedder to load
        wanted = replace(wanted, own_cut=own_cut)
        question = self._question(request, gathered, made)
        queries = self._queries(gathered, question, today, wanted, request.budget)
        if not queries:
            return request, made, Found()
        async with self.handle.services.searches.late_turn() as turn:
            loaded = await load_searches(self._recaller, queries, turn)
            lead = lead_tokens(request)
            room = self._room_left(request, made)
            # While an agent with tools is at work, its requests grow into what is left, and what is recalled stands
            # still as long as the cut does.
            room = min(room, request.recall_tokens) if _with_tools(request, gathered) else room
            pieces = await found(
                self.handle,
                self._recaller,
                queries,
                loaded,
                visible=[span for span in made.fates if span.fate is Fate.IN],
                room=room - lead,
                reserved=request.recall_tokens - lead,
                count=request.counter.count,
                missing=missing,
            )
            return request, made, pieces

    def _question(self, request: ContextRequest, gathered: Gathered, made: Fitted) -> str:
        """What to recall for: what the user said. What an agent does with a short reply ("Yes, please."), or when
        things have moved on since, depends on where it stood: then."""
        said, newest = _said(request, gathered), gathered.newest_said()
        new = bool(question_of(request.incoming)) or not newest
        asked = gathered.head.next_seq if new else newest[0].seq
        moved = made.moved or 0
        step = gathered.step(max(moved, asked), request.incoming) if moved > asked or _is_reply(said) else ""
        return f"{said}\n{step}" if said and step else said

    def _queries(
        self, gathered: Gathered, question: str, today: date, wanted: _Wanted, budget: int
    ) -> Sequence[RecallQuery]:
        """The recall queries of this context; empty where nothing is to be recalled."""
        if not question or not (wanted.options is not None or wanted.crossing.recalls or wanted.policy.recalls):
            return ()
        return recall_queries(
            self.handle,
            wanted.policy,
            gathered.view,
            question,
            today=today,
            asked=wanted.options,
            own_only=wanted.own_only,
            until=wanted.until,
            own_cut=wanted.own_cut,
            limit=wanted.limit(budget),
            crossing=wanted.crossing,
            subject=self.handle.about(gathered.head) or None,
        )

    async def _head_and_known(
        self, facts: bool | None, at: int | None = None, upto: int | None = None, calls: Collection[str] = ()
    ) -> tuple[HeadWithCalls, KnownFacts | None, bool]:
        """The head, the known facts (None where they are not shown), and whether there is more in the scope."""
        shows = self.handle.services.settings.facts if facts is None else facts
        space = None if self.recaller is None else self.recaller.space
        shows = shows and self.recaller is not None
        head, known, others = await self.handle.head_and_known(space, at, upto=upto, facts=shows, calls=calls)
        return head, known if shows and not self.handle.private(head) else None, others

    async def _with_facts(
        self, known: KnownFacts | None, request: ContextRequest, fitting: Fitting, missing: list[str]
    ) -> tuple[ContextRequest, FactsShown | None]:
        """The request with the facts to show, and what the manifest says of them. Adds "embedder" to `missing` where
        the vector to choose them by is unavailable."""
        if known is None or not len(known.ids):
            return request, None
        knowing = await self._knowing(known, request, fitting, missing)
        return (request, none_of(known)) if knowing is None else (knowing.known_to(request), knowing.says)

    async def _knowing(
        self, known: KnownFacts, request: ContextRequest, fitting: Fitting, missing: list[str]
    ) -> ShownFacts | None:
        """The facts to show: all if they fit, else those that bear most on what the user says; None where none fits."""
        share = int(request.budget * self.handle.services.settings.facts_share)
        size = _size(request, fitting.gathered)
        room = min(share, await aside(size, getattr, fitting, "room_beside"))
        every = all_of(self.handle, known, request, room)
        if every is not None or room <= 0:
            return every
        said = _said(request, fitting.gathered)
        vector = None
        if known.codes is not None and said:
            vector = await self._recaller.vector(said, self.handle.scope)
            missing += ["embedder"] if vector is None else []
        return chosen_facts(self.handle, known, request, room, FactsQuestion(said, vector))

    async def known(self, budget: int) -> str | None:
        """See `Conversation.known`."""
        head, known, _ = await self._head_and_known(None)
        if known is None or not len(known.ids):
            return None
        services = self.handle.services
        request = ContextRequest(
            incoming=(),
            instructions=None,
            budget=budget,
            reserve=0,
            counter=services.canonical,
            codec=services.codec(CHAT),
        )
        shown = await view_of(none(), head, opaque=False)
        said = await self._reader.newest_said(shown, head)
        fitting = Fitting(request, Gathered(view=shown, head=head, messages=said))
        knowing = await self._knowing(known, request, fitting, [])
        texts = () if knowing is None else (knowing.profile, knowing.ahead)
        return "\n\n".join([one for one in texts if one is not None]) or None

    @property
    def _recaller(self) -> Recaller:
        assert self.recaller is not None, "nothing is to be recalled without"
        return self.recaller

    @property
    def _reader(self) -> LogReader:
        return LogReader(self.handle)

    def _room_left(self, request: ContextRequest, made: Fitted) -> int:
        """The tokens that recalled content may take: what is left of the budget, up to the setting."""
        most = self.handle.services.settings.recall_max_tokens
        return request.room - made.total if most is None else min(request.room - made.total, most)

    def _set_aside(self, request: ContextRequest, fitting: Fitting, share: float | None) -> int:
        """The tokens that recalled content may take even where the budget cuts."""
        settings, whole = self.handle.services.settings, max(fitting.beside_rules, 0)
        aside = whole * (settings.recall_share if share is None else share)
        if share is None and _with_tools(request, fitting.gathered):
            aside = max(aside, min(aside * _AT_WORK, _ENOUGH))
        return int(min(aside, whole, settings.recall_max_tokens or whole))


def _with_tools(request: ContextRequest, gathered: Gathered) -> bool:
    """Whether an agent with tools asks: the request has some, or there are results of any."""
    return bool(request.tools or gathered.head.sums.results or any(one.answers for one in request.incoming))


def _said(request: ContextRequest, gathered: Gathered) -> str:
    """What the user said last; "" where there is nothing."""
    return question_of(request.incoming) or question_of([one.message for one in gathered.newest_said()])


def _is_reply(said: str) -> bool:
    """Whether it is too short to tell by itself what it is about, and no question."""
    return len(said) < _REPLY and not said.rstrip().endswith(("?", "？", "؟"))


def _today(request: ContextRequest, gathered: Gathered, zone: tzinfo) -> date:
    """The day on which the user said that, or now."""
    new = bool(question_of(request.incoming))
    said = [one.said_at for one in request.incoming if one.said_at is not None and one.role is Role.USER]
    said += [] if new else [one.said_at for one in gathered.newest_said()]
    return in_zone(said[-1] if said else datetime.now(UTC), zone).date()


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is to be recalled: by the request's options, from other conversations, and by the policy's renders."""

    options: RecallOptions | None
    crossing: CrossSession
    policy: Policy
    own_only: bool
    """Whether it may be recalled from the conversation itself only."""

    until: datetime | None
    """Nothing that came later is recalled."""

    own_cut: bool = True
    """Whether some of the conversation itself is not shown."""

    def limit(self, budget: int) -> int:
        """How many things are recalled at most."""
        given = None if self.options is None else self.options.limit
        return hits_within(budget) if given is None else given


def _missing(policy: Policy, head: Head) -> list[str]:
    """What the manifest names as missing: "digest" where one failed or was put off, "policy" where this process cannot
    read stages of the policy."""
    digests = [one for one in head.running if one.action is not DigestAction.FACTS]
    late = any(one.error is not None for one in digests) or (head.failures > 0 and not digests)
    digested = bool(policy.doing(DigestAction.SUMMARIZE, DigestAction.CHUNK, DigestAction.COMPACT))
    return (["digest"] if late and digested else []) + (["policy"] if isinstance(policy, UnreadablePolicy) else [])


def _without_erased_calls(incoming: Sequence[Message], head: HeadWithCalls) -> tuple[Message, ...]:
    """Without the results of calls that were erased, which no request can show."""
    erased = {call for call, one in head.open_calls.items() if any_in(head.erased, one.seq, one.seq)}
    return tuple(one for one in incoming if erased.isdisjoint(one.answers))
