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
        """Put model calls into the ledger that no digest came of."""
        ...

    async def spent(self, tenant: str, *, day: date | None = None) -> Spending:
        """What the tenant's model calls took on that day (UTC); without one, on the store's today."""
        ...

    async def costs(
        self, by: By, *, tenant: str | None = None, since: date | None = None, until: date | None = None
    ) -> list[Costs]:
        """The ledger in sums, dearest first (by day: latest first), of one tenant or of all; `since` and `until` are
        days in UTC, both inclusive."""
        ...
