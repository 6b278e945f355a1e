"""The policy of such a system, by its parameters' names."""

from __future__ import annotations

from hitherto import Policy, chunks


def rolling_chunks(SUMMARIZATION_THRESHOLD: int = 30, BATCH_SIZE: int = 20, top_k: int = 3) -> Policy:
    """`chunks`. Raises InvalidPolicy."""
    return chunks(SUMMARIZATION_THRESHOLD, BATCH_SIZE, top_k=top_k)
