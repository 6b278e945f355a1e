"""Keeping contexts, and building them again from their manifests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

from hitherto.core.context.manifest import Manifest, SavedItems, record_of
from hitherto.core.context.recalled_block import with_recalled
from hitherto.core.context.request import ContextRequest
from hitherto.core.log.message import Message
from hitherto.core.policy.policy import stored
from hitherto.engine.context.build import fitted, fitting_of
from hitherto.engine.context.context import Context, finished, request_sha256
from hitherto.engine.context.facts import again as known_again
from hitherto.engine.context.injection import again
from hitherto.engine.context.log_reader import LogReader
from hitherto.engine.context.recalled_texts import again as recalled_again
from hitherto.engine.context.view import items_within
from hitherto.engine.handle import Handle
from hitherto.errors import HithertoError, InvalidInput, NotFound, NotReproducible
from hitherto.logs import logger

log = logger("hitherto")


async def rebuilt(handle: Handle, manifest: Manifest) -> Context:
    """See `Conversation.rebuild`."""
    if not isinstance(cast(object, manifest), Manifest):
        raise InvalidInput(
            f"what is to be rebuilt is {manifest!r}; give a Manifest: context.manifest, or Manifest.from_json of one"
        )
    services, scope = handle.services, handle.scope
    theirs = (manifest.tenant, manifest.user, manifest.agent, manifest.conversation)
    if theirs != (scope.tenant, scope.user, scope.agent, handle.id):
        raise InvalidInput(f"the manifest is not of {handle.id!r} in {scope}; ask the conversation it names")
    asked = manifest.request
    if asked.items is not None:
        return await _items_again(handle, manifest, asked.items)
    try:
        incoming = tuple(services.codec(wire).read(json.loads(raw)) for wire, raw in asked.incoming)
        tools = tuple(json.loads(tool) for tool in asked.tools)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InvalidInput(f"the manifest's request is not what a context wrote: {error}") from error
    codec = services.codec(manifest.wire)
    request = ContextRequest(
        incoming=incoming,
        instructions=asked.instructions,
        budget=manifest.budget,
        reserve=manifest.reserve,
        counter=services.counter(asked.model or manifest.encoding),
        codec=codec.joining() if asked.join_neighbors else codec,
        model=asked.model,
        family=asked.family,
        recall_tokens=asked.recall_tokens,
        facts_room=asked.facts_room,
        cache_breakpoints=asked.cache_breakpoints,
        join_neighbors=asked.join_neighbors,
        days=None if asked.days is None else tuple(asked.days),
        upto=asked.upto,
    ).with_tools(tools, asked.tools)
    source = await again(handle, manifest.injected)
    facts = await known_again(handle, manifest.facts)
    request = replace(request, injected=None if source is None else source.text)
    request = request if facts is None else facts.known_to(request)
    recalled = await recalled_again(handle, manifest.recalled)
    policy = stored(json.dumps(manifest.policy))
    try:
        calls = {call for message in incoming for call in message.answers}
        head, *_ = await handle.head_and_known(None, manifest.rev, upto=asked.upto, facts=False, calls=calls)
    except NotFound as error:
        raise _out_of_reach(manifest) from error
    reader = LogReader(handle)
    shown, request = await reader.seen(policy, head, request)
    if manifest.digest is None and manifest.opaque is None:
        shown = replace(shown, digest=None, opaque=None)
    gathered = await reader.gathered(request, shown, head, manifest.rev)
    made = await fitted(request, await fitting_of(request, gathered))
    made = with_recalled(made, recalled, request, own=(scope.agent, handle.id))
    context = finished(
        request,
        made,
        gathered=gathered,
        policy=policy,
        policy_from=manifest.policy_from,
        scope=scope,
        conversation=handle.id,
        injected=None if source is None else source.says,
        facts=manifest.facts,
        missing=manifest.missing,
    )
    _check(manifest, context.request)
    return replace(context, manifest=context.manifest.model_copy(update={"left_out": manifest.left_out}))


async def _items_again(handle: Handle, manifest: Manifest, saved: SavedItems) -> Context:
    """The items that a session was shown, as the input of a request."""
    try:
        items, _ = await items_within(
            saved.budget,
            handle,
            policy=stored(json.dumps(manifest.policy)),
            model=saved.model,
            limit=saved.limit,
            at=manifest.rev,
        )
    except NotFound as error:
        raise _out_of_reach(manifest) from error
    request = {"input": items}
    _check(manifest, request)
    return Context(request=request, manifest=manifest)


def _check(manifest: Manifest, request: Mapping[str, Any]) -> None:
    if request_sha256(request) != manifest.sha256:
        raise NotReproducible(
            f"{manifest.conversation!r} at revision {manifest.rev} no longer gives the context of this manifest: "
            "something that it showed, or had no room for, was erased since"
        )


def _out_of_reach(manifest: Manifest) -> NotReproducible:
    return NotReproducible(f"{manifest.conversation!r} does not reach revision {manifest.rev}; was it erased since?")


def keeps(handle: Handle) -> bool:
    """Whether contexts are kept: see the settings `keep_contexts` and `keep_contexts_for`."""
    settings = handle.services.settings
    return not settings.read_only and (settings.keep_contexts > 0 or settings.keep_contexts_for is not None)


async def keep(handle: Handle, manifest: Manifest, incoming: Iterable[Message] = ()) -> None:
    """Keep the manifest, as the settings say; `incoming` are the messages of its request. Where that fails, a warning
    is logged, and the context goes on."""
    services, settings = handle.services, handle.services.settings
    given = [(one.raw, one.text) for one in incoming]
    record = await asyncio.to_thread(record_of, manifest, given)
    newest, lifetime = settings.keep_contexts or None, settings.keep_contexts_for
    try:
        await services.store.contexts.keep(handle.scope, handle.id, record, newest=newest, lifetime=lifetime)
    except HithertoError as error:
        log.warning(
            "The context of %s could not be kept: %s",
            handle.id,
            error,
            tenant=handle.scope.tenant,
            conversation=handle.id,
        )
