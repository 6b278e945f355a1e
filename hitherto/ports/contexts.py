"""The port for kept contexts: what models were sent, as receipts that refer to the log."""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol

from hitherto.core.context.kept import ContextRecord, KeptContext
from hitherto.core.scope import Scope


class ContextStore(Protocol):
    """Kept contexts. All methods raise what `Store` says.

    A context is deleted with the conversation, when a message that it showed or that was incoming is erased, and when
    anything of another conversation that it took something from is erased. Instructions and tools are kept once for all
    contexts of a tenant that have them.
    """

    async def keep(
        self,
        scope: Scope,
        conversation: str,
        record: ContextRecord,
        *,
        newest: int | None = None,
        lifetime: timedelta | None = None,
    ) -> None:
        """Keep a context, for `lifetime` (None: without an end). The conversation need not be there, unless the context
        has messages of it. With `newest`, only that many of the conversation's stay: the oldest go. Nothing is kept if
        the conversation, or a message that the context showed, was erased meanwhile."""
        ...

    async def kept(
        self, scope: Scope, conversation: str, *, before: int | None = None, limit: int
    ) -> list[KeptContext]:
        """At most `limit` contexts of the conversation whose lifetime has not ended, the newest first; those before the
        id `before`."""
        ...

    async def forget(self, *, tenant: str | None = None) -> int:
        """Delete contexts whose lifetime has ended, and instructions and tools that no context has any more, of all
        tenants or of one. Returns how many contexts were deleted."""
        ...
