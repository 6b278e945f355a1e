"""SQLite files of others, which are only read."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast
from urllib.parse import quote

from hitherto.core.log.message import storable
from hitherto.importers.imported import LARGEST

MARK = b"SQLite format 3\0"
"""How such a file begins."""


class Tables:
    """The tables of a file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._rows, self._tell_rows = 0, cast("Callable[[int], None] | None", None)
        names = self.rows("select name from sqlite_master where type = 'table'")
        self.names = frozenset(name for (name,) in names if isinstance(name, str))

    def rows(self, query: str, *parameters: object) -> Iterator[tuple[Any, ...]]:
        """The rows of a query, none where SQLite cannot hold a parameter. Raises sqlite3.Error."""
        if not all(map(_can_be_stored, parameters)):
            return
        for row in self._connection.execute(query, parameters):
            self._rows += 1
            if self._tell_rows is not None:
                self._tell_rows(self._rows)
            yield row

    def count_rows(self, tables: frozenset[str], size: int, progress: Callable[[int], None]) -> None:
        """From now on, tell of these `size` bytes as many as rows of the tables were read. Raises sqlite3.Error."""
        queries = [f'select count(*) from "{name}"' for name in tables & self.names]  # noqa: S608 (names of our own)
        total = sum(number for query in queries for (number,) in self.rows(query))

        def tell(rows: int) -> None:
            progress(min(rows * size // max(total, 1), size))

        self._rows, self._tell_rows = 0, tell

    def columns(self, table: str) -> frozenset[str]:
        """The names of a table's columns; empty where there is no such table."""
        return frozenset(name for (name,) in self.rows("select name from pragma_table_info(?)", table))


@contextmanager
def opened(path: Path) -> Generator[Tables]:
    """The tables of the file at `path`, which is not changed. If its program runs, or was killed, what stands in its
    log is read too: in a copy. A link is followed, as SQLite does, which writes its log beside the file. Raises
    sqlite3.Error."""
    path = path.resolve()
    with TemporaryDirectory(prefix="hitherto-") as folder:
        logs = [log for end in ("-wal", "-journal") if (log := path.with_name(path.name + end)).is_file()]
        logs = [log for log in logs if log.stat().st_size]
        address = f"file:{quote(str(path))}?mode=ro&immutable=1"
        if logs:
            for one in (path, *logs):
                shutil.copyfile(one, Path(folder) / one.name)
            address = f"file:{quote(str(Path(folder) / path.name))}"
        with closing(sqlite3.connect(address, uri=True, check_same_thread=False)) as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST)
            connection.text_factory = _text
            connection.execute("pragma trusted_schema = off")
            yield Tables(connection)


def _can_be_stored(value: object) -> bool:
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    return value is None or isinstance(value, float | bytes) or (isinstance(value, str) and storable(value) == value)


def _text(data: bytes) -> str:
    return data.decode(errors="replace")
