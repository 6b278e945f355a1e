"""The synchronous classes. Written by scripts/sync_facade.py: change that, or the asynchronous classes, and run it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO, Literal, Unpack
from uuid import UUID

from hitherto.core.context.expansion import Expansion
from hitherto.core.context.manifest import KeptContext, Manifest
from hitherto.core.cross_session import CrossSessionLike, RecallFrom
from hitherto.core.digests.digest import Backlog, Digest
from hitherto.core.documents import Document, KeptDocument
from hitherto.core.facts.fact import Fact, FactEvent, FactState, Subject, Visibility
from hitherto.core.facts.queries import AddedFact
from hitherto.core.key import ApiKey, Right
from hitherto.core.ledger import By, Costs
from hitherto.core.log.branch import Branch
from hitherto.core.log.conversations import AgentDefaults, ConversationInfo, ScopePart, UserDefaults
from hitherto.core.log.head import Head
from hitherto.core.log.message import CHAT, RESPONSES, Call, Logged, Message, Payload, Wire
from hitherto.core.log.transcript import LogPage, Transcript
from hitherto.core.policy.policy import Policy
from hitherto.core.policy.presets import PolicyLike
from hitherto.core.policy.view import View
from hitherto.core.recall.filter import EntryKind, EntryKindName
from hitherto.core.run import Run, RunEvent
from hitherto.core.scope import Scope
from hitherto.engine.context.context import Context
from hitherto.engine.context.expand import Expandable
from hitherto.engine.context.recalled import RecallOptions
from hitherto.engine.conversation import Appendable, Conversation
from hitherto.engine.documents.documents import DocumentList, Documents
from hitherto.engine.export.export import ExportReport
from hitherto.engine.export.imports import ImportReport, Lines
from hitherto.engine.facts.facts import FactList, Facts
from hitherto.engine.facts.forget import ForgottenFact
from hitherto.engine.keys import Keys, NewKey
from hitherto.engine.listing import ConversationPage, ScopePage
from hitherto.engine.log.append import AppendResult
from hitherto.engine.log.erase_scope import ErasureReport
from hitherto.engine.recall.recall import Hit, RecallResult
from hitherto.engine.runs import RunList, Runs
from hitherto.engine.services import MemorySettings
from hitherto.engine.turn import Answer, Partial
from hitherto.ports.models import Compactor, Embedder, Model, Reranker
from hitherto.ports.watch import Watch
from hitherto.settings.definitions import SettingsOptions
from hitherto.sync.base import BackgroundMemory, SyncMemoryBase, SyncPart, SyncTurnBase
from hitherto.wiring import open as open_memory


class SyncMemory(SyncMemoryBase):
    """A `Memory` for code without an event loop. Any number of threads may share it."""

    def conversation(
        self,
        id: str,
        *,
        scope: Scope,
        policy: PolicyLike | None = None,
        subject: str | None = None,
        remember: bool | None = None,
    ) -> SyncConversation:
        """The conversation `id` of `scope`, which may exist or not. A `policy` given here governs its contexts and is
        stored with its next append; from then on the stored one applies. Without it, the stored policy applies, then
        its agent's, then the memory's, then `balanced`. Likewise `subject`, the id of what its facts are about: without
        it the stored one applies, then the user. See `Memory.conversation`."""
        return SyncConversation(
            self._background,
            lambda memory: memory.conversation(id, scope=scope, policy=policy, subject=subject, remember=remember),
        )

    def settings(self) -> MemorySettings:
        """What applies in this memory where nothing else is said. See `Memory.settings`."""
        return self._run(lambda memory: memory.settings())

    def recall(
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
        """Search the scope for what answers the question best: at most `limit` hits, the best first. See
        `Memory.recall`."""
        return self._run(
            lambda memory: memory.recall(
                question,
                scope=scope,
                limit=limit,
                conversation=conversation,
                exclude_conversation=exclude_conversation,
                kinds=kinds,
                all_agents=all_agents,
                after=after,
                before=before,
                as_of=as_of,
                min_score=min_score,
                doc_type=doc_type,
                namespace=namespace,
                metadata=metadata,
                subject=subject,
                rerank=rerank,
                at=at,
            )
        )

    def around(self, hit: Hit, *, scope: Scope, radius: int = 3, all_agents: bool = False) -> list[Logged]:
        """The messages that a hit is or stands for, and up to `radius` before and after them, in the order of the log;
        for a hit of another agent's only with `all_agents`. Empty for a fact, for a passage of a document that a user
        added (open it with `documents(scope).get(hit.document)`), and for what no longer exists. Without turns in which
        an agent was asked to forget something. Where they are large or many, they are the first of them. See
        `Memory.around`."""
        return self._run(lambda memory: memory.around(hit, scope=scope, radius=radius, all_agents=all_agents))

    def documents(self, scope: Scope) -> SyncDocuments:
        """The documents of the scope's user: those archived from conversations, and those that the user adds. Raises
        InvalidScope. See `Memory.documents`."""
        return SyncDocuments(self._background, lambda memory: memory.documents(scope))

    def runs(self, scope: Scope) -> SyncRuns:
        """The runs of the scope's agent: what it did, event by event. Raises InvalidScope. See `Memory.runs`."""
        return SyncRuns(self._background, lambda memory: memory.runs(scope))

    def keys(self, tenant: str) -> SyncKeys:
        """The keys of a tenant to the service (`hitherto serve`). Raises InvalidScope. See `Memory.keys`."""
        return SyncKeys(self._background, lambda memory: memory.keys(tenant))

    def facts(self, scope: Scope, *, subject: str | None = None, all_agents: bool = False) -> SyncFacts:
        """The facts of the scope's user, and those that others share with this user, about one `subject` ("": the user)
        or (None) any. Raises InvalidScope. See `Memory.facts`."""
        return SyncFacts(self._background, lambda memory: memory.facts(scope, subject=subject, all_agents=all_agents))

    def configure_subject(
        self, *, tenant: str, subject: str, name: str | None = None, members: Iterable[str] | None = None
    ) -> Subject:
        """Set a subject's name and its members: the users who see the facts that one of them shares about it. What is
        not given stays as it was; a new subject has its id as its name, and no members. Returns the subject as it is
        now. See `Memory.configure_subject`."""
        return self._run(
            lambda memory: memory.configure_subject(tenant=tenant, subject=subject, name=name, members=members)
        )

    def subject(self, id: str, *, tenant: str) -> Subject | None:
        """A subject as it was configured; None where it was not. See `Memory.subject`."""
        return self._run(lambda memory: memory.subject(id, tenant=tenant))

    def subjects(self, *, tenant: str, after: str = "", limit: int = 1000) -> list[Subject]:
        """Subjects of a tenant that were configured, by id: at most `limit` of them, and fewer where they have many
        members. The next page begins `after` the id of the last one. For operators. Raises InvalidScope and
        InvalidInput. See `Memory.subjects`."""
        return self._run(lambda memory: memory.subjects(tenant=tenant, after=after, limit=limit))

    def wait_for_index(self, *, tenant: str | None = None) -> bool:
        """Index everything of any tenant, or of this one, that waits for it, and return once all of it can be found by
        its words. Returns whether it can also be found by its meaning: False while the embedder is unavailable. Raises
        InvalidScope. See `Memory.wait_for_index`."""
        return self._run(lambda memory: memory.wait_for_index(tenant=tenant))

    def configure_agent(
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
        """Store the defaults of an agent's conversations: the policy, where contexts recall from (`recall`: "scope" or
        True, "own", "off" or False), how else other conversations of the scope are shown (`cross_session`, see
        `Conversation.context`), how long messages are kept (`ttl`, see `Conversation.configure`), and the zone of their
        days, such as "Europe/Berlin" (`time_zone`, in place of the setting of this name). A conversation's own values
        come first, and a message's own zone. See `Memory.configure_agent`."""
        return self._run(
            lambda memory: memory.configure_agent(
                tenant=tenant,
                agent=agent,
                policy=policy,
                recall=recall,
                cross_session=cross_session,
                ttl=ttl,
                time_zone=time_zone,
            )
        )

    def agent(self, id: str, *, tenant: str) -> AgentDefaults:
        """What `configure_agent` has stored for an agent. Raises InvalidScope for an unusable name. See
        `Memory.agent`."""
        return self._run(lambda memory: memory.agent(id, tenant=tenant))

    def configure_user(self, *, tenant: str, user: str, time_zone: str) -> None:
        """Store the time zone of a user, such as "Asia/Tokyo": that of the days in the user's conversations, in place
        of the agent's and of the setting `time_zone`; with "" the user has none. A message's own zone comes first.
        Raises InvalidScope for an unusable name, InvalidInput for an unusable `time_zone`. See
        `Memory.configure_user`."""
        return self._run(lambda memory: memory.configure_user(tenant=tenant, user=user, time_zone=time_zone))

    def user(self, id: str, *, tenant: str) -> UserDefaults:
        """What `configure_user` has stored for a user. Raises InvalidScope for an unusable name. See `Memory.user`."""
        return self._run(lambda memory: memory.user(id, tenant=tenant))

    def configure_tenant(self, *, tenant: str, ttl: timedelta) -> None:
        """Store how long the messages of a tenant are kept where neither they nor their conversation or agent say so
        (see `Conversation.configure`). Raises InvalidScope and InvalidInput. See `Memory.configure_tenant`."""
        return self._run(lambda memory: memory.configure_tenant(tenant=tenant, ttl=ttl))

    def conversations(
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
        was said last first: at most `limit` of them (1,000), and the `cursor` with which the next page goes on. See
        `Memory.conversations`."""
        return self._run(
            lambda memory: memory.conversations(
                scope,
                tenant=tenant,
                user=user,
                agent=agent,
                after=after,
                before=before,
                metadata=metadata,
                limit=limit,
                cursor=cursor,
            )
        )

    def scopes(
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
        `tenant` or `user` narrows the list to that one. For operators. Raises InvalidScope and InvalidInput. See
        `Memory.scopes`."""
        return self._run(lambda memory: memory.scopes(by, tenant=tenant, user=user, limit=limit, cursor=cursor))

    def wait_for_digests(self, *, tenant: str | None = None) -> None:
        """Wait until none of the digests that this process started, for any tenant or for this one, is due or in
        progress, in any process. Those that were put off for a later try are not waited for, nor is a conversation's
        rest (setting `rest_after`); of the others the latest 10,000 are. Raises InvalidScope. See
        `Memory.wait_for_digests`."""
        return self._run(lambda memory: memory.wait_for_digests(tenant=tenant))

    def purge_expired(self) -> int:
        """Housekeeping over all tenants: erase expired messages, drop receipts and kept contexts beyond their
        retention. Returns how many conversations were touched. Runs at each start, and every minute in a process that
        makes digests. See `Memory.purge_expired`."""
        return self._run(lambda memory: memory.purge_expired())

    def erase_user(self, tenant: str, user: str) -> ErasureReport:
        """Erase everything of a user of a tenant that is there now, with all agents: conversations with all that was
        derived from them, documents, facts (confirmed ones and those added by hand too), the user's time zone and place
        among the members of subjects, and the name in the ledger, whose costs stay. When this returns, no verb shows
        any of it. Returns how much it was. See `Memory.erase_user`."""
        return self._run(lambda memory: memory.erase_user(tenant, user))

    def erase_tenant(self, tenant: str) -> ErasureReport:
        """Erase everything of a tenant that is there now, likewise: all its users, its subjects, the defaults of its
        agents, and its name in the ledger. What is left of idempotency keys names it until their retention ends. See
        `Memory.erase_tenant`."""
        return self._run(lambda memory: memory.erase_tenant(tenant))

    def erase_subject(self, tenant: str, subject: str) -> ErasureReport:
        """Erase everything about a subject that is there now, of all users and agents: the conversations about it with
        all that was derived from them, the facts about it (confirmed ones and those added by hand too), its name and
        its members. Returns how much it was. See `Memory.erase_subject`."""
        return self._run(lambda memory: memory.erase_subject(tenant, subject))

    def kept_about(self, tenant: str, subject: str) -> ErasureReport:
        """How much `erase_subject` would erase now. Raises InvalidScope for an unusable name. See
        `Memory.kept_about`."""
        return self._run(lambda memory: memory.kept_about(tenant, subject))

    def wait_for_erasure(self, *, tenant: str | None = None) -> None:
        """Go on with erasures that a process has begun and not ended, and rebuild the parts of the search index from
        which something was removed; drop instructions and tools that no kept context has. All of it for any tenant, or
        for this one. When this returns, the database's rows hold nothing that was erased before the call. Raises
        InvalidScope. See `Memory.wait_for_erasure`."""
        return self._run(lambda memory: memory.wait_for_erasure(tenant=tenant))

    def export_to(
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
        waits for it. `progress` is called now and then. Returns how much it was. Raises InvalidScope. See
        `Memory.export_to`."""
        return self._run(
            lambda memory: memory.export_to(file, tenant=tenant, user=user, agent=agent, progress=progress)
        )

    def import_from(
        self, file: Lines, *, tenant: str | None = None, progress: Callable[[ImportReport], None] | None = None
    ) -> ImportReport:
        """Import what `export_to` has written: the same messages, numbers, dates, digests and facts. See
        `Memory.import_from`."""
        return self._run(lambda memory: memory.import_from(file, tenant=tenant, progress=progress))

    def backlog(self, *, tenant: str | None = None) -> Backlog:
        """How many digests of all tenants, or of one, are due, being made or put off, and how far they lag: for
        operators and alerts. Raises InvalidScope. See `Memory.backlog`."""
        return self._run(lambda memory: memory.backlog(tenant=tenant))

    def metrics(self) -> bytes:
        """The counters of this process and the current digest backlog, in Prometheus's text format
        (`hitherto.watching.CONTENT_TYPE`). See `Memory.metrics`."""
        return self._run(lambda memory: memory.metrics())

    def costs(
        self, by: By = "day", *, tenant: str | None = None, since: date | None = None, until: date | None = None
    ) -> list[Costs]:
        """Sums of the ledger of model calls, grouped by `by`, the most expensive first (by day: the latest first), of
        one tenant or of all; `since` and `until` are days in UTC, both inclusive. See `Memory.costs`."""
        return self._run(lambda memory: memory.costs(by, tenant=tenant, since=since, until=until))


class SyncConversation(SyncPart[Conversation]):
    """A `Conversation` for code without an event loop."""

    @property
    def id(self) -> str:
        return self._part.id

    @property
    def scope(self) -> Scope:
        return self._part.scope

    def __repr__(self) -> str:
        return repr(self._part)

    def append(
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
        """Append the messages, all or none, and start the digests that the policy says are due. See
        `Conversation.append`."""
        return self._run(
            lambda conversation: conversation.append(
                *messages,
                key=key,
                expect=expect,
                at=at,
                unchanged_since=unchanged_since,
                wire=wire,
                policy=policy,
                budget=budget,
                skip_known=skip_known,
            )
        )

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
    ) -> SyncTurn:
        """One turn: `with chat.turn(question) as turn` gives the request for the model, takes its answer whole or as a
        stream, and appends both together when the block ends. Where the model calls tools, each step (the calls and
        their results, with the question before the first) is appended before the next request, so that what tools have
        done is in the log if the process dies. See `Conversation.turn`."""
        return SyncTurn(
            self._background,
            self._part.turn(
                question,
                at=at,
                expect=expect,
                question_first=question_first,
                key=key,
                partial=partial,
                budget=budget,
                instructions=instructions,
                tools=tools,
                reserve=reserve,
                wire=wire,
                model=model,
                policy=policy,
                recall=recall,
                cross_session=cross_session,
                facts=facts,
                wait=wait,
                join_neighbors=join_neighbors,
            ),
        )

    def context(
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
        `incoming` is a message, several, or the text of a user message. See `Conversation.context`."""
        return self._run(
            lambda conversation: conversation.context(
                incoming,
                budget=budget,
                instructions=instructions,
                tools=tools,
                reserve=reserve,
                wire=wire,
                model=model,
                policy=policy,
                recall=recall,
                cross_session=cross_session,
                facts=facts,
                at=at,
                upto=upto,
                wait=wait,
                join_neighbors=join_neighbors,
            )
        )

    def contexts(self, *, before: int | None = None, limit: int = 20) -> list[KeptContext]:
        """The contexts of this conversation that were kept, the newest first, at most `limit`; those before the id
        `before`. Where they are large, they are fewer, but at least one: the next page is that before the last one's
        id. `rebuild` makes one again from its manifest. See `Conversation.contexts`."""
        return self._run(lambda conversation: conversation.contexts(before=before, limit=limit))

    def rebuild(self, manifest: Manifest) -> Context:
        """Build the context of `manifest` again, byte for byte. See `Conversation.rebuild`."""
        return self._run(lambda conversation: conversation.rebuild(manifest))

    def view(self, *, at: int | None = None, policy: PolicyLike | None = None) -> View:
        """The log as the policy leaves it, before any budget, now or at a past revision. Raises NotFound for a revision
        that does not exist. See `Conversation.view`."""
        return self._run(lambda conversation: conversation.view(at=at, policy=policy))

    def items(
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
        may be the result of a call before them. See `Conversation.items`."""
        return self._run(
            lambda conversation: conversation.items(
                wire=wire, policy=policy, model=model, limit=limit, at=at, budget=budget, sent=sent
            )
        )

    def injected(self, *, cross_session: CrossSessionLike | None = None) -> str | None:
        """The digest of another conversation of the scope that goes into this one's instructions ("latest" of
        `cross_session`), as text that begins with "Cross-session memory: "; None where it is switched off or there is
        none. See `Conversation.injected`."""
        return self._run(lambda conversation: conversation.injected(cross_session=cross_session))

    def known(self, *, budget: int | None = None) -> str | None:
        """The known facts about the conversation's subject, as text for the instructions of a request that `context`
        does not build. It begins with "Known facts about"; None where there are no facts, none fits, or the setting
        `facts` is off. See `Conversation.known`."""
        return self._run(lambda conversation: conversation.known(budget=budget))

    def info(self) -> ConversationInfo | None:
        """What lists show of the conversation: its title, metadata, dates and counts; None if it does not exist. See
        `Conversation.info`."""
        return self._run(lambda conversation: conversation.info())

    def head(self) -> Head | None:
        """The conversation's state, or None before its first append. See `Conversation.head`."""
        return self._run(lambda conversation: conversation.head())

    def policy(self, *, default: PolicyLike | None = None) -> Policy:
        """The policy that governs a request that names none; where nothing names one either, `default` in place of
        `balanced`. Raises InvalidPolicy. See `Conversation.policy`."""
        return self._run(lambda conversation: conversation.policy(default=default))

    def messages(self, *, start: int = 0, stop: int | None = None, limit: int | None = None) -> list[Logged]:
        """The log from seq `start` to `stop` (exclusive), at most its first `limit` messages. By default it is the
        whole log, with the messages that were cleared, retracted or digested. Raises InvalidInput for a negative
        number. See `Conversation.messages`."""
        return self._run(lambda conversation: conversation.messages(start=start, stop=stop, limit=limit))

    def log_page(self, *, start: int = 0, stop: int | None = None, limit: int | None = None) -> LogPage:
        """The first of the messages that `messages` gives: at most 1,000, and at most 4 MB, or one that is larger.
        Raises InvalidInput for a negative number. See `Conversation.log_page`."""
        return self._run(lambda conversation: conversation.log_page(start=start, stop=stop, limit=limit))

    def get(self, message: int | str) -> Logged | None:
        """One message of the log by its seq or its id, whatever became of it; None if there is none. An erased one has
        no id any more, but is still found by it. Raises InvalidInput for what is neither. See `Conversation.get`."""
        return self._run(lambda conversation: conversation.get(message))

    def transcript(self, *, before: int | None = None, limit: int = 50) -> Transcript:
        """What users see of the conversation, for a page: the newest `limit` (1 to 1,000) messages of users and final
        answers of assistants that are shown, in their order; with `before`, those before that seq. What was cleared,
        taken back or replaced, and what has expired or was erased, is left out. Raises InvalidInput. See
        `Conversation.transcript`."""
        return self._run(lambda conversation: conversation.transcript(before=before, limit=limit))

    def expand(self, what: Expandable, *, budget: int = 2000) -> Expansion:
        """The messages of a digest or a range word for word, oldest first, as many as fit into `budget` tokens
        (o200k_base): what was digested, redacted, dropped or cut is read as it was said. See `Conversation.expand`."""
        return self._run(lambda conversation: conversation.expand(what, budget=budget))

    def remember(self, content: str, *, category: str | None = None) -> AddedFact:
        """Keep a fact about the conversation's subject that its agent has learned in the running turn: private, not
        confirmed, until a person does so. See `Conversation.remember`."""
        return self._run(lambda conversation: conversation.remember(content, category=category))

    def forget(self, fact: int, *, mentions: bool = False) -> ForgottenFact:
        """Forget one of the user's own facts for good, as the agent is asked to in the running turn: the fact itself,
        confirmed or not, those that it had replaced, and the messages that say them, in any conversation of the scope:
        they are erased, as `erase` does it, with what has a word of these facts in the rest of their turns. Other facts
        that these messages say stay, without them. See `Conversation.forget`."""
        return self._run(lambda conversation: conversation.forget(fact, mentions=mentions))

    def digests(self, *, after: int | None = None, limit: int = 1000) -> list[Digest]:
        """One row for every firing, in the order in which they began, failed and superseded ones and clears too: at
        most `limit` (1 to 1,000), those after the id `after`. Where they are large, they are fewer, but at least one:
        the next page is that after the last one's id, until one is empty. Raises InvalidInput for an unusable `limit`
        or `after`. See `Conversation.digests`."""
        return self._run(lambda conversation: conversation.digests(after=after, limit=limit))

    def configure(
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
        first user message) and its `metadata`, a JSON object in place of the one before. See
        `Conversation.configure`."""
        return self._run(
            lambda conversation: conversation.configure(
                policy=policy,
                recall=recall,
                cross_session=cross_session,
                subject=subject,
                remember=remember,
                title=title,
                metadata=metadata,
                ttl=ttl,
                create=create,
            )
        )

    def finish(self) -> int | None:
        """The conversation is over: digest what is left of it, by the stages of its policy that summarize or chunk, and
        read it for facts, by those that find them, whatever their triggers say. Later appends go on normally. A tool
        call of the last three turns that has no result yet is not digested, nor is what comes after its turn began:
        append its result first. One that is never finished is read for facts when it rests (setting `rest_after`). See
        `Conversation.finish`."""
        return self._run(lambda conversation: conversation.finish())

    def start_digests(self, *, policy: PolicyLike | None = None) -> list[int]:
        """Start what is due by now, as an append does: where others appended under another policy, or where none was
        started. `policy` governs this call alone. Returns the ids of the digests that began or took effect, as
        `AppendResult.fired` has them; empty where nothing is due, and while a digest is in progress. See
        `Conversation.start_digests`."""
        return self._run(lambda conversation: conversation.start_digests(policy=policy))

    def pop(self, *, policy: PolicyLike | None = None, model: str | None = None) -> Payload | None:
        """Retract the newest message and return its item; None when there is none that was not cleared. See
        `Conversation.pop`."""
        return self._run(lambda conversation: conversation.pop(policy=policy, model=model))

    def rewind(self, *, to: int, expect: int | None = None) -> int:
        """Retract all messages after seq `to` (-1: all). Returns how many. To replace them by others, `turn` and
        `append` have `at`, which takes nothing back before the others are there. See `Conversation.rewind`."""
        return self._run(lambda conversation: conversation.rewind(to=to, expect=expect))

    def branches(self, seq: int | None = None, *, after: int = -1, limit: int = 100) -> list[Branch]:
        """The branches that part where message `seq` stands, that of the message included: what questions and answers
        have been in its place. Without `seq`, those of all places where there are several. At most `limit` (1 to
        1,000), in the order in which they began, those after the seq `after`; none that were cleared. See
        `Conversation.branches`."""
        return self._run(lambda conversation: conversation.branches(seq, after=after, limit=limit))

    def switch(self, seq: int, *, expect: int | None = None) -> int:
        """Show the branch with message `seq`, up to the last message that was shown with it, in place of the present
        one, which stays a branch. Where message `seq` is shown, nothing changes. Returns the seq of the last message
        before, by which `switch` goes back, or `rewind` where that message is shown now too. See
        `Conversation.switch`."""
        return self._run(lambda conversation: conversation.switch(seq, expect=expect))

    def fork(self, *, at: int | None = None, id: str | None = None) -> SyncConversation:
        """A new conversation that begins with the messages of this one, up to message `at` (None: all that are shown),
        and goes on by itself; this one stays as it is. It has this one's settings, title and metadata. `id` is its id,
        by default a new one; a fork of this one with that id to which nothing was added yet is given back as it is. See
        `Conversation.fork`."""
        made = self._run(lambda conversation: conversation.fork(at=at, id=id))
        return SyncConversation(self._background, lambda memory: memory.conversation(made.id, scope=made.scope), made)

    def replace(
        self,
        items: Sequence[Mapping[str, Any]],
        *,
        wire: Wire = RESPONSES,
        model: str | None = None,
        policy: PolicyLike | None = None,
        expect: int | None = None,
    ) -> None:
        """Show `items` in place of everything shown so far; the log does not grow. An empty list hides everything. See
        `Conversation.replace`."""
        return self._run(
            lambda conversation: conversation.replace(items, wire=wire, model=model, policy=policy, expect=expect)
        )

    def clear(self) -> int:
        """Hide all messages so far, and what was derived from them, from contexts; the log keeps them. Returns how many
        it hid. See `Conversation.clear`."""
        return self._run(lambda conversation: conversation.clear())

    def erase(self, seqs: int | str | Iterable[int | str]) -> int:
        """Erase messages, by their seqs or their ids, and everything that rests on them: at once, no verb shows any of
        it. Returns how many; those that were erased before do not count. See `Conversation.erase`."""
        return self._run(lambda conversation: conversation.erase(seqs))

    def delete(self, *, facts: bool = False) -> int:
        """Erase the conversation: its messages, its digests, and the content of its receipts. Returns how many messages
        it had; 0 when there is no such conversation. A replay of an old key still writes nothing. See
        `Conversation.delete`."""
        return self._run(lambda conversation: conversation.delete(facts=facts))


class SyncDocuments(SyncPart[Documents]):
    """`Documents` for code without an event loop."""

    def add(
        self,
        text: str,
        *,
        title: str | None = None,
        doc_type: str = "document",
        metadata: Mapping[str, Any] | None = None,
        namespace: str | None = None,
        markdown: bool | None = None,
    ) -> KeptDocument:
        """Add a document of the user. The same text in the same namespace is the same document: nothing is written
        then. See `Documents.add`."""
        return self._run(
            lambda documents: documents.add(
                text, title=title, doc_type=doc_type, metadata=metadata, namespace=namespace, markdown=markdown
            )
        )

    def get(self, id: int) -> Document | None:
        """One document in full; None where there is none of that id. See `Documents.get`."""
        return self._run(lambda documents: documents.get(id))

    def remove(self, id: int) -> bool:
        """Delete a document, so that it is no longer found. Returns whether it existed. See `Documents.remove`."""
        return self._run(lambda documents: documents.remove(id))

    def list(
        self,
        *,
        doc_type: str | None = None,
        namespace: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> DocumentList:
        """The documents, the last stored first, with their texts cut to 1,000 characters; at most `limit` (1,000), and
        those stored before the one with the id `before`. Where their metadata is large, they are fewer, but at least
        one: the next page is that before the last one's id, until one is empty. `doc_type` is one type ("conversations"
        is "conversation"), or "all". `metadata`: only documents that have every entry of it, as an equal value or in a
        list. Archives of private conversations are not listed. Raises InvalidDocument, InvalidInput for an unusable
        `limit`. See `Documents.list`."""
        return self._run(
            lambda documents: documents.list(
                doc_type=doc_type, namespace=namespace, metadata=metadata, before=before, limit=limit
            )
        )


class SyncFacts(SyncPart[Facts]):
    """`Facts` for code without an event loop."""

    def list(
        self,
        *,
        mine: bool = True,
        shared: bool = True,
        category: str | None = None,
        conversation: str | None = None,
        state: FactState | Literal["current", "superseded", "withdrawn", "deleted"] | None = FactState.CURRENT,
        confirmed: bool | None = None,
        after: int = 0,
        limit: int = 100,
    ) -> FactList:
        """Facts in the order in which they were learned: the user's own (`mine`), and those that others share with the
        user (`shared`). See `Facts.list`."""
        return self._run(
            lambda facts: facts.list(
                mine=mine,
                shared=shared,
                category=category,
                conversation=conversation,
                state=state,
                confirmed=confirmed,
                after=after,
                limit=limit,
            )
        )

    def get(self, id: int) -> Fact | None:
        """One fact in any state, or one that is shared with the user; None where there is none of that id. See
        `Facts.get`."""
        return self._run(lambda facts: facts.get(id))

    def add(self, content: str, *, category: str | None = None) -> AddedFact:
        """Add a fact about the subject (without one, about the user) by hand: it is confirmed and private; the default
        category is "other". See `Facts.add`."""
        return self._run(lambda facts: facts.add(content, category=category))

    def edit(
        self, id: int, *, content: str | None = None, category: str | None = None, expect: int | None = None
    ) -> Fact:
        """Correct a fact's content or category, which also confirms it. `expect` is the version that was reviewed. See
        `Facts.edit`."""
        return self._run(lambda facts: facts.edit(id, content=content, category=category, expect=expect))

    def restore(self, id: int, *, expect: int | None = None) -> Fact:
        """Make a superseded or withdrawn fact current again; it is then confirmed and private. Where its category holds
        one value at a time, it supersedes the value that is current now. Raises as `edit`, and InvalidFact for a fact
        that is current. See `Facts.restore`."""
        return self._run(lambda facts: facts.restore(id, expect=expect))

    def confirm(self, id: int, *, expect: int | None = None) -> Fact:
        """Confirm that a fact is right. Raises as `edit`. See `Facts.confirm`."""
        return self._run(lambda facts: facts.confirm(id, expect=expect))

    def share(self, id: int, *, expect: int | None = None) -> Fact:
        """Show a fact to all members of its subject, from their next context on. Raises as `edit`; InvalidFact for a
        fact about the user, and where the user is not a member. See `Facts.share`."""
        return self._run(lambda facts: facts.share(id, expect=expect))

    def unshare(self, id: int, *, expect: int | None = None) -> Fact:
        """Stop sharing a fact, from the other members' next context on. Raises as `edit`. See `Facts.unshare`."""
        return self._run(lambda facts: facts.unshare(id, expect=expect))

    def set_visibility(
        self, id: int, visibility: Visibility | Literal["private", "shared"], *, expect: int | None = None
    ) -> Fact:
        """Calls `share` for "shared" and `unshare` for "private". Raises InvalidFact for any other value. See
        `Facts.set_visibility`."""
        return self._run(lambda facts: facts.set_visibility(id, visibility, expect=expect))

    def delete(self, id: int, *, expect: int | None = None) -> None:
        """Delete a fact: its content is gone, from its history too, and it is not extracted from the same messages
        again. Raises NotFound for a fact that is not the user's own, StaleVersion. See `Facts.delete`."""
        return self._run(lambda facts: facts.delete(id, expect=expect))

    def history(self, id: int, *, after: int = 0, limit: int = 1000) -> Sequence[FactEvent]:
        """What happened to a fact of the user's own, oldest first: at most `limit` events (1 to 1,000), without the
        first `after`. Raises NotFound for any other fact, InvalidFact. See `Facts.history`."""
        return self._run(lambda facts: facts.history(id, after=after, limit=limit))

    def sources(self, id: int) -> Sequence[tuple[str, Logged]]:
        """The messages that say one of the user's own facts, oldest first, each with the name of its conversation;
        empty for a fact that was added by hand, or whose conversation was deleted. Where they are large or many, they
        are the first of them. Raises NotFound for any other fact. See `Facts.sources`."""
        return self._run(lambda facts: facts.sources(id))

    def replaced(self, id: int, *, limit: int = 100) -> FactList:
        """The facts whose place one of the user's own took, whatever their category: the last `limit` (1 to 1,000), the
        latest last. Raises NotFound for any other fact, InvalidFact. See `Facts.replaced`."""
        return self._run(lambda facts: facts.replaced(id, limit=limit))


class SyncRuns(SyncPart[Runs]):
    """`Runs` for code without an event loop."""

    def begin(
        self, conversation: str, *, strategy: str | None = None, injection: bool = False, start: int | None = None
    ) -> Run:
        """Begin a run in a conversation, which need not be there. `strategy` and `injection` say how its memory is
        shown (see `Run`). `start` is the first message that belongs to it; by default the next one. Raises InvalidScope
        for an unusable name, InvalidInput for an unusable `start`. See `Runs.begin`."""
        return self._run(lambda runs: runs.begin(conversation, strategy=strategy, injection=injection, start=start))

    def add(self, run: UUID | str, *events: Mapping[str, Any]) -> None:
        """Record events of a run in their order, all or none: dicts with `kind` (see `EventKind`), `payload` (anything
        that JSON can hold, at most 100 levels deep), and if they have one `name` (of the tool, or the model) and
        `call_id`. Raises NotFound for a run that is not there or has ended, InvalidInput or InvalidMessage for an
        unusable event. See `Runs.add`."""
        return self._run(lambda runs: runs.add(run, *events))

    def end(self, run: UUID | str, *, failed: bool = False, freed: int = 0) -> Run:
        """End a run: messages that are appended from now on do not belong to it. `freed` are the tokens that left what
        the model sees. Raises NotFound as `add` does. See `Runs.end`."""
        return self._run(lambda runs: runs.end(run, failed=failed, freed=freed))

    def get(self, run: UUID | str) -> Run | None:
        """One run; None where there is none of that id. See `Runs.get`."""
        return self._run(lambda runs: runs.get(run))

    def list(self, conversation: str, *, before: UUID | str | None = None, limit: int = 20) -> RunList:
        """The runs of a conversation, the last begun first, at most `limit`; those begun before the run `before`.
        Raises InvalidInput for an unusable `limit` or `before`. See `Runs.list`."""
        return self._run(lambda runs: runs.list(conversation, before=before, limit=limit))

    def events(self, run: UUID | str, *, after: int = -1, limit: int = 1000) -> Sequence[RunEvent]:
        """What happened in a run, in its order: at most `limit` events, those after number `after`. Where they are
        large, they are fewer, but at least one: the next page is that after the last one's number, until one is empty.
        Raises NotFound for a run that is not there, InvalidInput for an unusable `limit` or `after`. See
        `Runs.events`."""
        return self._run(lambda runs: runs.events(run, after=after, limit=limit))


class SyncKeys(SyncPart[Keys]):
    """`Keys` for code without an event loop."""

    def create(
        self,
        name: str,
        *,
        rights: Iterable[Right | Literal["read", "write", "review", "admin"]] = (Right.READ, Right.WRITE),
        user: str | None = None,
        requests: int | None = None,
        size: int | None = None,
        seconds: float | None = None,
    ) -> NewKey:
        """Make a key, with a `name` for people. With `user`, it is for that user of the tenant alone. See
        `Keys.create`."""
        return self._run(
            lambda keys: keys.create(name, rights=rights, user=user, requests=requests, size=size, seconds=seconds)
        )

    def list(self) -> Sequence[ApiKey]:
        """All keys of the tenant, the oldest first, revoked ones too. See `Keys.list`."""
        return self._run(lambda keys: keys.list())

    def revoke(self, key: UUID | str) -> ApiKey:
        """Revoke a key, from the next request on. Raises NotFound for a key that the tenant does not have. See
        `Keys.revoke`."""
        return self._run(lambda keys: keys.revoke(key))


class SyncTurn(SyncTurnBase):
    """A `Turn` for code without an event loop."""

    @property
    def context(self) -> Context:
        """The context of the next request, with its manifest. Raises InvalidInput where there is no next request: the
        turn is done, or calls wait for their results. See `Turn.context`."""
        return self._part.context

    @property
    def request(self) -> Mapping[str, Any]:
        """The arguments for the API call. Raises InvalidInput as `context` does. See `Turn.request`."""
        return self._part.request

    @property
    def done(self) -> bool:
        """Whether the answer is there: the model's last message calls no tool, its stream broke off, or the turn's key
        was answered before. See `Turn.done`."""
        return self._part.done

    @property
    def partial(self) -> bool:
        """Whether the answer broke off: `text` is what came of it. See `Turn.partial`."""
        return self._part.partial

    @property
    def finish_reason(self) -> str | None:
        """Why the model ended its newest answer, in its API's word, such as "stop" or "length"; None where a stream
        broke off before it said so, and for answers given as texts or messages. See `Turn.finish_reason`."""
        return self._part.finish_reason

    @property
    def replayed(self) -> bool:
        """Whether the key was answered before: the turn has the stored answer, and nothing is appended. See
        `Turn.replayed`."""
        return self._part.replayed

    @property
    def calls(self) -> tuple[Call, ...]:
        """The tool calls of this turn that have no result yet, in their order. See `Turn.calls`."""
        return self._part.calls

    @property
    def text(self) -> str:
        """What the assistant's last message says, without its calls and its reasoning; "" before there is one. See
        `Turn.text`."""
        return self._part.text

    @property
    def messages(self) -> tuple[Message, ...]:
        """What has been added since the question, in its order. See `Turn.messages`."""
        return self._part.messages

    @property
    def result(self) -> AppendResult | None:
        """What the turn's newest append answered: that of a step, or at the end of the block that of the answer. None
        before, and where nothing was appended. See `Turn.result`."""
        return self._part.result

    def add(self, *answers: Answer) -> None:
        """Take the model's answer, or results of the tools that it calls: a completion, a response or a message as the
        SDK of the turn's API gives it, or as a dict; an item of the API; a `Message`; or the text of an answer. See
        `Turn.add`."""
        return self._run(lambda turn: turn.add(*answers))


def open_sync(
    database: str | None = None,
    *,
    model: Model | str | None = None,
    policy: PolicyLike | None = None,
    compactor: Compactor | None = None,
    embedder: Embedder | str | None = None,
    previous_embedders: Sequence[Embedder] = (),
    reranker: Reranker | str | None = None,
    watch: Watch | None = None,
    config: Path | str | None = None,
    **settings: Unpack[SettingsOptions],
) -> SyncMemory:
    """Open a memory for code without an event loop: `with hitherto.open_sync() as memory`, or keep it and call `close`
    in the end. It runs on one event loop in the background, which all memories of the process share.

    Takes and raises what `hitherto.open` does.
    """
    background = BackgroundMemory(
        open_memory(
            database,
            model=model,
            policy=policy,
            compactor=compactor,
            embedder=embedder,
            previous_embedders=previous_embedders,
            reranker=reranker,
            watch=watch,
            config=config,
            **settings,
        )
    )
    background.memory()
    return SyncMemory(background)
