"""Heads and agents' defaults: from rows, and to the values that statements bind."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from operator import itemgetter
from typing import Any

from hitherto.aside import aside
from hitherto.core.cross_session import CrossSession
from hitherto.core.log.branch import Branch
from hitherto.core.log.conversations import AgentDefaults
from hitherto.core.log.frontier import DigestAction, Frontier
from hitherto.core.log.head import (
    PATIENCE,
    H,
    Head,
    HeadWithCalls,
    LatestDigest,
    OpenCall,
    RunningDigest,
    StandingSummary,
)
from hitherto.core.log.message import Role, Sums
from hitherto.core.log.ranges import Ranges, before, clipped, joined, without
from hitherto.frozen import build
from hitherto.store.rows import integers, with_offset


async def head_from(row: Any) -> Head:
    """A head from a row of the statements `head` and `head_at`, with its columns by name."""
    return await aside(len(row.retracted) + len(row.erased), _head_from, row, Head)


async def head_with_calls(row: Any, calls: Sequence[Sequence[Any]]) -> HeadWithCalls:
    """As `head_from`, with the open calls that were asked for, from their rows."""
    opened = {call: OpenCall(seq=seq, group=group, turn=turn, tool=tool) for call, seq, group, turn, tool in calls}
    size = len(row.retracted) + len(row.erased)
    return await aside(size, partial(_head_from, open_calls=opened), row, HeadWithCalls)


def call_hash(call: str) -> bytes:
    """What an open call is found by: an id may be too long for an index."""
    return hashlib.sha256(call.encode()).digest()


def _head_from(row: Any, kind: type[H], **more: object) -> H:
    standing, standing_sums = None, Sums()
    if row.digest is not None:
        standing = StandingSummary(
            id=row.digest,
            start=row.digest_start,
            end=row.digest_end,
            text=row.digest_text,
            spec=row.digest_spec,
            tokens=row.digest_tokens,
        )
    if row.digest_sum_tokens is not None:
        standing_sums = Sums(
            row.digest_sum_tokens, row.digest_sum_turns, row.digest_sum_dialogue, row.digest_sum_results
        )
    # One text, as most of them are empty: to parse each by itself takes eight times as long.
    texts = (row.awaited, row.late, row.erased, row.retracted, row.frontiers, row.extracted, row.running or "[]")
    awaited, late, erased, retracted, frontiers, extracted, running = json.loads(f"[{','.join(texts)}]")
    return build(
        kind,
        ref=row.ref,
        rev=row.rev,
        messages_rev=row.messages_rev,
        next_seq=row.next_seq,
        sums=Sums(row.tokens, row.turns, row.dialogue, row.results),
        view_start=row.view_start,
        view_sums=Sums(row.view_tokens, row.view_turns, row.view_dialogue, row.view_results),
        closed=row.closed,
        policy=row.policy,
        agent_policy=row.agent_policy,
        cross_session=CrossSession.from_json(row.cross_session),
        agent_cross_session=CrossSession.from_json(row.agent_cross_session),
        latest=LatestDigest(digest=row.latest_digest, conversation=row.latest_conversation, text=row.latest_text),
        awaited=tuple([(turn, number) for turn, number in awaited]),
        late=tuple([(turn, seq) for turn, seq in late]),
        erased=before(tuple([(first, last) for first, last in erased]), row.next_seq),
        retractions=len(retracted) if row.present else 0,
        retracted=before(joined([(first, last) for first, last, at in retracted if at <= row.rev]), row.next_seq),
        # without those that end before the view
        frontiers={stage: _frontier(one) for stage, one in frontiers.items() if one[2] >= row.view_start},
        next_expiry=row.next_expiry,
        now=max(row.clock, row.updated_at),
        clock=row.clock,
        run_start=row.run_start,
        failures=row.failures,
        resume_at=row.resume_at,
        digest=standing,
        digest_sums=standing_sums,
        running=tuple(map(_running, sorted(running, key=itemgetter("id")))),
        subject=row.subject,
        private=row.private,
        extracted=tuple([(first, last) for first, last in extracted]),
        facts_due_at=row.facts_due_at,
        facts_resume_at=row.facts_resume_at,
        finish_seq=row.finish_seq,
        ttl=row.ttl,
        time_zone=row.time_zone,
        **more,
    )


def _frontier(one: list[Any]) -> Frontier:
    """A frontier from what `_frontier_values` wrote."""
    action, start, end, sums, kept_from, kept_sums, digest, family, tokens, freed, since = one
    return Frontier(
        action=DigestAction(action),
        start=start,
        end=end,
        sums=Sums(*sums),
        kept_from=kept_from,
        kept_sums=Sums(*kept_sums),
        digest=digest,
        family=family,
        tokens=tokens,
        freed=freed,
        since=since,
    )


def _running(found: dict[str, Any]) -> RunningDigest:
    created_at, action = datetime.fromisoformat(found.pop("created_at")), DigestAction(found.pop("action"))
    return RunningDigest(**found, created_at=created_at, action=action)


def retracted_and(row: Any, retract: Ranges, rev: int) -> str:
    """The new value of the column `retracted`, after these were retracted at `rev`: JSON, [first, last, rev] each,
    ascending."""
    earlier: list[tuple[int, int, int]] = [(first, last, at) for first, last, at in json.loads(row.retracted)]
    gone = joined((first, last) for first, last, _ in earlier)
    now = ((first, last, rev) for first, last in without(retract, gone))
    return json.dumps(sorted([*earlier, *now]))


def retracted_with(row: Any, seq: int) -> Ranges:
    """What follows message `seq`, and was retracted with it, by the column `retracted`."""
    parts: list[tuple[int, int, int]] = json.loads(row.retracted)
    rev = next((at for first, last, at in parts if first <= seq <= last), None)
    return clipped(joined((first, last) for first, last, at in parts if at == rev), seq + 1)


def retracted_before(row: Any, stop: int) -> str:
    """The value of the column `retracted` for the messages below `stop` alone."""
    parts: list[tuple[int, int, int]] = json.loads(row.retracted)
    return json.dumps([(first, min(last, stop - 1), at) for first, last, at in parts if first < stop])


def branch_from(row: Sequence[Any], retracted: str, next_seq: int) -> Branch:
    """A branch from a row of the statement `ways`, with two columns of its conversation."""
    seq, parent, text, said_at, offset, created_at, rev, role = row
    parts: list[tuple[int, int, int]] = json.loads(retracted)
    if rev is None:
        gone = joined((first, last) for first, last, _ in parts)
        last = gone[-1][0] - 1 if gone and gone[-1][1] == next_seq - 1 else next_seq - 1
    else:
        last = max(last for _, last, at in parts if at == rev)
    said = created_at if said_at is None else with_offset(said_at, offset or 0)
    return Branch(parent=parent, seq=seq, last=last, role=Role(role), text=text, said_at=said, shown=rev is None)


def retracted_without(row: Any, restored: Ranges) -> str:
    """The new value of the column `retracted` without messages that are shown again."""
    earlier: list[tuple[int, int, int]] = json.loads(row.retracted)
    left = [(*part, at) for first, last, at in earlier for part in without(((first, last),), restored)]
    return json.dumps(sorted(left))


def head_values(head: Head) -> dict[str, Any]:
    """What `update_conversation` binds."""
    sums, view = head.sums, head.view_sums
    return {
        "rev": head.rev,
        "messages_rev": head.messages_rev,
        "next_seq": head.next_seq,
        "tokens": sums.tokens,
        "turns": sums.turns,
        "dialogue": sums.dialogue,
        "results": sums.results,
        "view_start": head.view_start,
        "view_tokens": view.tokens,
        "view_turns": view.turns,
        "view_dialogue": view.dialogue,
        "view_results": view.results,
        "closed": head.closed,
        "run_start": head.run_start,
        "policy": head.policy,
        "cross_session": head.cross_session.to_json(),
        "latest_digest": head.latest.digest,
        "frontiers": json.dumps({stage: _frontier_values(one) for stage, one in head.frontiers.items()})
        if head.frontiers
        else "{}",
        "awaited": json.dumps(head.awaited),
        "late": json.dumps(head.late),
        "failures": head.failures,
        "resume_at": head.resume_at,
        "erased": json.dumps(head.erased),
        "next_expiry": head.next_expiry,
        "subject": head.subject,
        "private": head.private,
        "extracted": json.dumps(head.extracted),
        "facts_due_at": head.facts_due_at,
        "facts_resume_at": head.facts_resume_at,
        "finish_seq": head.finish_seq,
    }


def open_call_values(calls: Mapping[str, OpenCall]) -> dict[str, Any]:
    """What `insert_open_calls` binds: an array a column."""
    return {
        "hashes": [call_hash(call) for call in calls],
        "ids": list(calls),
        "seqs": integers([one.seq for one in calls.values()]),
        "groups": integers([one.group for one in calls.values()]),
        "turns": integers([one.turn for one in calls.values()]),
        "tools": [one.tool for one in calls.values()],
    }


def awaited_values(head: Head) -> dict[str, Any]:
    """What `count_awaited` binds."""
    return {"turns": head.sums.turns - PATIENCE, "view_start": head.view_start}


def _frontier_values(one: Frontier) -> list[Any]:
    sums = [[s.tokens, s.turns, s.dialogue, s.results] for s in (one.sums, one.kept_sums)]
    beside = [one.digest, one.family, one.tokens, one.freed, one.since]
    return [one.action.value, one.start, one.end, sums[0], one.kept_from, sums[1], *beside]


def defaults_from(row: Sequence[Any]) -> AgentDefaults:
    policy, crosses, ttl, zone = row
    return AgentDefaults(policy=policy, cross_session=CrossSession.from_json(crosses), ttl=ttl, time_zone=zone)
