"""What model calls cost."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import BeforeValidator
from starlette.responses import Response

from hitherto.core.key import Right
from hitherto.core.ledger import Costs
from hitherto.engine.memory import Memory
from hitherto.engine.services import MemorySettings
from hitherto.http.server.callers import needs
from hitherto.web.charts import columns_of
from hitherto.web.visit import Visiting

router = APIRouter(dependencies=[needs(Right.ADMIN)])

DAYS, MOST_DAYS = 30, 366
"""Days on a page that says nothing of them, and at most."""

Day = Annotated[date | None, BeforeValidator(lambda given: given or None)]
"""A day, or a field of a form that was left empty."""


@router.get("/{tenant}/costs")
async def costs(
    visit: Visiting,
    *,
    by: Literal["model", "user", "purpose"] = "model",
    since: Day = None,
    until: Day = None,
) -> Response:
    """By day, with the daily limit of the settings drawn, and for all these days by model, user or purpose. Where no
    price is known, tokens are drawn."""
    asked, today = (since, until), datetime.now(UTC).date()
    until = min(until or today, today)
    since = since or _before(until, DAYS)
    if since > until:
        wrong = "These days are yet to come." if since > today else "The first day is after the last one."
        return await visit.page("costs.html", by=by, since=since, until=asked[1] or today, wrong=wrong)
    since = max(since, _before(until, MOST_DAYS))
    by_day = {one.group: one for one in await visit.memory.costs("day", tenant=visit.tenant, since=since, until=until)}
    days = [since + timedelta(days=n) for n in range((until - since).days + 1)]
    groups = await visit.memory.costs(by, tenant=visit.tenant, since=since, until=until)
    settings = await visit.memory.settings()
    priced = any(one.cost for one in by_day.values())
    spent = [by_day.get(day.isoformat()) for day in days]
    values = [0.0 if one is None else one.cost if priced else float(one.tokens_in + one.tokens_out) for one in spent]
    return await visit.page(
        "costs.html",
        wrong="",
        by=by,
        since=since,
        until=until,
        most=MOST_DAYS,
        asked=any(asked),
        cut=(asked[0] or since, asked[1] or until) != (since, until),
        days=[*zip(days, spent, strict=True)],
        priced=priced,
        values=values,
        chart=columns_of(values, settings.daily_cost if priced else settings.daily_tokens),
        cached=columns_of(
            [0 if one is None else one.tokens_in for one in spent],
            parts=[0 if one is None else one.tokens_cached for one in spent],
        ),
        limit=settings.daily_cost,
        limit_tokens=settings.daily_tokens,
        share=settings.daily_user_share,
        stopped=await _stopped(visit.memory, visit.tenant, settings),
        groups=groups,
    )


def _before(until: date, days: int) -> date:
    """The first of so many days that end with this one."""
    return date.fromordinal(max(until.toordinal() - days + 1, 1))


async def _stopped(memory: Memory, tenant: str, settings: MemorySettings) -> list[str] | None:
    """The users who have had a user's share of today's limit (UTC), as far as the ledger tells; None where the tenant
    has reached all of it."""
    if settings.daily_cost is None and settings.daily_tokens is None:
        return []
    today = datetime.now(UTC).date()
    spent = await memory.costs("user", tenant=tenant, since=today, until=today)
    if _reached(spent, settings, 1.0):
        return None
    users = [one.group for one in spent if one.group and _reached([one], settings, settings.daily_user_share)]
    others = [one for one in (await memory.scopes("user", tenant=tenant)).scopes if one.conversations] if users else []
    return users if len(others) > 1 else []


def _reached(spent: list[Costs], settings: MemorySettings, share: float) -> bool:
    cost = sum(one.cost for one in spent)
    tokens = sum(one.tokens_in + one.tokens_out for one in spent)
    return (settings.daily_cost is not None and cost >= settings.daily_cost * share) or (
        settings.daily_tokens is not None and tokens >= settings.daily_tokens * share
    )
