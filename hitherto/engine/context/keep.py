"""Keeping contexts: what a model was sent, for later."""

from __future__ import annotations

from collections.abc import Iterable

from hitherto.aside import in_thread
from hitherto.core.context.kept import record_of
from hitherto.core.context.manifest import Manifest
from hitherto.core.log.message import Message
from hitherto.engine.handle import Handle
from hitherto.errors import HithertoError
from hitherto.logs import logger

log = logger("hitherto")


def keeps(handle: Handle) -> bool:
    """Whether contexts are kept: see the settings `keep_contexts` and `keep_contexts_for`."""
    settings = handle.services.settings
    return not settings.read_only and (settings.keep_contexts > 0 or settings.keep_contexts_for is not None)


async def keep(handle: Handle, manifest: Manifest, incoming: Iterable[Message] = ()) -> None:
    """Keep the manifest, as the settings say; `incoming` are the messages of its request. Where that fails, a warning
    is logged, and the context goes on."""
    services, settings = handle.services, handle.services.settings
    given = [(one.raw, one.text) for one in incoming]
    record = await in_thread(record_of, manifest, given)
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
