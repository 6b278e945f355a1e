"""Running `hitherto` as its users do: a process of its own, on a real PostgreSQL."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import psycopg

from hitherto.core.scope import Scope
from tests import called, forked

SUPPORT = Path(__file__).resolve().parents[3] / "examples" / "support.jsonl"
SCOPE = Scope(tenant="local", user="me", agent="cli")
NOWHERE = "127.0.0.1:9"
"""The discard port, where nothing listens."""
READ_AT_THE_START = {"LC_ALL", "PYTHONIOENCODING", "PYTHONUTF8"}
"""What Python reads of its surroundings before it runs anything."""

UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it said. `out` and `err` have no traceback, and nothing that steers a terminal."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON object on standard output, which has nothing else on it."""
        assert self.out.isascii()
        assert self.out.count("\n") == 1
        return json.loads(self.out)

    def failed(self, code: int) -> str:
        """The one line that says why it failed with `code`."""
        assert (self.code, self.out) == (code, ""), self
        assert self.err.startswith("hitherto: ")
        assert self.err.count("\n") == 1
        return self.err.removeprefix("hitherto: ").strip()


class Home(NamedTuple):
    """The directory of Hitherto's own server, and its address."""

    directory: Path
    url: str


@dataclass(frozen=True)
class Cli:
    """Runs `hitherto` in a terminal of 80 columns; without a `home`, only with a database's address or none."""

    home: Path | None = None

    def surroundings(self, **given: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("HITHERTO_")}
        where = {} if self.home is None else {"HITHERTO_DATA_DIR": str(self.home)}
        return {**kept, **where, "COLUMNS": "80", **given}

    def command(self, *words: str | Path) -> list[str]:
        return [sys.executable, "-m", "hitherto", *map(str, words)]

    def __call__(self, *words: str | Path, **given: str) -> Ran:
        if given.keys() & READ_AT_THE_START:
            done = subprocess.run(
                self.command(*words), capture_output=True, check=False, env=self.surroundings(**given)
            )
            ran = Ran(done.returncode, done.stdout.decode(), done.stderr.decode())
        else:
            run = forked.run if "agent" in words else called.call  # an agent takes the process's own streams
            ended = run(*map(str, words), environment=self.surroundings(**given))
            ran = Ran(ended.code, ended.out.decode(), ended.err.decode())
        assert "Traceback" not in ran.out + ran.err
        assert not UNSAFE.search(ran.out + ran.err)
        return ran


bare = Cli()


def processes_in(folder: Path) -> list[psutil.Process]:
    found = [process for process in psutil.process_iter(["cmdline"]) if process.info["cmdline"]]
    return [process for process in found if any(str(folder) in word for word in process.info["cmdline"])]


def written(path: Path, *items: object) -> Path:
    path.write_text("".join(json.dumps(item) + "\n" for item in items))
    return path


def chat(rounds: int, words: str = "of little weight") -> list[dict[str, str]]:
    """So many rounds in OpenAI chat shape."""
    return [
        item
        for number in range(rounds)
        for item in (
            {"role": "user", "content": f"This is question {number}, {words}."},
            {"role": "assistant", "content": "Yes, so it is."},
        )
    ]


def stored(database: str) -> list[tuple[str, int]]:
    """Every conversation of a database, and how many messages it has."""
    with psycopg.connect(database) as connection:
        return connection.execute("select id, next_seq from hitherto.conversation order by 1").fetchall()


def executed(database: str, statement: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(statement.encode())


# What there is
