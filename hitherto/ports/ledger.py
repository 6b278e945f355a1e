"""The port to the ledger: what every model call cost."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Literal, Protocol

from hitherto.core.ledger import Costs, ModelCall, Spending
from hitherto.core.scope import Scope

By = Literal["tenant", "user", "model", "day", "purpose"]
"""What calls of the ledger are grouped by; days are UTC."""


class LedgerStore(Protocol):
    """The ledger, into which units of work write too. All verbs raise what `Store` says."""

    async def note_calls(self, scope: Scope, conversation: str | None, calls: Sequence[ModelCall]) -> None:
        """Write model calls to the ledger outside of a unit of work: no digest came of them.

        User and tenant are named in them only while something of theirs is kept (a conversation, a document or a fact),
        so that a call that ends after an erasure does not bring a name back; what it cost is kept anyway.
        """
        ...

    async def spent(self, tenant: str, *, day: date | None = None) -> Spending:
        """What the tenant's model calls took on `day` (UTC), by default today by the store's clock."""
        ...

    async def costs(
        self, by: By, *, tenant: str | None = None, since: date | None = None, until: date | None = None
    ) -> list[Costs]:
        """Sums of the ledger, the most expensive first (by day: the latest first), of one tenant or of all; `since` and
        `until` are days in UTC, both inclusive."""
        ...
