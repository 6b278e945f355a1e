"""The ledger in memory: what every model call cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from uuid import UUID

from hitherto.core.ledger import Costs, ModelCall, Spending
from hitherto.core.log.message import storable
from hitherto.ports.ledger import By


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """A call, made for the conversation of number `ref`, or for none."""

    whose: tuple[str, str, str]
    ref: int | None
    call: ModelCall
    at: datetime
    key: UUID

    @property
    def day(self) -> date:
        return self.at.astimezone(UTC).date()

    def group(self, by: By) -> str:
        match by:
            case "tenant":
                return self.whose[0]
            case "user":
                return self.whose[1]
            case "model":
                return self.call.model
            case "day":
                return self.day.isoformat()
            case "purpose":
                return self.call.purpose.value


class InMemoryLedger:
    """Every model call, in the order in which they were noted."""

    def __init__(self) -> None:
        self._entries: list[LedgerEntry] = []
        self._keys = set[tuple[str, UUID]]()

    def note(self, whose: tuple[str, str, str], ref: int | None, calls: Iterable[ModelCall], now: datetime) -> None:
        """Add calls that were made for the conversation `ref`, or for none: then without a digest. A call whose key is
        known is skipped."""
        for call in calls:
            kept = replace(call, model=storable(call.model), digest=None if ref is None else call.digest)
            self.add(LedgerEntry(whose, ref, kept, now, call.key))

    def add(self, entry: LedgerEntry) -> None:
        """Add a call; one whose key is known of its tenant is skipped."""
        key = (entry.whose[0], entry.key)
        if key not in self._keys:
            self._keys.add(key)
            self._entries.append(entry)

    def entries(self) -> list[LedgerEntry]:
        """Every call, by its key."""
        return sorted(self._entries, key=lambda one: one.key)

    def forget(self, ref: int) -> None:
        """Keep the calls of a deleted conversation, but no longer name the conversation or its digests in them."""
        self._entries = [
            replace(one, ref=None, call=replace(one.call, digest=None)) if one.ref == ref else one
            for one in self._entries
        ]

    def forget_names(self, tenant: str, user: str | None) -> None:
        """Keep the calls of a tenant, or of a user of it, without their names."""
        nobody = ("", "", "")
        self._entries = [
            replace(one, whose=nobody if user is None else (tenant, "", one.whose[2]))
            if one.whose[0] == tenant and user in (None, one.whose[1])
            else one
            for one in self._entries
        ]

    def spent(self, tenant: str, day: date) -> Spending:
        calls = [one.call for one in self._entries if one.whose[0] == tenant and one.day == day]
        return Spending(
            cost=sum(call.cost or 0.0 for call in calls),
            tokens=sum((call.tokens_in or 0) + (call.tokens_out or 0) for call in calls),
        )

    def costs(self, by: By, *, tenant: str | None, since: date | None, until: date | None) -> list[Costs]:
        groups: dict[str, list[ModelCall]] = {}
        for one in self._entries:
            mine = tenant is None or one.whose[0] == tenant
            if mine and (since is None or since <= one.day) and (until is None or one.day <= until):
                groups.setdefault(one.group(by), []).append(one.call)
        found = sorted((_sum(group, calls) for group, calls in groups.items()), key=lambda sums: sums.group)
        if by == "day":
            return found[::-1]
        return sorted(found, key=lambda sums: (-sums.cost, -sums.calls))


def _sum(group: str, calls: list[ModelCall]) -> Costs:
    return Costs(
        group=group,
        calls=len(calls),
        failed=sum(call.cause is not None for call in calls),
        unpriced=sum(call.cost is None for call in calls),
        tokens_in=sum(call.tokens_in or 0 for call in calls),
        tokens_cached=sum(call.tokens_cached or 0 for call in calls),
        tokens_out=sum(call.tokens_out or 0 for call in calls),
        cost=sum(call.cost or 0.0 for call in calls),
        latency_ms=sum(call.latency_ms for call in calls),
    )
