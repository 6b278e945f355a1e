"""The daily limit on what a tenant spends on models: the ledger's sum, plus calls that are not in the ledger yet."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

from hitherto.core.ledger import FailureCause, ModelCall, Spending
from hitherto.engine.services import Services
from hitherto.logs import logger

log = logger("hitherto.model")

_LOOKED_UP = 5.0
"""Seconds for which the ledger's sum for a tenant is cached; this process's own calls are added at once."""

_AGAIN = 600.0
"""Seconds. At a limit, calls are postponed for at most this long: the limit may have been raised."""


class CallPostponed(Exception):
    """No call may be made for `seconds`: the endpoint has failed too often lately (`cause` says how), or the tenant has
    reached its daily limit (`cause` is None)."""

    def __init__(self, message: str, *, seconds: float, cause: FailureCause | None = None) -> None:
        super().__init__(message)
        self.seconds = seconds
        self.cause = cause


class DailyLimit:
    """Holds tenants to the settings `daily_cost` and `daily_tokens`. Report every call with `made`, and with `written`
    once it is in the ledger; until then it counts on top of the ledger's sum."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._spent: dict[str, tuple[float, Spending]] = {}
        self._unwritten: dict[str, Spending] = {}
        self._told: set[tuple[str, date]] = set()

    async def check(self, tenant: str) -> None:
        """Raises CallPostponed when the tenant has reached its limit for today (UTC)."""
        settings = self._services.settings
        if settings.daily_cost is None and settings.daily_tokens is None:
            return
        known = self._spent.get(tenant)
        if known is None or time.monotonic() - known[0] > _LOOKED_UP:
            known = (time.monotonic(), await self._services.store.spent(tenant))
            self._spent[tenant] = known
        spent = _sum(known[1], self._unwritten.get(tenant, Spending()))
        reached = ""
        if settings.daily_cost is not None and spent.cost >= settings.daily_cost:
            reached = f"has spent ${spent.cost:.2f} today, of ${settings.daily_cost:.2f} (daily_cost)"
        elif settings.daily_tokens is not None and spent.tokens >= settings.daily_tokens:
            reached = f"has used {spent.tokens:,} tokens today, of {settings.daily_tokens:,} (daily_tokens)"
        if not reached:
            return
        day = datetime.now(UTC).date()
        if (tenant, day) not in self._told:
            self._told = {one for one in self._told if one[1] == day} | {(tenant, day)}
            log.warning("Tenant %s %s: no more digests for it until tomorrow (UTC)", tenant, reached, tenant=tenant)
        raise CallPostponed(
            f"the tenant {reached}; digests go on tomorrow (UTC), or when the limit is raised",
            seconds=_until_tomorrow(),
        )

    def made(self, tenant: str, call: ModelCall) -> None:
        """Count a call that was made and is not in the store's ledger yet."""
        self._unwritten[tenant] = _sum(self._unwritten.get(tenant, Spending()), _spent_by(call))

    def written(self, tenant: str, ledger: Sequence[ModelCall]) -> None:
        """Count these calls as part of the ledger's sum: they are in the store's ledger now, or never will be."""
        for call in ledger:
            took = _spent_by(call)
            if tenant in self._spent:
                looked_up, spent = self._spent[tenant]
                self._spent[tenant] = looked_up, _sum(spent, took)
            left = self._unwritten.pop(tenant, Spending())
            left = Spending(cost=left.cost - took.cost, tokens=left.tokens - took.tokens)
            if left.tokens > 0 or left.cost > 0:
                self._unwritten[tenant] = left


def _spent_by(call: ModelCall) -> Spending:
    return Spending(cost=call.cost or 0.0, tokens=(call.tokens_in or 0) + (call.tokens_out or 0))


def _sum(one: Spending, other: Spending) -> Spending:
    return Spending(cost=one.cost + other.cost, tokens=one.tokens + other.tokens)


def _until_tomorrow() -> float:
    now = datetime.now(UTC)
    tomorrow = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    return min((tomorrow - now).total_seconds() + 1, _AGAIN)
