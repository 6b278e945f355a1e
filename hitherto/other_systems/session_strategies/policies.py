"""The policies of such strategies, by their parameters' names."""

from __future__ import annotations

from collections.abc import Mapping

from hitherto import Policy, redact, summarize, trim
from hitherto.errors import InvalidPolicy


def trimming(max_turns: int = 20, keep_last_n_turns: int = 8) -> Policy:
    """`trim`. Raises InvalidPolicy."""
    return trim(max_turns, keep_last_n_turns)


def summarizing(context_limit: int = 20, keep_last_n_turns: int = 5) -> Policy:
    """`summarize`. Raises InvalidPolicy."""
    return summarize(context_limit, keep_last_n_turns)


def compacting(trigger: Mapping[str, int] | int = 8, keep: int = 3, calls: bool = False, at_least: int = 0) -> Policy:
    """`redact`, over `trigger` turns: a number, or `{"turns": n}`. Raises InvalidPolicy."""
    given = trigger if isinstance(trigger, Mapping) else {"turns": trigger}
    if set(given) != {"turns"}:
        raise InvalidPolicy(f"trigger is {trigger!r}; give a number of turns, or {{'turns': n}}")
    return redact(given["turns"], keep, calls, at_least)
