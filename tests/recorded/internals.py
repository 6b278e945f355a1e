"""Everything here that is not public API: after a rename, only this file has to follow.

The keys of the dictionaries are the recording's own and stay the same when a field is renamed.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, LiteralString

import psycopg

from hitherto import Fact
from hitherto.core.digests.digest import Digest
from hitherto.core.documents import Document
from hitherto.core.log.message import Logged
from hitherto.errors import BudgetExceeded, ModelUnavailable
from hitherto.ports.models import Completion, Prompt
from hitherto.providers.extractive import Extractive
from hitherto.providers.scripted import ScriptedEmbedder
from hitherto.store.store import Store
from tests.acceptance.family import Says, listener
from tests.databases import Databases, OpenStore, Server
from tests.other_systems.session_strategies.compacting import ScriptedCompactor

__all__ = ["Backend", "BudgetExceeded", "Says", "doubles", "on", "stores"]


_SOONER: tuple[LiteralString, ...] = (
    "update hitherto.message set expires_at = expires_at - %(by)s where expires_at is not null",
    "update hitherto.conversation set next_expiry = next_expiry - %(by)s where next_expiry is not null",
)


@dataclass(frozen=True, slots=True)
class Backend:
    """An open, empty store. The database's clock cannot be moved, so what expires later is moved instead."""

    store: Store
    connection: psycopg.AsyncConnection[Any]

    async def wait(self, by: timedelta) -> None:
        for statement in _SOONER:
            await self.connection.execute(statement, {"by": by})


@asynccontextmanager
async def on(store: OpenStore) -> AsyncGenerator[Backend]:
    async with await psycopg.AsyncConnection[Any].connect(store.owners_url, autocommit=True) as connection:
        yield Backend(store, connection)


@asynccontextmanager
async def stores() -> AsyncGenerator[Databases]:
    found = Databases(Server.of_tests())
    await found.open()
    yield found
    await found.aclose()


class ExtractiveWithFacts(Extractive):
    """The extractive model, which also finds the facts in `told`. The calls numbered in `failing` (from 1) fail."""

    def __init__(self, told: Sequence[Says], failing: Collection[int]) -> None:
        self._facts = listener(*told)
        self._failing = failing
        self._calls = 0

    async def complete(self, prompt: Prompt) -> Completion:
        self._calls += 1
        if self._calls in self._failing:
            raise ModelUnavailable("no route to the model")
        answer = await super().complete(prompt)
        facts = json.loads(self._facts(prompt)).get("facts")
        return (
            answer if facts is None else replace(answer, text=json.dumps({**json.loads(answer.text), "facts": facts}))
        )


def doubles(told: Sequence[Says], failing: Collection[int]) -> dict[str, Any]:
    """Model, compactor and embedder, as arguments of `hitherto.open`."""
    return {
        "model": ExtractiveWithFacts(told, failing),
        "compactor": ScriptedCompactor(),
        "embedder": ScriptedEmbedder(),
    }


def digest(row: Digest) -> dict[str, Any]:
    return {
        "id": row.id,
        "stage": json.loads(row.spec),
        "action": row.action,
        "range": [row.start, row.end],
        "base": row.base,
        "status": row.status,
        "attempt": row.attempt,
        "tries": row.tries,
        "items": [[item.text, ", ".join(f"{first}-{last}" for first, last in item.sources)] for item in row.items],
        "text": row.text,
        "tokens": row.tokens,
        "freed": row.freed,
        "since": row.since,
        "kept_from": row.kept_from,
        "opaque": row.opaque,
        "family": row.family,
        "model": row.model,
        "prompt_version": row.prompt_version,
        "error": row.error,
        "fired_rev": row.fired_rev,
        "visible_rev": row.visible_rev,
        "hidden_rev": row.hidden_rev,
        "created_at": row.created_at,
        "completed_at": row.completed_at,
    }


def message(one: Logged) -> dict[str, Any]:
    said = one.message
    return {
        "seq": one.seq,
        "raw": said.raw,
        "wire": said.wire,
        "role": said.role,
        "kind": said.kind,
        "text": said.text,
        "calls": said.calls,
        "answers": said.answers,
        "tools": said.tools,
        "metadata": said.raw_metadata,
        "tokens": one.tokens,
        "sums": [one.sums.tokens, one.sums.turns, one.sums.dialogue, one.sums.results],
        "rev": one.rev,
        "retracted_rev": one.retracted_rev,
        "erased": one.erased,
        "created_at": one.created_at,
    }


def fact(one: Fact) -> dict[str, Any]:
    return {
        "id": one.id,
        "owner": [one.user, one.agent],
        "subject": one.subject,
        "category": one.category,
        "content": one.content,
        "visibility": one.visibility,
        "state": one.state,
        "confidence": one.confidence,
        "confirmed": one.confirmed,
        "repeated": one.repeated,
        "version": one.version,
        "metadata": json.dumps(one.metadata),
        "superseded_by": one.superseded_by,
        "evidence": [[said.conversation, said.seq, said.said_at] for said in one.evidence],
        "extracted_at": one.extracted_at,
        "updated_at": one.updated_at,
        "ended_at": one.ended_at,
    }


def document(one: Document) -> dict[str, Any]:
    source = one.archived
    return {
        "id": one.id,
        "namespace": one.namespace,
        "doc_type": one.doc_type,
        "title": one.title,
        "text": one.text,
        "metadata": one.metadata,
        "passages": one.passages,
        "agent": one.agent,
        "from": None if source is None else [source.conversation, source.digest, source.start, source.end],
        "said_at": one.said_at,
    }
