"""The daily limit on what a tenant spends on models: the ledger's sum, plus calls that are not in the ledger yet."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

from hitherto.core.ledger import FailureCause, ModelCall, Purpose, Spending
from hitherto.engine.services import Services
from hitherto.logs import logger

log = logger("hitherto.model")

_LOOKED_UP = 5.0
"""Seconds for which the ledger's sum for a tenant is cached; this process's own calls are added at once."""

_AGAIN = 600.0
"""Seconds. At a limit, calls are postponed for at most this long: the limit may have been raised."""

_GO_ON = "digests go on tomorrow (UTC), or within a quarter of an hour after the limit is raised"


class CallPostponed(Exception):
    """No call may be made for `seconds`: the endpoint has failed too often lately (`cause` says how), or the tenant has
    reached its daily limit (`cause` is None)."""

    def __init__(self, message: str, *, seconds: float, cause: FailureCause | None = None) -> None:
        super().__init__(message)
        self.seconds = seconds
        self.cause = cause


Whose = tuple[str, str | None]
"""A tenant (with no user), or a user of it."""


class DailyLimit:
    """Holds tenants to the settings `daily_cost` and `daily_tokens`, and each of their users to `daily_user_share` of
    these. Report every call with `made`, and with `written` once it is in the ledger; until then it counts on top of
    the ledger's sum."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._spent: dict[Whose, tuple[float, Spending]] = {}
        self._unwritten: dict[Whose, Spending] = {}
        self._told: set[tuple[str, date]] = set()

    async def check(self, tenant: str, user: str | None) -> None:
        """Raises CallPostponed when the tenant has reached its limit for today (UTC), or the user has had a user's
        share of it while the tenant has other users."""
        settings = self._services.settings
        if settings.daily_cost is None and settings.daily_tokens is None:
            return
        reached = await self._reached((tenant, None), 1.0)
        if not reached:
            reached = await self._reached((tenant, user), settings.daily_user_share) if user is not None else ""
            if reached and user is not None and await self._services.store.has_other_users(tenant, user):
                raise CallPostponed(
                    f"the user {reached}, a user's share (daily_user_share); {_GO_ON}",
                    seconds=_until_tomorrow(),
                )
            return
        day = datetime.now(UTC).date()
        if (tenant, day) not in self._told:
            self._told = {one for one in self._told if one[1] == day} | {(tenant, day)}
            log.warning("Tenant %s %s: no more digests for it until tomorrow (UTC)", tenant, reached, tenant=tenant)
        raise CallPostponed(
            f"the tenant {reached}; {_GO_ON}",
            seconds=_until_tomorrow(),
        )

    async def _reached(self, whose: Whose, share: float) -> str:
        """What has been spent today, in words, where that is the limit's `share` or more; else an empty text."""
        settings, now = self._services.settings, time.monotonic()
        known = self._spent.get(whose)
        if known is None or now - known[0] > _LOOKED_UP:
            known = (now, await self._services.store.spent(*whose))
            self._spent = {one: found for one, found in self._spent.items() if now - found[0] <= _LOOKED_UP}
            self._spent[whose] = known
        spent = _sum(known[1], self._unwritten.get(whose, Spending()))
        if settings.daily_cost is not None and spent.cost >= settings.daily_cost * share:
            return f"has spent ${spent.cost:.4f} today, of ${settings.daily_cost * share:.4f} (daily_cost)"
        if settings.daily_tokens is not None and spent.tokens >= settings.daily_tokens * share:
            return f"has used {spent.tokens:,} tokens today, of {settings.daily_tokens * share:,.0f} (daily_tokens)"
        return ""

    def made(self, tenant: str, user: str | None, call: ModelCall) -> None:
        """Count a call that was made and is not in the store's ledger yet."""
        for whose in {(tenant, None), (tenant, user)}:
            self._unwritten[whose] = _sum(self._unwritten.get(whose, Spending()), _spent_by(call))

    def written(self, tenant: str, user: str | None, ledger: Sequence[ModelCall]) -> None:
        """Count these calls as part of the ledger's sum: they are in the store's ledger now, or never will be."""
        for whose in {(tenant, None), (tenant, user)}:
            for call in ledger:
                took = _spent_by(call)
                if whose in self._spent:
                    looked_up, spent = self._spent[whose]
                    self._spent[whose] = looked_up, _sum(spent, took)
                if call.purpose is Purpose.EMBED and whose != (tenant, None):
                    continue  # no user was named when it was made
                left = self._unwritten.pop(whose, Spending())
                left = Spending(cost=left.cost - took.cost, tokens=left.tokens - took.tokens)
                if left.tokens > 0 or left.cost > 0:
                    self._unwritten[whose] = left


def _spent_by(call: ModelCall) -> Spending:
    return Spending(cost=call.cost or 0.0, tokens=(call.tokens_in or 0) + (call.tokens_out or 0))


def _sum(one: Spending, other: Spending) -> Spending:
    return Spending(cost=one.cost + other.cost, tokens=one.tokens + other.tokens)


def _until_tomorrow() -> float:
    now = datetime.now(UTC)
    tomorrow = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    return min((tomorrow - now).total_seconds() + 1, _AGAIN)
