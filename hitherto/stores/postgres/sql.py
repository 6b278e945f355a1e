"""The named statements of `queries.sql`, read once."""

from __future__ import annotations

import re
from importlib import resources
from typing import LiteralString, cast


def _load() -> dict[str, LiteralString]:
    text = resources.files(__package__ or "").joinpath("queries.sql").read_text(encoding="utf-8")
    blocks = re.split(r"^-- name: (\w+)\n", text, flags=re.MULTILINE)[1:]
    # The file ships with the package and is never made of input: its text is as literal as this source.
    return {
        name: cast(LiteralString, body.strip().rstrip(";"))
        for name, body in zip(blocks[::2], blocks[1::2], strict=True)
    }


SQL = _load()
