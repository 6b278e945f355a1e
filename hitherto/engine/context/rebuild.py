"""Rebuilding a context from its manifest."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import cast

from hitherto.core.context.manifest import Manifest
from hitherto.core.context.request import ContextRequest
from hitherto.core.cross_session import CrossSession
from hitherto.core.policy.policy import stored
from hitherto.engine.context.context import Context, request_sha256
from hitherto.engine.context.facts import again as known_again
from hitherto.engine.context.fit import ContextBuilder
from hitherto.engine.context.injection import again
from hitherto.engine.context.recalled_texts import again as recalled_again
from hitherto.errors import InvalidInput, NotFound, NotReproducible

NOTHING_ELSE = CrossSession(latest=False, triggers=False, always=False)


async def rebuilt(contexts: ContextBuilder, manifest: Manifest) -> Context:
    """See `Conversation.rebuild`."""
    if not isinstance(cast(object, manifest), Manifest):
        raise InvalidInput(
            f"what is to be rebuilt is {manifest!r}; give a Manifest: context.manifest, or Manifest.from_json of one"
        )
    handle, services = contexts.handle, contexts.handle.services
    scope = handle.scope
    theirs = (manifest.tenant, manifest.user, manifest.agent, manifest.conversation)
    if theirs != (scope.tenant, scope.user, scope.agent, handle.id):
        raise InvalidInput(f"the manifest is not of {handle.id!r} in {scope}; ask the conversation it names")
    asked = manifest.request
    try:
        incoming = tuple(services.read(json.loads(raw), wire) for wire, raw in asked.incoming)
        tools = tuple(json.loads(tool) for tool in asked.tools)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InvalidInput(f"the manifest's request is not what a context wrote: {error}") from error
    request = ContextRequest(
        incoming=incoming,
        instructions=asked.instructions,
        tools=tools,
        budget=manifest.budget,
        reserve=manifest.reserve,
        counter=services.counter(asked.model or manifest.encoding),
        codec=services.codec(manifest.wire),
        model=asked.model,
        family=asked.family,
        recall_tokens=asked.recall_tokens,
        facts_room=asked.facts_room,
        cache_breakpoints=asked.cache_breakpoints,
    )
    source = await again(handle, manifest.injected)
    try:
        made = await contexts.fitted(
            request,
            stored(json.dumps(manifest.policy)),
            manifest.rev,
            latest=source,
            cross_session=NOTHING_ELSE,
            recall=await recalled_again(handle, manifest.recalled),
            facts=await known_again(handle, manifest.facts) or False,
        )
    except NotFound as error:
        raise NotReproducible(f"{handle.id!r} does not reach revision {manifest.rev}; was it erased since?") from error
    if request_sha256(made.request) != manifest.sha256:
        raise NotReproducible(
            f"{handle.id!r} at revision {manifest.rev} no longer gives the context of this manifest: something it "
            "showed was erased since"
        )
    return replace(
        made,
        manifest=made.manifest.model_copy(
            update={
                "missing": manifest.missing,
                "policy_from": manifest.policy_from,
                "facts": manifest.facts,
                "left_out": manifest.left_out,
            }
        ),
    )
