"""Building a context within a budget: the view, and beside it facts, recalled passages and the "latest" digest."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from hitherto.aside import aside
from hitherto.core.context.fit import Assembled, assemble, reach
from hitherto.core.context.recalled import RecalledPiece
from hitherto.core.context.recalled_block import lead_tokens, with_recalled
from hitherto.core.context.request import ContextRequest
from hitherto.core.cross_session import CrossSession
from hitherto.core.facts.queries import KnownFacts
from hitherto.core.log.conversations import MessageRange
from hitherto.core.log.frontier import DigestAction
from hitherto.core.log.head import Head, HeadWithCalls
from hitherto.core.log.message import CHAT, Kind, Logged, size_of
from hitherto.core.policy.policy import Policy, UnreadablePolicy
from hitherto.core.policy.presets import none
from hitherto.core.policy.span import Fate, Reason
from hitherto.core.policy.view import View
from hitherto.engine.context.context import Context, begins_earlier, finished, tools_from
from hitherto.engine.context.facts import FactsQuestion, ShownFacts, all_of, none_of, share_of
from hitherto.engine.context.facts import chosen as chosen_facts
from hitherto.engine.context.injection import InjectedText, chosen
from hitherto.engine.context.log_reader import LogReader, view_of
from hitherto.engine.context.recalled import (
    Found,
    RecallOptions,
    RecallQuery,
    found,
    load_searches,
    question_of,
    recall_queries,
)
from hitherto.engine.handle import Handle
from hitherto.engine.recall.recall import Recaller

_CHARACTERS = 4
"""Of a token, about."""


@dataclass(frozen=True, slots=True)
class ContextBuilder:
    """Builds the contexts of one conversation. Reads only. Without a `recaller` nothing is recalled."""

    handle: Handle
    recaller: Recaller | None = None

    async def fitted(
        self,
        request: ContextRequest,
        policy: Policy | None,
        at: int | None,
        *,
        latest: InjectedText | None = None,
        recall: RecallOptions | Sequence[RecalledPiece] | Literal[False] | None = None,
        cross_session: CrossSession | None = None,
        facts: bool | ShownFacts | None = None,
        digest: bool = True,
    ) -> Context:
        """The context: one round trip for the head and the facts, one for the messages that can fit, one more where an
        opaque item or the digest of another conversation is shown, and one where something is recalled.

        `cross_session` is the request's own choice. `recall` are the request's options (None: the policy's), and
        `facts` is whether facts are shown (None: as the setting says). To rebuild a context, these are what it showed:
        `latest` its digest of another conversation, `recall` the recalled pieces, `facts` the facts, and `digest`
        whether there was room for what stands for the older part.
        """
        calls = {call for message in request.incoming for call in message.answers}
        head, known = await self._head_and_known(facts, at, calls)
        defaults = await self.handle.defaults(head)
        used, whose = self.handle.governing(head, policy, defaults)
        asked = cross_session or CrossSession()
        source = latest or await chosen(self.handle, head, asked, defaults)
        request = replace(request, injected=None if source is None else source.text)
        shown, request = await self._reader.seen(used, head, request)
        shown = shown if digest else replace(shown, digest=None, opaque=None)
        missing: list[str] = []
        knowing = facts if isinstance(facts, ShownFacts) else await self._knowing(known, request, shown, head, missing)
        if knowing is not None:
            request = request.knowing(knowing.text, ahead=knowing.ahead, room=knowing.room or request.facts_room)
            says = knowing.says
        else:
            says = None if known is None or not len(known.ids) else none_of(known)
        recalled = Found(pieces=tuple(recall)) if isinstance(recall, Sequence) else Found()
        options: RecallOptions | None = None
        queries: Sequence[RecallQuery] = ()
        # Where all is shown there is nothing to find, and no embedder to load.
        complete = False
        if recall is not False and not isinstance(recall, Sequence) and self.recaller is not None:
            options = recall or (RecallOptions(other_conversations=False) if used.recall else None)
            crossing = self.handle.crossing(head, asked, defaults)
            of_this = options is not None and not options.other_conversations
            complete = of_this and await aside(request.size, _shows_all, shown, head, request)
            now = None if complete else options
            queries = await self._recall_queries(request, used, shown, head, recall=now, crossing=crossing)
            if queries or options is not None or used.recalls:
                # Whatever the question: what is cut must not depend on it.
                request = replace(request, recall_tokens=self._set_aside(request, options))
        missing += [] if at is not None else _missing(used, head)
        unless_cut = options if complete else None
        request, made, newly = await self._with_searches(
            request, shown, head, at, queries=queries, unless_cut=unless_cut, missing=missing
        )
        recalled = newly or recalled
        mine = (self.handle.scope.agent, self.handle.id)
        made = with_recalled(made, recalled.pieces, request, own=mine, left_out=recalled.left_out)
        return await aside(
            request.size + _CHARACTERS * made.total,
            finished,
            request,
            made,
            shown=shown,
            head=head,
            policy=used,
            policy_from=whose,
            scope=self.handle.scope,
            conversation=self.handle.id,
            injected=None if source is None else source.says,
            facts=says,
            missing=missing,
        )

    async def _recall_queries(
        self,
        request: ContextRequest,
        used: Policy,
        shown: View,
        head: Head,
        *,
        recall: RecallOptions | None,
        crossing: CrossSession,
    ) -> Sequence[RecallQuery]:
        """The recall queries of this context; empty where nothing is to be recalled."""
        wanted = recall is not None or crossing.recalls or used.recalls
        if self.recaller is None or not wanted:
            return ()
        # Where no incoming message is a user's, the newest one in the log is the question.
        question = question_of(request.incoming) or question_of(await self._reader.newest_said(head))
        if not question:
            return ()
        subject = self.handle.about(head) or None
        return recall_queries(self.handle, used, shown, question, asked=recall, crossing=crossing, subject=subject)

    async def _with_searches(
        self,
        request: ContextRequest,
        shown: View,
        head: HeadWithCalls,
        at: int | None,
        *,
        queries: Sequence[RecallQuery],
        unless_cut: RecallOptions | None,
        missing: list[str],
    ) -> tuple[ContextRequest, Assembled, Found | None]:
        """As `_assembled`, with what the queries find; None where there are none. `unless_cut` are the options by which
        is searched only if not all is shown. What a search has loaded is held no longer than its turn."""
        async with self.handle.services.searches.late_turn() as turn:
            begun = asyncio.ensure_future(load_searches(self._recaller, queries, turn)) if queries else None
            try:
                request, made = await self._assembled(request, shown, head, at)
            except BaseException:
                if begun is not None:
                    begun.cancel()
                    await asyncio.wait([begun])  # the caller may close the memory next
                raise
            loaded = [] if begun is None else await begun
            if unless_cut and any(span.reason in (Reason.BUDGET, Reason.CALL_NOT_IN) for span in made.fates):
                # The request's own tokenizer counted more than the log's.
                own = await self._recall_queries(
                    request, none(), shown, head, recall=unless_cut, crossing=CrossSession()
                )
                queries, loaded = [*queries, *own], [*loaded, *await load_searches(self._recaller, own, turn)]
            if not queries:
                return request, made, None
            lead = lead_tokens(request, {one.why for one in queries})
            newly = await found(
                self.handle,
                self._recaller,
                queries,
                loaded,
                visible=[span for span in made.fates if span.fate is Fate.IN],
                room=self._room_left(request, made) - lead,
                reserved=request.recall_tokens - lead,
                count=request.counter.count,
                missing=missing,
            )
            return request, made, newly

    async def _assembled(
        self, request: ContextRequest, shown: View, head: HeadWithCalls, at: int | None
    ) -> tuple[ContextRequest, Assembled]:
        """The payload, and the request it was made for. Where facts or a digest did not fit, it is made again without
        them: a rebuild, which gets no such part, then gives the same bytes."""
        while True:
            start = await aside(request.size, reach, shown, head, request)
            reading = MessageRange(
                start=shown.start,
                stop=shown.stop,
                tokens=shown.layout.tokens_at(start.least),
                tools_from=tools_from(request, head, at),
                live_at=head.rev,
            )
            loaded = await self._loaded(request, shown, head, reading)
            size = request.size + head.size + size_of([one.message for one in loaded])
            made = await aside(size, assemble, shown, head, request, loaded, start)
            if request.facts is not None and not made.facts:
                request = request.knowing(None, ahead=False)
            elif request.injected is not None and not made.injection:
                request = replace(request, injected=None)
            elif start.digest and not made.digest:
                shown = replace(shown, digest=None, opaque=None)
            else:
                return request, made

    async def _head_and_known(
        self, facts: bool | ShownFacts | None, at: int | None, calls: Collection[str] = ()
    ) -> tuple[HeadWithCalls, KnownFacts | None]:
        """The head, and the known facts; None for these where they are not wanted."""
        services = self.handle.services
        shows = services.settings.facts if facts is None else facts is True
        space = None if self.recaller is None else self.recaller.space
        shows = shows and self.recaller is not None
        head, known = await self.handle.head_and_known(space, at, facts=shows, calls=calls)
        return head, known if shows else None

    async def _knowing(
        self, known: KnownFacts | None, request: ContextRequest, shown: View, head: Head, missing: list[str]
    ) -> ShownFacts | None:
        """The facts to show: all if they fit, else those that bear most on what the user says; None where there are
        none, or none fits. Adds "embedder" to `missing` where the vector to choose them by is unavailable."""
        if known is None or not len(known.ids):
            return None
        room = await aside(request.size, share_of, self.handle, request, shown)
        every = all_of(self.handle, known, request, room)
        if every is not None or room <= 0:
            return every
        said = question_of(request.incoming) or question_of(await self._reader.newest_said(head))
        vector = None
        if known.codes is not None and said:
            vector = await self._recaller.vector(said, self.handle.scope)
            missing += ["embedder"] if vector is None else []
        question = FactsQuestion(said, vector)
        return chosen_facts(self.handle, known, request, room, question)

    async def known(self, budget: int) -> str | None:
        """See `Conversation.known`."""
        head, known = await self._head_and_known(None, None)
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
        knowing = await self._knowing(known, request, shown, head, [])
        return None if knowing is None else knowing.text

    async def _loaded(self, request: ContextRequest, shown: View, head: Head, reading: MessageRange) -> list[Logged]:
        loaded: list[Logged] = []
        if reading.start < reading.stop or reading.tools_from is not None:
            loaded = await self._reader.messages(head, reading)
        if not request.incoming and begins_earlier(loaded, shown.start, head):
            latest = await self._reader.newest_group(shown, head)
            if latest is not None:
                # `tools_from` reads no texts.
                texts = [one.sums.tokens for one in latest.members if one.message.kind in (Kind.TEXT, Kind.COMPACTION)]
                reading = replace(reading, tokens=min([reading.tokens, *texts]), tools_from=latest.first)
                loaded = await self._reader.messages(head, reading)
        return loaded

    @property
    def _recaller(self) -> Recaller:
        assert self.recaller is not None, "nothing is to be recalled without"
        return self.recaller

    @property
    def _reader(self) -> LogReader:
        return LogReader(self.handle)

    def _room_left(self, request: ContextRequest, made: Assembled) -> int:
        """The tokens that recalled content may take: what is left of the budget, up to the setting."""
        most = self.handle.services.settings.recall_max_tokens
        return request.room - made.total if most is None else min(request.room - made.total, most)

    def _set_aside(self, request: ContextRequest, recall: RecallOptions | None) -> int:
        share = None if recall is None else recall.share
        return int(request.budget * (self.handle.services.settings.recall_share if share is None else share))


def _shows_all(shown: View, head: Head, request: ContextRequest) -> bool:
    """Whether the budget has room for the whole conversation, none of it digested or dropped."""
    whole = shown.layout.place(shown.layout.start_sums.tokens)
    complete = shown.layout.start == head.view_start and not shown.layout.redactions
    return complete and reach(shown, head, request).tokens <= whole


def _missing(policy: Policy, head: Head) -> list[str]:
    """What the manifest names as missing: "digest" where one failed or was put off, "policy" where this process cannot
    read stages of the policy."""
    late = any(one.error is not None for one in head.running) or (head.failures > 0 and not head.running)
    digested = bool(policy.doing(DigestAction.SUMMARIZE, DigestAction.CHUNK, DigestAction.COMPACT))
    return (["digest"] if late and digested else []) + (["policy"] if isinstance(policy, UnreadablePolicy) else [])
