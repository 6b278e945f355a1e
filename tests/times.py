"""Time that passes for a store, or for a circuit breaker, when a test says so."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import psycopg
import pytest

from hitherto.engine import calls
from hitherto.ports.store import Store
from hitherto.stores.in_memory.store import InMemoryStore
from tests.databases import OpenStore

DAY = timedelta(days=1)
LATER_TODAY = timedelta(hours=12)
"""Longer than any test takes; over after a day."""


class Time(Protocol):
    """A store's clock, which a test can set ahead."""

    def __call__(self) -> datetime: ...

    async def pass_days(self, days: int) -> None: ...


class Clock:
    """The clock of a store in memory: the machine's, and the days that have passed."""

    def __init__(self) -> None:
        self._passed = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self._passed

    async def pass_days(self, days: int) -> None:
        self._passed += days * DAY


class TablesMoved:
    """A database's clock cannot be set ahead: the times that the tables have for later are set back."""

    def __init__(self, database: str) -> None:
        self._database = database

    def __call__(self) -> datetime:
        return datetime.now(UTC)

    async def pass_days(self, days: int) -> None:
        values = {"by": days * DAY}
        async with await psycopg.AsyncConnection[Any].connect(self._database) as connection:
            await connection.execute("update hitherto.message set expires_at = expires_at - %(by)s", values)
            await connection.execute(
                "update hitherto.conversation set next_expiry = next_expiry - %(by)s, resume_at = resume_at - %(by)s",
                values,
            )
            await connection.execute("update hitherto.digest set due_at = due_at - %(by)s", values)


def time_of(store: Store) -> Time:
    """Of a store that the fixture `store` gives."""
    if isinstance(store, OpenStore):
        return TablesMoved(store.owners_url)
    assert isinstance(store, InMemoryStore)
    assert isinstance(store._clock, Clock)
    return store._clock


class BreakerTime:
    """The time that circuit breakers go by: the machine's, and the seconds that have passed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._passed = 0.0
        monkeypatch.setattr(calls, "time", self)

    def monotonic(self) -> float:
        return time.monotonic() + self._passed

    def pass_seconds(self, seconds: float) -> None:
        self._passed += seconds
