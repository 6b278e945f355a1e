"""Firing the stages that are due, after an append and when a digest ends: answers the probes of the plan, and turns its
firings into digest rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hitherto.core.changes import Changes
from hitherto.core.digests.digest import DigestJob, FailedDigest, Needs, NewDigest
from hitherto.core.log.append import found_in, reached, tool_items
from hitherto.core.log.frontier import DigestAction
from hitherto.core.log.head import Head, HeadWithCalls
from hitherto.core.log.message import Kind, Logged
from hitherto.core.log.probe import AnyProbe, ProbeAnswer, SpeakerAt, ToolIds, ToolTokens
from hitherto.core.policy.plan import Firing, Plan, advanced, plan
from hitherto.core.policy.policy import Policy, UnreadablePolicy, policy_json
from hitherto.core.scope import Scope
from hitherto.engine.handle import Handle
from hitherto.engine.services import Services
from hitherto.errors import InvalidPolicy, StoreError
from hitherto.logs import logger

if TYPE_CHECKING:
    from hitherto.store.unit import Unit

log = logger("hitherto.digest")

MOST_STAGES = 100
"""The most stages of which a conversation's head can have a frontier. Each policy with other numbers has others."""

MOST_RESUMED = 5
"""After more failures in a row, a conversation's next digest waits for an append."""


async def fired(
    handle: Handle,
    policy: Policy,
    head: HeadWithCalls,
    unit: Unit,
    *,
    batch: Sequence[Logged] = (),
    round_may_end: bool = False,
    rests: bool = False,
) -> tuple[HeadWithCalls, tuple[NewDigest, ...]]:
    """The rows of the stages that are due at `head`, and the head with the frontiers of those that take effect at once,
    and with the time at which a worker has what is still unread read for facts. With `rests`, that time has come.

    `batch` are messages that the store does not have yet. Only with some, or where `round_may_end`, are the triggers
    due that wait for the end of a round. If a user-defined trigger fails, this is logged and nothing fires: the message
    is worth more. So it is where the head would have more than MOST_STAGES stages."""
    planned = await _planned(handle, policy, head, batch, unit, appended=round_may_end or bool(batch), rests=rests)
    waits = head.facts_resume_at is not None and head.clock < head.facts_resume_at
    firings = [one for one in planned.firings if not (waits and one.stage.action.digest_action is DigestAction.FACTS)]
    if rests or (policy.doing(DigestAction.FACTS) and handle.services.finds_facts):
        due, rest = head.facts_due_at, handle.services.settings.rest_after
        if batch or rests or due is None:
            due = head.clock + rest if rest else None
        head = replace(head, facts_due_at=due if planned.unread else None)
    if not firings:
        return head, ()
    known = {*head.frontiers, *(one.stage for one in head.running if one.action is not DigestAction.SUMMARIZE)}
    fresh = {one.stage.fingerprint for one in firings if one.stage.action.digest_action is not DigestAction.SUMMARIZE}
    if fresh - known and len(fresh | known) > MOST_STAGES:
        log.warning(
            "%r has had %s different stages that cut, redact, chunk or compact, and can have no more, so nothing was "
            "done for the policy %r; use one that the conversation had before, or clear it",
            handle.id,
            MOST_STAGES,
            policy.name,
            tenant=handle.scope.tenant,
            conversation=handle.id,
        )
        return head, ()
    for firing in firings:
        head = advanced(head, firing) if firing.stage.action.at_once else head
    return head, tuple(_new_digest(firing, policy, handle.services) for firing in firings)


async def _planned(
    handle: Handle, policy: Policy, head: Head, batch: Sequence[Logged], unit: Unit, *, appended: bool, rests: bool
) -> Plan:
    services = handle.services
    planning = plan(policy, head, services.means(handle.budget), appended=appended, rests=rests)
    conversation = handle.id
    try:
        probe = next(planning)
        while True:
            probe = planning.send(await _answer(probe, batch, unit))
    except StopIteration as end:
        found: Plan = end.value
    except StoreError:
        raise
    except Exception:  # user-defined parts of a policy may raise anything
        log.exception("The policy %s of %s failed; no digest was started", policy.name, conversation)
        return Plan()
    if found.held and head.resting:
        log.debug("Summarization of %s waits until %s: digests failed", conversation, head.resume_at)
    elif found.held:
        log.debug("Summarization already in progress for %s", conversation)
    if found.nothing:
        log.debug("No new messages to summarize for %s", conversation)
    return found


