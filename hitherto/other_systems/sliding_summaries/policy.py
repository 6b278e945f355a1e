"""The policy of such a system, by its parameters' names."""

from __future__ import annotations

from hitherto import Policy, sliding_window


def rolling_window(memory_rolling_window_size: int = 14, memory_summarize_after_seq: int = 5) -> Policy:
    """`sliding_window`. Raises InvalidPolicy."""
    return sliding_window(memory_rolling_window_size, memory_summarize_after_seq)
