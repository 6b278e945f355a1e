"""A finished context: what goes to the model, and its receipt."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hitherto.core.context.fit import Fitted
from hitherto.core.context.gathered import Gathered
from hitherto.core.context.manifest import FactsShown, Injected, Manifest, PolicyFrom, SavedRequest
from hitherto.core.context.request import ContextRequest, StablePart
from hitherto.core.log.group import groups, newest
from hitherto.core.log.head import Head, HeadWithCalls
from hitherto.core.log.message import Logged, Payload
from hitherto.core.policy.policy import Policy
from hitherto.core.scope import Scope
from hitherto.errors import InvalidBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What one turn sends to a model.

    `request` are the arguments for the API call (`messages=…` for OpenAI chat; `instructions=…, input=…` for OpenAI
    responses; `system=…, messages=…` for Anthropic), with `tools` if there were any, and with cache breakpoints where
    the API takes them. `manifest` is the receipt.
    """

    request: Mapping[str, Any]
    manifest: Manifest

    @property
    def messages(self) -> list[Payload]:
        """The list of items in the request, whatever its API calls it."""
        return list(self.request["messages"] if "messages" in self.request else self.request["input"])

    @property
    def tokens(self) -> int:
        """The tokens of the whole request as sent, counted as the manifest's `encoding` says."""
        return self.manifest.total


def request_sha256(request: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(request, ensure_ascii=True).encode()).hexdigest()


def cache_key(scope: Scope, conversation: str) -> str:
    """A name of the conversation for a provider's prompt cache, always the same, that does not tell whose it is. It has
    64 characters, the most that OpenAI takes."""
    names = [scope.tenant, scope.user, scope.agent, conversation]
    return hashlib.sha256(json.dumps(names).encode()).hexdigest()


def finished(
    request: ContextRequest,
    made: Fitted,
    *,
    gathered: Gathered,
    policy: Policy,
    policy_from: PolicyFrom,
    scope: Scope,
    conversation: str,
    injected: Injected | None,
    facts: FactsShown | None,
    missing: list[str],
) -> Context:
    """The context of a payload, with its manifest."""
    head, shown = gathered.head, gathered.view
    stable = _stable(made, facts) if request.cache_breakpoints else None
    sections = _sections(made, request)
    sent = request.codec.request(
        system=made.system,
        items=made.items,
        tools=request.tools,
        stable=stable,
        cache_key=cache_key(scope, conversation),
    )
    manifest = Manifest(
        tenant=scope.tenant,
        user=scope.user,
        agent=scope.agent,
        conversation=conversation,
        rev=head.rev,
        next_seq=head.next_seq,
        policy=policy.to_json(),
        policy_from=policy_from,
        wire=request.codec.name,
        encoding=request.counter.name,
        exact=request.counter.exact,
        budget=request.budget,
        reserve=request.reserve,
        total=sum(sections.values()),
        sections=sections,
        fates=list(made.fates),
        incoming_fates=list(made.incoming),
        digest=shown.digest.id if made.digest and shown.digest is not None else None,
        opaque=shown.opaque if made.digest else None,
        injected=injected if made.injection else None,
        facts=facts if facts is None or made.facts else facts.model_copy(update={"shown": [], "newer": []}),
        recalled=list(made.recalled),
        left_out=list(made.left_out),
        missing=missing,
        request=SavedRequest(
            incoming=[(message.wire, message.raw) for message in request.incoming],
            instructions=request.instructions,
            tools=list(request.tools_text),
            model=request.model,
            family=request.family,
            recall_tokens=request.recall_tokens,
            facts_room=request.facts_room if made.facts else 0,
            cache_breakpoints=request.cache_breakpoints,
            join_neighbors=request.join_neighbors,
            days=None if request.days is None else list(request.days),
            upto=request.upto,
        ),
        sha256=request_sha256(sent),
    )
    return Context(request=sent, manifest=manifest)


def _sections(made: Fitted, request: ContextRequest) -> dict[str, int]:
    """The tokens by section, as sent: where neighbors are joined, what that saves is taken off the messages, and what
    it adds is framing."""
    sections, grown = dict(made.sections), request.growth(made.system, made.items)
    sections["framing"] += max(grown, 0)
    saved = max(-grown, 0)
    for name in sorted(sections, key=lambda name: name != "verbatim"):
        taken = min(saved, sections[name])
        sections[name] -= taken
        saved -= taken
    return sections


def _stable(made: Fitted, facts: FactsShown | None) -> StablePart:
    """The stable part of the payload: nothing where the instructions have facts chosen for the incoming message."""
    chosen = (
        made.facts
        and facts is not None
        and facts.place == "system"
        and len(facts.shown) + len(facts.newer) < facts.known
    )
    return StablePart() if chosen else made.stable


def tools_from(request: ContextRequest, head: HeadWithCalls, at: int | None) -> int | None:
    """The seq from which on tool items must be read, so that the calls that incoming results answer are included; None
    if there are no such results. Without `at`, raises InvalidBatch for a result whose call does not wait for one."""
    waiting = dict.fromkeys(head.open_calls)
    found: list[int] = []
    for message in request.incoming:
        for call in message.answers:
            if call in head.open_calls:
                found.append(head.open_calls[call].group)
            elif at is not None:
                # A past head does not know which calls were open then; every tool item there may be one of them.
                found.append(head.view_start)
            elif call not in waiting:
                raise InvalidBatch(
                    f"the incoming result answers tool call {call!r}, but no such call is waiting for one in the log; "
                    "append the call first"
                )
        waiting.update(dict.fromkeys(message.calls))
    return min(found, default=None)


def begins_earlier(loaded: Sequence[Logged], start: int, head: Head) -> bool:
    """Whether the newest group that can be sent may begin before what was read, in a view that begins at `start`."""
    if not loaded or loaded[0].seq <= start:
        return False
    found = groups(loaded, head.retracted)
    latest = newest(found)
    if latest is None or any(group.orphan and group.last > latest.last for group in found):
        return True
    return latest.first <= loaded[0].seq and not latest.members[0].message.opens_turn
