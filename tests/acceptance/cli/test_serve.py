"""`hitherto serve` as an operator starts it: what it says, and what it refuses."""

from __future__ import annotations

import subprocess

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.acceptance.cli.commands import bare


def told(*words: str) -> list[str]:
    """What a service says until it serves."""
    command = bare.command("serve", "--port", "0", *words)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=bare.surroundings()) as process:
        assert process.stderr is not None
        lines = list[str]()
        for line in process.stderr:
            lines.append(line)
            if "Serving at" in line:
                break
        process.terminate()
        process.stderr.read()
    assert process.returncode == 0
    return lines


def test_it_says_which_database_and_no_password(database: str) -> None:
    parts = conninfo_to_dict(database)
    found = told("--database", make_conninfo(database, password="hush"))
    assert f"Database: {parts['host']}:{parts['port']}/{parts['dbname']}" in found[0]
    assert "hush" not in "".join(found)
    assert "Database: a throw-away memory, gone when this process ends" in told("--database", "memory:")[0]


@pytest.mark.parametrize("words", [("--require-keys",), ("--host", "0.0.0.0")])
def test_a_memory_of_its_own_has_no_keys(words: tuple[str, ...]) -> None:
    said = bare("serve", "--port", "0", "--database", "memory:", *words).failed(2)
    assert "none can be made for memory:" in said
