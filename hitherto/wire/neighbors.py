"""Chat completions for templates that want user and assistant in turns, after at most one system message.

Those of Mistral, Gemma and Llama refuse anything else. Calls and their results do not count there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from hitherto.core.context.request import StablePart, WireFormat
from hitherto.core.log.message import Payload
from hitherto.wire.anthropic import NO_USER
from hitherto.wire.chat import ChatFormat
from hitherto.wire.sendable import with_name_in_words

NO_ANSWER: Final = "[no answer]"
"""Stands in for the assistant's words where the user speaks again after calls."""


_SPEAK: Final = {"system", "developer", "user", "assistant"}


class JoiningChatFormat(ChatFormat):
    """Chat completions with neighbors of one role in one message. System messages stand at the beginning."""

    system_apart = True

    def joining(self) -> WireFormat:
        return self

    def opening(self, first: Payload | None, system: Sequence[str | Payload]) -> Payload | None:
        begins = first is None or self.is_user(first)
        return super().opening(first, system) if begins else {"role": "user", "content": NO_USER}

    def takes_breakpoints(self, model: str | None) -> bool:
        return False

    def sendable(self, items: Sequence[Payload], *, halves: bool = True, framework: bool = False) -> list[Payload]:
        """Templates show no names: they stand in front of the words."""
        told = [with_name_in_words(one, "text") if "name" in one and one["role"] in _SPEAK else one for one in items]
        return super().sendable(told, halves=halves, framework=framework)

    def joined(self, items: Sequence[Payload]) -> list[Payload]:
        found: list[Payload] = []
        due = "user"
        for item in _with_tools(items):
            role, before = item["role"], found[-1] if found else {}
            if before.get("role") == role != "tool" and not before.get("tool_calls"):
                found[-1] = _joined(before, item)
            elif role == "user" and due == "assistant":
                found += [{"role": "assistant", "content": NO_ANSWER}, item]
            else:
                found.append(item)
            if role in ("user", "assistant"):
                due = "assistant" if role == "user" or found[-1].get("tool_calls") else "user"
        return found

    def request(
        self,
        *,
        system: Sequence[str | Payload],
        items: Sequence[Payload],
        tools: Sequence[Mapping[str, Any]],
        stable: StablePart | None = None,
        cache_key: str = "",
    ) -> dict[str, Any]:
        texts = [one if isinstance(one, str) else str(one["content"]) for one in system]
        whole = ["\n\n".join(texts)] if texts else []
        return super().request(system=whole, items=self.joined(items), tools=tools)


def _with_tools(items: Sequence[Payload]) -> Iterator[Payload]:
    """The items with calls of functions, and what they gave, as calls of tools: templates know no other."""
    calls: dict[str, str] = {}
    for at, item in enumerate(items):
        function = item.get("function_call")
        if function:
            calls[function["name"]] = f"function_{at}"
            call = {"id": f"function_{at}", "type": "function", "function": function}
            yield {**{key: one for key, one in item.items() if key != "function_call"}, "tool_calls": [call]}
        elif item["role"] == "function":
            yield {
                "role": "tool",
                "tool_call_id": calls.get(item["name"], "function"),
                "content": item.get("content") or "",
            }
        else:
            yield item


def _joined(first: Payload, second: Payload) -> Payload:
    """One message for two of a role, with a blank line between their texts."""
    mine, other = first.get("content"), second.get("content")
    if all(one is None or isinstance(one, str) for one in (mine, other)):
        content: object = "\n\n".join(filter(None, (mine, other)))
    else:
        content = [*_parts(mine), *_parts(other)]
    return {**first, **second, "content": content}


def _parts(content: object) -> list[Payload]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return cast("list[Payload]", content or [])
