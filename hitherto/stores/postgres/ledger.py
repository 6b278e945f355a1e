"""Model calls to the values that statements bind, and rows of the ledger to sums."""

from __future__ import annotations

from datetime import date
from typing import Any

from hitherto.core.ledger import Costs, ModelCall, Spending
from hitherto.core.log.message import storable
from hitherto.core.scope import Scope
from hitherto.ports.ledger import By
from hitherto.stores.postgres.rows import Row


def call_values(scope: Scope, ref: int, call: ModelCall) -> dict[str, Any]:
    """What `insert_call` binds: a call that was made for the conversation `ref`."""
    return {**_values(scope, call), "ref": ref}


def noted_values(scope: Scope, conversation: str | None, call: ModelCall) -> dict[str, Any]:
    """What `note_call` binds: a call that was made for the conversation of that name, or for none."""
    return {**_values(scope, call), "conversation": conversation}


def costs_values(by: By, tenant: str | None, since: date | None, until: date | None) -> dict[str, Any]:
    """What `costs` binds."""
    return {"by": by, "tenant": tenant, "since": since, "until": until}


def _values(scope: Scope, call: ModelCall) -> dict[str, Any]:
    return {
        "tenant": scope.tenant,
        "user": scope.user,
        "agent": scope.agent,
        "key": call.key,
        "digest": call.digest,
        "purpose": call.purpose.value,
        "model": storable(call.model),
        "tokens_in": call.tokens_in,
        "tokens_cached": call.tokens_cached,
        "tokens_out": call.tokens_out,
        "latency_ms": call.latency_ms,
        "cost": call.cost,
        "cause": None if call.cause is None else call.cause.value,
    }


def spent_from(row: Row) -> Spending:
    cost, tokens = row
    return Spending(cost=cost, tokens=tokens)


def costs_from(row: Row) -> Costs:
    group, calls, failed, unpriced, tokens_in, tokens_cached, tokens_out, cost, latency_ms = row
    return Costs(
        group=group,
        calls=calls,
        failed=failed,
        unpriced=unpriced,
        tokens_in=tokens_in,
        tokens_cached=tokens_cached,
        tokens_out=tokens_out,
        cost=cost,
        latency_ms=latency_ms,
    )
