"""Purging: erases the expired messages of all conversations, or of one tenant's, and drops old receipts. When a message
expires is decided in `core.log.append`."""

from __future__ import annotations

from hitherto.engine.log.erase import erase_expired
from hitherto.engine.services import Services
from hitherto.errors import DatabaseReadOnly, DatabaseUnavailable, HithertoError
from hitherto.logs import logger

log = logger("hitherto")


async def purge_expired(services: Services) -> int:
    """Erase all expired messages, drop receipts and kept contexts beyond their retention. Returns how many
    conversations were touched. Raises StoreError."""
    touched = await _erased(services, None)
    await services.store.forget_receipts(older_than=services.settings.keep_receipts)
    await services.store.contexts.forget()
    return touched


async def purge(services: Services, tenant: str) -> bool:
    """Erase the tenant's expired messages before something that may rest on them is shown. Returns whether there were
    any; False on a read-only database, where nothing is erased.

    The store shows nothing that rests on an expired message; once it is erased, what rests on other messages too is
    shown again.
    """
    try:
        return await _erased(services, tenant) > 0
    except DatabaseReadOnly:
        return False


async def _erased(services: Services, tenant: str | None) -> int:
    store = services.store
    due = await store.due(tenant=tenant)
    for one in due:
        try:
            await erase_expired(store, one.scope, one.conversation, services.canonical)
        except (DatabaseReadOnly, DatabaseUnavailable):
            raise
        except HithertoError as error:  # one conversation that cannot be read must not keep the others waiting
            log.warning("Expired messages of %s in %s could not be erased: %s", one.conversation, one.scope, error)
    return len(due)
