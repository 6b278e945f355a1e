"""A plug-in for pytest: an empty database for each test that asks for one.

Name it in the topmost conftest.py, `pytest_plugins = ["hitherto.testing.plugin"]`, or on the command line,
`pytest -p hitherto.testing.plugin`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hitherto.store.embedded import throwaway


@pytest.fixture
def hitherto_database() -> Iterator[str]:
    """The URL of an empty database, for `hitherto.open`, `hitherto.open_sync` and other processes.

    It is on a server that is started for the first test of the session, or of each runner of pytest-xdist, and ends
    with it. After the test the database is emptied; if a memory is still open on it, it is dropped.
    """
    database = throwaway.take()
    yield database.url
    database.give_back()
