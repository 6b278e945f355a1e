"""Conversation: append to it, build its contexts, configure, rewind and delete it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, cast

from hitherto.aside import aside, weight
from hitherto.core.changes import Changes
from hitherto.core.context.budget import checked_budget
from hitherto.core.context.expansion import Expansion
from hitherto.core.context.manifest import KeptContext, Manifest
from hitherto.core.context.request import ContextRequest
from hitherto.core.cross_session import CrossSessionLike, RecallFrom, cross_session_of, with_recall
from hitherto.core.digests.digest import Digest
from hitherto.core.documents import metadata_json
from hitherto.core.facts.queries import AddedFact
from hitherto.core.log.append import checked_ids, checked_ttl, id_is_known
from hitherto.core.log.branch import Branch
from hitherto.core.log.conversations import ConversationInfo, MessageRange
from hitherto.core.log.frontier import DigestAction
from hitherto.core.log.head import Head, LatestDigest, check_retractable, empty
from hitherto.core.log.message import (
    CHAT,
    RESPONSES,
    Logged,
    Message,
    Payload,
    Role,
    Wire,
    check_item,
    checked_id,
    storable,
    to_json,
)
from hitherto.core.log.ranges import clipped, joined
from hitherto.core.log.title import checked_title
from hitherto.core.log.transcript import LogPage, Transcript, TranscriptEntry
from hitherto.core.policy.policy import Policy, policy_json
from hitherto.core.policy.presets import PolicyLike
from hitherto.core.policy.view import View
from hitherto.core.scope import Scope, checked_name
from hitherto.engine.arguments import (
    check_key,
    checked_limit,
    checked_list,
    checked_revision,
    checked_switch,
    checked_wait,
    checked_words,
)
from hitherto.engine.context.build import ContextBuilder
from hitherto.engine.context.context import Context
from hitherto.engine.context.expand import Expandable, expanded
from hitherto.engine.context.injection import chosen, earlier_than
from hitherto.engine.context.rebuild import keep, keeps, rebuilt
from hitherto.engine.context.recalled import RecallOptions, recall_options_of
from hitherto.engine.context.view import ViewBuilder, items_within
from hitherto.engine.digests.fire import committed, fired, refire
from hitherto.engine.facts.forget import ForgottenFact, forget
from hitherto.engine.facts.remember import remember
from hitherto.engine.handle import Handle, check_unchanged
from hitherto.engine.log.append import AppendResult, Place, append
from hitherto.engine.log.branch import branches, fork, switch
from hitherto.engine.log.erase import erase_messages
from hitherto.engine.log.rewind import Rewinder, cleared
from hitherto.engine.purge import purge
from hitherto.engine.recall.recall import Recaller
from hitherto.engine.services import Services
from hitherto.engine.turn import Partial, Turn
from hitherto.engine.turn_retry import TurnProgress, retried
from hitherto.errors import InvalidBatch, InvalidInput, InvalidMessage, NotFound

Appendable = Message | Mapping[str, Any]

_MOST = 1_000
"""Messages of a page: to make them of their rows takes some 20 ms of the event loop."""


class Conversation:
    """One conversation in a scope. The object is cheap to make and holds no connection; its first append or `configure`
    creates the conversation in the store."""

    def __init__(
        self,
        services: Services,
        id: str,
        *,
        scope: Scope,
        policy: PolicyLike | None = None,
        subject: str | None = None,
        remember: bool | None = None,
        recaller: Recaller | None = None,
    ) -> None:
        self._services, self._recaller = services, recaller
        self._policy = services.usable(policy)
        self.id = checked_name(id, "conversation")
        self.scope = Scope.checked(scope)
        about = None if subject is None else checked_name(subject, "subject")
        remember = None if remember is None else checked_switch(remember, "remember")
        self._handle: Handle = Handle(services, self.scope, self.id, self._policy, about, remember)

    def __repr__(self) -> str:
        return f"<Conversation {self.id!r} of {self.scope}>"

    async def append(
        self,
        *messages: Appendable,
        key: str | None = None,
        expect: int | None = None,
        at: int | None = None,
        unchanged_since: int | None = None,
        wire: Wire | None = None,
        policy: PolicyLike | None = None,
        budget: int | None = None,
        skip_known: bool = False,
    ) -> AppendResult:
        """Append the messages, all or none, and start the digests that the policy says are due.

        The messages are durable when this returns. `key` makes it idempotent: a second call with the same key and
        messages returns the first result and writes nothing; the key is remembered for the setting `keep_receipts`.
        `expect` is the seq that the first message must get, for writers that must not interleave. With `at`, the batch
        takes the place of what follows message `at`, as a `rewind` to there and an append would, but both or none of
        it is done. `unchanged_since` is a revision since which no message may have come, gone or been erased. `wire`
        names the format of messages given as dicts; without it, their shape tells. `policy` governs this append alone;
        without it, the conversation's policy does. `budget` is that of the contexts that are made of the conversation,
        which decides with some policies what is due; the default is the setting `budget`.

        A message may have an `id` of the application's or an API's, in its dict or by `Message.with_id`, which no other
        one of the conversation has or had: those that were taken back or erased count too. With `skip_known`, messages
        whose id is there already are left out, so that an import can be repeated; those without an id are always
        appended.

        Raises InvalidMessage and InvalidBatch for what cannot be appended, IdempotencyKeyReused for a key that was used
        with other messages, Conflict for an id that is there already, ConcurrentWrite when `expect` or
        `unchanged_since` does not hold, InvalidInput for an `at` to which the conversation cannot be rewound, or that
        comes with `skip_known`; nothing is written then.
        """
        skips = checked_switch(skip_known, "skip_known")
        if skips and at is not None:
            raise InvalidInput(
                "at and skip_known do not go together: what follows may be what is skipped; leave one out"
            )
        place = Place(expect=expect, at=_seq(at, "at"), since=checked_revision(unchanged_since, "unchanged_since"))
        batch = await self._services.read_messages(messages, wire)
        if not batch:
            raise InvalidBatch("the batch is empty; append at least one message")
        check_key(key)
        most = None if budget is None else checked_budget(budget, 0)[0]
        handle, governing = replace(self._handle, budget=most), self._services.usable(policy)
        appended = await append(handle, batch, key=key, place=place, request=governing, skip_known=skips)
        if appended.end >= appended.start:
            self._go_by_what_is_stored()
        return appended

    def turn(
        self,
        question: str | Appendable | Sequence[Appendable] | None = None,
        *,
        at: int | None = None,
        expect: int | None = None,
        question_first: bool = False,
        key: str | None = None,
        partial: Partial = "keep",
        budget: int | None = None,
        instructions: str | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
        reserve: int = 0,
        wire: Wire = CHAT,
        model: str | None = None,
        policy: PolicyLike | None = None,
        recall: RecallOptions | RecallFrom | int | bool | None = None,
        cross_session: CrossSessionLike | None = None,
        facts: bool | None = None,
        wait: bool | float = False,
        join_neighbors: bool | None = None,
    ) -> Turn:
        """One turn: `async with chat.turn(question) as turn` gives the request for the model, takes its answer whole or
        as a stream, and appends both together when the block ends. Where the model calls tools, each step (the calls
        and their results, with the question before the first) is appended before the next request, so that what tools
        have done is in the log if the process dies. See `Turn`.

        Without a `question`, what the log ends with is answered: a user's message, or results. With `question_first`,
        the question is appended when the block begins, so that it is kept whatever becomes of the answer; a later
        `turn()` without a question answers it.

        `at` is the seq of a message, and the turn goes on from there as if it was the last: `turn(at=seq)` answers that
        message anew, and `turn(question, at=seq)` asks something else behind it (-1: at the beginning). What follows it
        is replaced when the answer is complete, and not before: with an error, a cancellation or a stream that breaks
        off, nothing changed. Until then, steps are kept in this process only.

        `expect` is a revision since which no message may have come, gone or been erased, as the page knows that the
        user looks at: ConcurrentWrite is raised at the beginning, or at the end if it happened in between.

        `key` makes the turn idempotent: a retry of an answered one has the stored answer, is `done` at once, and writes
        nothing; a retry of one with steps goes on from them, or asks the question again if something was said since. If
        the block ends by an exception or a cancellation before the answer is there, or the stream breaks
        off, the question stays with what came, marked in the metadata as `"partial": true`, without tool calls that
        have no result, and sets off nothing; with `partial="drop"`, and where nothing came, nothing stays but the steps
        before. A retry with the same `key` takes such a rest back first, if nothing was said since.

        The other parameters are those of `context`, for each request of the turn. Raises InvalidInput and what
        `context` and `append` raise; at the beginning of the block IdempotencyKeyReused for a key that was used for
        another question or without an answer, and NotFound if the answer was erased.
        """
        at, expect = _seq(at, "at"), checked_revision(expect, "expect")
        first = checked_switch(question_first, "question_first")
        asked = list(_listed(question, "question"))
        for one in asked:
            check_item(one)
        asked = [self._services.read(message) for message in asked]
        checked_ids(asked, skip_known=False)
        if question is not None and not asked:
            raise InvalidInput("the turn has no question; give a text, a message, several, or None to answer the log")
        governing = self._services.usable(policy)

        async def contexts(incoming: Sequence[Message]) -> Context:
            return await self.context(
                incoming,
                budget=budget,
                instructions=instructions,
                tools=tools,
                reserve=reserve,
                wire=wire,
                model=model,
                policy=governing,
                recall=recall,
                cross_session=cross_session,
                facts=facts,
                upto=at,
                wait=wait,
                join_neighbors=join_neighbors,
            )

        async def append(
            batch: Sequence[Message], key: str | None, other: Policy | None, since: int | None
        ) -> AppendResult:
            governs = other or governing
            return await self.append(*batch, key=key, policy=governs, budget=budget, at=at, unchanged_since=since)

        return Turn(
            asked,
            scope=self.scope,
            conversation=self.id,
            formats=self._services,
            wire=wire,
            model=model,
            key=key,
            partial=partial,
            at=at,
            expect=expect,
            question_first=first,
            contexts=contexts,
            append=append,
            retry=self._retry,
            check=self._check_turn,
        )

    async def _check_turn(self, at: int | None, expect: int | None, *, question: Sequence[Message]) -> None:
        """Raises ConcurrentWrite where the messages changed since `expect`, Conflict for a question whose id is there
        already, and InvalidInput where nothing is there to be answered by a turn that asks nothing."""
        if expect is not None or at is not None:
            head = await self.head() or empty(datetime.now(UTC))
            check_unchanged(head, expect, self.id)
            if at is not None and at < head.last_seq:
                check_retractable(head)
        for one in question:
            if one.id is not None and (known := await self.get(one.id)) is not None:
                raise id_is_known(one.id, known.seq, self.id)
        if question:
            return
        if at is None:
            head = await self.head()
            if head is None or head.closed or head.next_seq == head.view_start:
                last = next(iter((await self.transcript(limit=1)).entries), None)
                if last is not None and last.partial and last.at is not None:
                    raise InvalidInput(
                        f"{self.id!r} ends with an answer that broke off: at={last.at} answers anew, or retry its turn "
                        "with the same key"
                    )
                raise InvalidInput(
                    f"{self.id!r} ends with an answer, or is empty: there is nothing to answer. Give the question, or "
                    "at=… with the seq of the message to be answered anew"
                )
            return
        there = [] if at < 0 else await self.messages(start=at, stop=at + 1)
        shown = [one for one in there if one.retracted_rev is None and not one.erased]
        if not shown or shown[0].message.role is Role.ASSISTANT:
            raise InvalidInput(
                f"at is {at}, which is no message of {self.id!r} to be answered; give the seq of a user's message or "
                "of a result that is shown, or a question too"
            )

    async def _retry(self, question: Sequence[Message], key: str) -> TurnProgress | None:
        """What turns with this key and this question have appended: see `Turn`. None if nothing; what one left when it
        broke off is taken back, if nothing was said since. Raises IdempotencyKeyReused if the key was used
        for another question or without an answer, NotFound if its answer was erased."""
        check_key(key)
        if not key:
            raise InvalidInput("a retry is found by its key; give one")
        return await retried(self._handle, question, key)

    def _go_by_what_is_stored(self) -> None:
        handle = self._handle
        if (self._policy, handle.subject, handle.remember) != (None, None, None):
            self._policy, self._handle = None, replace(handle, policy=None, subject=None, remember=None)

    async def context(
        self,
        incoming: str | Appendable | Sequence[Appendable] | None = None,
        *,
        budget: int | None = None,
        instructions: str | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
        reserve: int = 0,
        wire: Wire = CHAT,
        model: str | None = None,
        policy: PolicyLike | None = None,
        recall: RecallOptions | RecallFrom | int | bool | None = None,
        cross_session: CrossSessionLike | None = None,
        facts: bool | None = None,
        at: int | None = None,
        upto: int | None = None,
        wait: bool | float = False,
        join_neighbors: bool | None = None,
    ) -> Context:
        """The best context for `incoming` that fits into `budget` tokens. Nothing is appended and no digest is started.
        `incoming` is a message, several, or the text of a user message.

        `budget` covers everything that is sent, `tools` and `instructions` included, and `reserve` tokens kept free for
        the answer; the default is the setting `budget`. `wire` is the API's format: "openai.chat", "openai.responses"
        or "anthropic". Tokens are counted with the tokenizer of `model` (a model or an encoding), by default with the
        setting `encoding`; `model` also decides which opaque items can be sent, and whether OpenAI's APIs take cache
        breakpoints. `policy`, an object or its name, governs this context alone.

        `recall` searches for what bears on the incoming message and is not shown, and puts it in front of that message:
        "scope" (or True) in this and the scope's other conversations and its user's documents, "own" in this one; a
        number of hits or a `RecallOptions` says more; "off" (or False) recalls nothing. By default the conversation's
        value applies, then its agent's, then the setting, then the policy: `balanced` recalls from the scope, others
        recall nothing. `cross_session` says how else the
        scope's other conversations are shown: "latest" (their newest digest, in the instructions), "triggers" and
        "always" (what is relevant in them, in front of the messages; with "triggers" only if the incoming message has
        one of the setting `search_triggers`). Give several of these, or `()` for none, or a `CrossSession`, which
        may have phrases and a threshold of its own; the default is the conversation's value, then its agent's, then
        the setting. A policy that renders what is recalled, such as
        `chunks`, needs neither. `facts` says whether the known facts about the conversation's subject are shown. The
        default is the setting `facts`; other settings say where facts stand and how much of the budget they may take.

        `at` shows the conversation as it was at that revision, without what was said elsewhere since (at its newest:
        all as it is now), `upto` as if message `upto` (a seq; -1 for none) was its last. `wait` lets a digest in
        progress finish first, for at most that many seconds (True: 30; a day at most); a digest that was put off for a
        later try is not waited for.

        `join_neighbors` makes one chat message of neighbors of one role, and of all system messages, for models whose
        chat template wants user and assistant in turns. The default is the setting `join_neighbors`, which is on where
        the provider is a server of one's own. The other formats have no need of it.

        Raises BudgetExceeded when not even the incoming messages fit, InvalidMessage or InvalidBatch for an unusable
        `incoming`, NotFound for a revision that does not exist, InvalidInput for an `upto` to which the conversation
        could not be rewound. A conversation that does not exist yet is empty.
        """
        budget, reserve = checked_budget(self._services.settings.budget if budget is None else budget, reserve)
        instructions, model = checked_words(instructions, "instructions"), checked_words(model, "model")
        instructions = None if instructions is None else storable(instructions)
        at, upto = checked_revision(at), _seq(upto, "upto")
        keeping = at is None and keeps(self._handle)
        asked = at = at if upto is None else await self._handle.ending_at(upto, at)
        if upto is None and at is not None and at == (await self._handle.head()).rev:
            at = None
        codec, settings = self._services.codec(wire), self._services.settings
        joins = None if join_neighbors is None else checked_switch(join_neighbors, "join_neighbors")
        joins = settings.joins_neighbors if joins is None else joins
        codec = codec.joining() if joins else codec
        request = ContextRequest(
            incoming=await self._services.read_messages(_listed(incoming)),
            instructions=instructions,
            budget=budget,
            reserve=reserve,
            counter=self._services.counter(model),
            codec=codec,
            model=model or settings.encoding,
            family=self._services.family(model),
            join_neighbors=joins,
            upto=upto,
            cache_breakpoints=settings.cache_breakpoints and codec.takes_breakpoints(model),
        )
        tools = [] if cast(object, tools) is None else checked_list(tools, "tools", "tool schemas")
        schemas = _schemas(tools)
        request = await aside(sum(map(len, schemas)), request.with_tools, tools, schemas)
        governing, recall_options = self._services.usable(policy), recall_options_of(recall)
        crossing = cross_session_of(cross_session)
        facts = None if facts is None else checked_switch(facts, "facts")
        if wait := checked_wait(wait):
            await wait_for_digests(self, wait)
        scope, watch, began = self._handle.scope, self._services.watch, time.perf_counter()
        with watch.span("context", tenant=scope.tenant, conversation=self._handle.id, budget=budget) as span:
            build = partial(
                ContextBuilder(self._handle, self._recaller).build,
                request,
                governing,
                recall=recall_options,
                cross_session=crossing,
                facts=facts,
            )
            made = await build(at)
            if asked not in (None, made.manifest.rev):  # it was the newest when this began, and is not any more
                made = await build(asked)
            span.set(tokens=made.tokens, rev=made.manifest.rev, missing=" ".join(made.manifest.missing))
        watch.context_built(seconds=time.perf_counter() - began)
        if keeping:
            await keep(self._handle, made.manifest, request.incoming)
        return made

    async def contexts(self, *, before: int | None = None, limit: int = 20) -> list[KeptContext]:
        """The contexts of this conversation that were kept, the newest first, at most `limit`; those before the id
        `before`. Where they are large, they are fewer, but at least one: the next page is that before the last one's
        id. `rebuild` makes one again from its manifest.

        Contexts are kept where the settings `keep_contexts` or `keep_contexts_for` say so: those that `context` and
        `turn` made, and the items that runs of an SDK asked their session for. One that showed a message that is erased
        goes with it. Raises InvalidInput for an unusable `limit` or `before`.
        """
        limit = checked_limit(limit)
        if before is not None:
            before = checked_limit(before, minimum=0, most=2**62, name="before")
        await self._handle.head()  # erases what has expired
        return await self._services.store.contexts.kept(self.scope, self.id, before=before, limit=limit)

    def _follow(self, other: Conversation) -> None:
        """Go by what `other`, which was made alike, goes by now: what is stored, if it has appended already."""
        self._policy, theirs = other._policy, other._handle
        self._handle = replace(self._handle, policy=theirs.policy, subject=theirs.subject, remember=theirs.remember)

    async def rebuild(self, manifest: Manifest) -> Context:
        """Build the context of `manifest` again, byte for byte.

        Raises InvalidInput for a manifest of another conversation, NotReproducible when something that the context
        showed was erased since.
        """
        return await rebuilt(self._handle, manifest)

    async def view(self, *, at: int | None = None, policy: PolicyLike | None = None) -> View:
        """The log as the policy leaves it, before any budget, now or at a past revision. Raises NotFound for a
        revision that does not exist."""
        return await ViewBuilder(self._handle).view(self._services.usable(policy), checked_revision(at))

    async def items(
        self,
        *,
        wire: Wire = RESPONSES,
        policy: PolicyLike | None = None,
        model: str | None = None,
        limit: int | None = None,
        at: int | None = None,
        budget: int | None = None,
        sent: bool = False,
    ) -> list[Payload]:
        """The view as the items of an API: first what stands for the older part, then the messages in the order of the
        log, with placeholders where they are redacted. `limit`: only that many of the newest items, of which the first
        may be the result of a call before them.

        They are for a framework to make a request of. What an API does not take back is mended, but items keep their
        own ids, and a call without a result stays without one.

        With `budget`, at most so many tokens of them, counted as `model` does: the oldest groups give way, and what
        stands for the older part goes last. `sent` says that a model is sent them: they are kept, as contexts are,
        where the settings say so. Both are for OpenAI's Responses alone.

        Raises InvalidInput for a negative limit and for another API, InvalidBudget, NotFound for a revision that does
        not exist.
        """
        if limit is not None and (not isinstance(cast(object, limit), int) or limit < 0):
            raise InvalidInput(f"limit is {limit!r}; give a whole number of at least 0")
        most = None if budget is None else checked_budget(budget, 0)[0]
        at, model = checked_revision(at), checked_words(model, "model")
        if wire != RESPONSES and (sent or most is not None):
            raise InvalidInput(f"wire is {wire!r}; give budget and sent with {RESPONSES!r} alone")
        governing, keeping = self._services.usable(policy), sent and at is None and keeps(self._handle)
        if most is None and not keeping:
            return await ViewBuilder(self._handle).items(wire=wire, policy=governing, model=model, limit=limit, at=at)
        items, manifest = await items_within(most, self._handle, policy=governing, model=model, limit=limit, at=at)
        if keeping and manifest is not None:
            await keep(self._handle, manifest)
        return items

    async def injected(self, *, cross_session: CrossSessionLike | None = None) -> str | None:
        """The digest of another conversation of the scope that goes into this one's instructions ("latest" of
        `cross_session`), as text that begins with "Cross-session memory: "; None where it is switched off or there is
        none."""
        await purge(self._services, self.scope.tenant)
        head = await self._handle.head()
        asked = cross_session_of(cross_session)
        source = await chosen(self._handle, head, asked, await self._handle.defaults(head))
        return None if source is None else source.text

    async def known(self, *, budget: int | None = None) -> str | None:
        """The known facts about the conversation's subject, as text for the instructions of a request that `context`
        does not build. It begins with "Known facts about"; None where there are no facts, none fits, or the setting
        `facts` is off.

        It takes at most the share `facts_share` (a setting) of `budget` tokens; the default is the setting `budget`.
        Where not all facts fit, those that bear most on the newest user message in the log are chosen.
        """
        limit, _ = checked_budget(self._services.settings.budget if budget is None else budget, 0)
        return await ContextBuilder(self._handle, self._recaller).known(limit)

    async def info(self) -> ConversationInfo | None:
        """What lists show of the conversation: its title, metadata, dates and counts; None if it does not exist."""
        return await self._services.store.info(self.scope, self.id)

    async def head(self) -> Head | None:
        """The conversation's state, or None before its first append."""
        return await self._services.store.head(self.scope, self.id)

    async def policy(self, *, default: PolicyLike | None = None) -> Policy:
        """The policy that governs a request that names none; where nothing names one either, `default` in place of
        `balanced`. Raises InvalidPolicy."""
        otherwise = self._services.usable(default)
        head = await self._handle.head()
        found, whose = self._handle.governing(head, None, await self._handle.defaults(head))
        return found if otherwise is None or whose != "default" else otherwise

    async def messages(self, *, start: int = 0, stop: int | None = None, limit: int | None = None) -> list[Logged]:
        """The log from seq `start` to `stop` (exclusive), at most its first `limit` messages. By default it is the
        whole log, with the messages that were cleared, retracted or digested. Raises InvalidInput for a negative
        number."""
        head, reading = await self._reading(start, stop, limit)
        return await self._services.store.messages(self.scope, self.id, head.ref, reading)

    async def log_page(self, *, start: int = 0, stop: int | None = None, limit: int | None = None) -> LogPage:
        """The first of the messages that `messages` gives: at most 1,000, and at most 4 MB, or one that is larger.
        Raises InvalidInput for a negative number."""
        head, reading = await self._reading(start, stop, limit)
        reading = replace(reading, limit=_MOST if limit is None else min(limit, _MOST))
        page = await self._services.store.page(self.scope, self.id, head.ref, reading)
        next_seq = page[-1].seq + 1 if page else reading.stop
        return LogPage(messages=page, next=next_seq if next_seq < reading.stop else None)

    async def get(self, message: int | str) -> Logged | None:
        """One message of the log by its seq or its id, whatever became of it; None if there is none. An erased one has
        no id any more, but is still found by it. Raises InvalidInput for what is neither."""
        seq: int | None
        if isinstance(message, str):
            await self._handle.head()  # erases what has expired
            seq = await self._services.store.seq_of(self.scope, self.id, checked_id(message))
        else:
            seq = checked_limit(message, minimum=0, most=2**62, name="message")
        found = [] if seq is None else await self.messages(start=seq, stop=seq + 1)
        return found[0] if found else None

    async def transcript(self, *, before: int | None = None, limit: int = 50) -> Transcript:
        """What users see of the conversation, for a page: the newest `limit` (1 to 1,000) messages of users and final
        answers of assistants that are shown, in their order; with `before`, those before that seq. What was cleared,
        taken back or replaced, and what has expired or was erased, is left out. Raises InvalidInput."""
        limit = checked_limit(limit)
        before = None if before is None else checked_limit(before, minimum=0, most=2**62, name="before")
        rev, found = await self._services.store.transcript(self.scope, self.id, before=before, limit=limit)
        entries, asked = list[TranscriptEntry](), None
        for one, way in reversed(found):
            entries.append(self._entry(one, way, asked))
            asked = one.seq if one.message.role is Role.USER else None
        more = len(found) > limit
        return Transcript(entries=tuple(entries[more:]), rev=rev, before=entries[1].seq if more else None)

    def _entry(self, one: Logged, way: Sequence[int | None], asked: int | None) -> TranscriptEntry:
        codec, (first, place, ways, earlier, later, follows) = self._services.codec(one.message.wire), way
        return TranscriptEntry(
            seq=one.seq,
            role=one.message.role,
            text=codec.spoken(one.message),
            said_at=one.said_at,
            attachments=tuple(codec.attachments(one.message)),
            partial=one.message.raw_metadata != "{}" and one.message.metadata.get("partial") is True,
            at=follows if one.message.role is Role.USER else asked,
            branch=place or 1,
            branches=ways or 1,
            branch_seq=first if (ways or 1) > 1 else None,
            earlier=earlier,
            later=later,
            id=one.message.id,
        )

    async def _reading(self, start: int, stop: int | None, limit: int | None) -> tuple[Head, MessageRange]:
        start = checked_limit(start, minimum=0, most=2**62, name="start")
        stop = None if stop is None else checked_limit(stop, minimum=0, most=2**62, name="stop")
        limit = None if limit is None else checked_limit(limit, minimum=0, most=2**62)
        head = await self._handle.head()
        end = head.next_seq if stop is None else min(stop, head.next_seq)
        most = None if limit is None else min(limit, head.next_seq)
        return head, MessageRange(start=min(start, end), stop=end, limit=most)

    async def expand(self, what: Expandable, *, budget: int = 2_000) -> Expansion:
        """The messages of a digest or a range word for word, oldest first, as many as fit into `budget` tokens
        (o200k_base): what was digested, redacted, dropped or cut is read as it was said.

        `what` is a digest of this conversation or its id, a span of a manifest, or the seqs of the first and the last
        message, both inclusive. `Expansion.next` goes on where the budget ended. What was retracted, cleared or erased,
        or has expired, is not shown, nor is a turn in which an agent was asked to forget something.

        Raises InvalidInput for anything else, NotFound for a digest that this conversation does not have, InvalidBudget
        for a budget in which nothing can be shown.
        """
        return await expanded(self._handle, what, budget)

    async def remember(self, content: str, *, category: str | None = None) -> AddedFact:
        """Keep a fact about the conversation's subject that its agent has learned in the running turn: private, not
        confirmed, until a person does so.

        It rests on the user's message that began the turn: the newest one in the log, or, where the log ends with an
        answer or is empty, the message that is appended next. What becomes of that message becomes of the fact. Where
        the same statement is current already, that fact was said again.

        An agent remembers at most 5 facts a turn, and 50 of one user within 24 hours. Raises InvalidFact beyond that,
        for an unusable content, where the message was erased, and in a private conversation.
        """
        return await remember(self._handle, content, category)

    async def forget(self, fact: int, *, mentions: bool = False) -> ForgottenFact:
        """Forget one of the user's own facts for good, as the agent is asked to in the running turn: the fact itself,
        confirmed or not, those that it had replaced, and the messages that say them, in any conversation of the scope:
        they are erased, as `erase` does it, with what has a word of these facts in the rest of their turns. Other facts
        that these messages say stay, without them.

        What else may mention it stays, and is named in the answer (`mentions`): what repeats it may be about somebody
        else. No fact is learned from it any more. With `mentions`, it is erased too, now or by another call for the
        same fact. A private conversation names, and erases of these, its own messages.

        The running turn, or where the log ends with an answer the next, stays in this conversation, as it may not be
        answered yet: from now on no search finds, and no digest and no fact is made of, what is said in it, or in
        messages of the user beside it that get the same answer. An agent calls this at most 5 times a turn, and 50
        times within 24 hours for one user: InvalidFact beyond that. Raises NotFound for a fact that is not the user's
        own, and without `mentions` for one that is deleted. One that was cut off is done by another call.
        """
        also = checked_switch(mentions, "mentions")
        return await forget(self._handle, self._recaller, fact, mentions=also)

    async def digests(self, *, after: int | None = None, limit: int = 1_000) -> list[Digest]:
        """One row for every firing, in the order in which they began, failed and superseded ones and clears too: at
        most `limit` (1 to 1,000), those after the id `after`. Where they are large, they are fewer, but at least one:
        the next page is that after the last one's id, until one is empty. Raises InvalidInput for an unusable `limit`
        or `after`."""
        limit = checked_limit(limit)
        after = 0 if after is None else checked_limit(after, minimum=0, most=2**62, name="after")
        await self._handle.head()  # erases what has expired
        return await self._services.store.digests(self.scope, self.id, after=after, limit=limit)

    async def configure(
        self,
        *,
        policy: PolicyLike | None = None,
        recall: RecallFrom | bool | None = None,
        cross_session: CrossSessionLike | None = None,
        subject: str | None = None,
        remember: bool | None = None,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        ttl: timedelta | None = None,
        create: bool = False,
    ) -> None:
        """Store the conversation's policy, where its contexts recall from (`recall`: "scope" or True, "own", "off" or
        False), how else the scope's other conversations are shown in it (`cross_session`, see `context`), the `subject`
        of the facts learned from it from now on ("": the user), and what lists show of it: its `title` ("": made of the
        first user message) and its `metadata`, a JSON object in place of the one before.

        `ttl` (time to live) is how long messages are kept that are appended from now on and have no expiry of their
        own; zero means for ever. Where it is not set, the agent's applies, then the tenant's, then the setting `ttl`.

        With `remember=False` the conversation is private: from then on it leaves nothing to others and reads nothing of
        them (see `Memory.conversation`). Facts that were learned from it before stay.

        What is not given stays as it is; with `policy=""` the conversation has none, and its agent's applies.

        With `create`, a conversation that does not exist yet is created; without, it is NotFound, for its name may be
        mistyped. What is stored here also replaces what this object was created with. If "latest" is switched on for a
        conversation that began without it, the newest digest of the scope's other conversations is chosen now. Raises
        InvalidPolicy, and InvalidInput for an unusable title, metadata, `recall`, `cross_session` or `ttl`.
        """
        goes = policy == ""
        chosen_policy = None if goes else self._services.usable(policy)
        about = subject if not subject else checked_name(subject, "subject")
        crossing = with_recall(cross_session_of(cross_session), recall)
        shown = checked_title(title)
        described = None if metadata is None else await aside(weight(metadata), metadata_json, metadata)
        kept = checked_ttl(ttl)
        remember = None if remember is None else checked_switch(remember, "remember")
        earlier = await earlier_than(self._handle) if crossing.latest else None
        create = checked_switch(create, "create")
        async with self._services.store.write(self.scope, self.id) as unit:
            head = unit.head
            if unit.new and not create:
                raise NotFound(f"there is no conversation {self.id!r} in scope {self.scope}; create=True creates it")
            after = replace(
                head,
                policy=None if goes else policy_json(chosen_policy) or head.policy,
                cross_session=crossing.over(head.cross_session),
                subject=head.subject if about is None else about,
                private=head.private if remember is None else not remember,
            )
            if earlier is not None and head.next_seq and head.latest.digest is None:
                after = replace(after, latest=LatestDigest(digest=earlier.digest))
            await unit.commit(Changes(head=after, title=shown, metadata=described, ttl=kept))
        if goes or chosen_policy is not None:
            self._policy, self._handle = None, replace(self._handle, policy=None)
        if about is not None:
            self._handle = replace(self._handle, subject=None)
        if remember is not None:
            self._handle = replace(self._handle, remember=None)

    async def finish(self) -> int | None:
        """The conversation is over: digest what is left of it, by the stages of its policy that summarize or chunk, and
        read it for facts, by those that find them, whatever their triggers say. Later appends go on normally. A tool
        call of the last three turns that has no result yet is not digested, nor is what comes after its turn began:
        append its result first. One that is never finished is read for facts when it rests (setting `rest_after`).

        Returns the id of the first digest that begins now. None if nothing is left or no stage digests or finds facts,
        and while a digest is in progress: what is left follows when that ends. `Memory.wait_for_digests` waits for it.
        If a digest fails, a worker begins another one; after several failures in a row, the next append or another
        `finish` does.
        """
        head = await self._handle.head()  # erases what has expired
        if head.next_seq <= head.view_start:
            return None
        async with self._services.store.write(self.scope, self.id) as unit:
            policy, _ = self._handle.governing(unit.head, None)
            if not policy.doing(DigestAction.SUMMARIZE, DigestAction.CHUNK, DigestAction.FACTS):
                return None
            head, fire = await fired(self._handle, policy, replace(unit.head, finish_seq=unit.head.next_seq), unit)
            _, begun = await committed(self._handle, unit, Changes(head=head, fire=fire))
        return begun[0] if begun else None

    async def start_digests(self, *, policy: PolicyLike | None = None) -> list[int]:
        """Start what is due by now, as an append does: where others appended under another policy, or where none was
        started. `policy` governs this call alone. Returns the ids of the digests that began or took effect, as
        `AppendResult.fired` has them; empty where nothing is due, and while a digest is in progress."""
        governing = self._services.usable(policy)
        head = await self._handle.head()  # erases what has expired
        if head.next_seq <= head.view_start:
            return []
        return list(await refire(self._handle, governing, round_may_end=True))

    async def pop(self, *, policy: PolicyLike | None = None, model: str | None = None) -> Payload | None:
        """Retract the newest message and return its item; None when there is none that was not cleared.

        The message stays in the log, marked; views from now on leave it out. Digests that rest on it are superseded,
        one in progress too. Where items stand in place of all messages (after `replace`, or native compaction under
        `policy`, for `model`), the last of these items is removed instead.
        """
        governing, model = self._services.usable(policy), checked_words(model, "model")
        return await Rewinder(self._handle).pop(policy=governing, model=model)

    async def rewind(self, *, to: int, expect: int | None = None) -> int:
        """Retract all messages after seq `to` (-1: all). Returns how many. To replace them by others, `turn` and
        `append` have `at`, which takes nothing back before the others are there.

        They stay in the log, marked, as `pop` leaves them. `expect` is a revision since which no message may have come,
        gone or been erased. Raises InvalidInput for a seq that does not exist or was cleared, ConcurrentWrite when
        `expect` does not hold.
        """
        last = _seq(to, "to")
        if last is None:
            raise InvalidInput("to is None; give the seq of the last message that stays, -1 for none")
        return await Rewinder(self._handle).rewind(last, expect=checked_revision(expect, "expect"))

    async def branches(self, seq: int | None = None, *, after: int = -1, limit: int = 100) -> list[Branch]:
        """The branches that part where message `seq` stands, that of the message included: what questions and answers
        have been in its place. Without `seq`, those of all places where there are several. At most `limit` (1 to
        1,000), in the order in which they began, those after the seq `after`; none that were cleared.

        `turn` and `append` with `at`, `rewind` and `pop` leave branches behind. Raises InvalidInput for a seq that does
        not exist or was cleared.
        """
        limit, after = checked_limit(limit), checked_limit(after, minimum=-1, most=2**62, name="after")
        place = None if seq is None else checked_limit(seq, minimum=0, most=2**62, name="seq")
        return await branches(self._handle, place, after=after, limit=limit)

    async def switch(self, seq: int, *, expect: int | None = None) -> int:
        """Show the branch with message `seq`, up to the last message that was shown with it, in place of the present
        one, which stays a branch. Where message `seq` is shown, nothing changes. Returns the seq of the last message
        before, by which `switch` goes back, or `rewind` where that message is shown now too.

        Contexts, digests, recall and facts go by the branch that is shown: digests and facts of this one count again
        as they are, and no model is asked. Documents that were archived with its digests are not there again. `expect`
        is a revision since which no message may have come, gone or been erased. Raises InvalidInput for a seq that does
        not exist or was cleared, ConcurrentWrite when `expect` does not hold.
        """
        place = checked_limit(seq, minimum=0, most=2**62, name="seq")
        return await switch(self._handle, place, expect=checked_revision(expect, "expect"))

    async def fork(self, *, at: int | None = None, id: str | None = None) -> Conversation:
        """A new conversation that begins with the messages of this one, up to message `at` (None: all that are shown),
        and goes on by itself; this one stays as it is. It has this one's settings, title and metadata. `id` is its id,
        by default a new one; a fork of this one with that id to which nothing was added yet is given back as it is.

        Digests that were made and facts that were read are not made and read again in the fork, a search finds what
        both have once, and `erase` erases it in all forks. Where this conversation is deleted, or takes messages back,
        its forks show them still. Revisions count on from this one's.

        Raises InvalidInput for a message that does not exist, was cleared or is not shown, Conflict where there is a
        conversation with that id, NotFound where this one does not exist.
        """
        made = copy(self)
        made.id = await self._fork(at=at, id=id)
        made._handle = replace(self._handle, id=made.id)
        return made

    async def _fork(self, *, at: int | None = None, id: str | None = None) -> str:
        """Make a conversation that begins as this one. Returns its id. See `fork`."""
        last = None if at is None else checked_limit(at, minimum=-1, most=2**62, name="at")
        return await fork(self._handle, last, None if id is None else checked_name(id, "conversation"))

    async def replace(
        self,
        items: Sequence[Mapping[str, Any]],
        *,
        wire: Wire = RESPONSES,
        model: str | None = None,
        policy: PolicyLike | None = None,
        expect: int | None = None,
    ) -> None:
        """Show `items` in place of everything shown so far; the log does not grow. An empty list hides everything.

        Right after a `clear`, the clear is undone first; if the items are then what was shown before it under `policy`
        (by default the conversation's own), nothing else changes. `model` names the model that made the opaque items
        among them; other models see the messages themselves. `expect` is the revision that the conversation must have.

        Raises InvalidMessage for an item the API would not accept, InvalidInput when there is nothing to replace,
        ConcurrentWrite when `expect` does not hold; nothing is written then.
        """
        listed = checked_list(items, "items", "items, as the API has them; an empty one hides everything")
        if not all(isinstance(item, Mapping) for item in listed):
            raise InvalidInput("items has something that is no item; give a list of JSON objects")
        given, governing = [dict(item) for item in listed], self._services.usable(policy)
        model = checked_words(model, "model")
        await Rewinder(self._handle).replace(given, wire=wire, model=model, policy=governing, expect=expect)

    async def clear(self) -> int:
        """Hide all messages so far, and what was derived from them, from contexts; the log keeps them. Returns how
        many it hid."""
        async with self._services.store.write(self.scope, self.id) as unit:
            head = unit.head
            hidden = head.next_seq - head.view_start
            if hidden == 0:
                return 0
            await unit.commit(cleared(head))
        gone = clipped(joined((*head.erased, *head.retracted)), head.view_start)
        return hidden - sum(last - first + 1 for first, last in gone)

    async def erase(self, seqs: int | str | Iterable[int | str]) -> int:
        """Erase messages, by their seqs or their ids, and everything that rests on them: at once, no verb shows any of
        it. Returns how many; those that were erased before do not count.

        Of a message stay its seq, role, kind, tokens and times, and a hash of its id, so that no repeated import brings
        it back. Digests lose what rests on erased messages; one that rests on others too is made anew without them.
        Facts that only these messages say go too, confirmed ones included, but not those that somebody has added by
        hand; and so do archived documents that stand for any of them, native items, and what the search index has of
        them (packed parts of it are rebuilt in the background: see `Memory.wait_for_erasure`). Other messages that
        quote them are messages of their own. A replay of the key with which they were appended writes nothing. Raises
        InvalidInput for a seq or an id that is not in the log.
        """
        ids: list[str] = []
        if isinstance(seqs, range):
            asked: Collection[int] = seqs  # as it is: it may have more numbers than the memory has room for
        else:
            named = [seqs] if isinstance(seqs, int | str) else checked_list(seqs, "seqs", "numbers or ids of messages")
            ids = [checked_id(one) for one in named if isinstance(one, str)]
            asked = [one for one in named if not isinstance(one, str)]
            for seq in asked:
                if not isinstance(cast(object, seq), int) or isinstance(seq, bool):
                    raise InvalidInput(f"{seq!r} is no seq; give the numbers or the ids of messages")
        store, scope = self._services.store, self.scope
        erased = await erase_messages(store, scope, self.id, asked, self._services.canonical, ids=ids)
        if erased:
            await refire(self._handle)
            self._services.appended.set()
        return erased

    async def delete(self, *, facts: bool = False) -> int:
        """Erase the conversation: its messages, its digests, and the content of its receipts. Returns how many messages
        it had; 0 when there is no such conversation. A replay of an old key still writes nothing.

        Facts learned from it stay, without their evidence in it; with `facts`, those that have no other source are
        erased too.
        """
        async with self._services.store.write(self.scope, self.id) as unit:
            messages = unit.head.next_seq
            await unit.delete(facts=facts)
        return messages


