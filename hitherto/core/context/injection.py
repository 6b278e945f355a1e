"""Memory of a scope's earlier conversations, for the instructions of the next one."""

from __future__ import annotations

from hitherto.core.context.budget import TokenCounter

LEAD = "Cross-session memory: "
"""The beginning of the injected text."""


def injected(text: str, limit: int, counter: TokenCounter) -> str | None:
    """A digest's text as it goes into the instructions, at most `limit` tokens: of a longer one the newest statements.

    None when not even a part of the newest statement fits. The same text and limit give the same answer.
    """
    lines = text.split("\n")
    while len(lines) > 1 and counter.count(LEAD + "\n".join(lines)) > limit:
        lines = lines[1:]
    kept = "\n".join(lines)
    while kept and counter.count(LEAD + kept) > limit:
        shorter = kept[: len(kept) * 9 // 10]
        kept = shorter.rpartition(" ")[0] or shorter
    return LEAD + kept if kept.strip() else None
