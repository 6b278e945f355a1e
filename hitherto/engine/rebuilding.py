"""The context that a manifest is the receipt of, made once more."""

from __future__ import annotations

import json
from dataclasses import replace

from hitherto.core.ask import Ask
from hitherto.core.manifest import Manifest
from hitherto.core.policy import stored
from hitherto.engine.context import Context, request_sha256
from hitherto.engine.fitting import Contexts
from hitherto.engine.injecting import again
from hitherto.engine.knowing import again as known_again
from hitherto.engine.recollections import again as recalled_again
from hitherto.errors import InvalidInput, NotFound, Unreproducible


async def rebuilt(contexts: Contexts, manifest: Manifest) -> Context:
    """The context that `manifest` is the receipt of; see `Conversation.rebuild`."""
    place, parts = contexts.place, contexts.place.parts
    scope = place.scope
    theirs = (manifest.tenant, manifest.user, manifest.agent, manifest.conversation)
    if theirs != (scope.tenant, scope.user, scope.agent, place.id):
        raise InvalidInput(f"the manifest is not of {place.id!r} in {scope}; ask the conversation it names")
    asked = manifest.request
    try:
        incoming = tuple(parts.read(json.loads(raw), wire) for wire, raw in asked.incoming)
        tools = tuple(json.loads(tool) for tool in asked.tools)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InvalidInput(f"the manifest's request is not what a context wrote: {error}") from error
    ask = Ask(
        incoming=incoming,
        instructions=asked.instructions,
        tools=tools,
        budget=manifest.budget,
        reserve=manifest.reserve,
        counter=parts.counter(asked.model or manifest.encoding),
        codec=parts.codec(manifest.wire),
        model=asked.model,
        family=asked.family,
        recall_tokens=asked.recall_tokens,
        facts_room=asked.facts_room,
    )
    source = await again(place, manifest.injected)
    try:
        made = await contexts.fitted(
            ask,
            stored(json.dumps(manifest.policy)),
            manifest.rev,
            injection=False if source is None else source,
            recall=await recalled_again(place, manifest.recalled),
            facts=await known_again(place, manifest.facts) or False,
        )
    except NotFound as error:
        raise Unreproducible(f"{place.id!r} does not reach revision {manifest.rev}; was it erased since?") from error
    if request_sha256(made.request) != manifest.sha256:
        raise Unreproducible(
            f"{place.id!r} at revision {manifest.rev} no longer gives the context of this manifest: something it "
            "showed was erased since"
        )
    return replace(
        made,
        manifest=made.manifest.model_copy(
            update={
                "missing": manifest.missing,
                "policy_from": manifest.policy_from,
                "facts": manifest.facts,
            }
        ),
    )
