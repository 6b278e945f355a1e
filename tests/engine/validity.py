"""What each API demands of the groups in a request, calls that are pending at its very end excepted (promise 8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from hitherto.core.log.message import ANTHROPIC, CHAT, RESPONSES, Payload
from tests.wire.rules import blocks


def assert_whole(wire: str, items: Sequence[Payload]) -> None:
    """Each result has its call where the API looks for it, each call its result unless it is pending at the end."""
    {CHAT: _chat, RESPONSES: _responses, ANTHROPIC: _anthropic}[wire](items)


def _chat(items: Sequence[Payload]) -> None:
    waiting: set[str] = set()
    last = max(
        (at for at, item in enumerate(items) if not item.get("tool_calls") and item["role"] != "tool"), default=0
    )
    for at, item in enumerate(items):
        if item["role"] == "tool":
            assert item["tool_call_id"] in waiting, f"a result without its call right before it: {item}"
            waiting.remove(item["tool_call_id"])
            continue
        assert not waiting or at > last, f"calls without results before {item}: {waiting}"
        calls = cast("list[Payload]", item.get("tool_calls") or [])
        waiting = {call["id"] for call in calls}
        assert len(waiting) == len(calls)
        assert item.get("tool_calls") is None or calls, "an empty list of calls"
    assert not waiting or len(items) - 1 > last, f"calls without results: {waiting}"


def _responses(items: Sequence[Payload]) -> None:
    waiting: dict[str, str] = {}
    made: set[str] = set()
    for item in items:
        kind: str = item.get("type", "message")
        if kind.endswith("_output"):
            assert waiting.pop(item["call_id"], None) == kind.removesuffix("_output"), (
                f"a result without its call: {item}"
            )
        elif kind.endswith("_call") and "call_id" in item:
            assert item["call_id"] not in made, f"a call made twice: {item}"
            made.add(item["call_id"])
            waiting[item["call_id"]] = kind
        elif item.get("role") == "user":
            assert not waiting, f"calls without results before {item}: {waiting}"


def _anthropic(items: Sequence[Payload]) -> None:
    waiting: list[str] = []
    assert not items or items[0]["role"] == "user", "a request opens with the user"
    tools = [any(block["type"].startswith("tool_") for block in blocks(item["content"])) for item in items]
    last = max((at for at, has in enumerate(tools) if not has), default=0)
    for at, item in enumerate(items):
        found = blocks(item["content"])
        assert found, "an empty message"
        results = [block["tool_use_id"] for block in found if block["type"] == "tool_result"]
        missing = set(waiting) - set(results)
        assert set(results) <= set(waiting), (
            f"results without their calls: {set(results) - set(waiting)} in {items[: at + 1]}"
        )
        assert len(set(results)) == len(results)
        assert not missing or at > last, f"calls without results: {missing}"
        assert all(block["type"] == "tool_result" for block in found[: len(results)]), "results come first"
        assert not results or item["role"] == "user"
        waiting = [block["id"] for block in found if block["type"] == "tool_use"]
        assert not waiting or item["role"] == "assistant"
