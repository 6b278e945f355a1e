"""Rows to values and back: the one place that knows the order of a query's columns."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from hitherto.core.digest import Digest, Done, Item, Status
from hitherto.core.head import Head, OpenCall, Running, Standing
from hitherto.core.message import Kind, Logged, Message, Role, Sums, storable
from hitherto.core.policy import Policy
from hitherto.core.scope import Scope
from hitherto.ports.store import NewDigest, Outcome, Rewritten

Row = Sequence[Any]


def scope_values(scope: Scope, conversation: str) -> dict[str, Any]:
    return {"tenant": scope.tenant, "user": scope.user, "agent": scope.agent, "conversation": conversation}


def key_hash(scope: Scope, conversation: str, key: str) -> bytes:
    """SHA-256 over the parts, each with its length in front, so that no two sets of parts read the same."""
    parts = (scope.user, scope.agent, conversation, key)
    encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    return hashlib.sha256(b"".join(len(part).to_bytes(8, "big") + part for part in encoded)).digest()


def head_from(row: Row) -> Head:
    (ref, rev, next_seq, tokens, turns, talk, view_start, view_tokens, view_turns, view_talk) = row[:10]
    (closed, policy, open_calls, erased, next_expiry, now, run_start) = row[10:17]
    (digest, start, end, text, end_tokens, end_turns, end_talk, running) = row[17:25]
    return Head(
        ref=ref,
        rev=rev,
        next_seq=next_seq,
        sums=Sums(tokens=tokens, turns=turns, talk=talk),
        view_start=view_start,
        view_sums=Sums(tokens=view_tokens, turns=view_turns, talk=view_talk),
        closed=closed,
        policy=None if policy is None else Policy.from_json(json.loads(policy)),
        open_calls={} if open_calls == "{}" else {c: OpenCall(**call) for c, call in json.loads(open_calls).items()},
        erased=() if erased == "[]" else _clipped(json.loads(erased), next_seq),
        next_expiry=next_expiry,
        now=now,
        run_start=run_start,
        digest=None if digest is None else Standing(id=digest, start=start, end=end, text=text),
        digest_sums=Sums() if digest is None else Sums(tokens=end_tokens, turns=end_turns, talk=end_talk),
        running=() if running is None else tuple(_running(one) for one in json.loads(running)),
    )


def _clipped(ranges: list[list[int]], next_seq: int) -> tuple[tuple[int, int], ...]:
    return tuple((first, min(last, next_seq - 1)) for first, last in ranges if first < next_seq)


def _running(one: list[Any]) -> Running:
    digest, stage, attempt, end, created_at = one
    return Running(id=digest, stage=stage, attempt=attempt, end=end, created_at=datetime.fromisoformat(created_at))


def head_values(head: Head) -> dict[str, Any]:
    return {
        "rev": head.rev,
        "next_seq": head.next_seq,
        "tokens": head.sums.tokens,
        "turns": head.sums.turns,
        "talk": head.sums.talk,
        "view_start": head.view_start,
        "view_tokens": head.view_sums.tokens,
        "view_turns": head.view_sums.turns,
        "view_talk": head.view_sums.talk,
        "closed": head.closed,
        "run_start": head.run_start,
        "policy": None if head.policy is None else json.dumps(head.policy.to_json()),
        "open_calls": json.dumps(
            {call: {"seq": o.seq, "group": o.group, "turn": o.turn} for call, o in head.open_calls.items()}
        ),
        "erased": json.dumps(head.erased),
        "next_expiry": head.next_expiry,
    }


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
        "rev": logged.rev,
        "created_at": logged.created_at,
        "expires_at": message.expires_at,
    }


def logged_from(row: Row) -> Logged:
    (seq, raw, wire, role, kind, text, calls, answers, tools, metadata) = row[:10]
    (expires_at, tokens, sum_tokens, sum_turns, sum_talk, rev, created_at, erased) = row[10:18]
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
    sums = Sums(tokens=sum_tokens, turns=sum_turns, talk=sum_talk)
    return Logged(seq=seq, message=message, tokens=tokens, sums=sums, rev=rev, created_at=created_at, erased=erased)


def items_json(items: Sequence[Item]) -> str:
    return json.dumps([{"text": item.text, "sources": item.sources} for item in items])


def items_from(text: str) -> tuple[Item, ...]:
    return tuple(Item(one["text"], tuple((a, b) for a, b in one["sources"])) for one in json.loads(text))


def digest_from(row: Row) -> Digest:
    (digest, stage, spec, done, start, end, base, status, attempt, items) = row[:10]
    (text, tokens, model, prompt_version, took, error, fired, visible, created_at, completed_at) = row[10:20]
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
        "visible_rev": rev if status is Status.COMPLETED else None,
    }


def rewritten_values(digest: Rewritten) -> dict[str, Any]:
    return {
        "digest": digest.digest,
        "items": items_json(digest.items),
        "text": storable(digest.text),
        "tokens": digest.tokens,
        "status": (Status.SUPERSEDED if digest.superseded else Status.COMPLETED).value,
    }
