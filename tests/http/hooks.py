"""What schemathesis is told before it runs: how a body of JSON lines is written, and what it reads wrongly."""

from __future__ import annotations

from typing import Any

import schemathesis


@schemathesis.serializer("application/jsonl")
def lines(ctx: schemathesis.SerializationContext, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode(errors="replace")


@schemathesis.hook
def before_load_schema(context: schemathesis.HookContext, raw_schema: dict[str, Any]) -> None:
    """Of answers, a list whose places have types is a list of any of them: schemathesis 4.32 takes its own reading of
    `prefixItems` in answers for a wrong schema."""
    answers = [one["responses"] for path in raw_schema["paths"].values() for one in path.values()]
    schemas = raw_schema["components"]["schemas"]
    _loosen([*answers, *(schema for name, schema in schemas.items() if not name.endswith("Request"))])


def _loosen(value: Any) -> None:
    if isinstance(value, dict):
        if "prefixItems" in value:
            value["items"] = {"anyOf": value.pop("prefixItems")}
        for part in value.values():
            _loosen(part)
    elif isinstance(value, list):
        for part in value:
            _loosen(part)
