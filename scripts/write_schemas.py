"""Writes `docs/agent-stdio.schema.json`, the JSON Schemas of the loop's commands and events, from their types.

python scripts/write_schemas.py
"""

from __future__ import annotations

import json
from pathlib import Path

from hitherto.other_systems.session_strategies.events import schemas

OUTPUT = Path(__file__).resolve().parents[1] / "docs" / "agent-stdio.schema.json"


def text() -> str:
    """The text of the file, a schema a line."""
    parts = [
        f'"{part}": {{\n' + ",\n".join(f'  "{name}": {json.dumps(one)}' for name, one in found.items()) + "\n}"
        for part, found in schemas().items()
    ]
    return "{" + ",\n".join(parts) + "}\n"


if __name__ == "__main__":
    OUTPUT.write_text(text(), encoding="utf-8")
