"""A head to the columns of its row, and back; and what is set for an agent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from hitherto.core.digest import Done, joined, ranges
from hitherto.core.head import Frontier, Head, Injection, OpenCall, Running, Standing
from hitherto.core.message import Sums
from hitherto.core.policy import Policy, stored
from hitherto.errors import InvalidPolicy
from hitherto.ports.store import Defaults

Row = Sequence[Any]


def head_from(row: Row) -> Head:
    (ref, rev, next_seq, tokens, turns, talk, results) = row[:7]
    (view_start, view_tokens, view_turns, view_talk, view_results) = row[7:12]
    (closed, policy, open_calls, erased, next_expiry, now, run_start, late, retracted, frontiers) = row[12:22]
    (agent_policy, enabled, agent_enabled, injected, injected_of, injected_text) = row[22:28]
    (digest, start, end, text, spec, end_tokens, end_turns, end_talk, end_results) = row[28:37]
    (digest_tokens, failures, running, resume_at, subject, extracted) = row[37:43]
    standing = None
    if digest is not None:
        standing = Standing(id=digest, start=start, end=end, text=text, spec=spec, tokens=digest_tokens)
    return Head(
        ref=ref,
        rev=rev,
        next_seq=next_seq,
        sums=Sums(tokens=tokens, turns=turns, talk=talk, results=results),
        view_start=view_start,
        view_sums=Sums(tokens=view_tokens, turns=view_turns, talk=view_talk, results=view_results),
        closed=closed,
        policy=None if policy is None else _policy(policy),
        agent_policy=None if agent_policy is None else _policy(agent_policy),
        injection=Injection(
            enabled=enabled,
            agent_enabled=agent_enabled,
            digest=injected,
            conversation=injected_of,
            text=injected_text,
        ),
        open_calls={} if open_calls == "{}" else {c: OpenCall(**call) for c, call in json.loads(open_calls).items()},
        late=() if late == "[]" else tuple((turn, seq) for turn, seq in json.loads(late)),
        erased=() if erased == "[]" else _clipped(json.loads(erased), next_seq),
        retracted=() if retracted == "[]" else joined((a, b) for a, b, at in json.loads(retracted) if at <= rev),
        frontiers={} if frontiers == "{}" else _frontiers(json.loads(frontiers), view_start),
        next_expiry=next_expiry,
        now=now,
        run_start=run_start,
        failures=failures,
        resume_at=resume_at,
        digest=standing,
        digest_sums=Sums() if end_tokens is None else _sums([end_tokens, end_turns, end_talk, end_results]),
        running=() if running is None else tuple(_running(one) for one in sorted(json.loads(running))),
        subject=subject,
        extracted=() if extracted == "[]" else tuple((first, last) for first, last in json.loads(extracted)),
    )


def _policy(text: str) -> Policy:
    try:
        return _read(text)
    except InvalidPolicy:
        return stored(text)


@lru_cache(maxsize=256)
def _read(text: str) -> Policy:
    """Policies are frozen, few, and read at every turn. (What cannot be read is not kept: its parts may come yet.)"""
    return Policy.from_json(json.loads(text))


def _clipped(ranges: list[list[int]], next_seq: int) -> tuple[tuple[int, int], ...]:
    return tuple((first, min(last, next_seq - 1)) for first, last in ranges if first < next_seq)


def _sums(one: list[int]) -> Sums:
    tokens, turns, talk, results = one
    return Sums(tokens=tokens, turns=turns, talk=talk, results=results)


def _frontiers(found: dict[str, list[Any]], view_start: int) -> dict[str, Frontier]:
    """By the stage's fingerprint, each as `_frontier_values` writes it."""
    return {stage: _frontier(one) for stage, one in found.items() if one[2] >= view_start}


def _frontier(one: list[Any]) -> Frontier:
    done, start, end, sums, kept_from, kept_sums, digest, family, tokens, freed, since = one
    return Frontier(
        done=Done(done),
        start=start,
        end=end,
        sums=_sums(sums),
        kept_from=kept_from,
        kept_sums=_sums(kept_sums),
        digest=digest,
        family=family,
        tokens=tokens,
        freed=freed,
        since=since,
    )


def _running(one: list[Any]) -> Running:
    digest, stage, attempt, start, end, created_at, done, kept_from, error, claimed = one
    return Running(
        id=digest,
        stage=stage,
        attempt=attempt,
        start=start,
        end=end,
        created_at=datetime.fromisoformat(created_at),
        done=Done(done),
        kept_from=kept_from,
        error=error,
        claimed=claimed,
    )


def retracted_with(row: Row, seqs: Iterable[int], rev: int) -> str:
    """The column `retracted` of a head's row, with `seqs` taken back at `rev`: [first, last, rev], ascending."""
    before: list[tuple[int, int, int]] = [(first, last, at) for first, last, at in json.loads(row[20])]
    gone = {seq for first, last, _ in before for seq in range(first, last + 1)}
    now = ((first, last, rev) for first, last in ranges(seq for seq in seqs if seq not in gone))
    return json.dumps(sorted([*before, *now]))


def head_values(head: Head) -> dict[str, Any]:
    sums, view = head.sums, head.view_sums
    return {
        "rev": head.rev,
        "next_seq": head.next_seq,
        "tokens": sums.tokens,
        "turns": sums.turns,
        "talk": sums.talk,
        "results": sums.results,
        "view_start": head.view_start,
        "view_tokens": view.tokens,
        "view_turns": view.turns,
        "view_talk": view.talk,
        "view_results": view.results,
        "closed": head.closed,
        "run_start": head.run_start,
        "policy": policy_json(head.policy),
        "injection": head.injection.enabled,
        "injected": head.injection.digest,
        "frontiers": json.dumps({stage: _frontier_values(one) for stage, one in head.frontiers.items()}),
        "open_calls": json.dumps(
            {
                call: {"seq": o.seq, "group": o.group, "turn": o.turn, "tool": o.tool}
                for call, o in head.open_calls.items()
            }
        ),
        "late": json.dumps(head.late),
        "failures": head.failures,
        "resume_at": head.resume_at,
        "erased": json.dumps(head.erased),
        "next_expiry": head.next_expiry,
        "subject": head.subject,
        "extracted": json.dumps(head.extracted),
    }


def policy_json(policy: Policy | None) -> str | None:
    return None if policy is None else json.dumps(policy.to_json())


def _frontier_values(one: Frontier) -> list[Any]:
    sums = [[s.tokens, s.turns, s.talk, s.results] for s in (one.sums, one.kept_sums)]
    beside = [one.digest, one.family, one.tokens, one.freed, one.since]
    return [one.done.value, one.start, one.end, sums[0], one.kept_from, sums[1], *beside]


def defaults_from(row: Row) -> Defaults:
    policy, injection = row
    return Defaults(policy=None if policy is None else _policy(policy), injection=injection)
