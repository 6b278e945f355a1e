"""The SQL statements by name, read once from the `.sql` files of this package.

A statement may have parts that others have too: `{opening}` stands for the block `-- part: opening`. They are put in
here and not called as functions or views, so that each statement says of each table that it reads which tenant's rows.
"""

from __future__ import annotations

import re
from importlib import resources
from typing import LiteralString, cast

_FILES = (
    "connections/connections.sql",
    "shown.sql",
    "log/forks.sql",
    "log/heads.sql",
    "log/log.sql",
    "log/branches.sql",
    "log/listing.sql",
    "digests.sql",
    "log/receipts.sql",
    "log/erase.sql",
    "log/erase_scope.sql",
    "runs.sql",
    "export.sql",
    "ledger.sql",
    "contexts.sql",
    "keys.sql",
    "inspection.sql",
    "documents.sql",
    "recall/search.sql",
    "recall/index.sql",
    "recall/entries.sql",
    "recall/segments.sql",
    "facts/facts.sql",
    "facts/learn.sql",
)


def _load() -> tuple[dict[str, LiteralString], dict[str, str]]:
    folder = resources.files(__package__ or "")
    text = "".join(folder.joinpath(name).read_text(encoding="utf-8") for name in _FILES)
    blocks = re.split(r"^-- (name|part): (\w+)\n", text, flags=re.MULTILINE)[1:]
    names = blocks[1::3]
    assert len({*names}) == len(names), "no two blocks share a name"
    statements, parts = dict[str, LiteralString](), dict[str, str]()
    for kind, name, body in zip(blocks[::3], names, blocks[2::3], strict=True):
        bare = re.sub(r"^\s*--.*$", "", body, flags=re.MULTILINE).strip().rstrip(";")
        # On one line: psycopg keeps what it finds out about a statement only if that has at most 4,096 characters.
        line = re.sub(r"\s*\n\s*", " ", bare)
        whole = re.sub(r"\{(\w+)\}", lambda part: parts[part[1]], line)
        if kind == "part":
            parts[name] = whole
        else:
            # The files ship with the package and are never built from input: their text is as literal as this source.
            statements[name] = cast(LiteralString, whole)
    return statements, parts


SQL, PARTS = _load()
"""The statements and the parts, by name."""
