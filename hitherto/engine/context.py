"""A finished context: what goes to the model, and its receipt."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hitherto.core.ask import Ask
from hitherto.core.context import Assembled
from hitherto.core.group import groups
from hitherto.core.head import Head
from hitherto.core.manifest import FactsShown, Injected, Manifest, PolicyFrom, Request
from hitherto.core.message import Kind, Logged, Payload, to_json
from hitherto.core.policy import Policy
from hitherto.core.scope import Scope
from hitherto.core.view import View
from hitherto.errors import InvalidBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What one turn sends to a model.

    `request` are the arguments for the API call (`messages=…` for OpenAI chat; `instructions=…, input=…` for OpenAI
    responses; `system=…, messages=…` for Anthropic), with `tools` if there were any. `manifest` is the receipt.
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


def finished(
    ask: Ask,
    made: Assembled,
    *,
    shown: View,
    head: Head,
    policy: Policy,
    policy_from: PolicyFrom,
    scope: Scope,
    conversation: str,
    injected: Injected | None,
    facts: FactsShown | None,
    missing: list[str],
) -> Context:
    """The context of an assembled payload, with its manifest."""
    request = ask.codec.request(system=made.system, items=made.items, tools=ask.tools)
    manifest = Manifest(
        tenant=scope.tenant,
        user=scope.user,
        agent=scope.agent,
        conversation=conversation,
        rev=head.rev,
        next_seq=head.next_seq,
        policy=policy.to_json(),
        policy_from=policy_from,
        wire=ask.codec.name,
        encoding=ask.counter.name,
        exact=ask.counter.exact,
        budget=ask.budget,
        reserve=ask.reserve,
        total=made.total,
        sections=made.sections,
        fates=list(made.fates),
        digest=shown.digest.id if made.digest and shown.digest is not None else None,
        opaque=shown.opaque if made.digest else None,
        injected=injected if made.injection else None,
        facts=facts if facts is None or made.facts else facts.model_copy(update={"shown": []}),
        recalled=list(made.recalled),
        missing=missing,
        request=Request(
            incoming=[(message.wire, message.raw) for message in ask.incoming],
            instructions=ask.instructions,
            tools=[to_json(tool, what="a tool schema") for tool in ask.tools],
            model=ask.model,
            family=ask.family,
            recall_tokens=ask.recall_tokens,
            facts_room=ask.facts_room,
        ),
        sha256=request_sha256(request),
    )
    return Context(request=request, manifest=manifest)


def tools_from(ask: Ask, head: Head, at: int | None) -> int | None:
    """From where on tool items must be read so that the calls which incoming results answer are at hand."""
    waiting = dict.fromkeys(head.open_calls)
    found: list[int] = []
    for message in ask.incoming:
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
    """Whether the group of the newest message may begin before what was read, in a view that begins at `start`."""
    if not loaded or loaded[0].seq <= start:
        return False
    newest = next(group for group in reversed(groups(loaded, head.retracted)) if group.last == loaded[-1].seq)
    return newest.orphan or (newest.first <= loaded[0].seq and newest.members[0].message.kind is not Kind.TEXT)
