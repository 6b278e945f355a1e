"""A circuit breaker: it stops calls to an endpoint that keeps failing. Pure: callers pass the time."""

from __future__ import annotations

_LONGEST = 8
"""The longest rest, as a multiple of the first."""


class Breaker:
    """Closed until `failures` calls in a row have failed; then open for `rest` seconds, in which no call is made. After
    that one call is let through. If it succeeds, the breaker closes; if it fails, the breaker opens for twice as long
    as the last time, at most eight times `rest`.

    A call that is let through gets a ticket, and its outcome is reported with that ticket. The outcome of a call that
    began before the breaker last opened or closed is ignored. Times are seconds on a monotonic clock.
    """

    def __init__(self, *, failures: int, rest: float) -> None:
        self._allowed = failures
        self._first_rest = self._rest = rest
        self._failed = self._ticket = 0
        self._until: float | None = None
        self._probing = False

    def wait(self, now: float) -> float:
        """The seconds, at least, for which no call may be made; 0 if a call may be made."""
        if self._until is None:
            return 0.0
        return self._first_rest if self._probing else max(self._until - now, 0.0)

    def admitted(self, now: float) -> int | None:
        """A ticket for a call that is made now; None if no call may be made."""
        if self.wait(now) > 0:
            return None
        self._probing = self._until is not None
        return self._ticket

    def succeeded(self, ticket: int) -> None:
        """The call was answered, though perhaps with a refusal."""
        if ticket == self._ticket:
            self._turn(None, self._first_rest)

    def failed(self, ticket: int, now: float) -> bool:
        """The call got no answer. Returns whether the breaker opened with it."""
        if ticket != self._ticket:
            return False
        self._failed += 1
        if self._until is None and self._failed < self._allowed:
            return False
        rest = self._first_rest if self._until is None else min(2 * self._rest, _LONGEST * self._first_rest)
        self._turn(now + rest, rest)
        return True

    def abandoned(self, ticket: int) -> None:
        """The call ended without an outcome: another may be let through."""
        if ticket == self._ticket:
            self._probing = False

    def _turn(self, until: float | None, rest: float) -> None:
        if until is not None or self._until is not None:
            self._ticket += 1
        self._until, self._rest, self._probing, self._failed = until, rest, False, 0
