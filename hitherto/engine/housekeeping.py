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
    store = parts.store
    due = await store.due()
    for one in due:
        try:
            await erase_expired(store, one.scope, one.conversation, parts.canonical)
        except (DatabaseReadOnly, DatabaseUnreachable):
            raise
        except HithertoError as error:  # one conversation that cannot be read must not keep the others waiting
            log.warning("%s of %s could not be tidied: %s", one.conversation, one.scope, error)
    await store.forget_receipts(older_than=parts.settings.keep_receipts)
    return len(due)
