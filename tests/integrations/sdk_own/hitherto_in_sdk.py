"""A pytest plugin for the SDK's own tests: Hitherto's session takes the place of `SQLiteSession`.

Loaded with `-p`, before any of those tests is imported. It stands alone, because in their process `tests` is theirs.
The environment names the database and where the report goes.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
import threading
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import agents
import agents.memory
import agents.memory.sqlite_session
import pytest

import hitherto
from hitherto import Scope
from hitherto.integrations.openai_agents import HithertoSession

_CONNECTIONS = "looks at SQLiteSession's private set of sqlite3 connections"
_LOCKS = "looks at SQLiteSession's private file locks"
_ROWS = "writes broken rows through SQLiteSession's private connection"
_PAUSED = "puts a slow sqlite3 connection of its own in the place of SQLiteSession's"
_FILE = "breaks the SQLite file behind the session's back, by a table dropped or a trigger"
_INSERT = "replaces SQLiteSession's private method that inserts rows"

_SESSION = "tests/memory/test_session.py::"
_SUFFIX = "tests/memory/test_compaction_suffix.py::"
_COMPACTION = "tests/memory/test_openai_responses_compaction_session.py::TestOpenAIResponsesCompactionSession::"

EXCEPTIONS: dict[str, str] = {
    _SESSION + "test_sqlite_session_close_closes_worker_thread_connections": _CONNECTIONS,
    _SESSION + "test_sqlite_session_reaps_connections_from_exited_worker_threads": _CONNECTIONS,
    _SESSION + "test_sqlite_session_closes_retired_connections_before_the_next_allocation": _CONNECTIONS,
    _SESSION + "test_sqlite_session_keeps_connections_of_live_worker_threads": _CONNECTIONS,
    _SESSION + "test_sqlite_session_rollback_failure_evicts_connection": _CONNECTIONS,
    _SESSION + "test_sqlite_session_close_retries_quarantined_connection": _CONNECTIONS,
    _SESSION + "test_sqlite_session_pop_item_skips_corrupt_most_recent": _ROWS,
    _SESSION + "test_sqlite_session_pop_item_returns_none_after_dropping_only_corrupt_rows": _ROWS,
    _SESSION + "test_sqlite_session_get_items_limit_skips_corrupt_newest_rows": _ROWS,
    _SESSION + "test_sqlite_session_get_items_session_settings_limit_skips_corrupt_rows": _ROWS,
    _SESSION + "test_sqlite_session_file_lock_is_shared_across_instances": _LOCKS,
    _SESSION + "test_sqlite_session_failed_clear_session_rolls_back": _FILE,
    _SESSION + "test_sqlite_session_failed_pop_item_releases_write_lock": _FILE,
    _SESSION + "test_sqlite_session_post_commit_cancellation_propagates_after_known_outcome": _PAUSED,
    _SESSION + "test_sqlite_session_failed_add_items_releases_write_lock": (
        "wants json's TypeError and probes the SQLite file; Hitherto raises InvalidMessage and has no file"
    ),
    _SESSION + "test_sqlite_session_closed_rejects_empty_add_items": (
        "wants the words “SQLiteSession is closed”; Hitherto raises InvalidInput"
    ),
    _SUFFIX + "test_suffix_transaction_rolls_back_failed_insert[sqlite]": _FILE,
    _SUFFIX + "test_failed_encrypted_suffix_transaction_preserves_original_tokens[sqlite-False]": _FILE,
    _SUFFIX + "test_failed_encrypted_suffix_transaction_preserves_original_tokens[sqlite-True]": _FILE,
    _SUFFIX + "test_cancelled_suffix_transaction_settles_before_newer_append[sqlite]": _INSERT,
    _COMPACTION + "test_settled_pop_failure_invalidates_response_chain": _PAUSED,
    _COMPACTION + "test_settled_clear_failure_invalidates_response_chain": _PAUSED,
    "tests/test_run_impl_resume_paths.py::test_handoff_resume_after_cancelled_compaction_commits": _INSERT,
}
"""The SDK's tests that cannot hold for another session than its `SQLiteSession`, each with its reason.

