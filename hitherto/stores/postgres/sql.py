"""The SQL statements by name, read once from the `.sql` files of this package."""

from __future__ import annotations

import re
from importlib import resources
from typing import LiteralString, cast

_FILES = (
    "connections.sql",
    "log/heads.sql",
    "log/log.sql",
    "log/listing.sql",
    "digests.sql",
    "log/purge.sql",
    "log/erasure.sql",
    "export.sql",
    "ledger.sql",
    "contexts.sql",
    "runs.sql",
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


def _load() -> dict[str, LiteralString]:
    folder = resources.files(__package__ or "")
    text = "".join(folder.joinpath(name).read_text(encoding="utf-8") for name in _FILES)
    blocks = re.split(r"^-- name: (\w+)\n", text, flags=re.MULTILINE)[1:]
    assert len({*blocks[::2]}) == len(blocks[::2]), "no two statements share a name"
    # The files ship with the package and are never built from input: their text is as literal as this source.
    return {
        name: cast(LiteralString, body.strip().rstrip(";"))
        for name, body in zip(blocks[::2], blocks[1::2], strict=True)
    }


SQL = _load()
