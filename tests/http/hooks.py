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
    `prefixItems` in answers for a wrong schema. Nor does a stream of events have the schema of its text, which it takes
    for that of each event."""
    answers = [one["responses"] for path in raw_schema["paths"].values() for one in path.values()]
    for answer in (one for of_path in answers for one in of_path.values()):
        answer.get("content", {}).get("text/event-stream", {}).pop("schema", None)
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
