"""JSON schemas for the answers to digest prompts.

Every key is required and no other is allowed, as strict endpoints demand.
"""

from __future__ import annotations

from typing import Any

from hitherto.core.facts.fact import OTHER


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": of}


def _one_of(*values: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(dict.fromkeys(values))}


_INTEGER = {"type": "integer"}
_NUMBER = {"type": "number"}
_STRING = {"type": "string"}


def digest_schema(categories: tuple[str, ...] | None = None) -> dict[str, Any]:
    """The schema of the changes to a digest; with `categories` also of facts, each in one of them or in "other".

    Bounds of numbers and lengths are left out: not every endpoint takes them in a schema.
    """
    parts = {
        "add": _list(_object(text=_STRING, sources=_list(_INTEGER))),
        "replace": _list(_object(item=_INTEGER, text=_STRING, sources=_list(_INTEGER))),
        "drop": _list(_INTEGER),
    }
    if categories is not None:
        fact = _object(
            category=_one_of(*categories, OTHER),
            content=_STRING,
            sources=_list(_INTEGER),
            confidence=_NUMBER,
            relation=_one_of("new", "repeats", "replaces"),
            known=_INTEGER,
        )
        parts["facts"] = _list(fact)
    return _object(**parts)


DIGEST_SCHEMA = digest_schema()
CONDENSE_SCHEMA = _object(items=_list(_object(text=_STRING, items=_list(_INTEGER))))
