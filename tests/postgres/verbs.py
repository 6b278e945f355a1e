"""Every verb of a store, to see what the database does to it: those that read, and those that write."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

from hitherto.core.digests.digest import Claim, Digest, DigestJob, DigestWork, Status
from hitherto.core.facts.queries import FactFilter, KnownFactsQuery
from hitherto.core.key import ApiKey, Right
from hitherto.core.ledger import ModelCall, Purpose
from hitherto.core.log.conversations import AgentDefaults, ConversationFilter, MessageRange
from hitherto.core.log.frontier import DigestAction
from hitherto.core.run import EventKind, RunStatus, new_event
from hitherto.store.store import Store
from tests.conftest import SCOPE
from tests.store.facts.samples import CONFIRM, MUM, new, set_whole
from tests.store.samples import user, write

OLD = timedelta(days=1)
KEY = ApiKey(
    id=UUID(int=1), tenant="acme", user=None, name="app", rights=frozenset({Right.READ}), created_at=datetime.now(UTC)
)

CALL = ModelCall(purpose=Purpose.DIGEST, model="m", latency_ms=1)
CLAIM = Claim("acme", 1, 1)
WORK = DigestWork(
    scope=SCOPE,
    conversation="c",
    digest=Digest(
        id=1,
        stage="s",
        spec="{}",
        action=DigestAction.SUMMARIZE,
        start=0,
        end=3,
        base=None,
        status=Status.PROCESSING,
        attempt=1,
        items=(),
        text="",
        tokens=0,
        model=None,
        prompt_version=None,
        generation_time_ms=None,
        error=None,
        fired_rev=1,
        visible_rev=None,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        completed_at=None,
    ),
)
"""A claim that does not hold."""


async def change(store: Store) -> None:
    """Change a fact that is there."""
    added = await store.facts.add(SCOPE, "mum", new("Fences."))
    await store.facts.change(SCOPE, added.id, CONFIRM)


VERBS: dict[str, Callable[[Store], Awaitable[object]]] = {
    "head": lambda store: store.head(SCOPE, "c"),
    "head at a revision": lambda store: store.head(SCOPE, "c", at=1),
    "messages": lambda store: store.messages(SCOPE, "c", 1, MessageRange(start=0, stop=9)),
    "messages_of": lambda store: store.messages_of(SCOPE, {(SCOPE.agent, "c"): ((0, 9),)}),
    "payloads": lambda store: store.payloads(SCOPE, "c", 1, MessageRange(start=0, stop=9), wire="openai.chat"),
    "digests": lambda store: store.digests(SCOPE, "c"),
    "digest": lambda store: store.digest(SCOPE, "c", 1),
    "last_clear": lambda store: store.last_clear(SCOPE, "c", end=1, rev=1),
    "earlier": lambda store: store.earlier(SCOPE, "c", within=OLD),
    "receipt": lambda store: store.receipt(SCOPE, "c", "k"),
    "defaults": lambda store: store.defaults(tenant="acme", agent="planner"),
    "info": lambda store: store.info(SCOPE, "c"),
    "find a key": lambda store: store.keys.find(b"hash"),
    "keys": lambda store: store.keys.keys("acme"),
    "listed": lambda store: store.listed(ConversationFilter.of(SCOPE), limit=9),
    "scopes": lambda store: store.scopes("tenant", limit=9),
    "due": lambda store: store.due(),
    "erasures": lambda store: store.erasures(),
    "due_digests": lambda store: store.due_digests(),
    "unsettled": lambda store: store.unsettled([DigestJob("acme", 1)]),
    "backlog": lambda store: store.backlog(),
    "spent": lambda store: store.spent("acme"),
    "spent by a user": lambda store: store.spent("acme", "u"),
    "has_other_users": lambda store: store.has_other_users("acme", "u"),
    "costs": lambda store: store.costs("day"),
    "head_and_known": lambda store: store.head_and_known(SCOPE, "c", KnownFactsQuery(subject="mum")),
    "head_and_known at a revision": lambda store: store.head_and_known(SCOPE, "c", KnownFactsQuery(subject=""), at=1),
    "subject": lambda store: store.facts.subject("acme", "mum"),
    "subjects": lambda store: store.facts.subjects("acme"),
    "current_facts": lambda store: store.facts.current_facts(SCOPE, "mum"),
    "known": lambda store: store.facts.known(SCOPE, "mum"),
    "facts": lambda store: store.facts.facts(SCOPE, FactFilter()),
    "fact": lambda store: store.facts.fact(SCOPE, 1),
    "replaced": lambda store: store.facts.replaced(SCOPE, 1, limit=9),
    "history": lambda store: store.facts.history(SCOPE, 1),
    "versions": lambda store: store.facts.versions(SCOPE, [(1, 1)]),
    "run": lambda store: store.runs.run(SCOPE, UUID(int=1)),
    "runs": lambda store: store.runs.runs(SCOPE, "c", limit=9),
    "run events": lambda store: store.runs.events(SCOPE, UUID(int=1), limit=9),
}
WRITING: dict[str, Callable[[Store], Awaitable[object]]] = {
    "write": lambda store: write(store, "c", user()),
    "write anew": lambda store: write(store, "new", user()),
    "set_defaults": lambda store: store.set_defaults(tenant="acme", agent="planner", defaults=AgentDefaults()),
    "claim": lambda store: store.claim("acme", 1, lease=OLD),
    "prolong": lambda store: store.prolong([CLAIM], lease=OLD),
    "put_off": lambda store: store.put_off(WORK, wait=OLD, calls=[CALL]),
    "note_calls": lambda store: store.note_calls(SCOPE, "c", [CALL]),
    "forget_receipts": lambda store: store.forget_receipts(older_than=timedelta(0)),
    "set_subject": lambda store: set_whole(store, "acme", MUM),
    "add": lambda store: store.facts.add(SCOPE, "mum", new("Sails.")),
    "change": change,
    "add a key": lambda store: store.keys.add(KEY, b"hash"),
    "revoke a key": lambda store: store.keys.revoke("acme", KEY.id),
    "begin a run": lambda store: store.runs.begin(SCOPE, "c", strategy=None, injection=False),
    "add to a run": lambda store: store.runs.add(SCOPE, UUID(int=1), [new_event(EventKind.MESSAGE, "Hello.")]),
    "end a run": lambda store: store.runs.end(SCOPE, UUID(int=1), status=RunStatus.COMPLETED, freed=0),
}
ALL = {**VERBS, **WRITING}
