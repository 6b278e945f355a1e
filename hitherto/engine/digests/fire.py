"""What an append fires: answers the probes of the plan, and turns the firings into digest rows."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hitherto.core.log.append import found_in, reached
from hitherto.core.log.head import Head
from hitherto.core.log.message import Kind, Logged
from hitherto.core.log.probe import AnyProbe, Freeable, Mark, ToolTokens
from hitherto.core.policy.plan import Firing, Plan, plan
from hitherto.core.policy.policy import Policy
from hitherto.engine.handle import Handle
from hitherto.errors import StoreError
from hitherto.logs import logger
from hitherto.ports.digests import NewDigest
from hitherto.ports.log import Unit

log = logger("hitherto.digest")


async def planned(
    handle: Handle, policy: Policy, head: Head, batch: Sequence[Logged], unit: Unit
) -> tuple[Firing, ...]:
    """What is due once `batch` is in the log. Probes are answered by the store or, for messages it does not have yet,
    from `batch`. If a user-defined trigger fails, this is logged and nothing fires: the message is worth more."""
    planning = plan(policy, head, handle.services.window, family=handle.services.family(None))
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
        return ()
    if found.held:
        log.debug("Summarization already in progress for %s", conversation)
    if found.nothing:
        log.debug("No new messages to summarize for %s", conversation)
    return found.firings


async def _answer(probe: AnyProbe, batch: Sequence[Logged], unit: Unit) -> Mark | Freeable | None:
    if not isinstance(probe, ToolTokens):
        known = reached(unit.head.sums, probe, unit.head.next_seq)
        return await unit.probe(probe) if known else found_in(batch, probe)
    stored = Freeable(0, 0)
    if probe.start < unit.head.next_seq:
        found = await unit.probe(probe)
        assert isinstance(found, Freeable), "the answer to ToolTokens"
        stored = found
    kinds = (Kind.TOOL_RESULT, Kind.TOOL_CALL) if probe.calls else (Kind.TOOL_RESULT,)
    own = [
        one.tokens
        for one in batch
        if probe.start <= one.seq <= probe.end
        and one.message.kind in kinds
        and not set(one.message.tools) & set(probe.never)
    ]
    return Freeable(stored.tokens + sum(own), stored.messages + len(own))


def new_digest(firing: Firing) -> NewDigest:
    """The row of a firing: completed at once where no model is needed, else in progress."""
    return NewDigest(
        stage=firing.stage.fingerprint,
        spec=json.dumps(firing.stage.to_json()),
        action=firing.stage.action.digest_action,
        start=firing.start,
        end=firing.end,
        base=firing.base,
        completed=firing.stage.action.at_once,
        tokens=firing.freed if firing.stage.action.at_once else 0,
        freed=firing.freed_so_far,
        since=firing.since,
        kept_from=firing.kept.seq if firing.kept.seq <= firing.end else None,
    )