async def wait_for_digests(conversation: Conversation, seconds: float) -> None:
    """Wait until no digest of the conversation that contexts show is in progress in any process, for at most `seconds`.
    Digests that were put off are not waited for."""

    def awaited(head: Head) -> bool:
        shown = [one for one in head.running if one.action is not DigestAction.FACTS]
        return any(one.claimed or not one.error for one in shown)

    pause = 0.01
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while (head := await conversation.head()) and awaited(head):
                await asyncio.sleep(pause)
                pause = min(pause * 1.5, 0.25)


def _seq(given: object, name: str) -> int | None:
    """Raises InvalidInput for what is no number."""
    if given is not None and (not isinstance(given, int) or isinstance(given, bool)):
        raise InvalidInput(f"{name} is {given!r}; give the seq of the last message that stays, -1 for none")
    return given


def _schemas(tools: Sequence[Mapping[str, Any]]) -> list[str]:
    """The tools' schemas as JSON texts. Raises InvalidMessage."""
    for tool in cast("Sequence[object]", tools):
        if not isinstance(tool, Mapping):
            raise InvalidMessage(f"a tool schema is {tool!r}; give JSON objects, in the format of the API")
    return [to_json(tool, what="a tool schema") for tool in tools]


def _listed(incoming: str | Appendable | Sequence[Appendable] | None, name: str = "incoming") -> Sequence[Appendable]:
    if incoming is None:
        return ()
    if isinstance(incoming, str):
        return ({"role": "user", "content": incoming},)
    if isinstance(incoming, Message | Mapping):
        return (incoming,)
    if not isinstance(cast(object, incoming), Iterable):
        raise InvalidMessage(f"{name} is {incoming!r}; give a text, a message such as user(…), or a list of messages")
    return incoming
