"""Memory, the main object: an open store with its model, queue and background workers."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from types import TracebackType
from typing import Any, BinaryIO, Self, cast

from hitherto.core.cross_session import CrossSessionLike, RecallFrom, cross_session_of, with_recall
from hitherto.core.digests.digest import Backlog
from hitherto.core.documents import metadata_json, type_of
from hitherto.core.export import ExportScope
from hitherto.core.facts.fact import MOST_MEMBERS, Subject
from hitherto.core.ledger import By, Costs
from hitherto.core.log.append import checked_time_zone, checked_ttl
from hitherto.core.log.conversations import AgentDefaults, MessageRange, ScopePart, UserDefaults
from hitherto.core.log.message import Logged, storable
from hitherto.core.log.time_zone import in_zone, zone_named
from hitherto.core.policy.policy import policy_json
from hitherto.core.policy.presets import PolicyLike
from hitherto.core.recall.days import named_days
from hitherto.core.recall.filter import EntryKind, EntryKindName, SearchFilter
from hitherto.core.recall.terms import question_ends
from hitherto.core.scope import Scope, checked_name
from hitherto.engine.arguments import (
    checked_kinds,
    checked_limit,
    checked_list,
    checked_seq,
    checked_share,
    checked_switch,
    checked_time,
    checked_words,
)
from hitherto.engine.calls import Calls
from hitherto.engine.conversation import Conversation
from hitherto.engine.digests.worker import Worker
from hitherto.engine.documents.documents import Documents
from hitherto.engine.export.export import ExportReport, export
from hitherto.engine.export.imports import ImportReport, Lines, import_export
from hitherto.engine.facts.facts import Facts
from hitherto.engine.keys import Keys
from hitherto.engine.listing import (
    ConversationPage,
    ScopePage,
    conversation_filter,
    conversation_page,
    scope_page,
)
from hitherto.engine.log.erase_scope import ErasureReport, erase_about, erase_all, kept_about, resume_erasures
from hitherto.engine.purge import purge_expired
from hitherto.engine.recall.embedding import embedder_name
from hitherto.engine.recall.indexer import Indexer, Wakeup
from hitherto.engine.recall.recall import Hit, Recaller, RecallResult
from hitherto.engine.runs import Runs
from hitherto.engine.services import MemorySettings, Services
from hitherto.errors import DatabaseReadOnly, InvalidInput, InvalidScope, StoreError
from hitherto.logs import logger
from hitherto.ports.models import Reranker
from hitherto.uninterrupted import uninterrupted

log = logger("hitherto")


class Memory:
    """All conversations on one store. Use it as an async context manager, or call `start` and `aclose`.

    Safe for any number of tasks of the event loop that it was started in, and for no other loop's. The store in
    `services` must be open; `opened` holds the resources opened for this memory and is closed last.
    """

    def __init__(self, services: Services, *, opened: AsyncExitStack | None = None) -> None:
        self._services = services = replace(services, appended=Wakeup())
        self._opened = opened or AsyncExitStack()
        calls = Calls(services)
        makes_digests = services.settings.worker and not services.settings.read_only
        self._worker = Worker(services, calls) if makes_digests else None
        self._recaller = Recaller(services, calls)
        self._indexer = Indexer(services, services.store.index, calls)
        self._closing: asyncio.Task[None] | None = None
        self._home: asyncio.AbstractEventLoop | None = None

    async def start(self) -> Self:
        """Start the background workers and purge expired messages; a memory that was started is left as it is. If it is
        cancelled, the memory is closed. Raises InvalidInput if the memory was closed before."""
        if self._closing is not None:
            raise InvalidInput("this memory was closed; open another one with hitherto.open(…)")
        if self._home is not None:
            return self
        self._home = asyncio.get_running_loop()
        try:
            if self._worker is not None:
                await self._worker.start()
                await self._indexer.start()
            await self.purge_expired()
        except DatabaseReadOnly:
            log.debug("Expired messages are not purged: the database is read-only")
        except StoreError as error:
            log.warning("Purging expired messages failed and will be tried again: %s", error)
        except BaseException:
            await uninterrupted(self.aclose())
            raise
        return self

    async def aclose(self) -> None:
        """Close. Digests in progress have the setting `grace` to finish; the others are given back for other workers.
        Safe to call twice. If cancelled, it gives them back at once and still closes. Raises InvalidInput in another
        event loop than the one it was started in."""
        if self._closing is not None and self._closing.done():
            return self._closing.result()
        if self._home is not None and self._home is not asyncio.get_running_loop():
            raise InvalidInput("this memory was opened in another event loop; close it there, before that loop ends")
        self._closing = self._closing or asyncio.create_task(self._close(), name="closing a memory")
        try:
            await asyncio.shield(self._closing)
        except asyncio.CancelledError:
            await uninterrupted(self._close_at_once(self._closing))
            raise

    async def _close(self) -> None:
        try:
            await self._indexer.aclose()
            if self._worker is not None:
                await self._worker.aclose()
        finally:
            await self._opened.aclose()

    async def _close_at_once(self, closing: asyncio.Task[None]) -> None:
        if self._worker is not None:
            await self._worker.hurry()
        await asyncio.wait([closing])

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def conversation(
        self,
        id: str,
        *,
        scope: Scope,
        policy: PolicyLike | None = None,
        subject: str | None = None,
        remember: bool | None = None,
    ) -> Conversation:
        """The conversation `id` of `scope`, which may exist or not. A `policy` given here governs its contexts and is
        stored with its next append; from then on the stored one applies. Without it, the stored policy applies, then
        its agent's, then the memory's, then `balanced`. Likewise `subject`, the id of what its facts are about: without
        it the stored one applies, then the user.

        Likewise `remember`: with False the conversation is private. No other conversation shows anything of it,
        `recall` finds it only by its name, and no facts are learned from it; its own contexts show nothing of others,
        no documents and no facts, whatever is asked. It is listed, exported and erased like any other.

        Raises InvalidScope for an unusable id or subject, InvalidPolicy for an unusable policy, InvalidInput for an
        unusable `remember`.
        """
        return Conversation(
            self._services,
            id,
            scope=scope,
            policy=policy,
            subject=subject,
            remember=remember,
            recaller=self._recaller,
        )

    def with_reranker(self, reranker: Reranker) -> Memory:
        """This memory, but what is found is put in order by `reranker`, which the caller closes. It is closed with this
        one. A memory over HTTP raises InvalidInput: the service has the reranker."""
        made = copy.copy(self)
        made._services = replace(self._services, reranker=reranker)
        made._recaller = Recaller(made._services, Calls(made._services))
        return made

    async def settings(self) -> MemorySettings:
        """What applies in this memory where nothing else is said."""
        settings, own = self._services.settings, self._services.embedder
        return MemorySettings(
            policy=policy_json(self._services.policy),
            budget=settings.budget,
            embedders=() if own is None else (settings.embedder, embedder_name(own)),
            embedder_provider=None if own is None or own.local else settings.embedder_provider,
            daily_cost=settings.daily_cost,
            daily_tokens=settings.daily_tokens,
            daily_user_share=settings.daily_user_share,
            fact_categories=settings.fact_categories,
        )

    async def recall(
        self,
        question: str,
        *,
        scope: Scope,
        limit: int = 10,
        conversation: str | None = None,
        exclude_conversation: str | None = None,
        kinds: Iterable[EntryKind | EntryKindName] | None = None,
        all_agents: bool = False,
        after: datetime | None = None,
        before: datetime | None = None,
        as_of: int | None = None,
        min_score: float = 0.0,
        doc_type: str | None = None,
        namespace: str | None = None,
        metadata: Mapping[str, object] | None = None,
        subject: str | None = None,
        rerank: bool = True,
        at: datetime | None = None,
    ) -> RecallResult:
        """Search the scope for what answers the question best: at most `limit` hits, the best first.

        Messages, digests, passages of documents and facts are searched. The other arguments narrow the search: `kinds`
        to these kinds; `conversation` to one conversation, `exclude_conversation` to all but one; `after` and `before`
        to when it was said (times with a zone, both inclusive); `as_of`, a seq of `conversation`, to what rests on
        nothing later; `doc_type`, `namespace` and `metadata` to passages of such documents ("conversations" means the
        doc_type "conversation", "all" means any); `subject` to facts about it and to what belongs to conversations
        about it; `min_score` to hits with at least this score (0 to 1). `all_agents` searches what belongs to the
        user's other agents too. Without `rerank`, the reranker is not called.

        Days that an English question names ("on 9 July", "last Tuesday") are those before `at`, when it is asked (now),
        and what was said on them comes first.

        An empty question finds nothing. Where the embedder or the reranker is unavailable, `RecallResult.missing` says
        so. Raises InvalidScope and InvalidInput.
        """
        chosen = checked_kinds(kinds)
        doc_type = type_of(doc_type)
        if doc_type is not None or namespace is not None or metadata:
            chosen &= {EntryKind.PASSAGE}
        if as_of is not None and conversation is None:
            raise InvalidInput("as_of is a seq; name the conversation that it is of")
        criteria = SearchFilter(
            scope=Scope.checked(scope),
            all_agents=checked_switch(all_agents, "all_agents"),
            kinds=chosen,
            conversation=None if conversation is None else checked_name(conversation, "conversation"),
            exclude_conversation=None
            if exclude_conversation is None
            else checked_name(exclude_conversation, "exclude_conversation"),
            after=checked_time(after, "after"),
            before=checked_time(before, "before"),
            as_of=checked_seq(as_of, "as_of"),
            doc_type=doc_type,
            namespace=None if namespace is None else storable(checked_words(namespace, "namespace") or ""),
            metadata=json.loads(metadata_json(metadata or {})),
            subject=subject if not subject else checked_name(subject, "subject"),
        )
        if not isinstance(cast(object, question), str):
            raise InvalidInput(f"the question is {question!r}; give a text")
        question = question_ends(question)
        most, at_least = checked_limit(limit), checked_share(min_score, "min_score", ends=True)
        asked = checked_time(at, "at") or datetime.now(UTC)
        if not asked.utcoffset() and named_days(question, asked.date()):
            told = await self._services.store.zone(scope)
            asked = in_zone(asked, self._services.zone if told is None else zone_named(told))
        return await self._recaller.recall(
            question, criteria, today=asked.date(), limit=most, min_score=at_least, rerank=rerank
        )

    async def around(self, hit: Hit, *, scope: Scope, radius: int = 3, all_agents: bool = False) -> list[Logged]:
        """The messages that a hit is or stands for, and up to `radius` before and after them, in the order of the log;
        for a hit of another agent's only with `all_agents`. Empty for a fact, for a passage of a document that a user
        added (open it with `documents(scope).get(hit.document)`), and for what no longer exists. Without turns in which
        an agent was asked to forget something. Where they are large or many, they are the first of them."""
        radius = checked_limit(radius, minimum=0, name="radius")
        if not isinstance(cast(object, hit), Hit):
            raise InvalidInput(f"hit is {str(hit)[:80]!r}; give one of `recall(…).hits`")
        theirs_too = all_agents or hit.agent == Scope.checked(scope).agent
        if hit.conversation is None or hit.start is None or hit.end is None or not theirs_too:
            return []
        theirs = replace(Scope.checked(scope), agent=hit.agent or scope.agent)
        conversation = self.conversation(hit.conversation, scope=theirs)
        head = await conversation.head()
        first = max(hit.start - radius, 0 if head is None else head.view_start)
        if head is None or first > hit.end + radius:
            return []
        reading = MessageRange(start=min(first, head.next_seq), stop=min(hit.end + radius + 1, head.next_seq))
        store = self._services.store
        found = await store.page(theirs, hit.conversation, head.ref, reading)
        hidden = await store.facts.asked_to_forget(theirs, head.ref, reading.start, reading.stop - 1)
        return [one for one in found if one.live(head.rev) and not one.erased and one.seq not in hidden]

    def documents(self, scope: Scope) -> Documents:
        """The documents of the scope's user: those archived from conversations, and those that the user adds. Raises
        InvalidScope."""
        return Documents(self._services, Scope.checked(scope))

    def runs(self, scope: Scope) -> Runs:
        """The runs of the scope's agent: what it did, event by event. Raises InvalidScope."""
        return Runs(self._services, Scope.checked(scope))

    def keys(self, tenant: str) -> Keys:
        """The keys of a tenant to the service (`hitherto serve`). Raises InvalidScope."""
        return Keys(self._services, tenant)

    def facts(self, scope: Scope, *, subject: str | None = None, all_agents: bool = False) -> Facts:
        """The facts of the scope's user, and those that others share with this user, about one `subject` ("": the user)
        or (None) any. Raises InvalidScope."""
        return Facts(self._services, scope, subject, all_agents=all_agents)

    async def configure_subject(
        self, *, tenant: str, subject: str, name: str | None = None, members: Iterable[str] | None = None
    ) -> Subject:
        """Set a subject's name and its members: the users who see the facts that one of them shares about it. What is
        not given stays as it was; a new subject has its id as its name, and no members. Returns the subject as it is
        now.

        From the next context on, a user who is no longer a member sees no shared facts, and nobody sees what that user
        shared. Only the application should call this: the caller decides who sees what, and nothing checks who may be a
        member. Raises InvalidScope for an unusable name, InvalidInput for more than 10,000 members.
        """
        tenant, subject = checked_name(tenant, "tenant"), checked_name(subject, "subject")
        given = None if members is None else checked_list(members, "members", "users")
        if given is not None and len(given) > MOST_MEMBERS:
            raise InvalidInput(f"members are {len(given):,} users; a subject has at most {MOST_MEMBERS:,}")
        users = None if given is None else [checked_name(user, "a member") for user in given]
        return await self._services.store.facts.set_subject(
            tenant,
            subject,
            name=None if name is None else checked_name(name, "name"),
            members=None if users is None else list(dict.fromkeys(users)),
        )

    async def subject(self, id: str, *, tenant: str) -> Subject | None:
        """A subject as it was configured; None where it was not."""
        return await self._services.store.facts.subject(checked_name(tenant, "tenant"), checked_name(id, "subject"))

    async def subjects(self, *, tenant: str, after: str = "", limit: int = 1_000) -> list[Subject]:
        """Subjects of a tenant that were configured, by id: at most `limit` of them, and fewer where they have many
        members. The next page begins `after` the id of the last one. For operators. Raises InvalidScope and
        InvalidInput."""
        start = checked_name(after, "subject") if after else ""
        facts, limit = self._services.store.facts, checked_limit(limit)
        return await facts.subjects(checked_name(tenant, "tenant"), after=start, limit=limit)

    async def wait_for_index(self, *, tenant: str | None = None) -> bool:
        """Index everything of any tenant, or of this one, that waits for it, and return once all of it can be found by
        its words. Returns whether it can also be found by its meaning: False while the embedder is unavailable. Raises
        InvalidScope."""
        tenant = None if tenant is None else checked_name(tenant, "tenant")
        return await self._indexer.caught_up(tenant)

    async def configure_agent(
        self,
        *,
        tenant: str,
        agent: str,
        policy: PolicyLike | None = None,
        recall: RecallFrom | bool | None = None,
        cross_session: CrossSessionLike | None = None,
        ttl: timedelta | None = None,
        time_zone: str | None = None,
    ) -> None:
        """Store the defaults of an agent's conversations: the policy, where contexts recall from (`recall`: "scope"
        or True, "own", "off" or False), how else other conversations of the scope are shown (`cross_session`, see
        `Conversation.context`), how long messages are kept (`ttl`, see `Conversation.configure`), and the zone of their
        days, such as "Europe/Berlin" (`time_zone`, in place of the setting of this name). A conversation's own values
        come first, and a message's own zone.

        What is not given stays as it is; with `policy=""` and `time_zone=""` the agent has none.

        Raises InvalidScope for an unusable name, InvalidPolicy for an unusable policy, InvalidInput for an unusable
        `recall`, `cross_session`, `ttl` or `time_zone`.
        """
        tenant, agent = checked_name(tenant, "tenant"), checked_name(agent, "agent")
        chosen = None if policy == "" else self._services.usable(policy)
        crossing = with_recall(cross_session_of(cross_session), recall)
        kept = checked_ttl(ttl)
        before = await self._services.store.defaults(tenant=tenant, agent=agent)
        defaults = AgentDefaults(
            policy=None if policy == "" else policy_json(chosen) or before.policy,
            cross_session=crossing.over(before.cross_session),
            ttl=before.ttl if kept is None else kept,
            time_zone=before.time_zone if time_zone is None else _zone_or_none(time_zone),
        )
        await self._services.store.set_defaults(tenant=tenant, agent=agent, defaults=defaults)

    async def agent(self, id: str, *, tenant: str) -> AgentDefaults:
        """What `configure_agent` has stored for an agent. Raises InvalidScope for an unusable name."""
        return await self._services.store.defaults(
            tenant=checked_name(tenant, "tenant"), agent=checked_name(id, "agent")
        )

    async def configure_user(self, *, tenant: str, user: str, time_zone: str) -> None:
        """Store the time zone of a user, such as "Asia/Tokyo": that of the days in the user's conversations, in place
        of the agent's and of the setting `time_zone`; with "" the user has none. A message's own zone comes first.
        Raises InvalidScope for an unusable name, InvalidInput for an unusable `time_zone`."""
        of = {"tenant": checked_name(tenant, "tenant"), "user": checked_name(user, "user")}
        await self._services.store.set_user_zone(**of, time_zone=_zone_or_none(time_zone))

    async def user(self, id: str, *, tenant: str) -> UserDefaults:
        """What `configure_user` has stored for a user. Raises InvalidScope for an unusable name."""
        of = {"tenant": checked_name(tenant, "tenant"), "user": checked_name(id, "user")}
        return UserDefaults(time_zone=await self._services.store.user_zone(**of))

    async def configure_tenant(self, *, tenant: str, ttl: timedelta) -> None:
        """Store how long the messages of a tenant are kept where neither they nor their conversation or agent say so
        (see `Conversation.configure`). Raises InvalidScope and InvalidInput."""
        defaults = AgentDefaults(ttl=checked_ttl(ttl))
        await self._services.store.set_defaults(tenant=checked_name(tenant, "tenant"), agent=None, defaults=defaults)

    async def conversations(
        self,
        scope: Scope | None = None,
        *,
        tenant: str | None = None,
        user: str | None = None,
        agent: str | None = None,
        after: datetime | None = None,
        before: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> ConversationPage:
        """The conversations of a scope, or of a `tenant` and perhaps its `user` or `agent`, the one in which something
        was said last first: at most `limit` of them (1,000), and the `cursor` with which the next page goes on.

        Only those in which something was said last from `after` to `before` (times with a zone), and whose metadata has
        every entry of `metadata`: an equal value, or a list that contains it. A conversation in which something is said
        while pages are read moves to the front: no page shows one twice. Raises InvalidScope and InvalidInput.
        """
        asked = conversation_filter(
            scope, tenant=tenant, user=user, agent=agent, after=after, before=before, metadata=metadata
        )
        return await conversation_page(self._services.store, asked, limit=limit, cursor=cursor)

    async def scopes(
        self,
        by: ScopePart,
        *,
        tenant: str | None = None,
        user: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> ScopePage:
        """The tenants, the users of a `tenant`, or the agents of a `tenant` or of one `user` of it, by name, with how
        much is kept of each: `limit` of them, at most 1,000, and the `cursor` with which the next page goes on.
        `tenant` or `user` narrows the list to that one. For operators. Raises InvalidScope and InvalidInput."""
        return await scope_page(self._services.store, by, tenant=tenant, user=user, limit=limit, cursor=cursor)

    async def wait_for_digests(self, *, tenant: str | None = None) -> None:
        """Wait until none of the digests that this process started, for any tenant or for this one, is due or in
        progress, in any process. Those that were put off for a later try are not waited for, nor is a conversation's
        rest (setting `rest_after`); of the others the latest 10,000 are. Raises InvalidScope."""
        await self._services.queue.wait_for_digests(None if tenant is None else checked_name(tenant, "tenant"))

    async def purge_expired(self) -> int:
        """Housekeeping over all tenants: erase expired messages, drop receipts and kept contexts beyond their
        retention. Returns how many conversations were touched. Runs at each start, and every minute in a process that
        makes digests."""
        return await purge_expired(self._services)

    async def erase_user(self, tenant: str, user: str) -> ErasureReport:
        """Erase everything of a user of a tenant that is there now, with all agents: conversations with all that was
        derived from them, documents, facts (confirmed ones and those added by hand too), the user's time zone and
        place among the members of subjects, and the name in the ledger, whose costs stay. When this returns, no verb
        shows any of it. Returns how much it was.

        Others are not held up. If the process ends meanwhile, a worker goes on, as does `wait_for_erasure`. What is
        added after the call began stays. A replay of an old idempotency key still writes nothing. Facts that others own
        stay. Raises InvalidScope for an unusable name.
        """
        of = {"tenant": checked_name(tenant, "tenant"), "user": checked_name(user, "user")}
        return await erase_all(self._services.store, **of)

    async def erase_tenant(self, tenant: str) -> ErasureReport:
        """Erase everything of a tenant that is there now, likewise: all its users, its subjects, the defaults of its
        agents, and its name in the ledger. What is left of idempotency keys names it until their retention ends."""
        return await erase_all(self._services.store, tenant=checked_name(tenant, "tenant"), user=None)

    async def erase_subject(self, tenant: str, subject: str) -> ErasureReport:
        """Erase everything about a subject that is there now, of all users and agents: the conversations about it with
        all that was derived from them, the facts about it (confirmed ones and those added by hand too), its name and
        its members. Returns how much it was.

        A conversation that was about it before, and is about something else now, stays, without the facts. If the
        process ends meanwhile, erase it again; `wait_for_erasure` rebuilds the search index afterwards. Raises
        InvalidScope for an unusable name.
        """
        of = {"tenant": checked_name(tenant, "tenant"), "subject": checked_name(subject, "subject")}
        return await erase_about(self._services.store, **of)

    async def kept_about(self, tenant: str, subject: str) -> ErasureReport:
        """How much `erase_subject` would erase now. Raises InvalidScope for an unusable name."""
        of = {"tenant": checked_name(tenant, "tenant"), "subject": checked_name(subject, "subject")}
        return await kept_about(self._services.store, **of)

    async def wait_for_erasure(self, *, tenant: str | None = None) -> None:
        """Go on with erasures that a process has begun and not ended, and rebuild the parts of the search index from
        which something was removed; drop instructions and tools that no kept context has. All of it for any tenant, or
        for this one. When this returns, the database's rows hold nothing that was erased before the call. Raises
        InvalidScope."""
        tenant = None if tenant is None else checked_name(tenant, "tenant")
        await resume_erasures(self._services.store, tenant)
        await self._services.store.contexts.forget(tenant=tenant)
        await self._indexer.tidied(tenant)

    async def export_to(
        self,
        file: BinaryIO,
        *,
        tenant: str,
        user: str | None = None,
        agent: str | None = None,
        progress: Callable[[ExportReport], None] | None = None,
    ) -> ExportReport:
        """Write everything that is kept of a tenant, of its `user`, or of that user with one `agent`, to a file that is
        open for bytes, as JSON Lines: docs/export.md has the format. It is what is there at one moment, and nobody
        waits for it. `progress` is called now and then. Returns how much it was. Raises InvalidScope."""
        if user is None and agent is not None:
            raise InvalidScope("name the user too whose conversations with the agent are exported")
        whose = ExportScope(
            tenant=checked_name(tenant, "tenant"),
            user=None if user is None else checked_name(user, "user"),
            agent=None if agent is None else checked_name(agent, "agent"),
        )
        return await export(self._services, file, whose, progress)

    async def import_from(
        self, file: Lines, *, tenant: str | None = None, progress: Callable[[ImportReport], None] | None = None
    ) -> ImportReport:
        """Import what `export_to` has written: the same messages, numbers, dates, digests and facts.

        Each conversation is written whole or not at all. One that is there already, perhaps further on, is skipped, and
        so are documents and facts that are there, or were changed or deleted since; where another conversation has its
        name, it is refused, and what rests on it is left out. So an import that was cut off goes on when it is
        repeated. What is set for agents and subjects is left as it is. With `tenant`, only an export of that tenant is
        imported. Raises InvalidExport, with the line, for what is no export; what was imported before stays.
        """
        whose = None if tenant is None else checked_name(tenant, "tenant")
        return await import_export(self._services, file, whose, progress)

    async def backlog(self, *, tenant: str | None = None) -> Backlog:
        """How many digests of all tenants, or of one, are due, being made or put off, and how far they lag: for
        operators and alerts. Raises InvalidScope."""
        tenant = None if tenant is None else checked_name(tenant, "tenant")
        return await self._services.store.backlog(tenant=tenant)

    async def metrics(self) -> bytes:
        """The counters of this process and the current digest backlog, in Prometheus's text format
        (`hitherto.watching.CONTENT_TYPE`)."""
        self._services.watch.show(await self._services.store.backlog())
        return await asyncio.to_thread(self._services.watch.exposition)

    async def costs(
        self, by: By = "day", *, tenant: str | None = None, since: date | None = None, until: date | None = None
    ) -> list[Costs]:
        """Sums of the ledger of model calls, grouped by `by`, the most expensive first (by day: the latest first), of
        one tenant or of all; `since` and `until` are days in UTC, both inclusive."""
        return await self._services.store.costs(by, tenant=tenant, since=since, until=until)


def _zone_or_none(name: str) -> str | None:
    return None if name == "" else checked_time_zone(name)
