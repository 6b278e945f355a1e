"""The policy of such a system, by its parameters' names."""

from __future__ import annotations

from hitherto import Policy, none, rolling


def synopsis(summaryEnabled: bool = False, summaryThreshold: int = 40, summaryKeepLast: int = 12) -> Policy:
    """`rolling` where it is enabled, else `none`. Raises InvalidPolicy."""
    return rolling(summaryThreshold, summaryKeepLast) if summaryEnabled else none()
