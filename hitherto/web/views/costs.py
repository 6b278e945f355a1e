"""What model calls cost."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Literal

from fastapi import APIRouter
from starlette.responses import Response

from hitherto.core.key import Right
from hitherto.http.server.callers import needs
from hitherto.web.charts import columns_of
from hitherto.web.visit import Visiting

router = APIRouter(dependencies=[needs(Right.ADMIN)])

DAYS = 30


@router.get("/{tenant}/costs")
async def costs(
    visit: Visiting,
    *,
    by: Literal["model", "user", "purpose"] = "model",
    since: date | None = None,
    until: date | None = None,
) -> Response:
    """By day, with the daily limit of the settings drawn, and for all these days by model, user or purpose."""
    until = until or datetime.now(UTC).date()
    since = since or until - timedelta(days=DAYS - 1)
    by_day = {one.group: one for one in await visit.memory.costs("day", tenant=visit.tenant, since=since, until=until)}
    days = [since + timedelta(days=n) for n in range(min((until - since).days + 1, 366))]
    groups = await visit.memory.costs(by, tenant=visit.tenant, since=since, until=until)
    settings = await visit.memory.settings()
    return await visit.page(
        "costs.html",
        by=by,
        since=since,
        until=until,
        days=[(day, by_day.get(day.isoformat())) for day in days],
        chart=columns_of(
            [(one.cost if (one := by_day.get(day.isoformat())) else 0.0) for day in days], settings.daily_cost
        ),
        limit=settings.daily_cost,
        limit_tokens=settings.daily_tokens,
        groups=groups,
    )
