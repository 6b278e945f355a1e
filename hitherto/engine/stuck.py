"""Digests whose process must have died."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from hitherto.core.head import Head
from hitherto.ports.store import Outcome


def stuck_digests(head: Head, after: timedelta) -> frozenset[int]:
    """The digests that have been in progress for longer than `after`, by the store's clock."""
    return frozenset(one.id for one in head.running if one.created_at < head.now - after)


def given_up(digests: Iterable[int]) -> tuple[Outcome, ...]:
    """What is written to them: failed, so that the next round is free to try again."""
    error = "given up: in progress for too long, its process must have died"
    return tuple(Outcome(digest=digest, error=error) for digest in sorted(digests))