A name without parameters stands for all of them. Each must fail: one that passes has no business here.
"""

MEMORY = hitherto.open_sync(os.environ["HITHERTO_SDK_DATABASE"])

_WORD = re.compile(r"\w+")

_numbers = count(1)
_running: list[str] = []
_used: set[str] = set()
_outcomes: dict[str, str] = {}


class Substitute(HithertoSession):
    """A session made as `SQLiteSession` is: one file is one tenant, and ":memory:" one that nobody else has."""

    def __init__(
        self,
        session_id: str,
        db_path: str | Path = ":memory:",
        sessions_table: str = "agent_sessions",
        messages_table: str = "agent_messages",
        session_settings: Any = None,
    ) -> None:
        _used.update(_running)
        self.db_path = db_path
        tenant = f"memory {next(_numbers)}" if str(db_path) == ":memory:" else str(Path(db_path).resolve())
        super().__init__(
            session_id,
            MEMORY,
            scope=Scope(tenant=tenant[-200:], user="sdk", agent="sdk"),
            session_settings=session_settings,
        )


_PATIENCE = 30
"""The SDK's tests wait for a second or a few; on a slow or busy machine that is too short."""


def _patient(timeout: float | None) -> float | None:
    return timeout if timeout is None or timeout < 1 else _PATIENCE * timeout


_wait_for, _event_wait = asyncio.wait_for, threading.Event.wait
asyncio.wait_for = lambda awaitable, timeout: _wait_for(awaitable, _patient(timeout))
threading.Event.wait = lambda self, timeout=None: _event_wait(self, _patient(timeout))


for _module in (agents, agents.memory, agents.memory.sqlite_session):
    _module.SQLiteSession = Substitute  # pyright: ignore[reportAttributeAccessIssue] — the point of this file


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each exception has to fail: one that passes is reported, and so is one that names no test. Tests that make no
    session are left out."""
    names = {item.nodeid for item in items}
    files = {item.nodeid.partition("::")[0] for item in items}
    gone = [name for name in EXCEPTIONS if name.partition("::")[0] in files and not _of(name, names)]
    if gone:
        raise pytest.UsageError(f"exceptions that name no test of this SDK: {gone}")
    items[:] = [item for item in items if _makes_a_session(item)]
    for item in items:
        reason = EXCEPTIONS.get(item.nodeid) or EXCEPTIONS.get(item.nodeid.partition("[")[0])
        if reason is not None:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


def _makes_a_session(item: pytest.Item) -> bool:
    assert isinstance(item, pytest.Function)
    words = {*_WORD.findall(inspect.getsource(item.function)), *item.fixturenames}
    return not words.isdisjoint(_makers(item.module))


@cache
def _makers(module: ModuleType) -> set[str]:
    """The session's name, and what in a module of tests makes one, by itself or by something else that does."""
    defined = {
        name: set(_WORD.findall(inspect.getsource(value)))
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__
        and (inspect.isroutine(value) or inspect.isclass(value))
    }
    found = {"SQLiteSession"}
    while more := {name for name, words in defined.items() if name not in found and words & found}:
        found |= more
    return found


def _of(name: str, names: set[str]) -> bool:
    return name in names or any(one.startswith(f"{name}[") for one in names)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    _running[:] = [item.nodeid]
    return (yield)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or report.outcome != "passed":
        excepted = report.skipped and hasattr(report, "wasxfail")
        _outcomes[report.nodeid] = "excepted" if excepted else report.outcome


def pytest_sessionfinish() -> None:
    MEMORY.close()
    report = {"outcomes": _outcomes, "used": sorted(_used & set(_outcomes))}
    Path(os.environ["HITHERTO_SDK_REPORT"]).write_text(json.dumps(report), encoding="utf-8")
