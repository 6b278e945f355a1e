"""Time that passes for a database, or for a circuit breaker, when a test says so."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from hitherto.engine import calls
from hitherto.store.store import Store
from tests.databases import OpenStore

DAY = timedelta(days=1)
LATER_TODAY = timedelta(hours=12)
"""Longer than any test takes; over after a day."""


class Time:
    """The time of a database, which is the machine's. A test lets it pass by setting back what the tables have for
    later."""

    def __init__(self, database: str) -> None:
        self._database = database

    def __call__(self) -> datetime:
        return datetime.now(UTC)

    async def pass_days(self, days: int) -> None:
        await self.pass_time(days * DAY)

    async def pass_time(self, by: timedelta) -> None:
        values = {"by": by}
        async with await psycopg.AsyncConnection[Any].connect(self._database) as connection:
            await connection.execute("update hitherto.message set expires_at = expires_at - %(by)s", values)
            await connection.execute(
                "update hitherto.conversation set next_expiry = next_expiry - %(by)s, resume_at = resume_at - %(by)s, "
                "facts_due_at = facts_due_at - %(by)s, facts_resume_at = facts_resume_at - %(by)s",
                values,
            )
            await connection.execute("update hitherto.digest set due_at = due_at - %(by)s", values)
            await connection.execute("update hitherto.search_scope set claimed_until = claimed_until - %(by)s", values)

    async def begin_another_day(self) -> None:
        """What was spent was spent yesterday, what was remembered and forgotten too."""
        async with await psycopg.AsyncConnection[Any].connect(self._database) as connection:
            await connection.execute("update hitherto.model_call set created_at = created_at - %s", [DAY])
            await connection.execute("update hitherto.fact set updated_at = updated_at - %s", [DAY])
            await connection.execute("update hitherto.fact_event set at = at - %s", [DAY])
            await connection.execute("update hitherto.forgetting set at = at - %s", [DAY])


def time_of(store: Store) -> Time:
    """Of a store that the fixture `store` gives."""
    assert isinstance(store, OpenStore)
    return Time(store.owners_url)


class BreakerTime:
    """The time that circuit breakers go by: the machine's, and the seconds that have passed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._passed = 0.0
        monkeypatch.setattr(calls, "time", self)

    def monotonic(self) -> float:
        return time.monotonic() + self._passed

    def pass_seconds(self, seconds: float) -> None:
        self._passed += seconds
