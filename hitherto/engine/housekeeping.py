"""Housekeeping over all tenants: what no verb of one conversation gets round to."""

from __future__ import annotations

from hitherto.engine.expiry import erase_expired
from hitherto.engine.parts import Parts
from hitherto.errors import DatabaseReadOnly, DatabaseUnreachable, HithertoError
from hitherto.logs import logger

log = logger("hitherto")


async def tidy(parts: Parts) -> int:
    """Erase messages whose time has come, drop receipts beyond their retention. Returns how many conversations were
    touched. Raises StoreError."""
    touched = await _erased(parts, None)
    await parts.store.forget_receipts(older_than=parts.settings.keep_receipts)
    return touched


async def honoured(parts: Parts, tenant: str) -> int:
    """Erase the tenant's messages whose time has come, and what rests on them, before that is shown. Returns how many
    conversations were touched; none on a database that takes no writes."""
    try:
        return await _erased(parts, tenant)
    except DatabaseReadOnly:
        return 0


async def _erased(parts: Parts, tenant: str | None) -> int:
    store = parts.store
    due = await store.due(tenant=tenant)
    for one in due:
        try:
            await erase_expired(store, one.scope, one.conversation, parts.canonical)
        except (DatabaseReadOnly, DatabaseUnreachable):
            raise
        except HithertoError as error:  # one conversation that cannot be read must not keep the others waiting
            log.warning("%s of %s could not be tidied: %s", one.conversation, one.scope, error)
    return len(due)
