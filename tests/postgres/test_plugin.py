"""The plug-in for pytest, as users have it, in runners of pytest-xdist."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TESTS = """
import pytest
import hitherto
from hitherto import Scope, user

SCOPE = Scope(tenant="acme", user="ada", agent="planner")

LEFT = []

def test_one_is_left_open(hitherto_database):
    memory = hitherto.open_sync(hitherto_database, embedder="none")
    memory.conversation("c", scope=SCOPE).append(user("Hello."))
    LEFT.extend([memory, hitherto_database])

@pytest.mark.parametrize("number", range(6))
def test_it_is_empty(hitherto_database, number):
    assert hitherto_database not in LEFT
    for count in (1, 2):
        with hitherto.open_sync(hitherto_database, embedder="none") as memory:
            chat = memory.conversation("c", scope=SCOPE)
            chat.append(user("Hello."))
            assert len(chat.messages()) == count
"""


def test_each_test_has_an_empty_database(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["hitherto.testing.plugin"]\n')
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadscope", "-q", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "7 passed" in done.stdout, done.stdout + done.stderr
