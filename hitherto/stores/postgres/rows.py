"""Rows to values and back: the one place that knows the order of a query's columns."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from hitherto.core.digest import Digest, Done, Item, Status
from hitherto.core.message import Kind, Logged, Message, Role, Sums, storable
from hitherto.core.probe import Mark
from hitherto.core.scope import Scope
from hitherto.ports.store import DigestWork, NewDigest, Outcome, Rewritten

Row = Sequence[Any]


def scope_values(scope: Scope, conversation: str) -> dict[str, Any]:
    return {"tenant": scope.tenant, "user": scope.user, "agent": scope.agent, "conversation": conversation}


def key_hash(scope: Scope, conversation: str, key: str) -> bytes:
    """SHA-256 over the parts, each with its length in front, so that no two sets of parts read the same."""
    parts = (scope.user, scope.agent, conversation, key)
    encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    return hashlib.sha256(b"".join(len(part).to_bytes(8, "big") + part for part in encoded)).digest()


def message_values(logged: Logged) -> dict[str, Any]:
    message = logged.message
    return {
        "seq": logged.seq,
        "wire": message.wire,
        "role": message.role.value,
        "kind": message.kind.value,
        "text": message.text,
        "payload": message.raw,
        "call_ids": list(message.calls),
        "result_ids": list(message.answers),
        "tool_names": list(message.tools),
        "metadata": message.metadata,
        "tokens": logged.tokens,
        "sum_tokens": logged.sums.tokens,
        "sum_turns": logged.sums.turns,
        "sum_talk": logged.sums.talk,
        "sum_results": logged.sums.results,
        "rev": logged.rev,
        "created_at": logged.created_at,
        "expires_at": message.expires_at,
    }


def logged_from(row: Row) -> Logged:
    (seq, raw, wire, role, kind, text, calls, answers, tools, metadata) = row[:10]
    (expires_at, tokens, sum_tokens, sum_turns, sum_talk, sum_results, rev, created_at, erased, retracted) = row[10:20]
    message = Message(
        raw=raw,
        wire=wire,
        role=Role(role),
        kind=Kind(kind),
        text=text,
        calls=tuple(calls),
        answers=tuple(answers),
        tools=tuple(tools),
        metadata=metadata,
        expires_at=expires_at,
    )
    return Logged(
        seq=seq,
        message=message,
        tokens=tokens,
        sums=Sums(tokens=sum_tokens, turns=sum_turns, talk=sum_talk, results=sum_results),
        rev=rev,
        created_at=created_at,
        erased=erased,
        retracted_rev=retracted,
    )


def mark_from(row: Row) -> Mark:
    seq, sum_tokens, sum_turns, sum_talk, sum_results, tokens, opens_turn = row
    return Mark(seq, Sums(tokens=sum_tokens, turns=sum_turns, talk=sum_talk, results=sum_results), tokens, opens_turn)


def items_json(items: Sequence[Item]) -> str:
    return json.dumps([{"text": item.text, "sources": item.sources} for item in items])


def items_from(text: str) -> tuple[Item, ...]:
    return _items(json.loads(text))


def chained_items(text: str) -> tuple[Item, ...]:
    """The items of several digests, in the order of these."""
    return tuple(item for items in json.loads(text) for item in _items(items))


def _items(found: list[dict[str, Any]]) -> tuple[Item, ...]:
    return tuple(Item(one["text"], tuple((a, b) for a, b in one["sources"])) for one in found)


def digest_from(row: Row) -> Digest:
    (digest, stage, spec, done, start, end, base, status, attempt, items) = row[:10]
    (text, tokens, model, prompt_version, took, error, fired, visible, created_at, completed_at) = row[10:20]
    (hidden, freed, since, kept_from, opaque, family, tries, due_at, claimed) = row[20:29]
    return Digest(
        id=digest,
        stage=stage,
        spec=spec,
        done=Done(done),
        start=start,
        end=end,
        base=base,
        status=Status(status),
        attempt=attempt,
        items=items_from(items),
        text=text,
        tokens=tokens,
        model=model,
        prompt_version=prompt_version,
        generation_time_ms=took,
        error=error,
        fired_rev=fired,
        visible_rev=visible,
        created_at=created_at,
        completed_at=completed_at,
        hidden_rev=hidden,
        freed=freed,
        since=since,
        kept_from=kept_from,
        opaque=opaque,
        family=family,
        tries=tries,
        due_at=due_at,
        claimed=claimed,
    )


def work_from(tenant: str, row: Row, messages: Sequence[Row]) -> DigestWork:
    """What is needed to make a digest, from what its claim gave."""
    statements, opaque, user, agent, conversation, expiring = row[29:35]
    return DigestWork(
        scope=Scope(tenant=tenant, user=user, agent=agent),
        conversation=conversation,
        digest=digest_from(row),
        base=() if statements is None else chained_items(statements),
        opaque=opaque,
        messages=tuple(logged_from(message) for message in messages),
        expiring=expiring,
    )


def fire_values(fire: NewDigest, rev: int) -> dict[str, Any]:
    """The values of a new digest but the time, which its caller knows as `now`."""
    return {
        "stage": fire.stage,
        "spec": fire.spec,
        "done": fire.done.value,
        "start": fire.start,
        "end": fire.end,
        "base": fire.base,
        "status": (Status.COMPLETED if fire.completed else Status.PROCESSING).value,
        "completed": fire.completed,
        "id": fire.id,
        "tokens": fire.tokens,
        "freed": fire.freed,
        "since": fire.since,
        "kept_from": fire.kept_from,
        "opaque": fire.opaque,
        "family": fire.family,
        "rev": rev,
    }


def outcome_values(outcome: Outcome, rev: int) -> dict[str, Any]:
    """The values of a digest's end but the time, which its caller knows as `now`."""
    status = Status.COMPLETED if outcome.error is None else Status.FAILED
    if outcome.superseded:
        status = Status.SUPERSEDED
    return {
        "digest": outcome.digest,
        "status": status.value,
        "items": items_json(outcome.items),
        "text": storable(outcome.text),
        "tokens": outcome.tokens,
        "model": outcome.model,
        "prompt_version": outcome.prompt_version,
        "generation_time_ms": outcome.generation_time_ms,
        "error": None if outcome.error is None else storable(outcome.error),
        "opaque": outcome.opaque,
        "family": outcome.family,
        "visible_rev": rev if status is Status.COMPLETED else None,
    }


def rewritten_values(digest: Rewritten) -> dict[str, Any]:
    return {
        "digest": digest.digest,
        "items": items_json(digest.items),
        "text": storable(digest.text),
        "tokens": digest.tokens,
        "status": (Status.SUPERSEDED if digest.superseded else Status.COMPLETED).value,
        "superseded": digest.superseded,
    }
