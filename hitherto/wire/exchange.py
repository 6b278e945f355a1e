"""Tool calls with their results, whatever order and format they have in the log, as a wire format writes them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from hitherto.core.log.message import Kind, Message


@dataclass(slots=True, eq=False)
class Exchange:
    """`speakers` are messages other than results, `results` those of the calls that they make, `calls` the ids of these
    calls, and `missing` those that need a placeholder.

    Without calls it is a plain run of messages; without speakers, a result whose call is not among the messages.
    """

    speakers: list[Message] = field(default_factory=list[Message])
    results: list[Message] = field(default_factory=list[Message])
    calls: list[str] = field(default_factory=list[str])
    missing: list[str] = field(default_factory=list[str])


def exchanges(messages: Sequence[Message], unanswered: Collection[str] = ()) -> list[Exchange]:
    """`messages` in order, but with each result in the exchange that made its call, at the place of that call.

    `unanswered` are calls that get a placeholder, unless they have a result after all. A reused id belongs to the
    newest call; a second result for a call belongs to no call. A message with results for several exchanges joins them
    into one, at the place of the first: no API accepts a result before its call.
    """
    found: list[Exchange] = []
    by_call: dict[str, Exchange] = {}
    for message in messages:
        current = found[-1] if found else None
        if message.kind is Kind.TOOL_RESULT:
            owners = {by_call.pop(call) for call in message.answers if call in by_call}
            _joined([one for one in found if one in owners], found, by_call).results.append(message)
            continue
        goes_on = message.kind in (Kind.TOOL_CALL, Kind.REASONING) and not set(message.calls) & by_call.keys()
        if current is None or current.results or (current.calls and not goes_on):
            current = Exchange(_thoughts_behind(current))
            found.append(current)
        current.speakers.append(message)
        current.calls += message.calls
        by_call.update(dict.fromkeys(message.calls, current))
    wanted = set(unanswered)
    for exchange in found:
        answered = {call for message in exchange.results for call in message.answers}
        exchange.missing = [call for call in exchange.calls if call in wanted and call not in answered]
    return found


def _thoughts_behind(current: Exchange | None) -> list[Message]:
    """Takes the reasoning at its end from an exchange that waits for results: it belongs to what follows."""
    if current is None or not current.calls or current.results:
        return []
    last = max(at for at, one in enumerate(current.speakers) if one.kind is not Kind.REASONING)
    behind = current.speakers[last + 1 :]
    del current.speakers[last + 1 :]
    return behind


def _joined(owners: Sequence[Exchange], found: list[Exchange], by_call: dict[str, Exchange]) -> Exchange:
    """The first of `owners` with the others merged into it, or a new exchange if there are none."""
    if not owners:
        found.append(Exchange())
        return found[-1]
    first, *others = owners
    for other in others:
        first.speakers += other.speakers
        first.results += other.results
        first.calls += other.calls
        found.remove(other)
        by_call.update({call: first for call, owner in by_call.items() if owner is other})
    return first
