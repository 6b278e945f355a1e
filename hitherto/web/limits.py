"""Whom the daily limit stops."""

from __future__ import annotations

from datetime import UTC, datetime

from hitherto.core.ledger import Costs
from hitherto.engine.memory import Memory
from hitherto.engine.services import MemorySettings


async def stopped(memory: Memory, tenant: str, settings: MemorySettings) -> list[str] | None:
    """The users who have had a user's share of today's limit (UTC), as far as the ledger tells; None where the tenant
    has reached all of it."""
    if settings.daily_cost is None and settings.daily_tokens is None:
        return []
    today = datetime.now(UTC).date()
    spent = await memory.costs("user", tenant=tenant, since=today, until=today)
    if _reached(spent, settings, 1.0):
        return None
    users = [one.group for one in spent if one.group and _reached([one], settings, settings.daily_user_share)]
    alone = users and len((await memory.scopes("user", tenant=tenant, limit=2)).scopes) < 2
    return [] if alone else users


def _reached(spent: list[Costs], settings: MemorySettings, share: float) -> bool:
    cost = sum(one.cost for one in spent)
    tokens = sum(one.tokens_in + one.tokens_out for one in spent)
    return (settings.daily_cost is not None and cost >= settings.daily_cost * share) or (
        settings.daily_tokens is not None and tokens >= settings.daily_tokens * share
    )
