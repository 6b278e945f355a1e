"""What users build on: the public names, and each operation and schema of the service's document as a hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hitherto
from hitherto.http.server.app import application
from hitherto.other_systems.paths import paths

FILE = Path(__file__).parent / "surface.json"


def surface() -> dict[str, Any]:
    """The public names in order; of each path and method, other systems' too, and of each schema, a hash of what the
    document says."""
    document = application(paths().add).openapi()
    operations: Mapping[str, Mapping[str, Any]] = document["paths"]
    return {
        "names": list(hitherto.__all__),
        "operations": {
            f"{method.upper()} {path}": _hash(operation)
            for path, methods in operations.items()
            for method, operation in methods.items()
        },
        "schemas": {name: _hash(schema) for name, schema in document["components"]["schemas"].items()},
    }


def write_surface() -> None:
    """Record it anew."""
    FILE.write_text(json.dumps(surface(), indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]