async def _answer(probe: AnyProbe, batch: Sequence[Logged], unit: Unit) -> ProbeAnswer:
    if isinstance(probe, ToolIds):
        items = (await unit.probe(probe)) if probe.start < unit.head.next_seq else ()
        assert isinstance(items, tuple), "the answer to ToolIds"
        return (*items, *tool_items(one for one in batch if one.seq >= probe.start))
    if isinstance(probe, SpeakerAt):
        return found_in(batch, probe) or await unit.probe(probe)
    if not isinstance(probe, ToolTokens):
        known = reached(unit.head.sums, probe, unit.head.next_seq)
        return await unit.probe(probe) if known else found_in(batch, probe)
    stored = (await unit.probe(probe)) if probe.start < unit.head.next_seq else 0
    assert isinstance(stored, int), "the answer to ToolTokens"
    kinds = (Kind.TOOL_RESULT, Kind.TOOL_CALL) if probe.calls else (Kind.TOOL_RESULT,)
    own = [
        max(one.tokens - probe.leaves, 0)
        for one in batch
        if probe.start <= one.seq <= probe.end
        and one.message.kind in kinds
        and not set(one.message.tools) & set(probe.never)
    ]
    return stored + sum(own)


def _new_digest(firing: Firing, policy: Policy, services: Services) -> NewDigest:
    """The row of a firing: completed at once where nothing is to be made, else in progress. Where this process has a
    language model, only one that has one too makes it."""
    action, at_once = firing.stage.action.digest_action, firing.stage.action.at_once
    needs = Needs.COMPACTOR if action is DigestAction.COMPACT else Needs.MODEL
    return NewDigest(
        stage=firing.stage.fingerprint,
        spec=firing.stage.text,
        action=action,
        start=firing.start,
        end=firing.end,
        base=firing.base,
        completed=at_once,
        tokens=firing.freed if at_once else 0,
        freed=firing.freed_so_far,
        since=firing.since,
        kept_from=firing.kept.seq if firing.kept.seq <= firing.end else None,
        policy=None if at_once else policy_json(policy),
        needs=needs if not at_once and needs in services.able else None,
    )


async def committed(handle: Handle, unit: Unit, changes: Changes) -> tuple[tuple[int, ...], list[int]]:
    """Commit, and submit the digests that are to be made; returns the ids of all new rows, and of those. Digests whose
    commit was under way when the task was cancelled are found by the workers themselves."""
    ids = await unit.commit(changes)
    begun = [digest for digest, row in zip(ids, changes.fire, strict=True) if not row.completed]
    for digest in begun:
        handle.services.queue.submit(DigestJob(handle.scope.tenant, digest))
    return ids, begun


async def refire(handle: Handle, request: Policy | None = None, *, round_may_end: bool = False) -> tuple[int, ...]:
    """Fire the stages that are due in a conversation, such as one of which digests were superseded. Returns the ids of
    what fired."""
    async with handle.services.store.write(handle.scope, handle.id) as unit:
        policy, _ = handle.governing(unit.head, request)
        head, fire = await fired(handle, policy, unit.head, unit, round_may_end=round_may_end)
        if not fire:
            return ()
        ids, _ = await committed(handle, unit, Changes(head=head, fire=fire, background=True))
    return ids


async def resumed(services: Services, failed: FailedDigest) -> None:
    """Fire the stages that are due in a conversation that has rested after a digest failed, so that what is left of it
    does not wait for another append. After several failures in a row it does: then no further try is paid for. Raises
    InvalidPolicy where this process cannot read its policy."""
    handle = Handle(services, failed.scope, failed.conversation)
    async with services.store.write(failed.scope, failed.conversation) as unit:
        head, fire = unit.head, tuple[NewDigest, ...]()
        row = await unit.digest(failed.digest)
        if row is None or head.resume_at is None or head.clock < head.resume_at:
            return
        head = replace(head, resume_at=None)
        if head.failures <= MOST_RESUMED:
            head, fire = await fired(handle, _readable(handle.resuming(head, row)), head, unit)
        await committed(handle, unit, Changes(head=head, fire=fire, background=True))


async def read_rested(services: Services, scope: Scope, conversation: str) -> None:
    """Have what is left of a conversation read for facts, if it rests: nothing was appended for the setting
    `rest_after`. Raises InvalidPolicy where this process cannot read its policy."""
    handle = Handle(services, scope, conversation)
    async with services.store.write(scope, conversation) as unit:
        head = unit.head
        if head.facts_due_at is None or head.clock < head.facts_due_at:
            return
        policy, _ = handle.governing(head, None)
        head, fire = await fired(handle, _readable(policy), head, unit, rests=True)
        await committed(handle, unit, Changes(head=head, fire=fire, background=True))


def _readable(policy: Policy) -> Policy:
    """The policy. Raises InvalidPolicy where this process cannot read it."""
    if isinstance(policy, UnreadablePolicy):
        raise InvalidPolicy(f"its policy cannot be read here: {policy.why}")
    return policy
